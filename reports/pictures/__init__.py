"""Pictures of results, as SVG: deterministic, in print and without colour as legible as on a screen.

Each function reads documents of the result format and gives a text, or None where a document has not what is needed.
"""

from __future__ import annotations

from wcet_probe.reports.pictures.cache_sets import heat_rows, heat_strip
from wcet_probe.reports.pictures.comparison import bound_against_observed
from wcet_probe.reports.pictures.documents import name_of
from wcet_probe.reports.pictures.flow import graph_functions
from wcet_probe.reports.pictures.gaps import gap_bars
from wcet_probe.reports.pictures.graphs import call_graph, control_flow_graph
from wcet_probe.reports.pictures.heap_growth import wcet_against_heap
from wcet_probe.reports.pictures.operations import histogram, instructions_by_operation

__all__ = [
    "bound_against_observed",
    "call_graph",
    "control_flow_graph",
    "gap_bars",
    "graph_functions",
    "heat_rows",
    "heat_strip",
    "histogram",
    "instructions_by_operation",
    "name_of",
    "wcet_against_heap",
]
