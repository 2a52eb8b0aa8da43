"""The edges of loops against their definition, on random graphs and on code of which values exclude an edge."""

from random import Random
from types import SimpleNamespace

import pytest

from tests.analyzer.small_functions import of_text
from tests.analyzer.values.test_trace_partitioning import random_case
from wcet_probe.analyzer.graph.loop_forest import loops_of
from wcet_probe.analyzer.values.properties.loop_shapes import loop_shapes


@pytest.mark.parametrize("part", range(3))
def test_edges_into_a_header_come_from_outside_or_from_inside(part):
    checked = left_out = 0
    for seed in range(120):
        random = Random(f"shapes {part} {seed}")
        case = random_case(random)
        if case is None:
            continue
        values = case[0]
        reached = [edge for edge in values.graph.edges if edge.source in values.states]
        taken = [edge for edge in reached if random.random() < 0.85]
        arriving = {node: [edge for edge in taken if edge.target == node] for node in values.states}
        shapes = loop_shapes(SimpleNamespace(forest=values.forest, arriving=arriving))
        loops = {loop.header: loop for loop in loops_of(values.forest)}
        shown = {shape.loop.header: shape for shape in shapes}
        for header, loop in loops.items():
            inside = {edge for edge in taken if edge.target == header and edge.source in loop.nodes}
            outside = {edge for edge in taken if edge.target == header} - inside
            if not inside:
                left_out += 1
                assert header not in shown
                continue
            shape = shown[header]
            assert (set(shape.entry_edges), set(shape.back_edges)) == (outside, inside)
            around = [one for one in loops.values() if header in one.nodes and one.header != header]
            repeated = [one for one in around if one.header in shown]
            least = min(repeated, key=lambda one: len(one.nodes), default=None)
            assert shape.parent is least
            place = [each.loop.header for each in shapes].index
            assert least is None or place(least.header) < place(header)
            checked += 1
    assert checked > 20
    assert left_out > 2


def test_a_loop_that_values_exclude_is_none():
    """The inner branch back is never taken, so that its block is no loop; the outer one is."""
    _, values = of_text(
        "movs r1, #0\n1: subs r0, #1\n2: adds r2, r2, #1\ncmp r1, #0\nbne 2b\ncmp r0, #0\nbne 1b\nbx lr"
    )
    (shape,) = loop_shapes(values)
    assert shape.parent is None
    assert len(shape.entry_edges) == len(shape.back_edges) == 1
    assert shape.entry_edges[0].source not in shape.loop.nodes
