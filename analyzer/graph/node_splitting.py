"""Graphs whose loops are entered at one place each: what is entered elsewhere is copied.

Words: supergraph, point (docs/explanation/glossary.md).

*Soundness:* the copies have the same blocks and edges, so every path of a graph is a path of the result.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace

from wcet_probe.analyzer.graph.loop_forest import IrreducibleError, loop_forest, reachable
from wcet_probe.analyzer.graph.supergraph import EXIT, MOST_POINTS, Context, Edge, Supergraph, TooManyPointsError
from wcet_probe.errors import AnalysisError
from wcet_probe.model.image import Image

_MOST_SPLITS = 8


def reducible(graph: Supergraph, image: Image) -> Supergraph:
    """``graph`` with its irreducible loops split, a few in each call of a function.

    Raises:
        AnalysisError: a loop is too tangled, or there are too many; the message names its entries.

    *Soundness:* as said of `_split`.
    """
    splits: Counter[Context] = Counter()
    while True:
        successors = {
            index: tuple(edge.target for edge in edges if edge.target != EXIT)
            for index, edges in graph.successors().items()
            if index != EXIT
        }
        try:
            loop_forest(successors, 0)
        except IrreducibleError as error:
            context = graph.points[error.entries[0]].context
            splits[context] += 1
            if splits[context] > _MOST_SPLITS:
                places = ", ".join(image.location(graph.points[node].block.address) for node in error.entries)
                raise AnalysisError(
                    f"{graph.entry.name} has an irreducible loop, entered at {places}: rewrite its goto, or compile "
                    "with less optimisation."
                ) from error
            graph = _split(graph, error.members, error.entries)
        else:
            return graph


def _split(graph: Supergraph, members: Collection[int], entries: Sequence[int]) -> Supergraph:
    """``graph`` with the irreducible loop ``members`` split, which is entered at ``entries``: then at one of them only.

    What entered elsewhere enters a copy of what leads from there to that one. It is the one with the least to copy.

    *Soundness:* the copies have the same blocks and edges, so every path of the graph is a path of the result (node
    splitting: A. Aho, M. Lam, R. Sethi, J. Ullman, Compilers, 2nd edition, section 9.7.6).

    Raises:
        TooManyPointsError: the graph would be too large.
    """
    header, copied = min(((one, _leading_to(one, graph, members, entries)) for one in entries), key=lambda x: len(x[1]))
    others = {*entries} - {header}
    points = list(graph.points)
    copies: dict[int, int] = {}
    numbers: dict[tuple[Context, int], int] = {}
    for point in graph.points:
        place = point.context, point.block.address
        numbers[place] = max(point.copy, numbers.get(place, 0))
    for member in sorted(copied):
        point = graph.points[member]
        copies[member] = len(points)
        place = point.context, point.block.address
        numbers[place] += 1
        points.append(replace(point, index=len(points), copy=numbers[place]))
    if len(points) > MOST_POINTS:
        raise TooManyPointsError(
            f"{graph.entry.name} is too large with its irreducible loops split: analyse it in parts."
        )
    edges: list[Edge] = []
    for edge in graph.edges:
        enters = edge.target in others and edge.source not in members
        edges.append(edge._replace(target=copies[edge.target]) if enters else edge)
        if edge.source in copies:
            edges.append(edge._replace(source=copies[edge.source], target=copies.get(edge.target, edge.target)))
    return replace(graph, points=tuple(points), edges=tuple(edges))


def _leading_to(header: int, graph: Supergraph, members: Collection[int], entries: Sequence[int]) -> frozenset[int]:
    """Of ``members``, what an execution that enters elsewhere than at ``header`` comes to before that."""
    onward: dict[int, list[int]] = {edge.source: [] for edge in graph.edges if edge.source in members}
    for edge in graph.edges:
        if edge.source in members and edge.target in members and edge.target != header:
            onward[edge.source].append(edge.target)
    return frozenset().union(*(reachable(onward, one) for one in entries if one != header))
