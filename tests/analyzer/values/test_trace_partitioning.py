"""Copies of points: each has its point's block and edges, and loops keep one entry."""

from __future__ import annotations

from collections import Counter
from random import Random
from types import SimpleNamespace

import pytest

from tests.support import assembler, guest_of
from wcet_probe.analyzer.graph.loop_forest import IrreducibleError, loop_forest, loops_of
from wcet_probe.analyzer.graph.supergraph import EXIT, Edge, Point, Supergraph, build_supergraph
from wcet_probe.analyzer.pcode.lift import Lifter, code_reader
from wcet_probe.analyzer.values import trace_partitioning as partitioning
from wcet_probe.analyzer.values.analysis import analyze_values
from wcet_probe.analyzer.values.trace_partitioning import partitioned, pointer_paths
from wcet_probe.catalog.lookup import load_target


def values_of(edges: list[tuple[int, int]], count: int):
    """What `partitioned` needs of values, or None where the graph is irreducible or cannot be executed."""
    graph_edges = tuple(Edge(source, target, "jump", target) for source, target in edges)
    successors = {p: tuple(t for s, t in edges if s == p and t != EXIT) for p in range(count)}
    try:
        forest = loop_forest(successors, 0)
    except IrreducibleError:
        return None
    reached = {0} | {t for s, t in edges if t != EXIT}
    points = tuple(
        Point(p, (), SimpleNamespace(name="f"), SimpleNamespace(address=4 * p))  # type: ignore[arg-type]
        for p in range(count)
    )
    states = dict.fromkeys(sorted(reached & _members(forest)))
    return SimpleNamespace(graph=Supergraph(points, graph_edges, ()), states=states, forest=forest)


def _members(parts) -> set[int]:
    found: set[int] = set()
    for part in parts:
        found |= {part} if isinstance(part, int) else set(part.nodes)
    return found


def random_case(random: Random):
    count = random.randint(2, 9)
    edges = {(p, random.randrange(p + 1, count)) for p in range(count - 1) for _ in range(2)}
    edges |= {(random.randrange(1, count), random.randrange(1, count)) for _ in range(random.randint(0, 3))}
    values = values_of([*sorted(edges), (count - 1, EXIT)], count)
    if values is None:
        return None
    headers = {loop.header for loop in loops_of(values.forest)}
    ways = {e: random.randrange(3) for e in values.graph.edges if e.target not in headers and e.target != EXIT}
    return values, {edge: way for edge, way in ways.items() if random.random() < 0.7}


@pytest.mark.parametrize("part", range(4))
def test_copies_have_the_edges_of_their_points(part):
    copied = 0
    for seed in range(100):
        case = random_case(Random(f"{part} {seed}"))
        if case is None:
            continue
        values, ways = case
        graph = partitioned(values, ways)
        copied += len(graph.points) - len(values.states)
        number = {point.index: point.block.address // 4 for point in graph.points}
        assert number[0] == 0
        places = Counter((point.block.address, point.copy) for point in graph.points)
        assert set(places.values()) == {1}
        for point in graph.points:
            own = [edge for edge in graph.edges if edge.source == point.index]
            expected = [edge for edge in values.graph.edges if edge.source == number[point.index]]
            target = {EXIT: EXIT, **number}
            assert Counter(target[e.target] for e in own) == Counter(e.target for e in expected)
        successors = {
            p.index: tuple(e.target for e in graph.edges if e.source == p.index and e.target != EXIT)
            for p in graph.points
        }
        headers = {number[loop.header] for loop in loops_of(loop_forest(successors, 0))}
        assert headers == {loop.header for loop in loops_of(values.forest)}
    assert copied > 100


def test_what_follows_two_pointers_is_copied_for_each():
    values = values_of([(0, 1), (0, 2), (1, 3), (2, 3), (3, 4), (4, EXIT)], 5)
    ways = {edge: edge.source for edge in values.graph.edges if edge.target == 3}
    graph = partitioned(values, ways)
    assert sorted((p.block.address // 4, p.copy) for p in graph.points) == [
        (0, 0),
        (1, 0),
        (2, 0),
        (3, 0),
        (3, 1),
        (4, 0),
        (4, 1),
    ]


@pytest.mark.parametrize(("growth", "expected"), [(8, [2, 4, 8, 8]), (4, [2, 4, 4, 4])])
def test_of_too_many_ways_the_latest_are_kept(monkeypatch, growth, expected):
    """And where the points become too many, fewer everywhere."""
    monkeypatch.setattr(partitioning, "_MOST_GROWTH", growth)
    diamonds = 4
    edges = [(4 * n + a, 4 * n + b) for n in range(diamonds) for a, b in ((0, 1), (0, 2), (1, 3), (2, 3), (3, 4))]
    values = values_of([*edges, (4 * diamonds, EXIT)], 4 * diamonds + 1)
    ways = {edge: edge.source for edge in values.graph.edges if edge.target % 4 == 3}
    copies = Counter(point.block.address // 4 for point in partitioned(values, ways).points)
    assert [copies[4 * n + 3] for n in range(diamonds)] == expected


@pytest.mark.parametrize(("many", "expected"), [(4, 5), (5, 5), (6, 5), (7, 7), (100, 7)])
def test_a_large_graph_is_not_made_larger(monkeypatch, many, expected):
    monkeypatch.setattr(partitioning, "_MANY_POINTS", many)
    values = values_of([(0, 1), (0, 2), (1, 3), (2, 3), (3, 4), (4, EXIT)], 5)
    ways = {edge: edge.source for edge in values.graph.edges if edge.target == 3}
    assert len(partitioned(values, ways).points) == expected


def test_paths_are_those_of_pointers_where_values_were_found_soon(monkeypatch):
    """Of values that took long to find each copy would be found anew, in as many visits."""
    target = load_target("arm926ej-s")
    body = {"f": "cmp r2, #0\n movne r0, r1\n beq 1f\n mov r3, r1\n b 2f\n1: mov r3, r0\n2: ldr r0, [r3]\n bx lr"}
    image = guest_of(assembler(body, target), target).image
    lifter = Lifter(target.pcode_language, target.isa, code_reader(image.segments))
    values = analyze_values(image, lifter, build_supergraph(image, lifter, image.symbols["f"], {}, {}), {})
    assert sorted(pointer_paths(values).values()) == [0, 1]
    monkeypatch.setattr(partitioning, "_MANY_VISITS", values.visits)
    assert not pointer_paths(values)
    monkeypatch.setattr(partitioning, "_MANY_VISITS", values.visits + 1)
    assert pointer_paths(values)
