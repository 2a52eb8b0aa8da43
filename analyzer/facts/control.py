"""What flow facts tell the analysis before it begins: depths of recursion, targets of branches, ranges of arguments.

Words: flow fact, context, control-flow reconstruction (docs/explanation/glossary.md).

*Soundness:* each is an assumption that results list; a fact about code that has changed is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.domains.strided import StridedInterval
from wcet_probe.analyzer.facts.binding import Analysed, check_place
from wcet_probe.analyzer.facts.call_fields import targets_through_fields
from wcet_probe.analyzer.facts.expressions import evaluate
from wcet_probe.analyzer.facts.language import ArgumentFact, Facts, Pointee
from wcet_probe.analyzer.facts.source_index import SourceIndex
from wcet_probe.build.image import require_symbol
from wcet_probe.errors import UsageError, unknown_name
from wcet_probe.model.image import Image
from wcet_probe.model.instruction import Instruction
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

    A fact about one place goes before one about a member, whose calls are found in ``sources``.

    Raises:
        UsageError: a fact is wrong.

    *Soundness:* as said of the module.
    """
    everything = Analysed(image, [function.name for function in image.functions], ())
    asserted = targets_through_fields(facts, image, instructions, sources)
    for fact in facts.calls:
        ranges = check_place(fact.where, fact.place, fact.sha256, index, everything)
        targets = tuple(require_symbol(image, name).address for name in fact.targets)
        for instruction in instructions:
            if any(instruction.address in code for code in ranges) and instruction.branch_target is None:
                asserted[instruction.address] = targets
    return asserted


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
