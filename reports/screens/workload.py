"""A workload run in a terminal: mean beside worst, the bound beside both, and the memory that it took."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from wcet_probe.answer.workloads.workload_run import PERCENTS, WorkloadRequest, WorkloadRun
from wcet_probe.answer.workloads.workload_tally import Distribution
from wcet_probe.reports.formats.workload import bins, decimal
from wcet_probe.reports.screens.layout import paragraph, table
from wcet_probe.sizes import format_size

_MOST_BINS = 8
_BAR_COLUMNS = 40
_STRETCHES = 5


def workload_lines(request: WorkloadRequest, source: str, found: WorkloadRun, width: int) -> Iterator[str]:
    """The lines of the first screen."""
    allocator, target = request.allocator, request.target
    yield f"{allocator.name} on {target.name}, heap {format_size(request.heap_bytes)}: {source}"
    yield f"{found.operations:,} operations, {found.refused:,} allocations refused"
    yield ""
    rows = []
    for (role, unit), distribution in found.distributions.items():
        if not distribution.count or (unit.endswith("misses") and not distribution.most):
            continue
        bound = (found.bounds or {}).get(role)
        rows.append(
            (
                *(role, unit.replace("_", " "), distribution.count),
                *(decimal(distribution.mean, 1), decimal(distribution.deviation, 1), distribution.least),
                *(distribution.percentile(percent) for percent in PERCENTS),
                distribution.most,
                getattr(bound, unit, "") if bound else "",
            )
        )
    percentiles = (f"{percent} %" for percent in PERCENTS)
    yield from table(rows, ("", "", "calls", "mean", "sd", "least", *percentiles, "most", "bound"))
    yield ""
    for (role, unit), distribution in found.distributions.items():
        if unit == "instructions" and distribution.count:
            yield from _histogram_lines(role, distribution)
            yield ""
    yield from _over_time(found)
    yield ""
    factor = f"{decimal(100 * found.fragmentation, 2)} %" if found.peak_live_bytes else "-"
    yield from paragraph(
        "Memory",
        f"{found.peak_live_bytes:,} bytes were held at once at most, and the highest block ended "
        f"{found.peak_reached_bytes:,} bytes from the start of the heap: factor F = {factor}",
        width,
    )
    if found.parts:
        internal, external = (decimal(100 * part, 2) for part in (found.parts.internal, found.parts.external))
        yield from paragraph(
            "",
            f"when most was held, blocks took {internal} % more than was asked for (internal fragmentation), and "
            f"{external} % more lay between them (external)",
            width,
        )
    if found.bounds is not None and not found.bounds:
        yield from paragraph("Bound", "none is established; 'wcet-probe ALLOCATOR' says what stands in the way", width)


def _histogram_lines(role: str, distribution: Distribution) -> Iterator[str]:
    """How many calls took how many instructions: bins of one width, none that is empty."""
    width, found = bins(distribution, _MOST_BINS)
    most = max(found.values())
    rows = []
    for start, calls in found.items():
        last = start + width - 1
        name = f"{start:,}" if width == 1 else f"{start:,} to {last:,}"
        rows.append((role, name, calls, "#" * max(1, calls * _BAR_COLUMNS // most)))
    yield from table(rows, ("", "instructions", "calls", ""))


def _over_time(found: WorkloadRun) -> Iterator[str]:
    """Footprint and fragmentation behind each stretch of the run."""
    samples = found.samples
    ends = sorted({max(1, len(samples) * part // _STRETCHES) for part in range(1, _STRETCHES + 1)})
    rows = []
    for end in ends:
        one = samples[end - 1]
        waste = f"{decimal(100 * (Fraction(one.reached_bytes, one.live_bytes) - 1), 2)} %" if one.live_bytes else "-"
        rows.append((one.operation, one.live_bytes, one.reached_bytes, waste))
    yield from table(rows, ("operation", "bytes held", "reached so far", "more than held"))
