"""The flow graph of all analyses against plain search: edges by their ends, orders, reachability."""

from hypothesis import given
from hypothesis import strategies as st

from wcet_probe.analyzer.graph.flow_order import Arrow, FlowOrder, in_order

OUT = -1
NODES = st.integers(0, 6)
EDGES = st.lists(st.builds(Arrow, NODES, st.integers(OUT, 6)), max_size=18, unique=True)


def search(edges, starts, *, within=lambda _: True, backwards=False):
    found = set(starts)
    while True:
        ends = ((e.target, e.source) if backwards else (e.source, e.target) for e in edges if within(e))
        more = {to for here, to in ends if here in found and to != OUT} - found
        if not more:
            return found
        found |= more


@given(EDGES)
def test_edges_are_found_by_their_ends_in_the_order_given(edges):
    graph = FlowOrder(range(7), edges)
    for node in range(7):
        own = [edge for edge in edges if edge.source == node]
        assert list(graph.outgoing[node]) == own
        assert list(graph.successors(node)) == [edge.target for edge in own if edge.target != OUT]
        assert list(graph.predecessors(node)) == [edge.source for edge in edges if edge.target == node]
        assert node in graph
    assert OUT not in graph
    assert list(graph.incoming.get(OUT, ())) == [edge for edge in edges if edge.target == OUT]


@given(EDGES, st.sets(NODES, max_size=3), st.sets(NODES))
def test_reachability_is_that_of_a_search(edges, starts, through):
    graph = FlowOrder(range(7), edges)

    def within(edge):
        return edge.target in through and edge.source in through

    assert graph.behind(starts) == search(edges, starts)
    assert graph.before(starts) == search(edges, starts, backwards=True)
    assert graph.behind(starts, within) == search(edges, starts, within=within)
    assert graph.before(starts, within) == search(edges, starts, within=within, backwards=True)


@given(EDGES, NODES)
def test_the_order_has_each_node_behind_those_that_control_comes_from(edges, entry):
    graph = FlowOrder(range(7), edges, entry)
    order = list(in_order(graph.forest))
    assert sorted(order) == sorted(search(edges, [entry]))
    assert [graph.place[node] for node in order] == list(range(len(order)))
    headers = {loop.header for loop in graph.loops}
    for node in order:
        for target in graph.successors(node):
            assert graph.place[target] > graph.place[node] or target in headers
    for loop in graph.loops:  # the nodes of a loop are next to each other, its header is the first
        places = sorted(graph.place[node] for node in loop.nodes)
        assert places == list(range(places[0], places[0] + len(places)))
        assert graph.place[loop.header] == places[0]


@given(EDGES)
def test_outer_loops_come_before_inner_ones(edges):
    loops = FlowOrder(range(7), edges).loops
    for number, loop in enumerate(loops):
        assert not any(set(loop.nodes) < set(later.nodes) for later in loops[number + 1 :])


@given(EDGES, NODES)
def test_the_reverse_postorder_has_each_node_before_its_successors_but_for_the_ends_of_loops(edges, entry):
    graph = FlowOrder(range(7), edges, entry)
    order = graph.reverse_postorder
    assert sorted(order) == sorted(search(edges, [entry]))
    for place, node in enumerate(order):
        for target in graph.successors(node):
            assert order.index(target) > place or node in search(edges, [target])
