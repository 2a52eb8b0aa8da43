"""Points that are single calls in constructed states."""

from __future__ import annotations

from dataclasses import asdict, replace

from wcet_probe.answer.papers.points import Document, Point, Settings, Worst, allocator_of
from wcet_probe.answer.witness.bench import ProbeRequest
from wcet_probe.answer.witness.probe import observe
from wcet_probe.build.program import load_program
from wcet_probe.emu.machine import Machine
from wcet_probe.errors import UsageError
from wcet_probe.model.scenario import InitialCache, Trace
from wcet_probe.scenarios.lookup import scenario_names

_STATES_OF_PAPERS = ("dlmalloc27", "fast-fit", "quick-fit")
"""The paper's state is of another kind than the dearest known: linear where that is quadratic, or of a root of it."""


def worst_call(point: Point, settings: Settings) -> Document:
    """The dearest known call of a role, or that in the paper's state.

    Raises:
        WcetProbeError: it cannot be measured; the message says why.
    """
    request = _worst_request(point, settings)
    report = observe(request)
    counts = report.measurement
    return asdict(Worst(request.scenario, report.plan.variant, counts.instructions, counts.cycles))


def call_in_state_of(point: Point, settings: Settings) -> Document:
    """C06 table 3's matrix: the operations that are another allocator's worst state, and its malloc, on this one.

    Raises:
        WcetProbeError: it cannot be measured; the message says why.
    """
    theirs = replace(point, kind="worst", allocator=point.what, what="alloc")
    plan = observe(_worst_request(theirs, settings)).plan
    program = load_program(allocator_of(point), settings.target, settings.compiler, settings.cache_dir)
    trace, slot = plan.trace, plan.measured.slot
    whole = Trace(
        kinds=(*trace.kinds, 0),
        slots=(*trace.slots, slot),
        sizes_bytes=(*trace.sizes_bytes, plan.measured.size_bytes),
        cache_sets=(0,) * (len(trace) + 1),
        slot_count=max(trace.slot_count, slot + 1),
    )
    with Machine(program.image, settings.target, program.instructions, program.costs, point.heap_bytes) as machine:
        init = program.allocator.entry_points["init"]
        if machine.call(init, machine.heap.base_address, point.heap_bytes):
            raise UsageError(f"{point.allocator} refused a heap of {point.heap_bytes} bytes; choose another.")
        columns = machine.replay_operations(whole, InitialCache.COLD)
    return {"instructions": int(columns.instructions[-1]), "cycles": int(columns.cycles[-1])}


def _worst_request(point: Point, settings: Settings) -> ProbeRequest:
    name, role = point.allocator, point.what
    own = f"paper-{role}"
    return ProbeRequest(
        allocator=allocator_of(point),
        target=settings.target,
        scenario=own
        if point.kind == "worst" and name in _STATES_OF_PAPERS and own in scenario_names(name)
        else f"worst-{role}",
        heap_bytes=point.heap_bytes,
        seed=0,
        initial_cache=None,
        compiler=settings.compiler,
        cross_check=False,
        cache_dir=settings.cache_dir,
    )
