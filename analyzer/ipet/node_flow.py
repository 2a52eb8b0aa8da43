"""The graph that the checker sees, as a flow graph of the engine, and what its analyses for a certificate iterate over.

Words: weak topological order, fixpoint (docs/explanation/glossary.md).

*Soundness:* as said of `graph.fixpoint`; what is found for a certificate, the checker tests again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import NamedTuple, TypeVar

from wcet_probe.analyzer.domains.lattice import Lattice
from wcet_probe.analyzer.graph.fixpoint import Equations, LatticeEquations, least, solve
from wcet_probe.analyzer.graph.flow_order import FlowOrder
from wcet_probe.certificate.kernel.records import Edge, Graph

_BEHIND = -1
"""Where each path back starts: it leads to all nodes."""

Element = TypeVar("Element")


class Way(NamedTuple):
    """An edge by the numbers of its nodes."""

    source: int
    target: int
    edge: Edge


class NodeFlow:
    """A graph of named nodes as a flow graph.

    Args:
        graph: as the checker sees it.
        edges: those of its edges that can be taken.

    Attributes:
        names: of the nodes by number; the entry is the first.
        order: the flow graph.
    """

    def __init__(self, graph: Graph, edges: Iterable[Edge]) -> None:
        self.names = tuple(dict.fromkeys((graph.entry, *graph.nodes)))
        self._number = {name: place for place, name in enumerate(self.names)}
        arcs = (Way(self._number[edge.source], self._number[edge.target], edge) for edge in edges)
        self.order = FlowOrder(range(len(self.names)), arcs)

    @cached_property
    def nodes(self) -> tuple[str, ...]:
        """The nodes that the entry leads to, each before its successors but for the ends of loops."""
        return tuple(self.names[node] for node in self.order.reverse_postorder)

    @cached_property
    def found(self) -> tuple[str, ...]:
        """These nodes, each behind the first that leads to it: the order of records in a certificate."""
        outgoing, order = self.order.outgoing, self.order.reverse_postorder
        found = dict.fromkeys((0, *(way.target for node in order for way in outgoing[node])))
        return tuple(self.names[node] for node in found)

    @cached_property
    def places(self) -> Mapping[str, int]:
        """The place of each of these nodes in ``nodes``."""
        return {node: place for place, node in enumerate(self.nodes)}

    @cached_property
    def ranks(self) -> Mapping[str, int]:
        """The place of each of these nodes in ``found``."""
        return {node: place for place, node in enumerate(self.found)}

    def before(self, ends: Iterable[str], within: Callable[[Edge], bool]) -> frozenset[str]:
        """``ends`` and the nodes from which edges of which ``within`` holds lead there."""
        found = self.order.before((self._number[name] for name in ends), lambda way: within(way.edge))
        return frozenset(self.names[node] for node in found)

    def least(
        self,
        lattice: Lattice[Element],
        start: Element,
        leaving: Callable[[str, Element], Callable[[Edge], Element]],
    ) -> Mapping[str, Element]:
        """The least states of the nodes that the entry leads to, for functions that are monotone.

        Args:
            lattice: of the states.
            start: what holds at the entry.
            leaving: of a node and its state, what each edge carries.
        """
        return self.solved(_Leaving(self, lattice, leaving), start)

    def least_backwards(
        self,
        lattice: Lattice[Element],
        own: Mapping[str, Element],
        along: Callable[[Edge, Element], Element],
    ) -> Mapping[str, Element]:
        """The least states of all nodes that are above their ``own``, and above what their edges bring back.

        Args:
            lattice: of the states.
            own: of each node.
            along: what an edge takes from the state of its target to that of its source.
        """
        names, nodes = self.names, range(len(self.names))
        back = (Way(way.target, way.source, way.edge) for node in nodes for way in self.order.outgoing[node])
        starting = (Way(_BEHIND, node, Edge("", "", name, 0)) for node, name in enumerate(names))
        order, starts = FlowOrder((_BEHIND, *nodes), (*starting, *back), _BEHIND), {_BEHIND: own[names[0]]}

        def carried(way: Way, state: Element) -> Element:
            return own[way.edge.target] if way.source == _BEHIND else along(way.edge, state)

        states = least(order, lattice, starts, lambda _, state: state, carried)
        return {names[node]: states[node] for node in nodes}

    def solved(self, equations: Equations[Way, Element, Element], start: Element) -> Mapping[str, Element]:
        """A fixpoint of ``equations`` with ``start`` at the entry."""
        return self._named(solve(self.order, equations, {0: start}).states)

    def _named(self, states: Mapping[int, Element]) -> Mapping[str, Element]:
        return {name: states[self._number[name]] for name in self.found if self._number[name] in states}


class _Leaving(LatticeEquations[Way, Element]):
    """What edges carry, by one function of a node's name and state."""

    def __init__(
        self,
        flow: NodeFlow,
        lattice: Lattice[Element],
        leaving: Callable[[str, Element], Callable[[Edge], Element]],
    ) -> None:
        super().__init__(flow.order, lattice, lambda _, state: state)
        self._names, self._outgoing, self._leaving = flow.names, flow.order.outgoing, leaving

    def flow(self, node: int, state: Element) -> Iterable[tuple[Way, Element]]:
        """What each edge carries."""
        along = self._leaving(self._names[node], state)
        return [(way, along(way.edge)) for way in self._outgoing[node]]
