"""The loop forest against cycles found the plainest way, on random graphs."""

from hypothesis import given
from hypothesis import strategies as st

from wcet_probe.analyzer.graph.loop_forest import (
    IrreducibleError,
    dominators,
    loop_forest,
    loops_of,
    reachable,
    tangled_parts,
)

GRAPHS = st.integers(2, 8).flatmap(
    lambda n: st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=2 * n).map(
        lambda edges: {node: tuple(sorted({b for a, b in edges if a == node})) for node in range(n)}
    )
)


def reached(graph, start, without=()):
    found, todo = set(), [start] if start not in without else []
    while todo:
        node = todo.pop()
        if node not in found:
            found.add(node)
            todo += [each for each in graph[node] if each not in without]
    return found


def nodes_in_order(parts):
    for part in parts:
        yield from [part] if isinstance(part, int) else nodes_in_order(part.parts)


@given(GRAPHS)
def test_reachable_nodes_and_dominators(graph):
    inside = reached(graph, 0)
    assert reachable(graph, 0) == inside
    above = dominators(graph, 0)
    for node in inside - {0}:
        assert node not in reached(graph, 0, without={above[node]})


@given(GRAPHS)
def test_every_cycle_passes_a_header_and_headers_are_the_only_entries(graph):
    inside = reached(graph, 0)
    try:
        forest = loop_forest(graph, 0)
    except IrreducibleError:
        return
    order = list(nodes_in_order(forest))
    assert sorted(order) == sorted(inside)
    loops = loops_of(forest)
    headers = {loop.header for loop in loops}
    place = {node: number for number, node in enumerate(order)}
    for node in inside:
        for target in graph[node]:
            if place[target] <= place[node]:
                assert any(loop.header == target and node in loop.nodes for loop in loops)
            for loop in loops:
                if node not in loop.nodes and target in loop.nodes:
                    assert target == loop.header
    for node in inside - headers:
        assert all(node not in reached(graph, target, without=headers) for target in graph[node])


@given(GRAPHS)
def test_loops_with_several_entries_are_told_all_at_once(graph):
    found = tangled_parts(graph, 0)
    first = []
    try:
        loop_forest(graph, 0)
    except IrreducibleError as error:
        first = [(error.entries, error.members)]
    assert {*first} <= {*found}
    assert bool(first) == bool(found)
    for number, (entries, members) in enumerate(found):
        assert len(entries) > 1
        assert {*entries} <= members
        assert all(members.isdisjoint(others) for _, others in found[:number])
        assert all(node in reached(graph, target) for node in members for target in members)
