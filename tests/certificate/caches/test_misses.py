"""The stages of a graph, and what is left of limits before the first of their misses."""

import random
from types import SimpleNamespace

from wcet_probe.certificate.caches.misses import stages_of
from wcet_probe.certificate.kernel.records import Edge


def drawn(draw, nodes, edges):
    names = [f"n{i}" for i in range(nodes)]
    found = [Edge(f"e{i}", draw.choice(names), draw.choice(names), 0) for i in range(edges)]
    leading = {name: [edge for edge in found if edge.source == name] for name in names}
    return SimpleNamespace(nodes=names, leading=leading, entry="n0"), {edge.name: None for edge in found}


def reached(graph, start):
    found, waiting = {start}, [start]
    while waiting:
        for edge in graph.leading[waiting.pop()]:
            if edge.target not in found:
                found.add(edge.target)
                waiting.append(edge.target)
    return found


def test_control_comes_back_to_no_earlier_stage():
    draw, several = random.Random(18), 0
    for _ in range(300):
        graph, passages = drawn(draw, 12, draw.randrange(5, 24))
        stages = stages_of(graph, passages)
        assert stages.keys() == reached(graph, "n0")
        several += len(set(stages.values())) > 2
        for node, stage in stages.items():
            assert min(stages[other] for other in reached(graph, node)) >= stage
    assert several > 50


def test_an_edge_that_is_never_taken_joins_no_stages():
    edges = [Edge("a", "n0", "n1", 0), Edge("b", "n1", "n0", 0)]
    leading = {"n0": edges[:1], "n1": edges[1:]}
    graph = SimpleNamespace(nodes=["n0", "n1"], leading=leading, entry="n0")
    assert stages_of(graph, {"a": None}) == {"n0": 1, "n1": 2}
    assert stages_of(graph, {"a": None, "b": None}) == {"n0": 1, "n1": 1}
