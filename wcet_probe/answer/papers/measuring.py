"""Who measures which kind of point."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from wcet_probe.answer.papers.measured_calls import call_in_state_of, worst_call
from wcet_probe.answer.papers.measured_runs import code_bytes, run_point
from wcet_probe.answer.papers.points import Document, Kind, Point, Settings
from wcet_probe.answer.papers.proved_points import operation_bound, scheduler_bound, size_bounds

MEASURES: Mapping[Kind, Callable[[Point, Settings], Document]] = MappingProxyType(
    {
        "worst": worst_call,
        "dearest": worst_call,
        "in-state-of": call_in_state_of,
        "run": run_point,
        "bound": operation_bound,
        "code": code_bytes,
        "per-size": size_bounds,
        "scheduler": scheduler_bound,
    }
)
"""By kind. What a kind depends on are the module of its function and what that imports; see `dependencies`."""


def measure(point: Point, settings: Settings) -> Document:
    """Measure ``point``.

    Raises:
        WcetProbeError: it cannot be measured; the message says why.
    """
    return MEASURES[point.kind](point, settings)
