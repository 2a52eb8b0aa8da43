"""One answer: build the image, bring the heap into the scenario's state, prove it, measure the one operation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from wcet_probe.analyzer.concrete import interpret_call
from wcet_probe.analyzer.lift import Lifter, code_reader
from wcet_probe.contradiction import check_accesses, check_counts, check_flows, check_loops, register_check
from wcet_probe.emu.cache import CacheSimulation
from wcet_probe.emu.machine import RETURN_ADDRESS, Machine
from wcet_probe.errors import AnalysisError, ContradictionError, StateError, UsageError, unknown_name
from wcet_probe.image import require_symbol
from wcet_probe.model import (
    Allocator,
    Candidate,
    CrossCheck,
    InitialCache,
    Isa,
    Measurement,
    MemoryRange,
    OperationKind,
    Report,
    ScenarioPlan,
    StateCheck,
    Target,
    Verdict,
)
from wcet_probe.program import Program, load_program
from wcet_probe.proof import Bound, LoopClaim
from wcet_probe.proving import prove_operation
from wcet_probe.scenarios import family
from wcet_probe.scenarios.families import Extreme, Family, GuestHeap, HeapRequest, extreme_of, header_words


@dataclass(frozen=True, slots=True)
class ProbeRequest:
    """What is asked.

    Attributes:
        allocator: with its parameter values chosen.
        target: with its caches as configured.
        scenario: name of the scenario.
        heap_bytes: size of the heap.
        seed: seed of a random scenario.
        initial_cache: content of the caches, or None for the scenario's own.
        compiler: ``zig`` (the packaged Clang) or a command such as ``clang-19`` or ``arm-none-eabi-gcc``.
        cross_check: whether the p-code interpreter repeats the measured call.
        cache_dir: where images are kept.
        prove: whether a bound is proved as well, and every run held against it.
    """

    allocator: Allocator
    target: Target
    scenario: str
    heap_bytes: int
    seed: int
    initial_cache: InitialCache | None
    compiler: str
    cross_check: bool
    cache_dir: Path
    prove: bool = False


@dataclass(frozen=True, slots=True)
class _Bench:
    """What all candidates of a request share; ``bounds`` by role, as far as there are any."""

    request: ProbeRequest
    family: Family
    program: Program
    bounds: Mapping[str, Bound]


@dataclass(frozen=True, slots=True)
class _Call:
    """The measured call, as a second engine can repeat it."""

    function: str
    registers: Mapping[str, int]
    memory: Mapping[int, bytes | bytearray]
    initial_cache: InitialCache


@dataclass(frozen=True, slots=True)
class _Outcome:
    plan: ScenarioPlan
    initial_cache: InitialCache
    checks: tuple[StateCheck, ...]
    measurement: Measurement
    cross_check: CrossCheck | None


def observe(request: ProbeRequest, progress: Callable[[str], None] = lambda _: None) -> Report:
    """Answer ``request``; ``progress`` is told in words what is being done.

    Raises:
        UsageError: an unknown scenario, or a heap that cannot hold the state.
        BuildError: no image.
        EmulationError: the guest went astray.
        StateError: the predicted state was not reached.
        ContradictionError: the second engine disagrees.
    """
    chosen = family(request.allocator.name)
    if request.scenario not in chosen.builders:
        raise unknown_name(f"scenario of {request.allocator.name}", request.scenario, chosen.builders)
    _check_heap(request)
    line = request.target.dcache.line_bytes if request.target.dcache else None
    plans = chosen.builders[request.scenario](HeapRequest(request.allocator, request.heap_bytes, line, request.seed))
    progress(f"building {request.allocator.name} for {request.target.name}")
    program = load_program(request.allocator, request.target, request.compiler, request.cache_dir)
    bounds, no_bound = _bounds(request, program, plans[0].measured.kind, progress)
    bench = _Bench(request, chosen, program, bounds)
    outcomes = []
    for number, plan in enumerate(plans, 1):
        progress(f"state {number} of {len(plans)}: {plan.variant}")
        outcomes.append(_run(bench, plan, cross_check=False))
    extreme = _extreme(outcomes, extreme_of(request.scenario))
    if request.cross_check:
        progress("repeating the measured call in the p-code interpreter")
        extreme = _run(bench, extreme.plan, cross_check=True)
    return Report(
        allocator=request.allocator,
        target=request.target,
        plan=extreme.plan,
        heap_bytes=request.heap_bytes,
        initial_cache=extreme.initial_cache,
        image=program.image,
        candidates=tuple(Candidate(o.plan.variant, o.measurement.instructions, o.measurement.cycles) for o in outcomes),
        checks=extreme.checks,
        measurement=extreme.measurement,
        cross_check=extreme.cross_check,
        bound=bounds.get(extreme.plan.measured.kind),
        no_bound=no_bound,
        verdict=_verdict(request, no_bound),
    )


def _verdict(request: ProbeRequest, no_bound: str) -> Verdict:
    if not request.prove:
        return Verdict.OBSERVED
    return Verdict.UNBOUNDED if no_bound else Verdict.BOUNDED


def _bounds(
    request: ProbeRequest, program: Program, measured: OperationKind, progress: Callable[[str], None]
) -> tuple[Mapping[str, Bound], str]:
    """Bounds of both operations, for the set-up executes both; and why the measured one has none."""
    bounds: dict[str, Bound] = {}
    no_bound = ""
    for kind in OperationKind if request.prove else ():
        progress(f"proving a bound of {kind}")
        try:
            bounds[kind] = prove_operation(program, kind, request.heap_bytes)
        except AnalysisError as error:
            if kind is measured:
                no_bound = str(error)
    return bounds, no_bound


def _check_heap(request: ProbeRequest) -> None:
    allocator, heap = request.allocator, request.heap_bytes
    if heap < allocator.minimum_heap_bytes:
        message = (
            f"a heap of {heap} bytes is too small for {allocator.name}; give at least {allocator.minimum_heap_bytes}."
        )
        raise UsageError(message)
    if heap % allocator.alignment_bytes:
        down = heap // allocator.alignment_bytes * allocator.alignment_bytes
        message = (
            f"a heap of {heap} bytes is no multiple of the alignment of {allocator.name}, "
            f"{allocator.alignment_bytes} bytes; give {down} or {down + allocator.alignment_bytes}."
        )
        raise UsageError(message)


def _extreme(outcomes: list[_Outcome], extreme: Extreme) -> _Outcome:
    """The first of the outcomes with the most, or the fewest, cycles; instructions decide between equal ones."""

    def cost(outcome: _Outcome) -> tuple[int, int]:
        return outcome.measurement.cycles, outcome.measurement.instructions

    return min(outcomes, key=cost) if extreme is Extreme.FEWEST_CYCLES else max(outcomes, key=cost)


def _run(bench: _Bench, plan: ScenarioPlan, *, cross_check: bool) -> _Outcome:
    """Set up, prove the state, measure, and prove that the heap is still sound."""
    request = bench.request
    initial = request.initial_cache or plan.initial_cache
    with _machine(bench) as machine:
        refused = _set_up(bench, machine, plan, initial)
        if refused:
            message = (
                f"the heap refused {refused} allocation(s) of the set-up of {plan.scenario}; give a larger --heap."
            )
            raise StateError(message)
        if len(bench.bounds) == len(OperationKind):  # else an operation without a bound may run the loops of the other
            subject = f"the set-up of {plan.scenario}"
            check_loops(_claims(bench), machine.loop_counts(), bench.program.image, subject)
        guest = _guest_heap(bench, machine)
        checks = _prove(bench, guest, plan)
        _check_invariants(bench, machine, "before the measured operation")
        function = request.allocator.entry_points[plan.measured.kind]
        arguments = _arguments(plan, machine)
        memory = machine.memory.snapshot() if cross_check else {}
        call = _Call(function, machine.entry_registers(arguments), memory, initial)
        machine.restart_loop_counts()
        measurement = machine.measure(function, arguments, initial, lambda: header_words(bench.family.walk(guest)))
        _hold_against_bound(bench, machine, plan, measurement)
        if plan.measured.kind is OperationKind.MALLOC and bool(measurement.result) is plan.refused:
            what = "served, and was to be refused" if plan.refused else "refused; give a larger --heap"
            message = f"the measured allocation of {plan.scenario} was {what}."
            raise StateError(message)
        _check_invariants(bench, machine, "after the measured operation")
    second = _cross_check(bench, plan, call, measurement) if cross_check else None
    return _Outcome(plan, initial, checks, measurement, second)


def measure_in_state(request: ProbeRequest, plan: ScenarioPlan) -> tuple[Measurement | None, int, str]:
    """Measure the operation of ``plan``, which may be made for another allocator, after its set-up.

    Nothing is proved of the state: another allocator makes its own of the operations.

    Returns:
        the measurement, or None where there is no block to free; how many allocations of the set-up were refused; and
        what is to be said about it.

    Raises:
        WcetProbeError: as ``observe``, but never about the state.
    """
    program = load_program(request.allocator, request.target, request.compiler, request.cache_dir)
    bench = _Bench(request, family(request.allocator.name), program, {})
    initial = request.initial_cache or plan.initial_cache
    with _machine(bench) as machine:
        refused = _set_up(bench, machine, plan, initial)
        arguments = _arguments(plan, machine)
        if plan.measured.kind is OperationKind.FREE and not arguments[0]:
            return None, refused, "the block to be freed was refused"
        function = request.allocator.entry_points[plan.measured.kind]
        measurement = machine.measure(function, arguments, initial)
        _check_invariants(bench, machine, "after the measured operation")
    served = plan.measured.kind is OperationKind.FREE or measurement.result
    return measurement, refused, "" if served else "the measured allocation was refused"


def _machine(bench: _Bench) -> Machine:
    program = bench.program
    watched = [claim.loop for claim in _claims(bench)]
    heap_bytes = bench.request.heap_bytes
    return Machine(program.image, program.target, program.instructions, program.costs, heap_bytes, watched=watched)


def _claims(bench: _Bench) -> list[LoopClaim]:
    """What is claimed of each loop, whichever of the operations that have a bound runs it."""
    claims: dict[str, LoopClaim] = {}
    for bound in bench.bounds.values():
        for claim in bound.loop_claims:
            other = claims.get(claim.loop.name)
            if other is None or claim.max_header > other.max_header:
                claims[claim.loop.name] = claim
    return list(claims.values())


def _hold_against_bound(bench: _Bench, machine: Machine, plan: ScenarioPlan, measurement: Measurement) -> None:
    """The measured call against all that is proved or claimed of it.

    Raises:
        ContradictionError: it does not hold.
    """
    bound = bench.bounds.get(plan.measured.kind)
    if bound is None:
        return
    subject = _subject(plan)
    check_counts(bound, measurement, subject)
    counts = machine.loop_counts()
    check_loops(bound.loop_claims, counts, bench.program.image, subject)
    check_flows(bound, counts, machine.executions, subject)


def _subject(plan: ScenarioPlan) -> str:
    operation = plan.measured
    call = f"malloc({operation.size_bytes})" if operation.kind is OperationKind.MALLOC else "free"
    return f"{plan.scenario} ({plan.variant}), {call}"


def _set_up(bench: _Bench, machine: Machine, plan: ScenarioPlan, initial: InitialCache) -> int:
    """Initialise the heap and replay the set-up; how many allocations were refused."""
    request = bench.request
    if machine.call(request.allocator.entry_points["init"], machine.heap.base_address, request.heap_bytes):
        message = f"{request.allocator.name} refused a heap of {request.heap_bytes} bytes; choose another --heap."
        raise UsageError(message)
    machine.restart_loop_counts()
    return (machine.replay_observed if initial is InitialCache.WARM else machine.replay)(plan.trace)


def _guest_heap(bench: _Bench, machine: Machine) -> GuestHeap:
    return GuestHeap(
        read=machine.memory.read,
        read_word=machine.memory.read_word,
        slot=machine.slot,
        symbols={name: symbol.address for name, symbol in bench.program.image.symbols.items()},
        heap=machine.heap,
        values=bench.request.allocator.values,
    )


def _prove(bench: _Bench, guest: GuestHeap, plan: ScenarioPlan) -> tuple[StateCheck, ...]:
    """The plan's prediction against the guest's heap.

    Raises:
        StateError: a predicted fact does not hold.
    """
    found: Mapping[str, int | str] = bench.family.state(guest, plan)
    checks = tuple(StateCheck(fact, predicted, found[fact]) for fact, predicted in plan.prediction.items())
    for check in checks:
        if check.predicted != check.found:
            message = (
                f"the state of {plan.scenario} ({plan.variant}) was not reached: {check.fact} is {check.found}, "
                f"predicted was {check.predicted}; report this with the command line."
            )
            raise StateError(message)
    return checks


def _check_invariants(bench: _Bench, machine: Machine, when: str) -> None:
    violated = machine.call(bench.request.allocator.entry_points["check"])
    if violated:
        message = (
            f"{bench.request.allocator.name} broke heap invariant {violated} {when}; "
            "its numbers are worthless: report this with the command line."
        )
        raise StateError(message)


def _arguments(plan: ScenarioPlan, machine: Machine) -> tuple[int, ...]:
    if plan.measured.kind is OperationKind.MALLOC:
        return (plan.measured.size_bytes, plan.measured.cache_set)
    return (machine.slot(plan.measured.slot),)


def _cross_check(bench: _Bench, plan: ScenarioPlan, call: _Call, measurement: Measurement) -> CrossCheck:
    """Repeat the measured call in the p-code interpreter, and its accesses in the plain cache simulation.

    Raises:
        ContradictionError: a count differs.
    """
    target, image = bench.program.target, bench.program.image
    lifter = Lifter(target.pcode_language, target.isa, code_reader(image.segments))
    bound, subject = bench.bounds.get(plan.measured.kind), _subject(plan)
    pointer = call.registers["r1" if target.isa is Isa.POWERPC else "r13"]
    second = interpret_call(
        lifter,
        call.memory,
        call.registers,
        entry_address=require_symbol(image, call.function).address,
        return_address=RETURN_ADDRESS,
        step_limit=measurement.instructions + 1,
        visit=register_check(bound, image, pointer, subject) if bound else None,
    )
    comparable = call.initial_cache is not InitialCache.WARM
    icache = CacheSimulation(target.icache, call.initial_cache) if target.icache and comparable else None
    dcache = CacheSimulation(target.dcache, call.initial_cache) if target.dcache and comparable else None
    if icache:
        for address in second.path:
            icache.access_bytes(address, lifter.lift(address).size_bytes, is_write=False)
    if dcache:
        for access in second.accesses:
            dcache.access_bytes(access.address, access.size_bytes, is_write=access.is_store)
    check = CrossCheck(
        engine="p-code interpreter",
        instructions=second.instructions,
        loads=second.loads,
        stores=second.stores,
        icache_misses=icache.misses if icache else None,
        dcache_misses=dcache.misses if dcache else None,
        dcache_writebacks=dcache.writebacks if dcache else None,
    )
    first = CrossCheck(
        engine=check.engine,
        instructions=measurement.instructions,
        loads=measurement.loads,
        stores=measurement.stores,
        icache_misses=measurement.icache.misses if icache else None,
        dcache_misses=measurement.dcache.misses if dcache else None,
        dcache_writebacks=measurement.dcache.writebacks if dcache else None,
    )
    if check != first or second.result != measurement.result:
        message = (
            f"the two engines disagree about {call.function}: {first} against {check}; "
            "report this with the command line."
        )
        raise ContradictionError(message)
    if bound is not None:
        frames = MemoryRange(pointer - measurement.stack_bytes, measurement.stack_bytes)
        check_accesses(bound, second.accesses, image, target, frames=frames, subject=subject)
    return check
