"""What flow facts tell the analysis before it begins: depths of recursion, targets of branches, ranges of arguments.

Words: flow fact, context, control-flow reconstruction (docs/explanation/glossary.md).

*Soundness:* each is an assumption that results list; a fact about code that has changed is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.domains.strided import StridedInterval
from wcet_probe.analyzer.facts.binding import Analysed, check_place
from wcet_probe.analyzer.facts.call_fields import targets_through_fields
from wcet_probe.analyzer.facts.expressions import evaluate
from wcet_probe.analyzer.facts.inlined_lines import Inlining
from wcet_probe.analyzer.facts.language import ArgumentFact, CallsFact, Facts, Pointee
from wcet_probe.analyzer.facts.merged_functions import may_be_another
from wcet_probe.analyzer.facts.source_index import SourceIndex
from wcet_probe.analyzer.facts.source_parts import SourceFunction
from wcet_probe.build.compilers import functions_of_clang
from wcet_probe.build.image import require_symbol
from wcet_probe.errors import UsageError, unknown_name
from wcet_probe.model.image import Image
from wcet_probe.model.instruction import Control, Instruction
from wcet_probe.model.proof import Assumption
from wcet_probe.model.target import Isa


def recursion_depths(facts: Facts, image: Image, parameters: Mapping[str, int], index: SourceIndex) -> dict[str, int]:
    """How often a function may stand in a call path, by its name.

    Raises:
        UsageError: a fact is wrong.

    *Soundness:* as said of the module.
    """
    everything = Analysed(image, [function.name for function in image.functions], ())
    for fact in facts.recursions:
        check_place(fact.where, fact.place, fact.sha256, index, everything)
    return {
        fact.place.function: evaluate(fact.max_depth, parameters)
        for fact in facts.recursions
        if fact.max_depth is not None
    }


def asserted_targets(
    facts: Facts,
    image: Image,
    instructions: Sequence[Instruction],
    index: SourceIndex,
    sources: Mapping[str, str] = MappingProxyType({}),
) -> dict[int, tuple[int, ...]]:
    """Targets of indirect branches and calls, by the address of the instruction.

    A fact about one place goes before one about a member, whose calls are found in ``sources``. One about a line or a
    point speaks of calls, and of jumps where its function has no ``switch``, whose jump stands on a line, too.

    Raises:
        UsageError: a fact is wrong.

    *Soundness:* as said of the module.
    """
    everything = Analysed(image, [function.name for function in image.functions], ())
    asserted = targets_through_fields(facts, image, instructions, sources)
    of_clang = functions_of_clang(image) if facts.calls else ()
    entered = _entered(image, instructions) if facts.calls else {}
    for fact in facts.calls:
        ranges = check_place(fact.where, fact.place, fact.sha256, index, everything)
        targets = tuple(require_symbol(image, name).address for name in fact.targets)
        shared = _shared_targets(fact, facts, image, index)
        for instruction in instructions:
            if not any(instruction.address in code for code in ranges) or instruction.branch_target is not None:
                continue
            function = image.function_at(instruction.address)
            is_shared = fact.place.offset is None and (function is None or function.address not in of_clang)
            is_meant = instruction.control is Control.CALL or fact.place.offset is not None
            is_told = not is_shared or (shared is not None and not _is_of_another(instruction, image, entered, index))
            if is_told and (is_meant or not index.may_switch(*_function(fact))):
                asserted[instruction.address] = tuple(sorted(shared)) if is_shared and shared else targets
    return asserted


def _function(fact: CallsFact) -> tuple[str, str | None, int | None]:
    return fact.place.function, fact.place.file, fact.place.line


def _entered(image: Image, instructions: Sequence[Instruction]) -> Mapping[str, Sequence[tuple[str, int] | None]]:
    """The lines of the instructions that go to the start of a function, by its name."""
    starts = {function.address & ~1: function.name for function in image.functions}
    found: dict[str, list[tuple[str, int] | None]] = {}
    for one in instructions:
        if one.branch_target in starts:
            found.setdefault(starts[one.branch_target], []).append(image.lines.find(one.address))
    return found


def _is_of_another(
    instruction: Instruction,
    image: Image,
    entered: Mapping[str, Sequence[tuple[str, int] | None]],
    index: SourceIndex,
) -> bool:
    """Whether GCC may have made a call of that in an equal function, too, see `merged_functions`."""
    function = image.function_at(instruction.address)
    if function is None:
        return True
    known = {one.name for source in index.files.values() for one in source.functions}

    def has_call(one: SourceFunction) -> bool:
        return any(each.computed or not each.calls <= known for each in index.inside(one.name))

    inlined = Inlining(image, [function.name]).callees(instruction.address)
    return may_be_another(function.name, entered.get(function.name, ()), inlined, index, image, has_call)


def _shared_targets(fact: CallsFact, facts: Facts, image: Image, index: SourceIndex) -> set[int] | None:
    """What a call of GCC's code on the line of ``fact`` may reach; None where that is not clear.

    *Soundness:* GCC makes one call of two that end two ways, with the line of one: it may be any call of the function
    that goes through a pointer, and so all of these have to have a fact.
    """
    if fact.place.offset is not None:
        return set()
    function = index.function(*_function(fact))
    known = {one.name for source in index.files.values() for one in source.functions}
    known |= {name for name, one in image.symbols.items() if one.is_function} | index.macros.keys()
    named = {line for name, line in index.files[function.file].calls if name not in known}
    lines = {line for line in named | function.computed if function.first_line <= line <= function.last_line}
    own = [one for one in facts.calls if one.place.offset is None and index.function(*_function(one)) == function]
    told = {one.place.line for one in own}
    told |= {
        each.line for each in index.points(function.name, function.file) for one in own if one.place.name == each.name
    }
    return {require_symbol(image, name).address for one in own for name in one.targets} if lines <= told else None


def argument_ranges(
    facts: Facts, entry: str, image: Image, parameters: Mapping[str, int]
) -> dict[str | int, StridedInterval]:
    """The ranges of what ``entry`` is given in arguments that facts speak of, by `argument_place`.

    Raises:
        UsageError: a range is empty, or there is no such symbol.

    *Soundness:* as said of the module.
    """
    ranges: dict[str | int, StridedInterval] = {}
    for fact in facts.arguments:
        if fact.function == entry:
            ranges[argument_place(fact, image.isa)] = strided.between(32, *argument_range(fact, image, parameters))
    return ranges


def argument_place(fact: ArgumentFact, isa: Isa) -> str | int:
    """The register that holds the argument, by name; of one on the stack its offset from the stack pointer at entry.

    Arguments are words: one of 64 bits is two of them. (AAPCS32, §6.5; Power Architecture 32-bit ABI Supplement 1.0,
    §3.2.3: behind the back chain and the word for the link register.)
    """
    if fact.index is None:
        return str(fact.register)
    first, most, behind = (3, 8, 8) if isa is Isa.POWERPC else (0, 4, 0)
    return f"r{first + fact.index}" if fact.index < most else behind + 4 * (fact.index - most)


def argument_range(fact: ArgumentFact, image: Image, parameters: Mapping[str, int]) -> tuple[int, int]:
    """Least and greatest value that ``fact`` tells.

    Raises:
        UsageError: the range is empty, or there is no such symbol.

    *Soundness:* as said of the module.
    """
    if fact.points_to is not None:
        address = address_of(fact.points_to, image, fact.where)
        return address, address
    low, high = evaluate(fact.minimum, parameters), evaluate(fact.maximum, parameters)
    if low > high:
        raise UsageError(f"{fact.where}: the least value, {low}, is above the greatest, {high}; correct one.")
    return low, high


def address_of(pointee: Pointee, image: Image, where: str) -> int:
    """What a pointer to ``pointee``, told of at ``where``, holds: of a Thumb function its address and the bit for that.

    Raises:
        UsageError: there is no such symbol.

    *Soundness:* exact.
    """
    if pointee.symbol not in image.symbols:
        problem = unknown_name("symbol of the image", pointee.symbol, image.symbols)
        raise UsageError(f"{where}: key points_to: {problem}")
    symbol = image.symbols[pointee.symbol]
    is_thumb = symbol.is_function and image.isa is Isa.THUMB
    return symbol.address + pointee.offset + is_thumb


def other_assumptions(facts: Facts, entry: str, analysed: Analysed) -> Iterator[Assumption]:
    """What facts about arguments, recursion and calls take as given of the values of ``entry``, and the lemmas.

    *Soundness:* each fact that the values can rest on is told.
    """
    for argument in facts.arguments:
        if argument.function == entry:
            name = argument.register if argument.index is None else f"argument {argument.index}"
            is_what = f"is {argument.minimum} to {argument.maximum}"
            if argument.points_to is not None:
                is_what = f"points to {argument.points_to}"
            text = f"{name} {is_what} at entry: {argument.because}"
            yield Assumption(f"fact {argument.where}", text, "no run can check it: it is the caller's")
    for recursion in facts.recursions:
        if recursion.place.function in analysed.functions:
            if recursion.max_depth is None:
                continue  # `recursive_calls` states it
            text = f"at most {recursion.max_depth} calls of {recursion.place.function} are open: {recursion.because}"
            yield Assumption(f"fact {recursion.where}", text, "not checked: no run counts open calls")
    for calls in facts.calls:
        if calls.place.function in analysed.functions:
            text = f"{calls.place} goes only to {', '.join(calls.targets)}: {calls.because}"
            yield Assumption(f"fact {calls.where}", text, "every call that the second engine repeats")
    for lemma in facts.lemmas:
        yield Assumption(f"lemma {lemma.id}", f"{lemma.statement}: {lemma.because}", lemma.check)
