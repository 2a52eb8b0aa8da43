"""Points that are proved bounds."""

from __future__ import annotations

from collections.abc import Iterator

from wcet_probe.answer.bounds.per_size import PerSizeRequest, bounds_per_size
from wcet_probe.answer.bounds.proving import prove_operation
from wcet_probe.answer.papers.points import Document, Point, Settings, allocator_of
from wcet_probe.answer.papers.scheduler import loop_bound
from wcet_probe.build.program import load_program
from wcet_probe.errors import AnalysisError


def operation_bound(point: Point, settings: Settings) -> Document:
    """The bound of a role, or why there is none.

    Raises:
        BuildError: there is no image.
    """
    program = load_program(allocator_of(point), settings.target, settings.compiler, settings.cache_dir)
    try:
        bound = prove_operation(program, point.what, point.heap_bytes)
    except AnalysisError as error:
        return {"instructions": None, "cycles": None, "why": str(error)}
    return {"instructions": bound.instructions, "cycles": bound.cycles, "why": ""}


def size_bounds(point: Point, settings: Settings) -> Document:
    """Bounds of malloc by size, and of free.

    Raises:
        WcetProbeError: they cannot be proved; the message says why.
    """
    program = load_program(allocator_of(point), settings.target, settings.compiler, settings.cache_dir)
    found = bounds_per_size(PerSizeRequest(program, point.heap_bytes, point.arguments))
    ranges: Iterator[list[int]] = ([one.first_bytes, one.last_bytes, *one.cost] for one in found.malloc)
    return {"malloc": list(ranges), "free": list(found.free)}


def scheduler_bound(point: Point, settings: Settings) -> Document:
    """The bound of a round of H11's scheduler.

    Raises:
        WcetProbeError: it cannot be proved; the message says why.
    """
    bound = loop_bound(point.what, allocator_of(point), settings.target, settings.compiler, settings.cache_dir)
    return {"instructions": bound.instructions, "cycles": bound.cycles}
