"""What of the content of caches is still asked for: lines that are accessed behind, and limits that miss behind."""

from types import SimpleNamespace

from wcet_probe.analyzer.ipet.wanted import taking, wanted_lines
from wcet_probe.certificate.records import Edge
from wcet_probe.certificate.steps import NUMBER, Spot

HERE, THERE, NAMED = Spot(NUMBER, 0, 32), Spot(NUMBER, 32, 32), Spot("s1", 0, 32)
WAYS = [("a", "b"), ("b", "c"), ("b", "b"), ("a", "d")]
"""b is a loop between a and c; d is apart."""


def caches(passages=None):
    edges = [Edge(f"{source}-{target}", source, target, 0) for source, target in WAYS]
    arriving = {node: [edge for edge in edges if edge.target == node] for node in "abcd"}
    taken = [edge.name for edge in edges] if passages is None else passages
    return SimpleNamespace(graph=SimpleNamespace(nodes="abcd"), arriving=arriving, passages=dict.fromkeys(taken))


def side(**spots):
    return SimpleNamespace(steps={node: [SimpleNamespace(spot=one) for one in own] for node, own in spots.items()})


def test_a_line_by_number_is_wanted_where_it_is_accessed_or_before():
    kept = wanted_lines(caches(), side(c=[HERE], d=[THERE]))
    must = {HERE: 1, THERE: 2}
    assert [list(kept(node, must)) for node in "abcd"] == [[HERE, THERE], [HERE], [HERE], [THERE]]


def test_a_line_by_name_is_always_wanted_and_one_that_nobody_accesses_never():
    kept = wanted_lines(caches(), side(b=[NAMED, None]))
    assert kept("d", {NAMED: 0, HERE: 0}) == {NAMED: 0}


def test_ways_that_are_not_taken_lead_nowhere():
    kept = wanted_lines(caches(["a-d"]), side(c=[HERE]))
    assert kept("b", {HERE: 1}) == {}
    assert kept("c", {HERE: 1}) == {HERE: 1}


def test_misses_are_looked_for_back_to_where_credits_are_given():
    annotations = SimpleNamespace(places={"miss:x": ("c",)})
    limit = SimpleNamespace(events=("miss:x",), credited={})
    assert taking(caches(), limit, annotations) == {"a", "b", "c"}
    credited = SimpleNamespace(events=("miss:x",), credited={"a-b": 1})
    assert taking(caches(), credited, annotations) == {"b", "c"}
    assert taking(caches(["a-b"]), limit, annotations) == {"c"}
