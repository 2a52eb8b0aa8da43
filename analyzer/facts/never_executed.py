"""Calls that facts say are never made, and instructions that no table has: control ends there, as in a trap.

An infeasible fact by line or by a point is a constraint (`flow`), as its block is in the graph; so is one by the offset
of any other instruction, if that is a block of its own, and else a fact without effect. A call whose targets are not
known, or whose callee has a loop without a bound, has no graph to be in. So it is taken out before the analysis begins,
where the fact names it by its offset.

Words: flow fact, dead end (docs/explanation/glossary.md).

*Soundness:* each is an assumption that results list wherever the instruction was come to, and every emulated run counts
how often it is executed. One that has a condition of its own is left as it is: it would be counted where it is skipped.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from wcet_probe.analyzer.facts.binding import Analysed, check_place
from wcet_probe.analyzer.facts.language import Facts, InfeasibleFact
from wcet_probe.analyzer.facts.source_index import SourceIndex
from wcet_probe.build.image import require_symbol
from wcet_probe.model.image import Image
from wcet_probe.model.instruction import Control, Instruction
from wcet_probe.model.proof import FlowClaim


def never_executed(
    facts: Facts, image: Image, instructions: Sequence[Instruction], index: SourceIndex
) -> frozenset[int]:
    """Addresses of the calls, and of the instructions without a known cost, that facts by offset say are not executed.

    Raises:
        UsageError: the function of such a fact does not exist, or has changed.

    *Soundness:* as said of the module.
    """
    everything = Analysed(image, [function.name for function in image.functions], ())
    told = set()
    for fact in facts.infeasible:
        if fact.place.offset is not None:
            check_place(fact.where, fact.place, fact.sha256, index, everything)
            told.add(_address(fact, image))
    return frozenset(one.address for one in instructions if one.address in told and _stands_in_the_way(one))


def claims_of_cuts(facts: Facts, analysed: Analysed) -> Iterator[FlowClaim]:
    """What is claimed of the instructions that were taken out, as far as the analysis came to them.

    *Soundness:* as said of the module.
    """
    for fact in facts.infeasible:
        if fact.place.offset is not None and (address := _address(fact, analysed.image)) in analysed.cut:
            statement = f"{fact.place} is never executed: {fact.because}"
            yield FlowClaim(fact.where, statement, ((address, 1),), (), 0)


def _address(fact: InfeasibleFact, image: Image) -> int:
    return require_symbol(image, fact.place.function).address + (fact.place.offset or 0)


def _stands_in_the_way(instruction: Instruction) -> bool:
    return instruction.control in {Control.CALL, Control.INDIRECT} or bool(instruction.problem)
