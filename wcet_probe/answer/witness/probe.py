"""One answer: build the image, bring the heap into the scenario's state, prove it, measure the one operation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from wcet_probe.answer.bounds.proved_again import prove_anew
from wcet_probe.answer.witness.bench import (
    Bench,
    ProbeRequest,
    arguments_of,
    check_claims,
    check_heap,
    check_invariants,
    check_served,
    check_state,
    claims_of,
    guest_heap,
    machine_of,
    set_up_state,
    subject_of,
)
from wcet_probe.answer.witness.contradiction import check_counts, check_flows, check_loops
from wcet_probe.answer.witness.cross_check import Call, cross_check
from wcet_probe.answer.witness.held import Held, checked_executions, merged
from wcet_probe.answer.witness.victims import (
    MOST_INSTRUCTIONS,
    MOST_TRIED,
    extreme_victims,
    tried_of_each,
    victim_choices,
)
from wcet_probe.build.program import Program, load_program
from wcet_probe.compiled.supply import translations
from wcet_probe.emu.machine import Machine
from wcet_probe.errors import (
    AnalysisError,
    NoReturnError,
    NoSuchStateError,
    StateError,
    StrayAccessError,
    UnknownOperationError,
    unknown_name,
)
from wcet_probe.model.held_calls import HeldCalls
from wcet_probe.model.measurement import CallCost, Measurement
from wcet_probe.model.proof import Bound
from wcet_probe.model.report import Candidate, Question, Report, StateCheck, Verdict, Witness
from wcet_probe.model.scenario import InitialCache, OperationKind, ScenarioPlan
from wcet_probe.model.target import Victims
from wcet_probe.model.watched_loop import LoopCount
from wcet_probe.scenarios.families import Extreme, GuestHeap, HeapRequest, extreme_of, header_words
from wcet_probe.scenarios.lookup import family_of


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What one candidate state showed; ``call`` is kept where the second engine is to repeat it."""

    plan: ScenarioPlan
    initial_cache: InitialCache
    checks: tuple[StateCheck, ...]
    measurement: Measurement
    call: Call | None
    loop_maxima: Mapping[int, int]
    held: Held


_REPEATED_INSTRUCTIONS = 200_000
"""The second engine repeats calls of so many instructions without being asked to: it takes a second or two."""


Proving = Callable[[Program, str, int], Bound]
"""Proves the bound of an operation of a program on a heap of so many bytes, as `prove_operation`."""


def observe(
    request: ProbeRequest, progress: Callable[[str], None] = lambda _: None, *, proving: Proving | None = None
) -> Report:
    """Answer ``request``; ``progress`` is told in words what is being done.

    Who asks several questions about the same bounds gives a ``proving`` that remembers them.

    Raises:
        UsageError: an unknown scenario, or a heap that cannot hold the state.
        BuildError: no image.
        EmulationError: the guest went astray.
        StateError: the predicted state was not reached.
        ContradictionError: the second engine disagrees.
    """
    chosen = family_of(request.allocator)
    if request.scenario not in chosen.builders:
        raise unknown_name(f"scenario of {request.allocator.name}", request.scenario, chosen.builders)
    check_heap(request.allocator, request.heap_bytes)
    line = request.target.dcache.line_bytes if request.target.dcache else None
    plans = chosen.builders[request.scenario](HeapRequest(request.allocator, request.heap_bytes, line, request.seed))
    progress(f"building {request.allocator.name} for {request.target.name}")
    program = load_program(request.allocator, request.target, request.compiler, request.cache_dir, request.heap_bytes)
    bounds, no_bound = _bounds(request, program, plans[0].measured.kind, progress, proving or prove_anew)
    supply = translations(program, request.cache_dir)
    bench = Bench(request, chosen, program, bounds, translations=supply)
    extreme, most_tried = extreme_of(request.scenario), tried_of_each(len(plans))
    outcomes: list[_Outcome] = []
    left_out: list[str] = []
    kept: set[int] = set()
    for number, plan in enumerate(plans, 1):
        progress(f"state {number} of {len(plans)}: {plan.variant}")
        try:
            outcomes.append(_run(bench, plan, most_tried=most_tried))
        except NoSuchStateError as error:
            progress(f"left out: {error}")
            left_out.append(plan.variant)
            if number == len(plans) and not outcomes:
                raise
            continue
        kept = {_extreme(outcomes, extreme, unit) for unit in _UNITS}
        outcomes = [one if index in kept else replace(one, call=None) for index, one in enumerate(outcomes)]
    place = _extreme(outcomes, extreme, "cycles")
    if most_tried < MOST_TRIED and outcomes[place].measurement.victims.tried == most_tried:
        progress("repeating the measured call with more victims")
        outcomes[place] = _run(bench, outcomes[place].plan)
    witnesses = {index: _witness(bench, outcomes[index], progress) for index in sorted(kept)}
    dearest = {unit: _extreme(outcomes, extreme, unit) for unit in _UNITS}
    seen, other = outcomes[dearest["cycles"]], dearest["instructions"]
    bound = bounds.get(seen.plan.measured.kind)
    held = merged(outcome.held for outcome in outcomes)
    return Report(
        allocator=request.allocator,
        target=request.target,
        plan=seen.plan,
        heap_bytes=request.heap_bytes,
        initial_cache=seen.initial_cache,
        image=program.image,
        candidates=tuple(Candidate(o.plan.variant, o.measurement.instructions, o.measurement.cycles) for o in outcomes),
        checks=seen.checks,
        measurement=seen.measurement,
        cross_check=witnesses[dearest["cycles"]].cross_check,
        bound=bound,
        no_bound=no_bound,
        verdict=_verdict(request, no_bound, bound),
        question=Question(
            request.seed, request.cache_options, request.initial_cache, request.compiler, request.cross_check
        ),
        instructions=program.instructions,
        loop_maxima=_greatest(outcome.loop_maxima for outcome in outcomes),
        flow_maxima=held.calls.flow_maxima if bound else (),
        no_cross_check=_no_cross_check(request, witnesses.values()),
        executions=checked_executions(bound, held, list(witnesses.values())) if bound else {},
        in_instructions=None if other == dearest["cycles"] else witnesses[other],
        left_out=tuple(left_out),
    )


_UNITS = ("instructions", "cycles")


def _witness(bench: Bench, outcome: _Outcome, progress: Callable[[str], None]) -> Witness:
    """A witness, its call repeated by the second engine where that is wanted."""
    second, plan = None, outcome.plan
    if outcome.call is not None and _is_repeated(bench.request, outcome.measurement):
        progress("repeating the measured call in the p-code interpreter")
        bound = bench.bounds.get(plan.measured.kind)
        try:
            second = cross_check(bench.program, bound, outcome.call, outcome.measurement, subject_of(plan))
        except UnknownOperationError:  # as of mrs, which reads a mask of interrupts
            if bench.request.cross_check:
                raise
    return Witness(plan, outcome.initial_cache, outcome.checks, outcome.measurement, second)


def _is_repeated(request: ProbeRequest, measurement: Measurement) -> bool:
    if request.cross_check is None:
        return measurement.instructions <= _REPEATED_INSTRUCTIONS
    return request.cross_check


def _no_cross_check(request: ProbeRequest, witnesses: Iterable[Witness]) -> str:
    """Why a call was not repeated."""
    missing = [witness.measurement.instructions for witness in witnesses if witness.cross_check is None]
    if not missing:
        return ""
    if request.cross_check is False:
        return "not by a second engine: --no-cross-check"
    if max(missing) <= _REPEATED_INSTRUCTIONS:
        return "not by a second engine, which does not know system and floating-point instructions"
    return (
        f"not by a second engine: {max(missing):,} instructions are more than {_REPEATED_INSTRUCTIONS:,}; "
        "--cross-check repeats them"
    )


def _greatest(counts: Iterable[Mapping[int, int]]) -> Mapping[int, int]:
    """The greatest count of each key."""
    greatest: dict[int, int] = {}
    for one in counts:
        greatest |= {key: max(count, greatest.get(key, 0)) for key, count in one.items()}
    return greatest


def _verdict(request: ProbeRequest, no_bound: str, bound: Bound | None) -> Verdict:
    if not request.prove:
        return Verdict.OBSERVED
    if bound is not None and bound.by_type:
        return Verdict.BOUNDED_BY_TYPE
    return Verdict.UNBOUNDED if no_bound else Verdict.BOUNDED


def _bounds(
    request: ProbeRequest,
    program: Program,
    measured: OperationKind,
    progress: Callable[[str], None],
    proving: Proving,
) -> tuple[Mapping[str, Bound], str]:
    """Bounds of both operations, for the set-up executes both; and why the measured one has none."""
    bounds: dict[str, Bound] = {}
    no_bound = ""
    for kind in OperationKind if request.prove else ():
        progress(f"proving a bound of {kind}")
        try:
            bounds[kind] = proving(program, kind, request.heap_bytes)
        except AnalysisError as error:
            if kind is measured:
                no_bound = str(error)
    return bounds, no_bound


def _extreme(outcomes: Sequence[_Outcome], extreme: Extreme, unit: str) -> int:
    """Index of the first outcome with the most, or the fewest, of ``unit``; between equal ones the other decides."""
    other = next(each for each in _UNITS if each != unit)

    def cost(index: int) -> tuple[int, int]:
        found = outcomes[index].measurement
        return getattr(found, unit), getattr(found, other)

    numbers = range(len(outcomes))
    return min(numbers, key=cost) if extreme is Extreme.FEWEST_CYCLES else max(numbers, key=cost)


def _run(bench: Bench, plan: ScenarioPlan, *, victims: Victims | None = None, most_tried: int = MOST_TRIED) -> _Outcome:
    """Set up, prove the state, measure, and prove that the heap is still sound.

    The call is measured with ``victims``, or with those of ``most_tried`` that make it the extreme one.

    Raises:
        NoSuchStateError: a generic state is none of this allocator. What takes more than it may is no such state.
    """
    try:
        return _run_whole(bench, plan, victims, most_tried)
    except (NoReturnError, StrayAccessError) as error:
        if not plan.set_up_may_refuse:
            raise
        message = f"{plan.scenario} ({plan.variant}) is no state of {bench.request.allocator.name}: {error}"
        raise NoSuchStateError(message) from error


def _run_whole(bench: Bench, plan: ScenarioPlan, victims: Victims | None, most_tried: int) -> _Outcome:
    request = bench.request
    initial = request.initial_cache or plan.initial_cache
    with machine_of(bench) as machine:
        refused = set_up_state(bench, machine, plan, initial)
        if refused and not plan.set_up_may_refuse:
            message = (
                f"the heap refused {refused} allocation(s) of the set-up of {plan.scenario}; give a larger --heap."
            )
            raise StateError(message)
        set_up: tuple[LoopCount, ...] = ()
        if len(bench.bounds) == len(OperationKind):  # else an operation without a bound may run the loops of the other
            set_up = machine.loop_counts()
            check_loops(claims_of(bench), set_up, bench.program.image, f"the set-up of {plan.scenario}")
        guest = guest_heap(bench, machine)
        checks = check_state(bench, guest, plan)
        check_invariants(bench, machine, "before the measured operation")
        function = request.allocator.entry_points[plan.measured.kind]
        arguments = arguments_of(request.allocator, plan.measured, machine)
        if plan.set_up_may_refuse and plan.measured.kind is OperationKind.FREE and not arguments[0]:
            message = (
                f"the heap refused the block that {plan.scenario} ({plan.variant}) frees; raise overhead_bytes or "
                "minimum_block_bytes of the manifest to what its blocks take, or give a larger --heap."
            )
            raise NoSuchStateError(message)
        call = None
        if request.cross_check is not False:
            call = Call(function, machine.entry_registers(arguments), machine.memory.snapshot(), initial)
        if victims is None:
            victims = _victims(bench, machine, plan, arguments, most_tried)
        machine.restart_loop_counts()
        metadata = partial(_headers, bench, guest)
        measurement = machine.measure(function, arguments, initial, metadata, victims)
        _hold_against_bound(bench, machine, plan, measurement)
        loop_maxima = _loop_maxima(bench, plan, set_up, machine.loop_counts())
        if plan.measured.kind is OperationKind.MALLOC and bool(measurement.result) is plan.refused:  # None is neither
            what = "served, and was to be refused" if plan.refused else "refused; give a larger --heap"
            message = f"the measured allocation of {plan.scenario} was {what}."
            raise StateError(message)
        check_served(bench, guest, plan, measurement.result)
        check_invariants(bench, machine, "after the measured operation")
        held = _held(bench, plan, machine, [*set_up, *machine.loop_counts()])
    return _Outcome(plan, initial, checks, measurement, call, loop_maxima, held)


def _held(bench: Bench, plan: ScenarioPlan, machine: Machine, loops: Sequence[LoopCount]) -> Held:
    """What the calls of the measured operation's function were held against, in set-up and measurement."""
    own = bench.request.allocator.own
    calls = dict(zip(bench.bounds, machine.held_calls(), strict=True)).get(plan.measured.kind, HeldCalls())
    entries: Counter[str] = Counter()
    for count in loops:
        entries[count.name] += count.entries
    return Held(calls, entries, heap_checks=0 if own and not own.is_checked else 2)


def _headers(bench: Bench, guest: GuestHeap) -> Iterable[int]:
    return header_words(bench.family.walk(guest))


def _victims(
    bench: Bench, machine: Machine, plan: ScenarioPlan, arguments: tuple[int, ...], most_tried: int = MOST_TRIED
) -> Victims:
    """The choice of victims with which the measured call is the extreme one; none of those tried may exceed the bound.

    What the set-up left in the caches was evicted by the target's own seeds, which the call goes on with.

    Raises:
        ContradictionError: a run is above the bound.
    """
    request, kind = bench.request, plan.measured.kind
    initial = request.initial_cache or plan.initial_cache
    choices = victim_choices(request.target)[:most_tried]
    if len(choices) == 1 or initial is InitialCache.WARM:
        return replace(choices[0], tried=1)
    before, executed, found = machine.memory.snapshot(), 0, dict[Victims, CallCost]()
    for choice in choices:
        one = found[choice] = machine.cost(request.allocator.entry_points[kind], arguments, initial, choice)
        machine.memory.restore(before)
        executed += one.instructions
        if kind in bench.bounds:
            check_counts(bench.bounds[kind], one, subject_of(plan))
        if executed >= MOST_INSTRUCTIONS:
            break
    is_fewest = extreme_of(plan.scenario) is Extreme.FEWEST_CYCLES
    return extreme_victims(request.target, found, is_fewest=is_fewest)


def replay(
    program: Program,
    plan: ScenarioPlan,
    heap_bytes: int,
    initial_cache: InitialCache,
    victims: Victims | None,
    *,
    most_tried: int = MOST_TRIED,
    most_instructions: int = 0,
) -> tuple[Measurement, tuple[StateCheck, ...]]:
    """Measure the operation of ``plan`` again, on ``program`` as it is, with the same ``victims``.

    Without ``victims`` those of ``most_tried`` are taken that make the call the extreme one, as ``observe`` does.
    Nothing is built and nothing proved.

    The guest may take ``most_instructions`` in all, set-up and checks included; 0: as many as it likes.

    Returns:
        the measurement, and the predicted state beside the one that was found.

    Raises:
        WcetProbeError: as ``observe``.
    """
    request = ProbeRequest(
        allocator=program.allocator,
        target=program.target,
        scenario=plan.scenario,
        heap_bytes=heap_bytes,
        seed=0,
        initial_cache=initial_cache,
        compiler=program.image.compiler,
        cross_check=False,
        cache_dir=Path(),
    )
    check_heap(request.allocator, request.heap_bytes)
    bench = Bench(request, family_of(program.allocator), program, {}, most_instructions)
    outcome = _run(bench, plan, victims=victims, most_tried=most_tried)
    return outcome.measurement, outcome.checks


def measure_in_state(request: ProbeRequest, plan: ScenarioPlan) -> tuple[Measurement | None, int, str]:
    """Measure the operation of ``plan``, which may be made for another allocator, after its set-up.

    Nothing is proved of the state: another allocator makes its own of the operations.

    Returns:
        the measurement, or None where there is no block to free; how many allocations of the set-up were refused; and
        what is to be said about it.

    Raises:
        WcetProbeError: as ``observe``, but never about the state.
    """
    program = load_program(request.allocator, request.target, request.compiler, request.cache_dir, request.heap_bytes)
    supply = translations(program, request.cache_dir)
    bench = Bench(request, family_of(request.allocator), program, {}, translations=supply)
    initial = request.initial_cache or plan.initial_cache
    with machine_of(bench) as machine:
        refused = set_up_state(bench, machine, plan, initial)
        arguments = arguments_of(request.allocator, plan.measured, machine)
        if plan.measured.kind is OperationKind.FREE and not arguments[0]:
            return None, refused, "the block to be freed was refused"
        function = request.allocator.entry_points[plan.measured.kind]
        victims = _victims(bench, machine, plan, arguments)
        measurement = machine.measure(function, arguments, initial, victims=victims)
        check_invariants(bench, machine, "after the measured operation")
    served = plan.measured.kind is OperationKind.FREE or measurement.result
    return measurement, refused, "" if served else "the measured allocation was refused"


def _loop_maxima(
    bench: Bench, plan: ScenarioPlan, set_up: Iterable[LoopCount], call: Iterable[LoopCount]
) -> Mapping[int, int]:
    """Most executions of the headers of the measured operation's loops, by address.

    A loop that the other operation may repeat more often is not counted in the set-up, which executes both.
    """
    bound = bench.bounds.get(plan.measured.kind)
    if bound is None:
        return {}
    claims = {claim.loop.name: claim for claim in bound.loop_claims}
    limits = {claim.loop.name: claim.max_header for claim in claims_of(bench)}
    common = {name for name, claim in claims.items() if limits[name] == claim.max_header}
    counts = [*call, *(count for count in set_up if count.name in common)]
    return _greatest(
        {claims[count.name].loop.header_address: count.max_header_executions}
        for count in counts
        if count.name in claims
    )


def _hold_against_bound(bench: Bench, machine: Machine, plan: ScenarioPlan, measurement: Measurement) -> None:
    """The measured call against all that is proved or claimed of it.

    Raises:
        ContradictionError: it does not hold.
    """
    bound = bench.bounds.get(plan.measured.kind)
    if bound is None:
        return
    subject = subject_of(plan)
    counts = machine.loop_counts()
    check_loops(bound.loop_claims, counts, bench.program.image, subject)
    check_flows(bound, counts, machine.executions, subject)
    check_claims(bench, machine, subject)
    check_counts(bound, measurement, subject)
