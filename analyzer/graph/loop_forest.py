"""Graphs: loops as the nested decomposition into strongly connected parts, dominators, reachable nodes.

The only file that imports networkx.
"""

# ruff: noqa: PLC0415  (networkx takes long to import, and who observes only needs no graph)

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import networkx as nx

Successors = Mapping[int, Sequence[int]]


class IrreducibleError(Exception):
    """A loop, ``members``, can be entered at several nodes, ``entries``."""

    def __init__(self, entries: tuple[int, ...], members: frozenset[int]) -> None:
        super().__init__(f"a loop with the entries {entries}")
        self.entries = entries
        self.members = members


@dataclass(frozen=True, slots=True)
class Loop:
    """A natural loop.

    Attributes:
        header: its only entry.
        parts: nodes and inner loops, the header first, in an order in which control flows through them but for the
            edges back to headers.
        nodes: all nodes, those of inner loops included.
    """

    header: int
    parts: tuple[int | Loop, ...]
    nodes: frozenset[int]

    def walk(self) -> Iterator[Loop]:
        """This loop and all loops in it, outer ones first."""
        yield self
        for part in self.parts:
            if isinstance(part, Loop):
                yield from part.walk()


def loop_forest(successors: Successors, entry: int) -> tuple[int | Loop, ...]:
    """The nodes that can be reached from ``entry`` and their loops, a weak topological order.

    Raises:
        IrreducibleError: a loop has several entries.

    *Soundness:* every cycle of the graph passes the header of a loop of the result (F. Bourdoncle, Efficient chaotic
    iteration strategies with widenings, FMPA 1993).
    """
    import networkx as nx

    graph = _graph(successors, entry)
    inside = {entry} | nx.descendants(graph, entry)
    return tuple(_ordered(graph.subgraph(inside).copy(), frozenset({entry})))


def _ordered(graph: nx.DiGraph, entries: frozenset[int]) -> Iterator[int | Loop]:
    """Parts of ``graph`` in topological order; control enters it at ``entries``."""
    import networkx as nx

    condensed = nx.condensation(graph)
    for number in nx.lexicographical_topological_sort(condensed, key=lambda n: min(condensed.nodes[n]["members"])):
        members = condensed.nodes[number]["members"]
        (some, *others) = sorted(members)
        if not others and not graph.has_edge(some, some):
            yield some
            continue
        heads = sorted(
            node
            for node in members
            if node in entries or any(source not in members for source in graph.predecessors(node))
        )
        if len(heads) != 1:
            raise IrreducibleError(tuple(heads), frozenset(members))
        (header,) = heads
        body = graph.subgraph(members).copy()
        body.remove_edges_from([(source, header) for source in list(body.predecessors(header))])
        parts = tuple(_ordered(body, frozenset({header})))
        yield Loop(header, (header, *(part for part in parts if part != header)), frozenset(members))


def loops_of(parts: Sequence[int | Loop]) -> tuple[Loop, ...]:
    """All loops of a forest, outer ones before those in them."""
    return tuple(loop for part in parts if isinstance(part, Loop) for loop in part.walk())


def dominators(successors: Successors, entry: int) -> Mapping[int, int]:
    """The immediate dominator of each node that can be reached from ``entry``; the entry's is itself."""
    import networkx as nx

    found: dict[int, int] = nx.immediate_dominators(_graph(successors, entry), entry)
    return {**found, entry: entry}


def reachable(successors: Successors, start: int) -> frozenset[int]:
    """``start`` and all nodes that can be reached from it."""
    import networkx as nx

    return frozenset({start} | nx.descendants(_graph(successors, start), start))


def _graph(successors: Successors, entry: int) -> nx.DiGraph:
    import networkx as nx

    graph = nx.DiGraph()
    graph.add_node(entry)
    for source, targets in successors.items():
        graph.add_edges_from((source, target) for target in targets)
    return graph
