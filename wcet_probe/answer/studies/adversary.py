"""Trying to beat the constructed worst states, from where they stand.

Each candidate state of a scenario is a sequence of operations and the one that is measured. The adversary changes a few
of them and measures again, in the unit that is asked for: instructions, or cycles with the caches as the scenario has
them at entry. What is dearer is changed further. Each measured call is held against the proved bound and all that the
bound and its facts claim of it, so that a false fact does not outlive a state that shows it. A state that is dearer
than all constructed ones shows that the scenario is not the worst; finding none is evidence, never a proof. It is told
by as few changes as it can be, and kept beside the allocator it is a candidate of the scenario, and of the next search.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from enum import StrEnum

from wcet_probe.answer.bounds.proving import prove_operation
from wcet_probe.answer.studies.search import SCENARIO, SearchRequest, SearchResult, repaired
from wcet_probe.answer.witness.bench import arguments_of
from wcet_probe.answer.witness.contradiction import check_counts, check_flows, check_loops, refusal
from wcet_probe.build.program import Program, load_program
from wcet_probe.compiled.supply import translations
from wcet_probe.emu.machine import Machine
from wcet_probe.errors import EmulationError, UsageError
from wcet_probe.model.measurement import Measurement
from wcet_probe.model.proof import Bound
from wcet_probe.model.scenario import FoundBy, InitialCache, Operation, OperationKind, ScenarioPlan, Trace
from wcet_probe.progress import Progress, silent
from wcet_probe.scenarios.families import HeapRequest
from wcet_probe.scenarios.found_states import Base, FoundState, found_text, operations_in
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
        known: most of it in any candidate, those among them that were found before and kept.
        found: most of it in any state that was tried, the candidates among them.
        state: a state that has so much; where it is a new one, without the changes that do not matter.
        origin: the variant of the constructed state that it was made from.
        evaluations: states that were measured.
        bound: the proved bound in the unit that each was held against; None if none was asked for.
        text: the new state as a file of the allocator's; empty where none was found.
        file_name: how that file is called.
    """

    request: SearchRequest
    unit: Unit
    constructed: int
    known: int
    found: int
    state: State
    origin: str
    evaluations: int
    bound: int | None
    text: str = ""
    file_name: str = ""

    @property
    def beaten(self) -> bool:
        """Whether a state was found that is dearer than all that were known."""
        return self.found > self.known


@dataclass(frozen=True, slots=True)
class _Seen:
    """What a state showed: the cost in the unit, and which allocations were refused."""

    cost: int
    set_up_refusals: int
    refused: bool


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
        seen = self.seen(state, subject)
        return seen.cost if seen else None

    def seen(self, state: State, subject: str) -> _Seen | None:
        """What the state shows; None if it has no block for the measured operation to free."""
        if self.kind is OperationKind.FREE and state.measured.slot not in set(_live(state.operations)):
            return None
        entry = self.program.allocator.entry_points
        if self.program.allocator.own:
            self.machine.restart()
        if self.machine.call(entry["init"], self.machine.heap.base_address, self.heap_bytes):
            message = f"{self.program.allocator.name} refused a heap of {self.heap_bytes} bytes; choose another --heap."
            raise UsageError(message)
        refusals = self.machine.replay(_trace(state))
        arguments = arguments_of(self.program.allocator, state.measured, self.machine)
        if self.kind is OperationKind.FREE and not arguments[0]:
            return None
        self.machine.restart_loop_counts()
        measurement = self.machine.measure(entry[self.kind], arguments, state.initial_cache)
        self.evaluations += 1
        self._hold(measurement, subject)
        cost = measurement.instructions if self.unit is Unit.INSTRUCTIONS else measurement.cycles
        return _Seen(cost, refusals, self.kind is OperationKind.MALLOC and not measurement.result)

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
    with _arena(request, unit, prove=prove) as arena:
        return _climbed(request, arena, progress)


def file_of(result: SearchResult) -> tuple[str, str]:
    """The sequence of ``result``, which was found from random ones, as a file of the allocator's: its name, and text.

    Raises:
        WcetProbeError: as ``attack``.
    """
    request = result.request
    with _arena(request, Unit.INSTRUCTIONS, prove=False) as arena:
        state = State(result.sequence[:-1], result.sequence[-1], _plans(request)[0].initial_cache)
        cost = result.found_instructions
        found = Attack(
            request,
            arena.unit,
            result.constructed_instructions,
            result.constructed_instructions,
            cost,
            state,
            "random sequences",
            1,
            None,
        )
        told = _as_file(found, arena, None)
    return told.file_name, told.text


@contextmanager
def _arena(request: SearchRequest, unit: Unit, *, prove: bool) -> Iterator[_Arena]:
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
        yield _Arena(program, machine, request.kind, request.heap_bytes, unit, bound)


def _climbed(request: SearchRequest, arena: _Arena, progress: Progress) -> Attack:
    draw = random.Random(request.seed)  # noqa: S311  (a search, no secret)
    plans = _plans(request)
    starts = []
    for number, plan in enumerate(plans):
        state = State(operations_in(plan), plan.measured, plan.initial_cache)
        starts.append((arena.cost(state, plan.variant) or 0, state, number))
    starts.sort(key=lambda start: -start[0])
    constructed = max(cost for cost, _, number in starts if not plans[number].found_by)
    best, climb, patience, text = starts[0], 0, _PATIENCE, ""
    current = starts[0]
    for number in range(request.evaluations):
        if patience == 0:
            climb, patience = climb + 1, _PATIENCE
            current = starts[climb % len(starts)]
        state = _changed(draw, current[1], request)
        cost = arena.cost(state, f"a changed state of {plans[current[2]].variant}")
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
    origin = _constructed(plans, plans[best[2]])
    found, state = best[:2]
    if found > starts[0][0]:
        state, found = _reduced(arena, state, operations_in(origin), found)
    made_from = origin.found_by.origin if origin.found_by else origin.variant
    attack = Attack(request, arena.unit, constructed, starts[0][0], found, state, made_from, arena.evaluations, proved)
    return _as_file(attack, arena, None if origin.found_by else origin) if attack.beaten else attack


def _constructed(plans: Sequence[ScenarioPlan], plan: ScenarioPlan) -> ScenarioPlan:
    """The constructed state that ``plan`` was made from, or itself."""
    if plan.found_by is None:
        return plan
    made_from = [one for one in plans if one.variant == plan.found_by.origin]
    return made_from[0] if made_from else plan


def _reduced(arena: _Arena, state: State, base: tuple[Operation, ...], found: int) -> tuple[State, int]:
    """``state`` with as few of its changes of ``base`` as make the call so dear, and what it takes.

    Changes are taken back by halves, quarters and so on, one by one in the end (as in A. Zeller, R. Hildebrandt,
    Simplifying and isolating failure-inducing input, IEEE TSE 28(2), 2002, table 1).
    """
    matcher = SequenceMatcher(None, base, state.operations, autojunk=False)
    changes = [change for change in matcher.get_opcodes() if change[0] != "equal"]
    size = len(changes)
    while size:
        at = 0
        while at < len(changes):
            fewer = changes[:at] + changes[at + size :]
            tried = replace(state, operations=tuple(repaired(_with_changes(base, state.operations, fewer))))
            cost = arena.cost(tried, "a state with fewer changes")
            if cost is not None and cost >= found:
                changes, found = fewer, cost
            else:
                at += size
        size //= 2
    return replace(state, operations=tuple(repaired(_with_changes(base, state.operations, changes)))), found


def _with_changes(
    base: Sequence[Operation], operations: Sequence[Operation], changes: Sequence[tuple[str, int, int, int, int]]
) -> Iterator[Operation]:
    at = 0
    for _, first, last, other_first, other_last in changes:
        yield from base[at:first]
        yield from operations[other_first:other_last]
        at = last
    yield from base[at:]


def _as_file(attack: Attack, arena: _Arena, origin: ScenarioPlan | None) -> Attack:
    """``attack`` with the text of its state, which may be told by the constructed one that it was made from."""
    request, seen = attack.request, arena.seen(attack.state, "the state that was found")
    if seen is None or seen.cost != attack.found:
        message = f"a state took {attack.found} {attack.unit} and then other ones: report this with the command line."
        raise EmulationError(message)
    found = FoundState(
        allocator=request.allocator.name,
        parameters=request.allocator.values,
        heap_bytes=request.heap_bytes,
        scenario=SCENARIO[request.kind],
        found_by=FoundBy(
            target=request.target.name,
            unit=attack.unit.value,
            value=attack.found,
            constructed=attack.constructed,
            evaluations=request.evaluations,
            seed=request.seed,
            origin=attack.origin,
        ),
        operations=attack.state.operations,
        measured=attack.state.measured,
        initial_cache=attack.state.initial_cache,
        set_up_refusals=seen.set_up_refusals,
        refused=seen.refused,
    )
    base = Base(_line_bytes(request), operations_in(origin)) if origin else None
    return replace(attack, text=found_text(found, base), file_name=found.file_name)


def _line_bytes(request: SearchRequest) -> int | None:
    return request.target.dcache.line_bytes if request.target.dcache else None


def _plans(request: SearchRequest) -> Sequence[ScenarioPlan]:
    builder = family_of(request.allocator).builders[SCENARIO[request.kind]]
    return builder(HeapRequest(request.allocator, request.heap_bytes, _line_bytes(request), request.seed))


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
