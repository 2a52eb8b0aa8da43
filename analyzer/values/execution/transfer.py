"""Abstract execution of p-code: what an instruction makes of a state, and under which condition control goes where.

Words: transfer function, abstract state, stack separation (docs/explanation/glossary.md).

*Soundness:* as of `instruction_run`, for each instruction in turn; where ways within a block meet, states are joined.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

from wcet_probe.analyzer.pcode.lift import Lifter
from wcet_probe.analyzer.pcode.operations import LiftedInstruction, PcodeOp
from wcet_probe.analyzer.values.execution.accesses import Access, WordTransfer
from wcet_probe.analyzer.values.execution.computations import Computation, computations, compute
from wcet_probe.analyzer.values.execution.instruction_run import Flow, InstructionRun
from wcet_probe.analyzer.values.execution.lost_flow import LostFlowError
from wcet_probe.analyzer.values.execution.needed_operations import Needed
from wcet_probe.analyzer.values.execution.prepared_instruction import PreparedInstruction
from wcet_probe.analyzer.values.execution.saved_words import moves, release, stack_pointer
from wcet_probe.analyzer.values.states.joins import join
from wcet_probe.analyzer.values.states.learning import settle_stack_addresses
from wcet_probe.analyzer.values.states.memory import Memory
from wcet_probe.analyzer.values.states.state import State
from wcet_probe.analyzer.values.symbolic.locations import Location
from wcet_probe.analyzer.values.symbolic.terms import Terms
from wcet_probe.errors import AnalysisError
from wcet_probe.identity import Same

_MOST_FLOWS = 2
"""Ways that predicated instructions under one condition, or its opposite, are followed on before they meet."""


class _Prepared(NamedTuple):
    """An instruction with its needed operations: their numbers, and what they are where control goes straight on.

    It ``releases`` if the stack pointer moves, or registers are saved, and it is assumed that these stay.
    """

    instruction: PreparedInstruction
    steps: tuple[Computation | int, ...]
    needed: Sequence[int]
    releases: bool


class Transfer:
    """Executes lifted instructions on states.

    Args:
        lifter, terms, memory: what it works with.
        meetings: is told where ways within one instruction meet: the place's name, their states, and what they make.
        needed: which operations of each point's block are executed; all, where it does not tell.
    """

    def __init__(
        self,
        lifter: Lifter,
        terms: Terms,
        memory: Memory,
        meetings: Callable[[tuple[int, ...], Sequence[State], State], None] | None = None,
        needed: Mapping[int, Needed] = MappingProxyType({}),
    ) -> None:
        self._lifter, self._terms, self._memory, self._meetings = lifter, terms, memory, meetings
        self._context = terms, memory, lifter
        self._needed = needed
        self._stack_pointer = stack_pointer(lifter)
        self._saving = {address for address, _ in memory.saving}
        self._steps: dict[tuple[Same[tuple[PcodeOp, ...]], Sequence[int]], tuple[Computation | int, ...]] = {}
        self._blocks: dict[int, tuple[Sequence[LiftedInstruction], tuple[_Prepared, ...]]] = {}

    def block(
        self,
        place: int,
        instructions: tuple[LiftedInstruction, ...],
        state: State,
        accesses: Callable[[Access], None] | None = None,
        transfers: Callable[[WordTransfer], None] | None = None,
    ) -> list[Flow]:
        """What a block makes of ``state``, which is used up.

        Args:
            place: the point; symbols that are defined in it carry its number.
            instructions: the block's.
            state: at its entry.
            accesses: is told of each data access.
            transfers: is told of each load and store, with the state before it.

        Returns:
            how control may leave the block; empty where it cannot.

        Raises:
            AnalysisError: an operation whose effect is not known.
            LostFlowError: control symbols the block before its end.
        """
        prepared, dead = self._block(place, instructions)
        last, fork, flows = len(instructions) - 1, state, [Flow("fall", None, state)]
        make = partial(
            InstructionRun, (self._terms, self._memory, self._lifter), place, accesses=accesses, transfers=transfers
        )
        for number, (one, steps, own, releases) in enumerate(prepared):
            if one.is_straight:
                for flow in flows:
                    self._straight(make, one, steps, flow.state)
                flows = [Flow("fall", one.following, flow.state) for flow in flows]
            else:
                fork, run = flows[0].state.copy() if len(flows) == 1 else fork, make(one)
                flows = [way for flow in flows for way in self._branching(run, flow.state, frozenset(own))]
            self._release(flows if releases else ())
            if number == last:
                break
            if lost := next((flow for flow in flows if flow.way != "fall"), None):
                raise LostFlowError(self._memory.image.location(one.instruction.address), lost.way, lost.address)
            if not flows:
                return []
            if len(flows) > _MOST_FLOWS or not one.is_under_the_condition_of(prepared[number + 1].instruction):
                flows = [self._merged(flows, (place, *one.end), fork)]
        falling = [flow for flow in flows if flow.way == "fall"]
        flows = [flow for flow in flows if flow.way != "fall"]
        if falling:
            flows.insert(0, self._merged(falling, (place, *prepared[last].instruction.end), fork))
        for flow in flows if len(flows) > 1 else ():
            settle_stack_addresses(flow.state)
        return _without_dead(flows, dead)

    def _release(self, flows: Iterable[Flow]) -> None:
        """The stack pointer may have moved."""
        for flow in flows:
            release(flow.state, self._stack_pointer)

    def _block(
        self, place: int, instructions: Sequence[LiftedInstruction]
    ) -> tuple[Sequence[_Prepared], Sequence[Location]]:
        """What is told once of a block, and the flags that nobody reads behind it."""
        needed, known = self._needed.get(place), self._blocks.get(place)
        if known is None or known[0] is not instructions:
            known = self._blocks[place] = instructions, tuple(self._prepare(instructions, needed))
        return known[1], needed.dead if needed else ()

    def _prepare(self, instructions: Sequence[LiftedInstruction], needed: Needed | None) -> Iterator[_Prepared]:
        for number, instruction in enumerate(instructions):
            own = needed.operations[number] if needed else tuple(range(len(instruction.ops)))
            prepared, key = PreparedInstruction.of(instruction, self._lifter), (Same(instruction.ops), own)
            if key not in self._steps:
                self._steps[key] = computations(prepared, self._terms, own) if prepared.is_straight else ()
            is_saving = instruction.address in self._saving
            releases = bool(self._saving) and (is_saving or moves(instruction, self._stack_pointer))
            yield _Prepared(prepared, self._steps[key], own, releases)

    @staticmethod
    def _straight(
        make: Callable[[PreparedInstruction], InstructionRun],
        instruction: PreparedInstruction,
        steps: Sequence[Computation | int],
        state: State,
    ) -> None:
        """Execute an instruction that falls through; what is no computation needs that a run of it is made."""
        run = None
        for step in steps:
            if isinstance(step, int) or not compute(step, state):
                run = run or make(instruction)
                run.straight(step if isinstance(step, int) else step.number, state)
        state.forget([at for at in instruction.temporaries if at in state.locations])

    def _branching(self, run: InstructionRun, state: State, needed: frozenset[int]) -> list[Flow]:
        """How control leaves an instruction; where it falls through on several ways, these do not meet yet."""
        flows = self._flows(run, Flow("fall", run.prepared.following, state), needed)
        for flow in flows:
            flow.state.forget([at for at in run.prepared.temporaries if at in flow.state.locations])
        return flows

    def _flows(self, run: InstructionRun, first: Flow, needed: frozenset[int]) -> list[Flow]:
        """How control leaves an instruction that branches, or goes its own ways inside."""
        pending: dict[int, list[Flow]] = {0: [first]}
        fork = first.state.copy()
        done: list[Flow] = []
        instruction = run.prepared.instruction
        for index in range(len(instruction.ops)):
            arriving = pending.pop(index, [])
            if arriving:
                current = self._merged(arriving, (*run.place_behind[:2], index), fork)
                if index not in needed:
                    pending.setdefault(index + 1, []).append(current)
                    continue
                for to, flow in run.operation(index, current):
                    if to is None:
                        done.append(flow)
                    elif to <= index:
                        raise AnalysisError(
                            f"the instruction at {instruction.address:#010x} loops within itself: "
                            "string and move-multiple instructions with a count in a register are not analysed."
                        )
                    else:
                        pending.setdefault(min(to, len(instruction.ops)), []).append(flow)
        return [*pending.pop(len(instruction.ops), []), *done]

    def _merged(self, flows: list[Flow], place: tuple[int, ...], fork: State) -> Flow:
        if len(flows) == 1:
            return flows[0]
        shared = tuple(condition for condition in flows[0].conditions if all(condition in f.conditions for f in flows))
        states = [flow.state for flow in flows]
        merged = join(states, place, gated=True, fork=fork)
        if self._meetings is not None:
            self._meetings(place, states, merged)
        return Flow("fall", flows[0].address, merged, shared)


def _without_dead(flows: list[Flow], dead: Sequence[Location]) -> list[Flow]:
    for flow in flows:
        flow.state.forget([at for at in dead if at in flow.state.locations])
    return flows
