"""A workload operation by operation: the instructions of each, from the allocator's entry to its return."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from wcet_probe.answer.witness.bench import ProbeRequest
from wcet_probe.build.program import load_program
from wcet_probe.compiled.supply import translations
from wcet_probe.emu.machine import Machine
from wcet_probe.errors import StateError, UsageError, unknown_name
from wcet_probe.model.image import Image
from wcet_probe.model.scenario import Operation, OperationKind, Trace
from wcet_probe.scenarios.families import HeapRequest
from wcet_probe.scenarios.lookup import family_of
from wcet_probe.scenarios.traces import trace_of


@dataclass(frozen=True, slots=True)
class Replay:
    """What a replay counted.

    Attributes:
        image: the binary that ran.
        variant: which of the scenario's candidate states the operations lead to.
        operations: in order, the scenario's measured one last where none is left out.
        instructions: of each.
    """

    image: Image
    variant: str
    operations: tuple[Operation, ...]
    instructions: tuple[int, ...]


def replay(
    request: ProbeRequest, operations: int | None = None, progress: Callable[[str], None] = lambda _: None
) -> Replay:
    """Replay the set-up of the scenario of ``request``, then its measured operation, and count each.

    Parameters:
        request: whose first candidate state is taken; nothing is proved of it, and no bound.
        operations: how many of them, the first ones; without it all.
        progress: is told in words what is being done.

    Raises:
        UsageError: an unknown scenario, a heap that cannot hold the state, or more operations than there are.
        BuildError: no image.
        EmulationError: the guest went astray.
        StateError: a heap invariant is broken afterwards.
    """
    allocator, heap_bytes = request.allocator, request.heap_bytes
    builders = family_of(allocator).builders
    if request.scenario not in builders:
        raise unknown_name(f"scenario of {allocator.name}", request.scenario, builders)
    line = request.target.dcache.line_bytes if request.target.dcache else None
    plan = builders[request.scenario](HeapRequest(allocator, heap_bytes, line, request.seed))[0]
    chosen = _operations(plan.trace, plan.measured, operations, request.scenario)
    progress(f"building {allocator.name} for {request.target.name}")
    program = load_program(allocator, request.target, request.compiler, request.cache_dir, heap_bytes)
    progress(f"replaying {len(chosen)} operations")
    with Machine(
        program.image,
        program.target,
        program.instructions,
        program.costs,
        heap_bytes,
        translations=translations(program, request.cache_dir),
    ) as machine:
        if machine.call(allocator.entry_points["init"], machine.heap.base_address, heap_bytes):
            raise UsageError(f"{allocator.name} refused a heap of {heap_bytes} bytes; choose another --heap.")
        counts = machine.replay_counted(trace_of(chosen, plan.trace.slot_count + 1))
        violated = machine.call(allocator.entry_points["check"])
    if violated:
        message = (
            f"{allocator.name} broke heap invariant {violated} in the replay; its numbers are worthless: "
            "report this with the command line."
        )
        raise StateError(message)
    return Replay(program.image, plan.variant, chosen, counts)


def _operations(trace: Trace, measured: Operation, most: int | None, scenario: str) -> tuple[Operation, ...]:
    """The first ``most`` of ``trace`` and ``measured``, which is put into a slot of its own."""
    if measured.kind is OperationKind.MALLOC:
        measured = Operation(measured.kind, trace.slot_count, measured.size_bytes, measured.cache_set)
    found = (*(trace[index] for index in range(len(trace))), measured)
    if most is not None and not 1 <= most <= len(found):
        raise UsageError(f"{scenario} has {len(found)} operations, not {most}; give 1 to {len(found)}.")
    return found[:most]
