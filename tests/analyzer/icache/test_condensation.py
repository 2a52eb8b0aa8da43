"""What the condensed graph tells of all nodes is what the whole graph does."""

from functools import partial
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.analyzer.concrete_caches import config_of
from wcet_probe.analyzer.domains.cache_sets import access, effective_ways, initial_state, join
from wcet_probe.analyzer.domains.lattice import Joined
from wcet_probe.analyzer.graph.fixpoint import least
from wcet_probe.analyzer.graph.flow_order import Arrow, FlowOrder
from wcet_probe.analyzer.icache.condensation import condensed
from wcet_probe.analyzer.icache.must_may import CacheAccess, CacheGraph, analyze, by_set, is_fixpoint
from wcet_probe.model.target import Replacement

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


MOST_NODES, SETS = 9, 4
numbers = st.integers(0, MOST_NODES - 1)
lines = st.one_of(st.none(), st.frozensets(st.integers(0, 3 * SETS - 1), min_size=1, max_size=2))
accesses = st.builds(CacheAccess, lines, is_write=st.booleans(), is_certain=st.booleans())
configs = st.builds(
    config_of,
    st.sampled_from(Replacement),
    st.sampled_from([1, 2, 4]),
    sets=st.just(SETS),
    write_allocate=st.booleans(),
)


@settings(max_examples=300)
@given(
    edges=st.lists(st.tuples(numbers, numbers), max_size=3 * MOST_NODES),
    own=st.dictionaries(numbers, st.lists(accesses, min_size=1, max_size=3), max_size=4),
    config=configs,
    is_cold=st.booleans(),
)
def test_states_of_sets_are_those_of_a_fixpoint_over_all_nodes(edges, own, config, is_cold):
    # Given: any graph, most of whose nodes leave a set alone; some loops have several entries, some nodes no path
    successors = tuple(tuple(b for a, b in edges if a == node) for node in range(MOST_NODES))
    graph = CacheGraph(tuple(tuple(own.get(node, ())) for node in range(MOST_NODES)), successors, 0)

    # When: the sets are analysed
    found = analyze(graph, config, is_cold=is_cold).states

    # Then: each node has the state that it has where every node is an equation of its own
    ways = effective_ways(config)
    start = {START: initial_state(ways, is_cold=is_cold)}

    def behind(nodes, node, state):
        for part in nodes.get(node, ()):
            state = access(state, part, ways)
        return state

    for number, nodes in by_set(graph, config).items():
        expected = least(graph.region, Joined(join), start, partial(behind, nodes))
        assert list(found[number]) == [expected.get(node) for node in range(MOST_NODES)]
    assert is_fixpoint(graph, config, found, is_cold=is_cold)
