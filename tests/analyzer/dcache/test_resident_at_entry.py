"""Lines that are in the cache by another name when a scope begins, and what takes them out before it is over."""

import pytest

from tests.analyzer.dcache.test_worked_examples import example
from wcet_probe.analyzer.dcache.resident_at_entry import resident_lines

REVERSE = """
struct node {{ struct node *next, *last; }};
unsigned other[64]; volatile unsigned sink;
void f(struct node *n) {{
    struct node *before = 0;
    while (n) {{
        struct node *next = n->next;
        n->next = before;
        {}
        if (before) before->last = n;
        before = n; n = next;
    }}
}}"""


def resident(between, ways=4, policy="fifo", allocate="no"):
    view = example(REVERSE.format(between), spec=f"d:sets=16,ways={ways},line=32,policy={policy},allocate={allocate}")
    return view, resident_lines(view.values, view.named, view.analysis)


def test_the_node_before_is_in_the_cache_on_the_way_back_only():
    view, found = resident("")
    (edges,) = found.values()
    (edge,) = edges
    order = sorted(view.values.states)
    assert order.index(edge.source) > order.index(edge.target) > 0


@pytest.mark.parametrize(("ways", "policy"), [(1, "lru"), (4, "random")])
def test_it_is_not_where_anything_may_have_evicted_it(ways, policy):
    """Where a set has one line, or any victim, the next access may take the line out before it is needed."""
    _, found = resident("sink = other[1];", ways=ways, policy=policy, allocate="yes")
    assert not any(found.values())


def test_it_was_in_the_cache_before_the_edge_by_its_other_name():
    view, found = resident("")
    ((line, edges),) = found.items()
    for edge in edges:
        assert line in view.analysis.substituted[edge]
        assert line.group in view.analysis.substitution[edge].killed
