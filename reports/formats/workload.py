"""The document ``wcet-probe-workload``: what the operations of a workload cost, and the memory that they took."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from wcet_probe import __version__
from wcet_probe.answer.workloads.workload_run import PERCENTS, WorkloadRequest, WorkloadRun
from wcet_probe.answer.workloads.workload_tally import Distribution
from wcet_probe.model.proof import Bound
from wcet_probe.reports.formats.records import Document, plain

_MOST_BINS = 64


def workload_document(request: WorkloadRequest, source: str, found: WorkloadRun) -> Document:
    """The run of the workload ``source``; fractions are decimal texts of three places."""
    return {
        "format": "wcet-probe-workload",
        "version": 1,
        "tool": {"name": "wcet-probe", "version": __version__},
        "allocator": request.allocator.name,
        "parameters": plain(request.allocator.values),
        "target": request.target.name,
        "workload": source,
        "heap_bytes": request.heap_bytes,
        "image": {
            "sha256": found.image.sha256,
            "compiler": found.image.compiler,
            "flags": plain(found.image.flags),
        },
        "operations": found.operations,
        "refused": found.refused,
        "costs": [
            _cost(role, unit, distribution, found.bounds or {})
            for (role, unit), distribution in found.distributions.items()
            if distribution.count
        ],
        "memory": {
            "peak_live_bytes": found.peak_live_bytes,
            "peak_reached_bytes": found.peak_reached_bytes,
            "fragmentation_percent": decimal(100 * found.fragmentation) if found.peak_live_bytes else None,
            "internal_bytes": found.parts.internal_bytes if found.parts else None,
            "external_bytes": found.parts.external_bytes if found.parts else None,
            "samples": {
                name: [getattr(sample, name) for sample in found.samples]
                for name in ("operation", "live_bytes", "reached_bytes")
            },
        },
    }


def _cost(role: str, unit: str, distribution: Distribution, bounds: Mapping[str, Bound]) -> Document:
    bound = bounds.get(role)
    return {
        "role": role,
        "unit": unit,
        "calls": distribution.count,
        "mean": decimal(distribution.mean),
        "standard_deviation": decimal(distribution.deviation),
        "least": distribution.least,
        **{f"percentile_{percent}": distribution.percentile(percent) for percent in PERCENTS},
        "most": distribution.most,
        "bound": getattr(bound, unit, None) if bound else None,
        "histogram": _histogram(distribution),
    }


def _histogram(distribution: Distribution) -> Document:
    """Bins of equal width, 64 at most: the least value of each that is not empty, and its calls."""
    width, calls = bins(distribution, _MOST_BINS)
    return {"bin_width": width, "from": list(calls), "calls": list(calls.values())}


def bins(distribution: Distribution, most_bins: int) -> tuple[int, dict[int, int]]:
    """The width of ``most_bins`` bins at most, and the calls of each that is not empty by its least value."""
    width = max(1, -(-(distribution.most - distribution.least + 1) // most_bins))
    found: dict[int, int] = {}
    for value, calls in distribution.calls.items():
        start = distribution.least + (value - distribution.least) // width * width
        found[start] = found.get(start, 0) + calls
    return width, found


def decimal(value: Fraction, places: int = 3) -> str:
    """``value`` as a decimal text, rounded half up."""
    scaled = (value * 10**places + Fraction(1, 2)) // 1
    sign, digits = ("-" if scaled < 0 else ""), f"{abs(scaled):0{places + 1}d}"
    return f"{sign}{digits[:-places]}.{digits[-places:]}"
