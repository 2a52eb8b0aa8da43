"""The one fixpoint engine: iteration over a weak topological order, generic in graph and domain, and its check.

A loop is iterated until what comes round is below its header's state; loops in it are part of its rounds. An inner loop
does not begin anew in each of them: it resumes from what it had come to, so the visits of a nest grow with the sum of
its loops' rounds. Where a loop was widened, it is narrowed before control goes on. Nodes whose arrivals are what they
were are not visited again.

The greatest fixpoint of a lattice is the least one of its `lattice.Dual`.

Source: F. Bourdoncle, Efficient chaotic iteration strategies with widenings, FMPA 1993 (the recursive strategy);
G. Amato, F. Scozzari, Localizing widening and narrowing, SAS 2013 (narrowing by loops).

Words: fixpoint, weak topological order, widening, narrowing (docs/explanation/glossary.md).

*Soundness:* `solve` ends with `unsettled`, one pass over all nodes that does not know how the states were found: the
state of each node is above the start's and above all that its predecessors make of theirs. Where an order is only
nearly one and that fails, iteration goes on without narrowing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Generic, Protocol, TypeVar

from wcet_probe.analyzer.domains.lattice import Lattice
from wcet_probe.analyzer.graph.flow_order import Directed, FlowOrder
from wcet_probe.analyzer.graph.loop_forest import Loop

_PLAIN_ROUNDS = 2
"""Rounds of a loop before widening: what first comes round may be all."""
_NARROWING_ROUNDS = 2
_PATIENCE = 96
"""Rounds of a loop, over all that is around it, from which on widening is told to hurry.

In haste a place that holds another term than before is told by a symbol of its own, so that the counter of a loop
around is lost there. An inner loop of two back edges, three deep, takes some 30 rounds before all is settled.
"""

Element = TypeVar("Element")
Edge_ = TypeVar("Edge_", bound=Directed)
Taken_co = TypeVar("Taken_co", bound=Directed, covariant=True)
Arriving = TypeVar("Arriving")


class Equations(Protocol[Taken_co, Arriving, Element]):
    """What an analysis makes of elements; ``Arriving`` is what an edge carries to its target.

    Arrivals are compared by ``==``: equal ones are not followed again.
    """

    def merged(self, node: int, arriving: Sequence[Arriving], former: Element | None) -> Element:
        """What holds at ``node`` where ``arriving`` do; ``former`` is the state of a header that comes round."""
        ...

    def resumed(self, node: int, entering: Sequence[Arriving], former: Element, number: int) -> Element:
        """Above ``merged`` of what enters a loop from outside, with what is known of it from ``former``.

        A ``number`` above 0 asks for haste: a chain of what is resumed from what was resumed must end.
        """
        ...

    def widened(self, node: int, former: Element, grown: Element, number: int) -> Element:
        """Above both; chains of them end. ``number`` counts the rounds from 2 on: the greater, the coarser."""
        ...

    def leq(self, one: Element, other: Element) -> bool:
        """Whether ``one`` is below ``other``."""
        ...

    def flow(self, node: int, state: Element) -> Iterable[tuple[Taken_co, Arriving]]:
        """What the edges carry that can be taken from ``node``; each edge once."""
        ...


class LatticeEquations(Generic[Edge_, Element]):
    """Equations over a lattice: what is behind a node goes along its edges.

    Args:
        graph: of the nodes.
        lattice: of the states.
        behind: the state behind a node.
        along: what an edge makes of it; without one, nothing.
    """

    def __init__(
        self,
        graph: FlowOrder[Edge_],
        lattice: Lattice[Element],
        behind: Callable[[int, Element], Element],
        along: Callable[[Edge_, Element], Element] | None = None,
    ) -> None:
        self._graph, self._lattice, self._behind, self._along = graph, lattice, behind, along

    def merged(self, node: int, arriving: Sequence[Element], former: Element | None) -> Element:  # noqa: ARG002
        """The join of all that arrives."""
        first, *others = arriving
        for other in others:
            first = self._lattice.join(first, other)
        return first

    def resumed(self, node: int, entering: Sequence[Element], former: Element, number: int) -> Element:  # noqa: ARG002
        """The join with what was there."""
        return self._lattice.join(former, self.merged(node, entering, None))

    def widened(self, node: int, former: Element, grown: Element, number: int) -> Element:  # noqa: ARG002
        """The lattice's widening."""
        return self._lattice.widen(former, grown)

    def leq(self, one: Element, other: Element) -> bool:
        """The lattice's order."""
        return self._lattice.leq(one, other)

    def flow(self, node: int, state: Element) -> Iterable[tuple[Edge_, Element]]:
        """The state behind the node along each edge."""
        after = self._behind(node, state)
        for edge in self._graph.outgoing[node]:
            yield edge, after if self._along is None else self._along(edge, after)


def least(
    graph: FlowOrder[Edge_],
    lattice: Lattice[Element],
    starts: Mapping[int, Element],
    behind: Callable[[int, Element], Element],
    along: Callable[[Edge_, Element], Element] | None = None,
) -> Mapping[int, Element]:
    """The least states of the nodes that ``starts`` lead to, for functions that are monotone.

    Args:
        graph: of the nodes.
        lattice: of the states.
        starts: what holds at nodes beside what arrives there by edges.
        behind: the state behind a node.
        along: what an edge makes of it; without one, nothing.
    """
    return solve(graph, LatticeEquations(graph, lattice, behind, along), starts).states


class Solution(Generic[Edge_, Arriving, Element]):
    """A fixpoint.

    Attributes:
        states: of each node that is reached.
        arrivals: what each edge carries that can be taken.
        visits: how often each node was followed; the check's visit apart.
    """

    def __init__(
        self, states: Mapping[int, Element], arrivals: Mapping[Edge_, Arriving], visits: Mapping[int, int]
    ) -> None:
        self.states, self.arrivals, self.visits = states, arrivals, visits


def solve(
    graph: FlowOrder[Edge_],
    equations: Equations[Edge_, Arriving, Element],
    starts: Mapping[int, Arriving],
    checking: Equations[Edge_, Arriving, Element] | None = None,
) -> Solution[Edge_, Arriving, Element]:
    """A fixpoint of ``equations``; the least one where they are monotone and widen by joining.

    Args:
        graph: of the nodes; starts must be reached from its entry.
        equations: of the analysis.
        starts: what arrives at nodes from nowhere in the graph.
        checking: the same equations for the check, where that is to take notes of its one visit of each node.

    Raises:
        ValueError: what the equations say of the same element is not always the same; a bug.

    *Soundness:* as said of the module.
    """
    iteration = _Iteration(graph, equations, starts)
    iteration.pass_over(graph.forest)
    while bad := unsettled(graph, checking or equations, starts, iteration.states):
        if iteration.hurried:
            raise ValueError(
                f"the states of nodes {bad} are no fixpoint: an operation of the domain is at odds with it."
            )
        iteration.hurry()
        iteration.pass_over(graph.forest)
    arrivals = {edge: one for own in iteration.arrivals.values() for edge, one in own.items()}
    return Solution(iteration.states, arrivals, iteration.visits)


def unsettled(
    graph: FlowOrder[Edge_],
    equations: Equations[Edge_, Arriving, Element],
    starts: Mapping[int, Arriving],
    states: Mapping[int, Element],
) -> tuple[int, ...]:
    """The nodes whose states are not above all that arrives there: none of a fixpoint, whoever found it."""
    arrivals: dict[int, dict[Edge_, Arriving]] = {}
    for node, state in states.items():
        for edge, carried in equations.flow(node, state):
            arrivals.setdefault(edge.target, {})[edge] = carried
    found = []
    headers = {loop.header for loop in graph.loops}
    for node in graph.outgoing:
        own = arrivals.get(node, {})
        arriving = [own[edge] for edge in graph.incoming[node] if edge in own]
        if node in starts:
            arriving.insert(0, starts[node])
        if arriving:
            known = states.get(node)
            former = known if node in headers else None
            if known is None or not equations.leq(equations.merged(node, arriving, former), known):
                found.append(node)
    return tuple(found)


class _Iteration(Generic[Edge_, Arriving, Element]):
    """The states so far.

    *Invariant:* the arrivals along a node's edges are what `Equations.flow` makes of its state, and a node whose
    arrivals are not those that its state was made of is ``stale``.
    """

    def __init__(
        self,
        graph: FlowOrder[Edge_],
        equations: Equations[Edge_, Arriving, Element],
        starts: Mapping[int, Arriving],
    ) -> None:
        self._graph, self._equations, self._starts = graph, equations, starts
        self.states: dict[int, Element] = {}
        self.arrivals: dict[int, dict[Edge_, Arriving]] = {node: {} for node in graph.incoming}
        self.visits: dict[int, int] = dict.fromkeys(graph.outgoing, 0)
        self.hurried = False
        self._rounds: dict[int, int] = {}
        self._stale = set(starts)

    def hurry(self) -> None:
        """Go on from here, widening at once and without narrowing."""
        self.hurried = True
        self._stale.update(self._graph.outgoing)

    def pass_over(self, parts: Sequence[int | Loop], *, narrowing: bool = False) -> None:
        """Bring all ``parts`` up to date, in order."""
        for part in parts:
            if isinstance(part, Loop):
                if not self._stale.isdisjoint(part.nodes):
                    self._settle(part, narrowing=narrowing)
            elif part in self._stale:
                self._visit(part)

    def _arriving(self, node: int, without: frozenset[int] = frozenset()) -> list[Arriving]:
        own = self.arrivals[node]
        found = [own[edge] for edge in self._graph.incoming[node] if edge in own and edge.source not in without]
        return [self._starts[node], *found] if node in self._starts else found

    def _visit(self, node: int) -> None:
        arriving = self._arriving(node)
        self._stale.discard(node)
        if not arriving:
            self._drop(node)
            return
        new = self._equations.merged(node, arriving, None)
        if new != self.states.get(node):
            self._follow(node, new)

    def _follow(self, node: int, state: Element) -> None:
        """``node`` has ``state``: tell those behind it."""
        self._stale.discard(node)
        self.states[node] = state
        self.visits[node] += 1
        carried = dict(self._equations.flow(node, state))
        for edge in self._graph.outgoing[node]:
            self._carry(edge, carried.get(edge))

    def _carry(self, edge: Edge_, arriving: Arriving | None) -> None:
        own = self.arrivals[edge.target]
        if arriving is None:
            changed = own.pop(edge, None) is not None
        else:
            changed = own.get(edge) != arriving
            own[edge] = arriving
        if changed and edge.target in self._graph:
            self._stale.add(edge.target)

    def _drop(self, node: int) -> None:
        """Nothing arrives at ``node``, or not any more."""
        self._stale.discard(node)
        if self.states.pop(node, None) is not None:
            for edge in self._graph.outgoing[node]:
                self._carry(edge, None)

    def _settle(self, loop: Loop, *, narrowing: bool) -> None:
        """Bring a loop up to date: what arrives at its header is below the header's state."""
        header, equations = loop.header, self._equations
        if header not in self._stale:  # entered elsewhere: the loop is irreducible
            self.pass_over(loop.parts[1:], narrowing=narrowing)
            if header not in self._stale:
                return
        entering = self._entering(loop)
        if not entering:
            return
        former = self.states.get(header)
        if former is None:
            state = equations.merged(header, entering, None)
        elif (narrowing or self.hurried) and self._is_below(loop, former, narrowing=narrowing):
            return
        else:
            state = equations.resumed(header, entering, former, max(0, self._rounds.get(header, 0) - _PATIENCE))
        if former is None or state != former:
            self._round(loop, state)
        if self._ascend(loop, state) and not self.hurried:
            self._narrow(loop, _NARROWING_ROUNDS)

    def _entering(self, loop: Loop) -> list[Arriving]:
        """What arrives at the header from outside; where nothing does, the loop is dropped."""
        entering = self._arriving(loop.header, loop.nodes)
        if not entering and self._is_entered_elsewhere(loop):
            entering = self._arriving(loop.header)
            if not entering:
                self._drop(loop.header)
        elif not entering:
            for node in loop.nodes:
                self._drop(node)
        return entering

    def _is_below(self, loop: Loop, former: Element, *, narrowing: bool) -> bool:
        """Whether what arrives at the header is below its state; then the loop is brought up to date from there."""
        new = self._equations.merged(loop.header, self._arriving(loop.header), former)
        if not self._equations.leq(new, former):
            return False
        self._stale.discard(loop.header)
        if self.hurried:
            self._round(loop, former)
            self._ascend(loop, former)
        elif narrowing and new != former:
            self._narrow(loop, 1)
        return True

    def _is_entered_elsewhere(self, loop: Loop) -> bool:
        """Whether something arrives from outside at a node of an irreducible loop that is not its header."""
        others = loop.nodes - {loop.header}
        return any(node in self._starts or self._arriving(node, loop.nodes) for node in others)

    def _round(self, loop: Loop, state: Element, *, narrowing: bool = False) -> None:
        self._follow(loop.header, state)
        self.pass_over(loop.parts[1:], narrowing=narrowing)

    def _ascend(self, loop: Loop, state: Element) -> bool:
        """Go round until nothing grows; whether the header was widened."""
        header, equations = loop.header, self._equations
        number, is_widened = 0, False
        while True:
            new = equations.merged(header, self._arriving(header), state)
            if equations.leq(new, state):
                self._stale.discard(header)
                return is_widened
            number += 1
            self._rounds[header] = total = self._rounds.get(header, 0) + 1
            if number >= _PLAIN_ROUNDS or total > _PATIENCE or self.hurried:
                new = equations.widened(header, state, new, number + max(0, total - _PATIENCE))
                is_widened = True
            state = new
            self._round(loop, state)

    def _narrow(self, loop: Loop, rounds: int) -> None:
        """Take back what widening gave away, as long as what comes round is below."""
        header, equations = loop.header, self._equations
        for _ in range(rounds):
            state = self.states[header]
            new = equations.merged(header, self._arriving(header), state)
            if new == state or not equations.leq(new, state):
                break
            self._round(loop, new, narrowing=True)
            if not equations.leq(equations.merged(header, self._arriving(header), new), new):
                # Inner loops may settle elsewhere from a narrower state: what held before holds still.
                self._round(loop, state)
                self._ascend(loop, state)
                break
        self._stale.discard(header)
