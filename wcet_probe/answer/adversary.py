"""Trying to beat the constructed worst states, from where they stand.

Each candidate state of a scenario is a sequence of operations and the one that is measured. The adversary changes a few
of them and measures again, in the unit that is asked for: instructions, or cycles with the caches as the scenario has
them at entry. What is dearer is changed further. Each measured call is held against the proved bound and all that the
bound and its facts claim of it, so that a false fact does not outlive a state that shows it. A state that is dearer
than all constructed ones shows that the scenario is not the worst; finding none is evidence, never a proof.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from wcet_probe.answer.contradiction import check_counts, check_flows, check_loops, refusal
from wcet_probe.answer.proving import prove_operation
from wcet_probe.answer.search import SCENARIO, SearchRequest, repaired
from wcet_probe.build.program import Program, load_program
from wcet_probe.compiled.supply import translations
from wcet_probe.emu.machine import Machine
from wcet_probe.errors import UsageError
from wcet_probe.model.measurement import Measurement
from wcet_probe.model.proof import Bound
from wcet_probe.model.scenario import InitialCache, Operation, OperationKind, ScenarioPlan, Trace
from wcet_probe.progress import Progress, silent
from wcet_probe.scenarios.families import HeapRequest
from wcet_probe.scenarios.lookup import family_of
from wcet_probe.scenarios.traces import trace_of

_PATIENCE = 40
"""Changes without improvement after which a climb begins again, from the next constructed state."""

_STEP_BYTES = (-16, -8, -4, 4, 8, 16)


class Unit(StrEnum):
    """What is to become dear."""

    INSTRUCTIONS = "instructions"
    CYCLES = "cycles"


@dataclass(frozen=True, slots=True)
class State:
    """Operations that reach a state, and the one that is measured there.

    Attributes:
        operations: the set-up.
        measured: the measured operation.
        initial_cache: content of the caches before it.
    """

    operations: tuple[Operation, ...]
    measured: Operation
    initial_cache: InitialCache


@dataclass(frozen=True, slots=True)
class Attack:
    """What the adversary found.

    Attributes:
        request: what was attacked.
        unit: in which unit.
        constructed: most of the unit in any constructed state.
        found: most of it in any state that was tried, the constructed ones among them.
        state: the first state that has so much.
        origin: the variant of the constructed state that it was made from.
        evaluations: states that were measured.
        bound: the proved bound in the unit that each was held against; None if none was asked for.
    """

    request: SearchRequest
    unit: Unit
    constructed: int
    found: int
    state: State
    origin: str
    evaluations: int
    bound: int | None

    @property
    def beaten(self) -> bool:
        """Whether a state was found that is dearer than all constructed ones."""
        return self.found > self.constructed


@dataclass(slots=True)
class _Arena:
    """A machine, and what its runs are held against."""

    program: Program
    machine: Machine
    kind: OperationKind
    heap_bytes: int
    unit: Unit
    bound: Bound | None
    evaluations: int = field(default=0)

    def cost(self, state: State, subject: str) -> int | None:
        """What the measured operation takes; None if the state has no block for it to free."""
        if self.kind is OperationKind.FREE and state.measured.slot not in set(_live(state.operations)):
            return None
        entry = self.program.allocator.entry_points
        if self.program.allocator.own:
            self.machine.restart()
        if self.machine.call(entry["init"], self.machine.heap.base_address, self.heap_bytes):
            message = f"{self.program.allocator.name} refused a heap of {self.heap_bytes} bytes; choose another --heap."
            raise UsageError(message)
        self.machine.replay(_trace(state))
        arguments = self._arguments(state.measured)
        if self.kind is OperationKind.FREE and not arguments[0]:
            return None
        self.machine.restart_loop_counts()
        measurement = self.machine.measure(entry[self.kind], arguments, state.initial_cache)
        self.evaluations += 1
        self._hold(measurement, subject)
        return measurement.instructions if self.unit is Unit.INSTRUCTIONS else measurement.cycles

    def _arguments(self, measured: Operation) -> tuple[int, ...]:
        if measured.kind is OperationKind.FREE:
            return (self.machine.slot(measured.slot),)
        takes_set = self.program.allocator.takes_cache_set
        return (measured.size_bytes, measured.cache_set) if takes_set else (measured.size_bytes,)

    def _hold(self, measurement: Measurement, subject: str) -> None:
        if self.bound is None:
            return
        check_counts(self.bound, measurement, subject)
        broken = self.machine.broken_claim()
        if broken is not None:
            raise refusal(broken, self.program.image, subject)
        counts = self.machine.loop_counts()
        check_loops(self.bound.loop_claims, counts, self.program.image, subject)
        check_flows(self.bound, counts, self.machine.executions, subject)


def attack(request: SearchRequest, unit: Unit, *, prove: bool = True, progress: Progress = silent) -> Attack:
    """Change the constructed worst states of ``request`` until one becomes dearer.

    Parameters:
        request: allocator, target, operation, heap and seed; ``evaluations`` changed states are measured at most.
        unit: what is compared.
        prove: whether each run is held against a bound and its facts, which is proved first.
        progress: is told what is being done.

    Raises:
        UsageError: the heap cannot hold the scenario's states, or nothing is to be evaluated.
        ContradictionError: a run exceeds the bound or contradicts a fact.
        WcetProbeError: as ``observe``.
    """
    if request.evaluations < 1:
        message = f"{request.evaluations} evaluations search nothing; give at least 1."
        raise UsageError(message)
    program = load_program(request.allocator, request.target, request.compiler, request.cache_dir, request.heap_bytes)
    bound = prove_operation(program, request.kind, request.heap_bytes) if prove else None
    watched = [claim.loop for claim in bound.loop_claims] if bound else []
    with Machine(
        program.image,
        program.target,
        program.instructions,
        program.costs,
        request.heap_bytes,
        watched=watched,
        bounds=(bound,) if bound else (),
        translations=translations(program, request.cache_dir),
    ) as machine:
        arena = _Arena(program, machine, request.kind, request.heap_bytes, unit, bound)
        return _climbed(request, arena, progress)


def _climbed(request: SearchRequest, arena: _Arena, progress: Progress) -> Attack:
    draw = random.Random(request.seed)  # noqa: S311  (a search, no secret)
    starts = []
    for plan in _plans(request):
        state = _state_of(plan)
        starts.append((arena.cost(state, plan.variant) or 0, state, plan.variant))
    starts.sort(key=lambda start: -start[0])
    constructed = starts[0][0]
    best, climb, patience, text = starts[0], 0, _PATIENCE, ""
    current = starts[0]
    for number in range(request.evaluations):
        if patience == 0:
            climb, patience = climb + 1, _PATIENCE
            current = starts[climb % len(starts)]
        state = _changed(draw, current[1], request)
        cost = arena.cost(state, f"a changed state of {current[2]}")
        patience -= 1
        if cost is not None and cost >= current[0]:
            patience = _PATIENCE if cost > current[0] else patience
            current = (cost, state, current[2])
        if current[0] > best[0]:
            best = current
            text = f"state {number + 1} of {request.evaluations}: {best[0]} {arena.unit}"
        progress(text, number + 1, request.evaluations)
    proved = None
    if arena.bound:
        proved = arena.bound.instructions if arena.unit is Unit.INSTRUCTIONS else arena.bound.cycles
    return Attack(request, arena.unit, constructed, best[0], best[1], best[2], arena.evaluations, proved)


def _plans(request: SearchRequest) -> Sequence[ScenarioPlan]:
    line = request.target.dcache.line_bytes if request.target.dcache else None
    builder = family_of(request.allocator).builders[SCENARIO[request.kind]]
    return builder(HeapRequest(request.allocator, request.heap_bytes, line, request.seed))


def _state_of(plan: ScenarioPlan) -> State:
    trace = plan.trace
    columns = zip(trace.kinds, trace.slots, trace.sizes_bytes, trace.cache_sets, strict=True)
    operations = (
        Operation(OperationKind.FREE if kind else OperationKind.MALLOC, slot, size, cache_set)
        for kind, slot, size, cache_set in columns
    )
    return State(tuple(operations), plan.measured, plan.initial_cache)


def _trace(state: State) -> Trace:
    slots = [operation.slot for operation in state.operations]
    return trace_of(state.operations, max([*slots, state.measured.slot]) + 1)


def _changed(draw: random.Random, state: State, request: SearchRequest) -> State:
    """A few operations swapped, moved, dropped, added or resized, or another operation measured."""
    operations, measured = list(state.operations), state.measured
    for _ in range(draw.randrange(1, 4)):
        what = draw.randrange(7)
        if what == 0 or not operations:
            measured = _other_measured(draw, operations, measured, request)
        elif what == 1:
            at, other = draw.randrange(len(operations)), draw.randrange(len(operations))
            operations[at], operations[other] = operations[other], operations[at]
        elif what == 2:
            operations.insert(draw.randrange(len(operations)), operations.pop(draw.randrange(len(operations))))
        elif what == 3:
            del operations[draw.randrange(len(operations))]
        elif what == 4:
            at = draw.randrange(len(operations))
            operations[at] = replace(operations[at], size_bytes=_resized(draw, operations, operations[at].size_bytes))
        else:
            operations.insert(draw.randrange(len(operations) + 1), _added(draw, operations, measured))
    kept = tuple(repaired(operations))
    if measured.kind is OperationKind.FREE and measured.slot not in set(_live(kept)):
        kept = tuple(repaired(o for o in kept if o.slot != measured.slot or o.kind is OperationKind.MALLOC))
    return replace(state, operations=kept, measured=measured)


def _other_measured(
    draw: random.Random, operations: Sequence[Operation], measured: Operation, request: SearchRequest
) -> Operation:
    if measured.kind is OperationKind.FREE:
        live = list(_live(repaired(operations)))
        return replace(measured, slot=draw.choice(live)) if live else measured
    size = min(_resized(draw, operations, measured.size_bytes), request.heap_bytes)
    return replace(measured, size_bytes=size)


def _resized(draw: random.Random, operations: Sequence[Operation], size: int) -> int:
    """A little more or less, or as much as another allocation asks for."""
    if draw.randrange(3):
        return max(1, size + draw.choice(_STEP_BYTES))
    return draw.choice(operations).size_bytes or size if operations else size


def _added(draw: random.Random, operations: Sequence[Operation], measured: Operation) -> Operation:
    """The deallocation of a block, or an allocation of a size that there is, into a new slot."""
    model = draw.choice(operations) if operations else measured
    if draw.randrange(2) and model.slot != measured.slot:
        return Operation(OperationKind.FREE, model.slot)
    new = 1 + max((operation.slot for operation in operations), default=measured.slot)
    return Operation(OperationKind.MALLOC, new, max(1, model.size_bytes), model.cache_set)


def _live(operations: Sequence[Operation] | Iterator[Operation]) -> Iterator[int]:
    """Slots that hold a block in the end, in order of allocation."""
    live: dict[int, None] = {}
    for operation in operations:
        if operation.kind is OperationKind.FREE:
            live.pop(operation.slot, None)
        else:
            live[operation.slot] = None
    yield from live
