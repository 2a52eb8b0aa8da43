"""The question: of what a bound is to be proved, under which facts.

Words: flow fact, WCET (docs/explanation/glossary.md).

*Soundness:* none is claimed; what is assumed here each answer lists.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from wcet_probe.analyzer.facts.language import Facts
from wcet_probe.analyzer.ipet.flow_problem import Unit
from wcet_probe.model.image import Image
from wcet_probe.model.instruction import Instruction, InstructionCost
from wcet_probe.model.proof import Assumption
from wcet_probe.model.target import Target


@dataclass(frozen=True, slots=True)
class GivenBound:
    """The bound of a function that a certificate gives.

    Attributes:
        where: the fact that names the certificate.
        function: the binary function.
        most: instructions and cycles of one call.
        assumptions: what that rests on, the certificate first.
    """

    where: str
    function: str
    most: Mapping[Unit, int]
    assumptions: tuple[Assumption, ...]


@dataclass(frozen=True, slots=True)
class InitialData:
    """What memory holds at entry.

    Attributes:
        content: what is constant for the whole call, by address in order, without overlaps.
        source: in words where that is from.
        entry: all that is known of where the call begins, what it writes included; None where that is ``content``.
        is_followed: whether the bound of the run that it decides is known already, and less is worth while.
        is_long: whether it is known already that the run is longer than a function is followed on its values.
    """

    content: tuple[tuple[int, bytes], ...]
    source: str
    entry: tuple[tuple[int, bytes], ...] | None = None
    is_followed: bool = False
    is_long: bool = False

    @property
    def at_entry(self) -> tuple[tuple[int, bytes], ...]:
        """What is known of where the call begins."""
        return self.content if self.entry is None else self.entry


@dataclass(frozen=True, slots=True)
class BoundRequest:
    """What is to be proved.

    Attributes:
        image: the binary.
        target: the core.
        instructions: the image's code, decoded, with ``costs`` of each.
        entry: name of the analysed function.
        facts: flow facts about it.
        sources: texts of its source files by name, as far as they are known.
        parameters: values of the parameters that flow facts speak of.
        summaries: whether calls need not be expanded where the graph would be too large. What is said of points,
            accesses and registers is then only said of what is expanded, against which no run can be held; loops and
            costs are said of all.
        given: bounds of callees, by their address, which are checked before.
        initial: what memory holds at entry, where that is assumed; then all calls are expanded.
        keeps_saved: whether it may be assumed that no other store changes what functions save of registers.
        stack_pointer: its value at entry, where that is assumed: it tells the cache sets of the stack.
        is_trial: whether a proof follows that may assume more: then this one ends where the stack pointer of a call is
            lost, and no more calls are expanded for that.
        keeps_dead_ends: whether values are told of what does not return, too, but for what the code alone tells of.
    """

    image: Image
    target: Target
    instructions: Sequence[Instruction]
    costs: Sequence[InstructionCost]
    entry: str
    facts: Facts
    sources: Mapping[str, str]
    parameters: Mapping[str, int]
    summaries: bool = False
    given: Mapping[int, GivenBound] = field(default_factory=dict)
    initial: InitialData | None = None
    keeps_saved: bool = False
    stack_pointer: int | None = None
    is_trial: bool = False
    keeps_dead_ends: bool = False
