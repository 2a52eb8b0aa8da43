"""The dominator tree of a graph, numbered so that what is below a node is told by two comparisons, and frontiers.

Words: dominator, dominance frontier (docs/explanation/glossary.md).

*Soundness:* plain graph theory; each answer is exact.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from wcet_probe.analyzer.graph.loop_forest import Successors, dominators


class DominatorTree(NamedTuple):
    """The nodes that the entry leads to.

    Attributes:
        first: the number of each node, the entry's the least; those of what it dominates follow, up to ``last``.
        last: the greatest number of what it dominates.
        frontier: of each node those that it does not dominate, but for itself, while it dominates a predecessor; nodes
            without are left out.
    """

    first: Mapping[int, int]
    last: Mapping[int, int]
    frontier: Mapping[int, Collection[int]]

    def iterated_frontier(self, nodes: Iterable[int]) -> frozenset[int]:
        """The frontiers of ``nodes``, of the nodes of these, and so on: where what differs behind ``nodes`` can meet.

        Source: R. Cytron, J. Ferrante, B. Rosen, M. Wegman, F. Zadeck, Efficiently computing static single assignment
        form and the control dependence graph, TOPLAS 13(4), 1991.
        """
        found = set[int]()
        waiting = list(nodes)
        while waiting:
            new = set(self.frontier.get(waiting.pop(), ())) - found
            found |= new
            waiting += new
        return frozenset(found)


def dominator_tree(successors: Successors, entry: int) -> DominatorTree:
    """The dominator tree of what ``entry`` leads to.

    Args:
        successors: of each node.
        entry: where every path starts.
    """
    above = dominators(successors, entry)
    below: dict[int, list[int]] = {node: [] for node in above}
    sources: dict[int, list[int]] = {node: [] for node in above}
    for node, own in above.items():
        if node != entry:
            below[own].append(node)
        for target in successors.get(node, ()):
            sources[target].append(node)
    frontier: dict[int, dict[int, None]] = {}
    for node, before in sources.items():
        end = above[node] if node != entry else None
        for source in before:
            one = source
            while one != end:
                frontier.setdefault(one, {})[node] = None
                if one == entry:
                    break
                one = above[one]
    first, last = {entry: 0}, dict[int, int]()
    path: list[tuple[int, Iterator[int]]] = [(entry, iter(below[entry]))]
    while path:
        node, rest = path[-1]
        child = next(rest, None)
        if child is None:
            last[node] = len(first) - 1
            path.pop()
        else:
            first[child] = len(first)
            path.append((child, iter(below[child])))
    return DominatorTree(first, last, {node: tuple(own) for node, own in frontier.items()})
