# SPDX-License-Identifier: 0BSD
"""Pairs of edges that no execution takes both of, in one round of a loop or in the whole call.

What holds on one of the edges is followed as far as the round goes, or to where the last of the edges that it is paired
with begins; if it never reaches the other edge, and the same holds the other way round, no round takes both. That a
round takes neither twice is read off the graph.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from wcet_probe.certificate.flow.walk import Covered, follow
from wcet_probe.certificate.kernel.records import LEAVE, Graph
from wcet_probe.certificate.kernel.shapes import arriving_edges, parts_of, reaching
from wcet_probe.certificate.values.state import State, apart

Pair = tuple[str, str, str | None]
"""Two edges, or twice one, and the header of the loop whose rounds take one of them at most; None: the call does."""

_MOST_STEPS, _STEPS_EACH = 5_000_000, 1_000
_EXECUTION = 30
"""Steps that a node counts for which may be executed."""


class PairReader:
    """Reads pairs out of the constraints of one graph."""

    def __init__(self, graph: Graph) -> None:
        self._entry, self._arriving = graph.entry, arriving_edges(graph)
        self._targets = {edge.name: edge.target for edge in graph.edges} | {"enter": graph.entry}

    def pair_of(self, factors: Mapping[str, int], constant: int) -> Pair | None:
        """The pair of which a constraint says that a call, or a round, takes one at most; None of any other one.

        Args:
            factors: of the edges.
            constant: the sum is no more than that.
        """
        taken = [name for name, factor in factors.items() if factor == 1]
        passes = {name for name, factor in factors.items() if factor == -1}
        if len(taken) not in {1, 2} or len(taken) + len(passes) != len(factors):
            return None
        if not passes:
            return (taken[0], taken[-1], None) if constant == 1 else None
        headers = {self._targets.get(name) for name in passes}
        (header,) = headers if len(headers) == 1 else (None,)
        if header is None or constant != 0:
            return None
        into = {edge.name for edge in self._arriving.get(header, ())}
        into |= {"enter"} if header == self._entry else set()
        return (taken[0], taken[-1], header) if into == passes else None


def excluded_pairs(covered: Covered, pairs: Collection[Pair]) -> set[Pair]:
    """Those of ``pairs`` of which no round of the loop (no call) takes both edges, or one of them twice.

    The way out of the function, ``leave:NODE``, is an edge whose source is the node. The work is bounded by the size of
    the graph and the number of pairs; a pair that takes more is not found.

    Args:
        covered: the graph.
        pairs: of its edges.
    """
    found = _Pairs(covered, pairs) if pairs else None
    return {pair for pair in pairs if found is not None and found.exclude(*pair)}


class _Pairs:
    """Answers about pairs of edges of one graph; what holds behind an edge is followed once."""

    def __init__(self, covered: Covered, pairs: Collection[Pair]) -> None:
        graph = covered.graph
        self._covered, self._graph, self._arriving = covered, graph, covered.arriving
        self._left = _MOST_STEPS + _STEPS_EACH * (len(graph.nodes) + len(pairs))
        self._edges = {edge.name: edge for edge in graph.edges}
        targets = {node: [edge.target for edge in edges] for node, edges in graph.leading.items()}
        self._part = parts_of(targets, graph.entry)
        self._before: dict[tuple[str, str], set[str]] = {}
        self._regions: dict[str, set[str]] = {}
        self._taken: dict[tuple[str, str | None], Collection[str] | None] = {}
        self._others: dict[tuple[str, str | None], set[str]] = {}
        self._paired: dict[str, set[str]] = {}
        for first, second, header in pairs:
            self._others.setdefault((first, header), set()).add(second)
            self._others.setdefault((second, header), set()).add(first)
            if header is not None:
                self._paired.setdefault(header, set()).update((first, second))

    def _go(self, steps: int = 1) -> bool:
        """Make so many steps; whether there are as many."""
        self._left -= steps
        return self._left >= 0

    def _source(self, name: str) -> str | None:
        node = self._edges[name].source if name in self._edges else name.removeprefix(LEAVE)
        return node if node in self._part and (name in self._edges or name.startswith(LEAVE)) else None

    def _sources(self, names: Collection[str]) -> set[str]:
        return {source for source in map(self._source, names) if source is not None}

    def exclude(self, first: str, second: str, header: str | None) -> bool:
        """Whether no round of the loop with ``header`` (None: no call) takes both edges, or one of them twice."""
        if not self._go():
            return False
        names = list(dict.fromkeys((first, second)))
        for one in names:
            source = self._source(one)
            if source is None or (header is not None and self._graph.entry in self._nodes_before(source, header)):
                return False  # it may be taken where the header was never passed
            if one in self._edges and self._is_repeated(source, self._edges[one].target, header):
                return False
        is_taken = len(names) > 1 and (self._takes(first, second, header) or self._takes(second, first, header))
        return not is_taken and self._left >= 0

    def _is_repeated(self, source: str, target: str, header: str | None) -> bool:
        """Whether ``source`` is reached from ``target`` without passing ``header``."""
        if header is None:
            return self._part[source] == self._part[target]
        return target in self._nodes_before(source, header)

    def _nodes_before(self, node: str, header: str) -> set[str]:
        """Nodes from which ``node`` is reached without passing ``header``, of which neither is one."""
        key = node, header
        if key not in self._before:
            self._before[key] = self._reaching({node}, header)
        return self._before[key]

    def _reaching(self, nodes: Collection[str], header: str) -> set[str]:
        found = reaching(nodes, header, self._arriving)
        self._go(len(found))
        return found

    def _takes(self, name: str, other: str, header: str | None) -> bool:
        """Whether ``other`` may be taken behind ``name`` in the same round."""
        if name not in self._edges or name not in self._covered.coverage.taken or self._edges[name].target == header:
            return False
        key = name, header
        if key not in self._taken:
            self._taken[key] = self._reached(name, self._inside(self._others[key], header), header)
        taken = self._taken[key]
        return taken is None or other in taken

    def _reached(self, name: str, inside: Collection[str], header: str | None) -> Collection[str] | None:
        """The edges that may be taken behind an edge; None if that takes too long, or a stack address escapes."""
        first, machine = self._edges[name].target, self._covered.machine()
        found = dict[str, State]()
        for start in apart(self._covered.coverage.taken[name]) if first in inside else ():
            if not self._go(_EXECUTION * len(inside)):
                return None
            found |= follow(self._covered, machine, first, start, inside, self._covered.invariants, stop=header)
        return None if machine.is_refuted else found

    def _inside(self, others: Collection[str], header: str | None) -> Collection[str]:
        """The nodes from which one of ``others`` may be reached; of a call: those that are not behind them all."""
        if header is None:
            last = max((self._part[source] for source in self._sources(others)), default=-1)
            return {node for node, part in self._part.items() if part <= last}
        if header not in self._regions:
            self._regions[header] = self._reaching(self._sources(self._paired[header]), header)
        return self._regions[header]
