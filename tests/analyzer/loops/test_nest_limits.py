"""Limits that followed nests give: none that the bounds of loops give as well, and none twice on one straight way."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from wcet_probe.analyzer.graph.loop_forest import Loop
from wcet_probe.analyzer.graph.supergraph import EXIT, Edge
from wcet_probe.analyzer.ipet.flow_problem import BoundedLoop
from wcet_probe.analyzer.loops.nest_limits import ExecutedNest, executed_constraints
from wcet_probe.analyzer.values.properties.loop_shapes import LoopShape

ENTRY = Edge(0, 1, "jump", None)
EDGES = [ENTRY, *(Edge(a, b, "jump", None) for a, b in ((1, 2), (1, 3), (2, 4), (4, 5), (3, 5), (5, 1), (1, EXIT)))]
"""A loop at 1 whose rounds go by 2 and 4, or by 3."""


def limits(counts: dict[int, int]) -> dict[str, int]:
    """The most executions of points in a nest of ten rounds, one entry, as constraints tell."""
    loop = Loop(1, (1, 2, 3, 4, 5), frozenset(range(1, 6)))
    shape = LoopShape(loop, None, (ENTRY,), (Edge(5, 1, "jump", None),))
    values = SimpleNamespace(
        arriving={n: [edge for edge in EDGES if edge.target == n] for n in range(1, 6)},
        leaving={n: [edge for edge in EDGES if edge.source == n] for n in range(6)},
        states=dict.fromkeys(range(6)),
    )
    bounds = [BoundedLoop(1, (ENTRY,), shape.back_edges, 11)]
    nest = ExecutedNest(shape, counts, {})
    found = executed_constraints(values, bounds, [nest])
    return {one.name: -one.edges[0][1] for one in found}


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ({1: 11, 2: 10, 3: 10, 4: 10, 5: 10}, {}),
        ({1: 11, 2: 4, 3: 10, 4: 4, 5: 10}, {"executed:2": 4}),  # 4 follows from 2
        ({1: 11, 2: 10, 4: 10, 5: 10}, {"executed:3": 0}),
        ({1: 8, 2: 10, 3: 7, 4: 10, 5: 7}, {"executed:1": 8, "executed:3": 7, "executed:5": 7}),
    ],
)
def test_only_what_bounds_do_not_tell_is_a_limit(counts, expected):
    assert limits(counts) == expected
