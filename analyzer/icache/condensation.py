"""A graph without the nodes that change nothing, for what one cache set sees of a program: most blocks leave it alone.

What holds at a node is what holds at the last node before it where that could become something else: one that changes
something, one behind such a node, or one where what differs may meet. These are the roots. A node that is none is
dominated by a root from which nothing changes on any way to it, and the nodes with the same root are one node of the
condensed graph. The roots are found without a look at the others, so a thousand blocks and a hundred sets are a hundred
graphs of a few nodes, in place of a hundred thousand visits.

Source: J.-D. Choi, R. Cytron, J. Ferrante, Automatic construction of sparse data flow evaluation graphs, POPL 1991.

Words: set, fixpoint, dominator, dominance frontier (docs/explanation/glossary.md).

*Soundness:* the roots are the entry, the nodes that change something, their successors, and the iterated dominance
frontier of all these. Let a node be no root. On each way to it the last root dominates it, or else the ways from there
would leave what it dominates at a node of its frontier, a later root. So it is the same on all ways: the nearest root
that dominates the node. It changes nothing, for its successors would be later roots. So the root of each predecessor is
the same, and no predecessor changes anything: the equation of the node says that its state is that of its group. The
equations of the roots are kept, with all their edges but those from nodes that change nothing to their own group, which
ask nothing. So a solution of the condensed graph, told of all nodes, is one of the whole graph, and it is the least.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping
from typing import Any
from weakref import WeakKeyDictionary

from wcet_probe.analyzer.graph.dominance import DominatorTree
from wcet_probe.analyzer.graph.flow_order import Arrow, Edge_, FlowOrder


class Groups(Mapping[int, int]):
    """For each node that the entry leads to the nearest root that dominates it, which is looked for when it is asked.

    Args:
        tree: of the whole graph.
        roots: nodes of it, the entry among them.
    """

    def __init__(self, tree: DominatorTree, roots: Collection[int]) -> None:
        self._first = tree.first
        self._roots = sorted(roots, key=tree.first.__getitem__)
        self._starts = [tree.first[root] for root in self._roots]
        self._ends = [tree.last[root] for root in self._roots]
        self._above: list[int] = []  # of each root the nearest one that dominates it
        for number, start in enumerate(self._starts):
            self._above.append(self._dominating(number - 1, start))

    def _dominating(self, number: int, first: int) -> int:
        """Of the root ``number`` and those that dominate it, the nearest that dominates the node numbered ``first``."""
        while number > 0 and first > self._ends[number]:
            number = self._above[number]
        return number

    def __getitem__(self, node: int) -> int:
        first = self._first[node]
        return self._roots[self._dominating(bisect_right(self._starts, first) - 1, first)]

    def __iter__(self) -> Iterator[int]:
        return iter(self._first)

    def __len__(self) -> int:
        return len(self._first)


_Condensed = tuple[FlowOrder[Arrow], Groups]
_found: WeakKeyDictionary[FlowOrder[Any], dict[frozenset[int], _Condensed]] = WeakKeyDictionary()
"""What hits and what persists is asked of the same sets of the same graph."""


def condensed(graph: FlowOrder[Edge_], changing: Collection[int]) -> tuple[FlowOrder[Arrow], Groups]:
    """The condensed graph, and for each node that the entry leads to the one that has its state at the start.

    Args:
        graph: the whole graph.
        changing: the nodes that may change a state; each of them stays.

    *Soundness:* as said of the module.
    """
    known, key = _found.setdefault(graph, {}), frozenset(changing)
    if key not in known:
        known[key] = _condensed(graph, key)
    return known[key]


def _condensed(graph: FlowOrder[Edge_], changing: Collection[int]) -> _Condensed:
    tree = graph.dominance
    changed = frozenset(node for node in changing if node in tree.first)
    roots = {graph.entry, *changed, *(target for node in changed for target in graph.successors(node))}
    roots |= tree.iterated_frontier(roots)
    group = Groups(tree, roots)
    arrows = dict.fromkeys(
        Arrow(group[source], target)
        for target in sorted(roots)
        for source in graph.sources[target]
        if source in tree.first and (source in changed or group[source] != target)
    )
    return FlowOrder(sorted(roots), arrows, graph.entry), group
