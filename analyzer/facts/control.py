"""What flow facts tell the analysis before it begins: depths of recursion, targets of branches, ranges of arguments.

Words: flow fact, context, control-flow reconstruction (docs/explanation/glossary.md).

*Soundness:* each is an assumption that results list; a fact about code that has changed is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.domains.strided import StridedInterval
from wcet_probe.analyzer.facts.binding import Analysed, check_place
from wcet_probe.analyzer.facts.expressions import evaluate
from wcet_probe.analyzer.facts.language import Facts
from wcet_probe.analyzer.facts.source_match import SourceIndex
from wcet_probe.build.image import require_symbol
from wcet_probe.errors import UsageError
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
    facts: Facts, image: Image, instructions: Sequence[Instruction], index: SourceIndex
) -> dict[int, tuple[int, ...]]:
    """Targets of indirect branches and calls, by the address of the instruction.

    Raises:
        UsageError: a fact is wrong.

    *Soundness:* as said of the module.
    """
    everything = Analysed(image, [function.name for function in image.functions], ())
    asserted: dict[int, tuple[int, ...]] = {}
    for fact in facts.calls:
        ranges = check_place(fact.where, fact.place, fact.sha256, index, everything)
        targets = tuple(require_symbol(image, name).address for name in fact.targets)
        for instruction in instructions:
            if any(instruction.address in code for code in ranges) and instruction.branch_target is None:
                asserted[instruction.address] = targets
    return asserted


def argument_ranges(facts: Facts, entry: str, isa: Isa, parameters: Mapping[str, int]) -> dict[str, StridedInterval]:
    """The ranges of registers in which ``entry`` is given arguments that facts speak of.

    Raises:
        UsageError: a range is empty, or an argument on the stack.

    *Soundness:* as said of the module.
    """
    first, most = (3, 8) if isa is Isa.POWERPC else (0, 4)
    ranges: dict[str, StridedInterval] = {}
    for fact in facts.arguments:
        if fact.function == entry:
            if fact.index is not None and fact.index >= most:
                raise UsageError(
                    f"{fact.where}: argument {fact.index} is on the stack, those up to {most - 1} are in registers; "
                    "leave the fact out, and bound the loops that need it."
                )
            register = fact.register if fact.index is None else f"r{first + fact.index}"
            low, high = evaluate(fact.minimum, parameters), evaluate(fact.maximum, parameters)
            if low > high:
                raise UsageError(f"{fact.where}: the least value, {low}, is above the greatest, {high}; correct one.")
            ranges[str(register)] = strided.between(32, low, high)
    return ranges
