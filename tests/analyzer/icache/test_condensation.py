"""What the condensed graph tells of all nodes is what the whole graph does."""

from random import Random

from wcet_probe.analyzer.domains.lattice import Joined
from wcet_probe.analyzer.graph.fixpoint import least
from wcet_probe.analyzer.graph.flow_order import Arrow, FlowOrder
from wcet_probe.analyzer.icache.condensation import condensed

START = -1


def random_graph(random: Random) -> FlowOrder[Arrow]:
    """Chains with branches, loops and ways into the middle of loops."""
    nodes = range(random.randint(1, 12))
    arrows = {Arrow(START, 0): None} | {Arrow(node, node + 1): None for node in nodes[:-1] if random.random() < 0.8}
    for _ in range(random.randint(0, len(nodes))):
        arrows[Arrow(random.choice((START, *nodes)), random.choice(nodes))] = None
    return FlowOrder((START, *nodes), arrows, START)


def union(one: frozenset[int], other: frozenset[int]) -> frozenset[int]:
    return one | other


def states(graph: FlowOrder[Arrow], changing: set[int]) -> dict[int, frozenset[int]]:
    """Of each node the nodes of ``changing`` that come before it on some path."""
    start = {START: frozenset({START})}
    return dict(least(graph, Joined(union), start, lambda node, one: one | {node} if node in changing else one))


def test_the_condensed_graph_has_the_states_of_the_whole_one():
    merged = nodes = 0
    for seed in range(1500):
        random = Random(seed)
        graph = random_graph(random)
        changing = {node for node in graph.outgoing if node != START and random.random() < 0.3}
        small, group = condensed(graph, changing)
        found = states(small, changing)
        assert {node: found[one] for node, one in group.items()} == states(graph, changing)
        assert all(group[node] == node for node in changing & group.keys())
        nodes += len(group)
        merged += len(group) - len(small.outgoing)
    assert merged > nodes / 4


def test_what_changes_nothing_is_one_node():
    diamonds = [(4 * n + a, 4 * n + b) for n in range(5) for a, b in ((0, 1), (0, 2), (1, 3), (2, 3), (3, 4))]
    arrows = [Arrow(START, 0), *(Arrow(*pair) for pair in diamonds), Arrow(20, 12)]
    small, group = condensed(FlowOrder((START, *range(21)), arrows, START), {5})
    assert len(small.outgoing) == 3
    assert {node for node in group if group[node] == START} == {START, *range(5), 6}
    assert len({group[node] for node in range(7, 21)}) == 1
