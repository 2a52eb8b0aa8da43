"""Graphs that are made by hand, and their paths."""

from types import SimpleNamespace

from wcet_probe.analyzer.graph.supergraph import EXIT, Edge, Point, Supergraph


def made_by_hand(edges):
    count = 1 + max(max(edge) for edge in edges)
    points = tuple(
        Point(number, (), SimpleNamespace(name="f"), SimpleNamespace(address=4 * number)) for number in range(count)
    )
    return Supergraph(points, tuple(Edge(a, b, "jump" if b >= 0 else "return", 4 * b) for a, b in edges), ())


def traces(graph, length):
    """The addresses of all paths from the entry, up to a length."""
    following = graph.successors()
    paths, found = [(0,)], set()
    for _ in range(length):
        found |= {tuple(graph.points[one].block.address if one >= 0 else EXIT for one in path) for path in paths}
        paths = [(*path, edge.target) for path in paths for edge in following.get(path[-1], ()) if path[-1] != EXIT]
    return found
