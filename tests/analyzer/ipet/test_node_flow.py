"""The checker's graph in the engine: forwards and backwards, against plain iteration."""

from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st

from wcet_probe.analyzer.domains.lattice import Joined
from wcet_probe.analyzer.ipet.node_flow import NodeFlow
from wcet_probe.certificate.kernel.records import Edge

NODES = "abcdef"
EDGES = st.lists(st.tuples(st.sampled_from(NODES), st.sampled_from(NODES)), max_size=14, unique=True)
NUMBERS = st.frozensets(st.integers(0, 3))
OWN = st.fixed_dictionaries({node: st.tuples(NUMBERS, NUMBERS) for node in NODES})
UNION = Joined(frozenset.union, frozenset.issubset)


def flow_of(pairs):
    edges = [Edge(f"{source}-{target}", source, target, 0) for source, target in pairs]
    return NodeFlow(SimpleNamespace(entry="a", nodes=NODES), edges), edges


def passed(own, node, state):
    """What a node of which ``own`` tells what it makes and takes leaves of a state."""
    made, taken = own[node]
    return (state - taken) | made


def iterated(edges, states, along):
    """The least states above ``states``, by plain iteration."""
    states = dict(states)
    while True:
        before = dict(states)
        for edge in edges:
            if edge.source in states:
                states[edge.target] = states.get(edge.target, frozenset()) | along(edge, states[edge.source])
        if states == before:
            return states


@given(EDGES, OWN, NUMBERS)
def test_states_are_those_of_plain_iteration(pairs, own, start):
    flow, edges = flow_of(pairs)
    found = flow.least(UNION, start, lambda node, state: lambda _: passed(own, node, state))
    assert found == iterated(edges, {"a": start}, lambda edge, state: passed(own, edge.source, state))
    assert list(found) == list(flow.found)
    assert sorted(flow.found) == sorted(flow.nodes)


@given(EDGES, OWN)
def test_backwards_each_node_has_its_own_and_what_its_edges_bring_back(pairs, own):
    flow, edges = flow_of(pairs)
    at = {node: made for node, (made, _) in own.items()}
    found = flow.least_backwards(UNION, at, lambda edge, state: state - own[edge.source][1])
    back = [Edge(edge.name, edge.target, edge.source, 0) for edge in edges]
    assert found == iterated(back, at, lambda edge, state: state - own[edge.target][1])


@given(EDGES, st.sets(st.sampled_from(NODES)), st.sets(st.sampled_from(NODES)))
def test_before_leads_back_along_edges_that_are_meant(pairs, ends, through):
    flow, edges = flow_of(pairs)
    back = [Edge(edge.name, edge.target, edge.source, 0) for edge in edges if edge.source in through]
    found = iterated(back, dict.fromkeys(ends, frozenset({1})), lambda _, state: state)
    assert flow.before(ends, lambda edge: edge.source in through) == set(found)
