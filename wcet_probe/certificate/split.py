# SPDX-License-Identifier: 0BSD
"""Source loops that became loops in each other: what a fact about one says of an inner loop for each entry of an outer.

A compiler may make two loops of one, say of ``while (...) { if (c) { ...; continue; } ...; }`` an inner loop for the
rounds on which ``c`` holds. Then each execution of the inner header, too, is a round of the source loop, and the fact
counts these for each entry of that, which is one of the outer loop.

*Soundness:* let ``outer`` and ``inner`` be loops of the certificate that have code of the source loop and of no other
loop, none within it either. No loop of the sources leads to a new entry of that one, by its place or by a name of a
function or macro in it: so each way round ``outer`` or ``inner`` is a round, and a stay in ``outer`` lies within one
entry. Between two executions of the header of ``inner`` in one stay control goes round ``inner``, or passes the header
of ``outer``: the certificate's back edges are all edges to ``inner`` from where control comes without passing that.
So there are no more of these executions than the source loop tests for one entry. Of two inner loops beside each other
each is limited by itself, since one round may execute both headers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from wcet_probe.certificate.asserted import Asserted, Extent, are_told_apart, loops_owning, runs_once_an_entry
from wcet_probe.certificate.records import Edge, Graph
from wcet_probe.certificate.shapes import natural_loop, reached

Factors = dict[str, int]


@dataclass(frozen=True, slots=True)
class Split:
    """The loops of a graph, and what is needed to tell them.

    Attributes:
        graph: of the certificate.
        arriving: all edges by their target.
        lines: by header, the lines of the code of each loop that is in no loop in it.
        back: by header, the names of back edges.
        asserted: the facts, with sources.
    """

    graph: Graph
    arriving: Mapping[str, list[Edge]]
    lines: Mapping[str, frozenset[tuple[str, int]]]
    back: Mapping[str, Collection[str]]
    asserted: Asserted

    def totals(self, extent: Extent, most: int) -> Iterator[tuple[Factors, int]]:
        """Factors and constant of what follows for each inner loop of each outer one.

        Args:
            extent: the source loop.
            most: how often it tests for each entry at most, or runs if it does not test first.
        """
        own = [header for header, lines in self.lines.items() if self._is_of(extent, lines)]
        if len(own) < 2 or not runs_once_an_entry(self.asserted, extent):
            return
        for outer in own:
            nodes = self._nodes(outer)
            for inner in own if self.graph.entry not in nodes - {outer} else ():
                if inner != outer and inner in nodes and self._goes_round(outer, inner, nodes):
                    factors = {edge.name: 1 for edge in self.arriving[inner]}
                    for name in self._entering(outer, nodes):
                        factors[name] = factors.get(name, 0) - most
                    yield factors, 0

    def _is_of(self, extent: Extent, lines: frozenset[tuple[str, int]]) -> bool:
        """Whether a loop has code of the source loop, and of no other."""
        owners = {each for line in lines for each in loops_owning(self.asserted, line)}
        return owners == {extent} and are_told_apart(self.asserted, extent, lines)

    def _nodes(self, header: str) -> set[str]:
        return natural_loop(header, self._back(header), self.arriving)

    def _back(self, header: str) -> Sequence[Edge]:
        return [edge for edge in self.arriving.get(header, ()) if edge.name in self.back[header]]

    def _goes_round(self, outer: str, inner: str, nodes: Collection[str]) -> bool:
        """Whether control that comes from ``inner`` to it again by no back edge has passed ``outer``."""

        def following(node: str) -> list[str]:
            targets = [edge.target for edge in self.graph.leading[node]]
            return [target for target in targets if target in nodes and target not in {inner, outer}]

        behind = (edge for node in reached([inner], following) for edge in self.graph.leading[node])
        is_back = all(edge.name in self.back[inner] for edge in behind if edge.target == inner)
        return is_back and inner != self.graph.entry

    def _entering(self, outer: str, nodes: Collection[str]) -> Iterator[str]:
        yield from (edge.name for edge in self.arriving.get(outer, ()) if edge.source not in nodes)
        if outer == self.graph.entry:
            yield "enter"
