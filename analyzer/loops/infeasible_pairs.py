"""Infeasible path combinations: pairs of edges that no execution takes both of, because their conditions contradict.

Words: infeasible path pair, predicate (docs/explanation/glossary.md).

*Soundness:* where an edge is taken, its conditions hold for the values that their symbols then have. Both edges lie in
the body of one loop, or of none, and in no inner loop; so each is taken at most once between two passes of the header.
No symbol of the first edge's conditions is defined anew behind it in the same pass, nor lost and brought back by a
choice (`state.live_symbols`). If the state on the second edge has no room for these conditions, no pass takes both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from wcet_probe.analyzer.graph.loop_forest import Loop, reach_sets
from wcet_probe.analyzer.graph.supergraph import EXIT, Edge
from wcet_probe.analyzer.values.analysis import Values, killed_bindings
from wcet_probe.analyzer.values.learning import assume, has_room
from wcet_probe.analyzer.values.state import State
from wcet_probe.analyzer.values.symbol_names import ENTRY, defined_at
from wcet_probe.analyzer.values.term_table import Term
from wcet_probe.analyzer.values.terms import Terms

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
    killed = killed_bindings(values)
    killing = [
        (1 << edge.source | 1 << edge.target, lost) for edge, lost in killed.items() if lost and edge.target >= 0
    ]
    leaving = Counter(edge.source for edge in values.edges if edge.target == EXIT)
    # The flow problem has one edge out of the function for each point.
    ambiguous = {edge for edge in values.edges if edge.target == EXIT and leaving[edge.source] > 1}
    speaking = {edge: _live_of(one.state) for edge, one in values.edges.items() if one.conditions}
    for header, nodes, body in _parts(values):
        deciding = [v for e, v in values.edges.items() if e.source in nodes and v.conditions and e not in ambiguous]
        reached = _reached(values, body, header)
        for first in deciding:
            if not left:
                return tuple(found)
            if first.edge.target not in body or first.edge.target == header:
                continue
            behind = reached[first.edge.target]
            lost = killed[first.edge].union(*(own for ends, own in killing if ends & ~behind == 0))
            conditions = [pair for pair in first.conditions if _lasts(values.terms, pair[0], behind, lost)]
            if not conditions:
                continue
            for second in deciding:
                if behind >> second.edge.source & 1 and left:
                    left -= 1
                    if _contradict(values.terms, conditions, second.state, speaking[second.edge]):
                        found.append(InfeasiblePair(first.edge, second.edge, header))
    return tuple(found)


def _reached(values: Values, body: frozenset[int], header: int | None) -> Mapping[int, int]:
    """Of each point of ``body`` what it leads to in the same pass of the header, as bits."""
    successors: dict[int, list[int]] = {node: [] for node in body}
    for edge in values.edges:
        if edge.source in body and edge.target in body and edge.target != header:
            successors[edge.source].append(edge.target)
    return reach_sets(successors)


def _live_of(state: State) -> frozenset[Term]:
    """The symbols that something is known of, or of what they are in."""
    return frozenset(symbol for term in state.known for symbol in state.terms.symbols(term))


def _lasts(terms: Terms, condition: Term, behind: int, lost: frozenset[Term]) -> bool:
    """Whether no symbol of ``condition`` is defined anew at the points ``behind``, as bits, or among ``lost``."""
    places = {symbol: defined_at(terms[symbol].arguments) for symbol in terms.symbols(condition)}
    return all(
        place == ENTRY or (place is not None and symbol not in lost and not behind >> place & 1)
        for symbol, place in places.items()
    )


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
    terms: Terms, conditions: Sequence[tuple[Term, bool]], state: State, live_symbols: frozenset[Term]
) -> bool:
    """Whether ``state``, which speaks of the symbols ``live_symbols``, has no room for the conditions."""
    speaking = [(term, holds) for term, holds in conditions if not terms.symbols(term).isdisjoint(live_symbols)]
    if not speaking or (len(speaking) == 1 and has_room(state, *speaking[0])):
        return False
    informed = state.copy()
    return not all(assume(informed, condition, holds) for condition, holds in speaking)
