# SPDX-License-Identifier: 0BSD
"""Pairs of edges that no execution takes both of, in one round of a loop or in the whole call.

What holds on one of the edges is followed as far as the round goes; if it never reaches the other edge, and the same
holds the other way round, no round takes both. That a round takes neither twice is read off the graph.
"""

from __future__ import annotations

from collections.abc import Mapping

from wcet_probe.certificate.coverage import Code, Coverage
from wcet_probe.certificate.machine import Machine, Place, State
from wcet_probe.certificate.numbers import Value
from wcet_probe.certificate.records import Graph
from wcet_probe.certificate.walk import follow


class Pairs:
    """Answers about pairs of edges of one graph; what holds behind an edge is followed once."""

    def __init__(
        self, code: Code, graph: Graph, invariants: Mapping[str, Mapping[Place, Value]], coverage: Coverage
    ) -> None:
        self._code, self._graph, self._invariants, self._coverage = code, graph, invariants, coverage
        self._edges = {edge.name: edge for edge in graph.edges}
        self._behind: dict[tuple[str, str | None], dict[str, State]] = {}
        self._reached: dict[tuple[str, str | None], set[str]] = {}

    def exclude(self, first: str, second: str, header: str | None) -> bool:
        """Whether no round of the loop with ``header`` (None: no call) takes both edges, or one of them twice.

        The way out of the function, ``leave:NODE``, is an edge whose source is the node.
        """
        names = list(dict.fromkeys((first, second)))
        if not all(one in self._edges or one.startswith("leave:") for one in names):
            return False
        sources = {self._edges[one].source if one in self._edges else one.removeprefix("leave:") for one in names}
        if header is not None and not sources.isdisjoint(self._nodes_before(header)):
            return False  # it may be taken where the header was never passed
        for one in names:
            if one in self._edges and self._edges[one].source in self._nodes_behind(one, header):
                return False
        if len(names) == 1:
            return True
        return all(
            one not in self._edges or not self._takes(one, other, header) for one, other in (names, reversed(names))
        )

    def _nodes_before(self, header: str) -> set[str]:
        """Nodes that are reached from the entry without passing ``header``."""
        return self._nodes_from(("enter", header), self._graph.entry)

    def _nodes_behind(self, name: str, header: str | None) -> set[str]:
        """Nodes that are reached behind an edge, without passing ``header``."""
        return self._nodes_from((name, header), self._edges[name].target)

    def _nodes_from(self, key: tuple[str, str | None], first: str) -> set[str]:
        header = key[1]
        if key not in self._reached:
            found: set[str] = set()
            waiting = [first]
            while waiting:
                node = waiting.pop()
                if node != header and node not in found:
                    found.add(node)
                    waiting += [edge.target for edge in self._graph.leading[node]]
            self._reached[key] = found
        return self._reached[key]

    def _takes(self, name: str, other: str, header: str | None) -> bool:
        edge = self._edges[name]
        state = self._coverage.taken.get(name)
        if state is None or edge.target == header:
            return False
        key = name, header
        if key not in self._behind:
            inside = self._nodes_behind(name, header)
            machine = Machine(self._code.image, self._coverage.escapes)
            start = edge.target, state
            self._behind[key] = follow(self._code, machine, self._graph, *start, inside, self._invariants, stop=header)
            if machine.found_escape > self._coverage.escapes:
                names = [each.name for each in self._graph.edges]
                names += [f"leave:{node}" for node in self._graph.exits]
                self._behind[key] = {each: State({}) for each in names}
        return other in self._behind[key]
