"""Points that are workloads, and sizes of images: nothing is proved for them, and nothing imported that proves."""

from __future__ import annotations

from dataclasses import asdict

from wcet_probe.answer.papers.points import Document, Point, Settings, allocator_of
from wcet_probe.answer.workloads.workload_run import WorkloadRequest, WorkloadRun, run_batches
from wcet_probe.build.program import load_program
from wcet_probe.model.image import Image
from wcet_probe.scenarios.workloads.named import papers_batches


def run_point(point: Point, settings: Settings) -> Document:
    """What the workload of ``point`` counts, as plain data.

    Raises:
        WcetProbeError: it cannot be measured; the message says why.
    """
    request = WorkloadRequest(
        allocator=allocator_of(point),
        target=settings.target,
        heap_bytes=point.heap_bytes,
        compiler=settings.compiler,
        cache_dir=settings.cache_dir,
        placement=point.placement,
    )
    return _run_document(run_batches(request, papers_batches(point.what, point.arguments)))


def code_bytes(point: Point, settings: Settings) -> Document:
    """How many bytes of code the image of ``point`` has.

    Raises:
        BuildError: there is no image.
    """
    program = load_program(allocator_of(point), settings.target, settings.compiler, settings.cache_dir)
    return {"code_bytes": sum(len(s.data) for s in program.image.segments if s.executable)}


def _run_document(found: WorkloadRun) -> Document:
    """``found`` as plain data."""
    return {
        "operations": found.operations,
        "refused": found.refused,
        "distributions": [
            [*key, list(one.calls), list(one.calls.values())] for key, one in sorted(found.distributions.items())
        ],
        "peak_live_bytes": found.peak_live_bytes,
        "peak_reached_bytes": found.peak_reached_bytes,
        "samples": [list(asdict(each).values()) for each in found.samples],
        "windows": [list(asdict(each).values()) for each in found.windows],
        "static_bytes": _static_bytes(found.image),
    }


def _static_bytes(image: Image) -> int:
    """The objects that the linker placed in writable memory, but for those of the harness."""
    places = [segment for segment in image.segments if segment.writable]
    return sum(
        symbol.size_bytes
        for name, symbol in image.symbols.items()
        if not symbol.is_function
        and not name.startswith("wp_")
        and any(place.address <= symbol.address < place.address + place.size_bytes for place in places)
    )
