"""A machine on which a state is set up: its heap, its claims, and what must hold of both before and after a call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from wcet_probe.answer.witness.contradiction import refusal
from wcet_probe.build.linked_program import check_heap_bytes, fixed_heap_bytes
from wcet_probe.build.program import Program
from wcet_probe.emu.compiled import Translations
from wcet_probe.emu.machine import Machine
from wcet_probe.errors import StateError, UsageError
from wcet_probe.model.allocator import Allocator
from wcet_probe.model.proof import Bound, LoopClaim
from wcet_probe.model.report import StateCheck
from wcet_probe.model.scenario import InitialCache, Operation, OperationKind, ScenarioPlan
from wcet_probe.model.target import Target
from wcet_probe.scenarios.families import Family, GuestHeap


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
        cross_check: whether the p-code interpreter repeats the measured call; None: if it is not too long.
        cache_dir: where images are kept.
        prove: whether a bound is proved as well, and every run held against it.
        cache_options: texts of the options that changed the target's caches, for the record.
    """

    allocator: Allocator
    target: Target
    scenario: str
    heap_bytes: int
    seed: int
    initial_cache: InitialCache | None
    compiler: str
    cross_check: bool | None
    cache_dir: Path
    prove: bool = False
    cache_options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Bench:
    """What all candidates of a request share; ``bounds`` by role, as far as there are any.

    The guest may take ``most_instructions`` for a candidate; 0: as many as it likes. Long set-ups run in code of
    ``translations``.
    """

    request: ProbeRequest
    family: Family
    program: Program
    bounds: Mapping[str, Bound]
    most_instructions: int = 0
    translations: Translations | None = None


def check_heap(allocator: Allocator, heap: int) -> None:
    """A heap of so many bytes is one that the allocator and the memory can hold.

    Raises:
        UsageError: it is not.
    """
    if heap < allocator.minimum_heap_bytes:
        message = (
            f"a heap of {heap} bytes is too small for {allocator.name}; give at least {allocator.minimum_heap_bytes}."
        )
        raise UsageError(message)
    check_heap_bytes(allocator, heap)
    if heap % allocator.alignment_bytes and not fixed_heap_bytes(allocator):
        down = heap // allocator.alignment_bytes * allocator.alignment_bytes
        message = (
            f"a heap of {heap} bytes is no multiple of the alignment of {allocator.name}, "
            f"{allocator.alignment_bytes} bytes; give {down} or {down + allocator.alignment_bytes}."
        )
        raise UsageError(message)


def machine_of(bench: Bench) -> Machine:
    """A machine with the program, told what is claimed of its loops and calls."""
    program = bench.program
    watched = [claim.loop for claim in claims_of(bench)]
    heap_bytes = bench.request.heap_bytes
    return Machine(
        program.image,
        program.target,
        program.instructions,
        program.costs,
        heap_bytes,
        watched=watched,
        bounds=tuple(bench.bounds.values()),
        most_instructions=bench.most_instructions,
        translations=bench.translations,
    )


def claims_of(bench: Bench) -> list[LoopClaim]:
    """What is claimed of each loop, whichever of the operations that have a bound runs it."""
    claims: dict[str, LoopClaim] = {}
    for bound in bench.bounds.values():
        for claim in bound.loop_claims:
            other = claims.get(claim.loop.name)
            if other is None or claim.max_header > other.max_header:
                claims[claim.loop.name] = claim
    return list(claims.values())


def subject_of(plan: ScenarioPlan) -> str:
    """What is run, in words."""
    operation = plan.measured
    call = f"malloc({operation.size_bytes})" if operation.kind is OperationKind.MALLOC else "free"
    return f"{plan.scenario} ({plan.variant}), {call}"


def set_up_state(bench: Bench, machine: Machine, plan: ScenarioPlan, initial: InitialCache) -> int:
    """Initialise the heap and replay the set-up; how many allocations were refused."""
    request = bench.request
    if machine.call(request.allocator.entry_points["init"], machine.heap.base_address, request.heap_bytes):
        message = f"{request.allocator.name} refused a heap of {request.heap_bytes} bytes; choose another --heap."
        raise UsageError(message)
    machine.restart_loop_counts()
    # An allocator of one's own may stay where an assertion fails, which ends a run that is observed.
    is_observed = initial is InitialCache.WARM or bench.bounds or plan.set_up_may_refuse
    try:
        refused = (machine.replay_observed if is_observed else machine.replay)(plan.trace)
    finally:
        # Of a run that went astray, too: a false claim may be why.
        check_claims(bench, machine, f"the set-up of {plan.scenario}")
    return refused


def check_claims(bench: Bench, machine: Machine, subject: str) -> None:
    """No call that was observed may have violated what is claimed of all calls.

    Raises:
        ContradictionError: one has.
    """
    broken = machine.broken_claim()
    if broken is not None:
        raise refusal(broken, bench.program.image, subject)


def guest_heap(bench: Bench, machine: Machine) -> GuestHeap:
    """What a scenario may see of the guest."""
    return GuestHeap(
        read=machine.memory.read,
        read_word=machine.memory.read_word,
        slot=machine.slot,
        symbols={name: symbol.address for name, symbol in bench.program.image.symbols.items()},
        heap=machine.heap,
        values=bench.request.allocator.values,
        alignment_bytes=bench.request.allocator.alignment_bytes,
    )


def check_state(bench: Bench, guest: GuestHeap, plan: ScenarioPlan) -> tuple[StateCheck, ...]:
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
                f"predicted was {check.predicted}; "
                + (_CHECK_OWN if bench.request.allocator.own else "report this with the command line.")
            )
            raise StateError(message)
    return checks


def check_served(bench: Bench, guest: GuestHeap, plan: ScenarioPlan, block: int) -> None:
    """The ``block`` that the measured call of an allocator of one's own served lies as those of the set-up must.

    Raises:
        StateError: it is not aligned, outside of the heap, or overlaps another one.
    """
    if bench.request.allocator.own is None or plan.measured.kind is not OperationKind.MALLOC or not block:
        return
    trace, slot = plan.trace, plan.trace.slot_count
    served = replace(
        trace,
        kinds=(*trace.kinds, 0),
        slots=(*trace.slots, slot),
        sizes_bytes=(*trace.sizes_bytes, plan.measured.size_bytes),
        cache_sets=(*trace.cache_sets, plan.measured.cache_set),
        slot_count=slot + 1,
    )
    here = replace(guest, slot=lambda each: block if each == slot else guest.slot(each))
    # What a state predicts holds with one block more in use, too.
    predicted = {fact: int(one) + 1 if fact == "used blocks" else one for fact, one in plan.prediction.items()}
    for fact, found in bench.family.state(here, replace(plan, trace=served)).items():
        if found != predicted.get(fact, found):
            message = (
                f"{subject_of(plan)} gave {block:#x}, with which {fact} is {found}, and must be "
                f"{predicted[fact]}: the allocator is broken, or {_CHECK_OWN}"
            )
            raise StateError(message)


_CHECK_OWN = "check alignment_bytes, [heap] and [call] of the manifest with wcet-probe new-allocator FOLDER."


def check_invariants(bench: Bench, machine: Machine, when: str) -> None:
    """The allocator finds its own heap sound.

    Raises:
        StateError: it does not.
    """
    violated = machine.call(bench.request.allocator.entry_points["check"])
    if violated:
        message = (
            f"{bench.request.allocator.name} broke heap invariant {violated} {when}; "
            "its numbers are worthless: report this with the command line."
        )
        raise StateError(message)


def arguments_of(allocator: Allocator, measured: Operation, machine: Machine) -> tuple[int, ...]:
    """Of the measured call."""
    if measured.kind is OperationKind.MALLOC:
        return (measured.size_bytes, measured.cache_set)
    size = (machine.slot_bytes(measured.slot),) if allocator.free_takes_size else ()
    return (machine.slot(measured.slot), *size)
