"""One flow graph for all analyses: edges by their ends, orders of iteration, loops, reachability.

Words: weak topological order, loop forest (docs/explanation/glossary.md).

*Soundness:* plain graph theory; each answer is exact, and an order decides the time of a fixpoint, not its result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Generic, NamedTuple, Protocol, TypeVar

from wcet_probe.analyzer.graph.dominance import DominatorTree, dominator_tree
from wcet_probe.analyzer.graph.loop_forest import Loop, loop_forest, loops_of


class Directed(Protocol):
    """Anything with a source and a target."""

    @property
    def source(self) -> int:
        """Where it starts."""
        ...

    @property
    def target(self) -> int:
        """Where it leads to."""
        ...


class Arrow(NamedTuple):
    """A plain edge."""

    source: int
    target: int


Edge_ = TypeVar("Edge_", bound=Directed)


class FlowOrder(Generic[Edge_]):
    """A graph with its edges by their ends.

    Args:
        nodes: all nodes; edges to others are kept as ways out.
        edges: in the order in which each node gives and takes them.
        entry: where every path starts.
    """

    def __init__(self, nodes: Iterable[int], edges: Iterable[Edge_], entry: int = 0) -> None:
        self.entry = entry
        outgoing: dict[int, list[Edge_]] = {node: [] for node in nodes}
        incoming: dict[int, list[Edge_]] = {node: [] for node in outgoing}
        for edge in edges:
            outgoing[edge.source].append(edge)
            incoming.setdefault(edge.target, []).append(edge)
        self.outgoing: Mapping[int, tuple[Edge_, ...]] = {node: tuple(own) for node, own in outgoing.items()}
        self.incoming: Mapping[int, tuple[Edge_, ...]] = {node: tuple(own) for node, own in incoming.items()}

    def __contains__(self, node: int) -> bool:
        return node in self.outgoing

    def successors(self, node: int) -> tuple[int, ...]:
        """The nodes behind ``node``, without ways out."""
        return tuple(edge.target for edge in self.outgoing[node] if edge.target in self.outgoing)

    def predecessors(self, node: int) -> tuple[int, ...]:
        """The nodes before ``node``."""
        return tuple(edge.source for edge in self.incoming[node])

    @cached_property
    def forest(self) -> tuple[int | Loop, ...]:
        """The nodes that the entry leads to, and their loops: a weak topological order.

        The header of a loop with several entries is one of them.
        """
        return loop_forest({node: self.successors(node) for node in self.outgoing}, self.entry, any_entries=True)

    @cached_property
    def loops(self) -> tuple[Loop, ...]:
        """All loops, outer ones before those in them."""
        return loops_of(self.forest)

    @cached_property
    def sources(self) -> Mapping[int, tuple[int, ...]]:
        """The nodes before each node, each once."""
        return {node: tuple(dict.fromkeys(edge.source for edge in own)) for node, own in self.incoming.items()}

    @cached_property
    def dominance(self) -> DominatorTree:
        """The dominator tree of the nodes that the entry leads to."""
        return dominator_tree({node: self.successors(node) for node in self.outgoing}, self.entry)

    @cached_property
    def place(self) -> Mapping[int, int]:
        """The place of each node that the entry leads to in the weak topological order."""
        return {node: number for number, node in enumerate(in_order(self.forest))}

    @cached_property
    def reverse_postorder(self) -> tuple[int, ...]:
        """The nodes that the entry leads to, each before its successors but for the ends of loops."""
        seen, found = {self.entry}, list[int]()
        path = [(self.entry, iter(self.successors(self.entry)))]
        while path:
            node, targets = path[-1]
            target = next((one for one in targets if one not in seen), None)
            if target is None:
                found.append(node)
                path.pop()
            else:
                seen.add(target)
                path.append((target, iter(self.successors(target))))
        return tuple(reversed(found))

    def behind(self, starts: Iterable[int], within: Callable[[Edge_], bool] = lambda _: True) -> frozenset[int]:
        """``starts`` and the nodes that edges of which ``within`` holds lead to from there."""
        return self._closure(starts, self.outgoing, lambda edge: edge.target, within)

    def before(self, ends: Iterable[int], within: Callable[[Edge_], bool] = lambda _: True) -> frozenset[int]:
        """``ends`` and the nodes from which edges of which ``within`` holds lead there."""
        return self._closure(ends, self.incoming, lambda edge: edge.source, within)

    def _closure(
        self,
        starts: Iterable[int],
        edges: Mapping[int, Sequence[Edge_]],
        onward: Callable[[Edge_], int],
        within: Callable[[Edge_], bool],
    ) -> frozenset[int]:
        found = set(starts)
        waiting = list(found)
        while waiting:
            for edge in edges[waiting.pop()]:
                node = onward(edge)
                if node not in found and node in self.outgoing and within(edge):
                    found.add(node)
                    waiting.append(node)
        return frozenset(found)


def in_order(parts: Sequence[int | Loop]) -> Iterator[int]:
    """All nodes of a weak topological order, each behind those that control comes from, but for the ends of loops."""
    for part in parts:
        if isinstance(part, Loop):
            yield from in_order(part.parts)
        else:
            yield part
