"""Infeasible path combinations: pairs of edges that no execution takes both of, because their conditions contradict.

Words: infeasible path pair, predicate (docs/explanation/glossary.md).

*Soundness:* where an edge is taken, its conditions hold for the values that their symbols then have. Both edges lie in
the body of one loop, or of none, and in no inner loop; so each is taken at most once between two passes of the header.
No symbol of the first edge's conditions is defined anew behind it in the same pass, nor killed and given another value
by a gamma node (`joins.live_symbols`). If the state on the second edge has no room for these conditions, no pass takes
both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from wcet_probe.analyzer.graph.loop_forest import Loop
from wcet_probe.analyzer.graph.supergraph import EXIT, Edge
from wcet_probe.analyzer.values.result import Values
from wcet_probe.analyzer.values.states.learning import assume
from wcet_probe.analyzer.values.states.state import State
from wcet_probe.analyzer.values.symbolic.symbol_names import ENTRY, defined_at
from wcet_probe.analyzer.values.symbolic.term_table import Term
from wcet_probe.analyzer.values.symbolic.terms import Terms

_MOST_PAIRS = 20_000


@dataclass(frozen=True, slots=True)
class InfeasiblePair:
    """At most one of two edges is taken in a pass of the loop with ``header``, or in the call where it is None."""

    first: Edge
    second: Edge
    header: int | None


def infeasible_edge_pairs(values: Values) -> tuple[InfeasiblePair, ...]:
    """All pairs of edges whose conditions contradict each other, as far as the values tell.

    *Soundness:* as said of the module. Not finding a pair costs precision only.
    """
    found: list[InfeasiblePair] = []
    left = _MOST_PAIRS
    rank = {edge: number for number, edge in enumerate(values.edges)}
    leaving = Counter(edge.source for edge in values.arriving.get(EXIT, ()))
    # The flow problem has one edge out of the function for each point.
    ambiguous = {edge for edge in values.arriving.get(EXIT, ()) if leaving[edge.source] > 1}
    seconds = _Seconds(values)
    for header, nodes, body in _parts(values):
        own = (edge for node in nodes for edge in values.leaving[node] if edge not in ambiguous)
        deciding = sorted((edge for edge in own if values.edges[edge].conditions), key=rank.__getitem__)
        places: dict[int, list[int]] = {}
        for number, edge in enumerate(deciding):
            places.setdefault(edge.source, []).append(number)
        for first in deciding:
            if not left:
                return tuple(found)
            if first.target not in body or first.target == header:
                continue
            behind, conditions = _lasting(values, first, body, header)
            tried = sorted(number for node in behind for number in places.get(node, ())) if conditions else []
            known: dict[object, bool] = {}
            tried = tried[:left]
            left -= len(tried)
            found += (
                InfeasiblePair(first, second, header)
                for second in map(deciding.__getitem__, tried)
                if _contradict(values.terms, conditions, seconds[second], known)
            )
    return tuple(found)


class _Second(NamedTuple):
    """The state of the second edge of a pair.

    Attributes:
        state: that on the edge.
        speaking: the symbols that something is known of, or of what they are in.
        disjunctive: those of the disjunctions that are known to hold.
    """

    state: State
    speaking: frozenset[Term]
    disjunctive: frozenset[Term]

    @classmethod
    def of(cls, state: State) -> _Second:
        """What is asked of ``state``."""
        terms, symbols = state.terms, state.terms.symbols
        holding = (term for term, value in state.known.items() if terms[term].opcode == "BOOL_OR" and value.low)
        return cls(state, frozenset().union(*map(symbols, state.known)), frozenset().union(*map(symbols, holding)))

    def told_of(self, symbols: frozenset[Term]) -> tuple[object, ...]:
        """All that `learning.assume` asks the state about a condition that is made of ``symbols``.

        *Soundness:* it asks of terms that are made of them, and of the disjunctions that are known to hold.
        """
        state, asked = self.state, symbols | self.disjunctive
        known = [pair for pair in state.known.items() if state.terms.symbols(pair[0]) <= asked]
        bases = [pair for pair in state.bases.items() if pair[0] in asked]
        return frozenset(known), frozenset(bases)


class _Seconds(dict[Edge, _Second]):
    """What is asked of the states on the edges of ``values``, each when it is asked for."""

    def __init__(self, values: Values) -> None:
        super().__init__()
        self._values = values

    def __missing__(self, edge: Edge) -> _Second:
        found = self[edge] = _Second.of(self._values.edges[edge].state)
        return found


def _lasting(
    values: Values, first: Edge, body: frozenset[int], header: int | None
) -> tuple[set[int], Sequence[tuple[Term, bool]]]:
    """The points of ``body`` that ``first`` leads to in the same pass of the header, and its conditions that last.

    A condition lasts if no symbol of it is defined anew at these points, nor killed on an edge between them. The points
    are not all told where none does.
    """
    terms = values.terms
    speaking = {pair: terms.symbols(pair[0]) for pair in values.edges[first].conditions}
    defined = {symbol: defined_at(terms[symbol].arguments) for own in speaking.values() for symbol in own}
    killed = values.killed[first]
    lost = {symbol for symbol, at in defined.items() if at is None or (at != ENTRY and symbol in killed)}
    by_place: dict[int | None, set[Term]] = {}
    for symbol, place in defined.items():
        by_place.setdefault(place, set()).add(symbol)

    def lasting() -> list[tuple[Term, bool]]:
        return [pair for pair, own in speaking.items() if lost.isdisjoint(own)]

    behind, waiting = {first.target}, [first.target]
    while waiting and lasting():
        point = waiting.pop()
        lost |= by_place.get(point, set())
        for edge in values.leaving[point]:
            if edge.target in body and edge.target != header:
                lost.update(symbol for symbol in values.killed[edge] if defined.get(symbol, ENTRY) != ENTRY)
                if edge.target not in behind:
                    behind.add(edge.target)
                    waiting.append(edge.target)
    return behind, lasting()


def _parts(values: Values) -> Iterator[tuple[int | None, frozenset[int], frozenset[int]]]:
    """Header, points and body of each loop, and of the whole: the points are those of the body in no inner loop."""

    def own(parts: tuple[int | Loop, ...]) -> frozenset[int]:
        return frozenset(part for part in parts if isinstance(part, int) and part in values.states)

    yield None, own(values.forest), frozenset(values.states)
    todo = [part for part in values.forest if isinstance(part, Loop)]
    while todo:
        loop = todo.pop()
        yield loop.header, own(loop.parts), loop.nodes & values.states.keys()
        todo.extend(part for part in loop.parts if isinstance(part, Loop))


def _contradict(
    terms: Terms, conditions: Sequence[tuple[Term, bool]], second: _Second, known: dict[object, bool]
) -> bool:
    """Whether the state of ``second`` has no room for the conditions; ``known`` is what was found of the first edge.

    *Soundness:* what is remembered is a function of what it is remembered by; see `_Second.told_of`.
    """
    speaking = tuple((term, holds) for term, holds in conditions if not terms.symbols(term).isdisjoint(second.speaking))
    if not speaking:
        return False
    key = speaking, second.told_of(frozenset().union(*(terms.symbols(term) for term, _ in speaking)))
    if key not in known:
        state = second.state.copy()
        known[key] = not all(assume(state, condition, holds) for condition, holds in speaking)
    return known[key]
