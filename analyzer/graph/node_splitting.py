"""Graphs whose loops are entered at one place each: what is entered elsewhere is copied.

Words: supergraph, point (docs/explanation/glossary.md).

*Soundness:* the copies have the same blocks and edges, so every path of a graph is a path of the result.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace

from wcet_probe.analyzer.graph.loop_forest import reachable, tangled_parts
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
        parts = tangled_parts(successors, 0)
        if not parts:
            return graph
        splits.update(graph.points[entries[0]].context for entries, _ in parts)
        for entries, _ in parts:
            if splits[graph.points[entries[0]].context] > _MOST_SPLITS:
                places = ", ".join(image.location(graph.points[node].block.address) for node in entries)
                raise AnalysisError(
                    f"{graph.entry.name} has an irreducible loop, entered at {places}: rewrite its goto, or compile "
                    "with less optimisation."
                )
        graph = _split(graph, parts)


def _split(graph: Supergraph, parts: Sequence[tuple[Sequence[int], Collection[int]]]) -> Supergraph:
    """``graph`` with the irreducible loops ``parts``, which have no node in common, entered at one place each.

    What entered elsewhere enters a copy of what leads from there to that place. It is the one with the least to copy.

    *Soundness:* the copies have the same blocks and edges, so every path of the graph is a path of the result (node
    splitting: A. Aho, M. Lam, R. Sethi, J. Ullman, Compilers, 2nd edition, section 9.7.6).

    Raises:
        TooManyPointsError: the graph would be too large.
    """
    part_of = {node: number for number, (_, members) in enumerate(parts) for node in members}
    inside: list[list[Edge]] = [[] for _ in parts]
    for edge in graph.edges:
        part = part_of.get(edge.source)
        if part is not None and part_of.get(edge.target) == part:
            inside[part].append(edge)
    points = list(graph.points)
    copies: dict[int, int] = {}
    others: set[int] = set()
    numbers: dict[tuple[Context, int], int] = {}
    for point in graph.points:
        place = point.context, point.block.address
        numbers[place] = max(point.copy, numbers.get(place, 0))
    for (entries, _), own in zip(parts, inside, strict=True):
        header, copied = min(((one, _leading_to(one, own, entries)) for one in entries), key=lambda x: len(x[1]))
        others |= {*entries} - {header}
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
        stays = edge.target in part_of and part_of.get(edge.source) == part_of[edge.target]
        kept = edge._replace(target=copies[edge.target]) if edge.target in others and not stays else edge
        edges.append(kept)
        if edge.source in copies:
            target = copies.get(edge.target, edge.target) if stays else kept.target
            edges.append(edge._replace(source=copies[edge.source], target=target))
    return replace(graph, points=tuple(points), edges=tuple(edges))


def _leading_to(header: int, inside: Collection[Edge], entries: Sequence[int]) -> frozenset[int]:
    """Of a loop with the edges ``inside``, what an execution that enters not at ``header`` comes to before that."""
    onward: dict[int, list[int]] = {node: [] for edge in inside for node in (edge.source, edge.target)}
    for edge in inside:
        if edge.target != header:
            onward[edge.source].append(edge.target)
    return frozenset().union(*(reachable(onward, one) for one in entries if one != header))
