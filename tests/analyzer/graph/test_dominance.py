"""Dominator trees and frontiers against their definitions, on random graphs."""

from random import Random

import pytest

from wcet_probe.analyzer.graph.dominance import dominator_tree
from wcet_probe.analyzer.graph.loop_forest import reachable


def random_successors(random):
    """A graph with branches, loops, ways into the middle of loops, ways back to the entry, and unreachable nodes."""
    nodes = range(random.randint(1, 9))
    found = {node: [] for node in nodes}
    for _ in range(random.randint(0, 2 * len(nodes))):
        found[random.choice(nodes)].append(random.choice(nodes))
    return found


def dominated(successors, entry, node):
    """The nodes that no way from the entry leads to without ``node``."""
    without = {one: [to for to in own if to != node] for one, own in successors.items() if one != node}
    return reachable(successors, entry) - (frozenset() if node == entry else reachable(without, entry))


@pytest.mark.parametrize("seeds", [range(400), range(400, 800)])
def test_what_a_tree_tells_is_what_dominance_means(seeds):
    met = 0
    for seed in seeds:
        successors = random_successors(Random(seed))
        tree, inside = dominator_tree(successors, 0), reachable(successors, 0)
        assert tree.first.keys() == tree.last.keys() == inside
        assert sorted(tree.first.values()) == list(range(len(inside)))
        for node in inside:
            below = dominated(successors, 0, node)
            assert {one for one in inside if tree.first[node] <= tree.first[one] <= tree.last[node]} == below
            frontier = {to for one in below for to in successors[one] if to == node or to not in below}
            assert set(tree.frontier.get(node, ())) == frontier
            met += len(frontier)
    assert met > len(seeds)


def test_iterated_frontiers_are_closed():
    for seed in range(300):
        random = Random(seed)
        successors = random_successors(random)
        tree = dominator_tree(successors, 0)
        some = [node for node in tree.first if random.random() < 0.4]
        found = tree.iterated_frontier(some)
        own = [tree.frontier.get(node, ()) for node in (*some, *found)]
        assert found == set().union(*own)
