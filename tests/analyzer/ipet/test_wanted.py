"""What of the content of caches is still asked for: lines that are accessed behind, and limits that miss behind."""

from types import SimpleNamespace

from wcet_probe.analyzer.ipet.node_flow import NodeFlow
from wcet_probe.analyzer.ipet.wanted import taking, wanted_lines
from wcet_probe.certificate.caches.steps import NUMBER, Spot
from wcet_probe.certificate.kernel.records import Edge

HERE, THERE, NAMED = Spot(NUMBER, 0, 32), Spot(NUMBER, 32, 32), Spot("s1", 0, 32)
WAYS = [("a", "b"), ("b", "c"), ("b", "b"), ("a", "d")]
"""b is a loop between a and c; d is apart."""


def flow(taken=None):
    edges = [Edge(f"{source}-{target}", source, target, 0) for source, target in WAYS]
    graph = SimpleNamespace(entry="a", nodes="abcd")
    return NodeFlow(graph, [edge for edge in edges if taken is None or edge.name in taken])


def side(**spots):
    return SimpleNamespace(steps={node: [SimpleNamespace(spot=one) for one in own] for node, own in spots.items()})


def test_a_line_by_number_is_wanted_where_it_is_accessed_or_before():
    kept = wanted_lines(side(c=[HERE], d=[THERE]), flow())
    must = {HERE: 1, THERE: 2}
    assert [list(kept(node, must)) for node in "abcd"] == [[HERE, THERE], [HERE], [HERE], [THERE]]


def test_a_line_by_name_is_always_wanted_and_one_that_nobody_accesses_never():
    kept = wanted_lines(side(b=[NAMED, None]), flow())
    assert kept("d", {NAMED: 0, HERE: 0}) == {NAMED: 0}


def test_ways_that_are_not_taken_lead_nowhere():
    kept = wanted_lines(side(c=[HERE]), flow(["a-d"]))
    assert kept("b", {HERE: 1}) == {}
    assert kept("c", {HERE: 1}) == {HERE: 1}


def test_misses_are_looked_for_back_to_where_credits_are_given():
    annotations = SimpleNamespace(places={"miss:x": ("c",)})
    limit = SimpleNamespace(events=("miss:x",), credited={})
    assert taking(limit, annotations, flow()) == {"a", "b", "c"}
    credited = SimpleNamespace(events=("miss:x",), credited={"a-b": 1})
    assert taking(credited, annotations, flow()) == {"b", "c"}
    assert taking(limit, annotations, flow(["a-b"])) == {"c"}
