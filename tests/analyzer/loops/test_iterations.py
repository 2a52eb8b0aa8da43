"""What iterations have in common: blocks that each one passes, and edges that only the first can take."""

from tests.analyzer.small_functions import of_text
from wcet_probe.analyzer.loops.iterations import lost_symbols, only_at_first, passed_in_each
from wcet_probe.analyzer.values.properties.loop_shapes import loop_shapes

ONE_WAY_AROUND = """
    movs r1, #9
    movs r2, #0
1:  cmp r2, #0
    bne 2f
    nop
2:  movs r2, #{later}
    subs r1, r1, #1
    bne 1b
    bx lr
"""
"""The block of ``nop`` is taken where ``r2`` is 0: at first only, unless it is made 0 again."""


def only_loop(text):
    _, values = of_text(text)
    (shape,) = loop_shapes(values)
    return values, shape, lost_symbols(values, shape.loop, values.killed)


def taken_at_first(later):
    values, shape, lost = only_loop(ONE_WAY_AROUND.format(later=later))
    within = values.within(shape.loop.nodes)
    return {edge for edge in within if only_at_first(values, shape, values.edges[edge], lost)}


def test_each_iteration_passes_the_header_and_the_end_and_not_what_lies_beside():
    values, shape, _ = only_loop(ONE_WAY_AROUND.format(later=1))
    passed = passed_in_each(values, shape)
    assert shape.loop.header in passed
    assert {edge.source for edge in shape.back_edges} <= set(passed)
    assert len(passed) == len(shape.loop.nodes) - 1


def test_an_edge_that_what_comes_back_excludes_is_taken_at_first_only():
    into, out = sorted(taken_at_first(1), key=lambda edge: edge.source)
    assert into.target == out.source  # the block of ``nop``
    assert not taken_at_first(0)
