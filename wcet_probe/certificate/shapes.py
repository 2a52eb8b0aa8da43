# SPDX-License-Identifier: 0BSD
"""What can be told of a graph without its code: what leads where, and whether loops are entered by headers only."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from wcet_probe.certificate.records import Edge, Graph, demand

_MOST_STEPS = 10_000_000
"""So many nodes may stand in all loops together, each counted as often as it is in one."""


def arriving_edges(graph: Graph) -> dict[str, list[Edge]]:
    """Edges by their target."""
    found: dict[str, list[Edge]] = {}
    for edge in graph.edges:
        found.setdefault(edge.target, []).append(edge)
    return found


def reached(starts: Iterable[str], following: Callable[[str], Iterable[str]]) -> set[str]:
    """The nodes from which ``following`` leads on, from ``starts``, which are among them."""
    found, waiting = set[str](), list(starts)
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting += following(node)
    return found


def natural_loop(header: str, back: Iterable[Edge], arriving: Mapping[str, Sequence[Edge]]) -> set[str]:
    """The header and all nodes from which a back edge is reached without it."""
    sources = [edge.source for edge in back if edge.source != header]
    return {header} | reached(
        sources, lambda node: [edge.source for edge in arriving.get(node, ()) if edge.source != header]
    )


class LoopShapes:
    """Are the loops of a certificate loops of its graph: one header each, entered through it only."""

    def __init__(self, graph: Graph) -> None:
        self._entry, self._arriving, self._left = graph.entry, arriving_edges(graph), _MOST_STEPS
        self._edges = {edge.name: edge for edge in graph.edges}

    def check(self, name: str, entering: Sequence[str], back: Sequence[str]) -> None:
        """The edges are all those into one header, which is on every way to the source of each back edge.

        *Soundness:* else a way from the entry comes to a back edge without the header, which is then one of the nodes
        from which a back edge is reached without it.

        Raises:
            VerificationError: they are not.
        """
        ends = [self._edges[edge] for edge in back if edge in self._edges]
        demand(len(ends) == len(back), f"a back edge of loop {name} is none, or enters it")
        header = ends[0].target
        into = [edge.name for edge in self._arriving[header]] + ["enter"] * (header == self._entry)
        demand(sorted((*entering, *back)) == sorted(into), f"the edges of loop {name} are not those into its header")
        inside = natural_loop(header, ends, self._arriving)
        self._left -= len(inside)
        demand(self._left >= 0, f"the loops of the certificate have more than {_MOST_STEPS:,} nodes together")
        demand(self._entry not in inside - {header}, f"a back edge of loop {name} enters it")


def postorder(leading: Mapping[str, list[str]], entry: str) -> list[str]:
    """The nodes that are reached, each behind those that it leads to, but for the ends of loops."""
    seen, order = {entry}, []
    stack = [(entry, iter(leading[entry]))]
    while stack:
        node, targets = stack[-1]
        for target in targets:
            if target not in seen:
                seen.add(target)
                stack.append((target, iter(leading[target])))
                break
        else:
            order.append(node)
            stack.pop()
    return order
