"""Points of a loop that may define two numbers anew, and the ways between them: `Cuts` of `bisection_nests`.

Words: gamma node, symbolic variable (docs/explanation/glossary.md).

*Soundness:* a cut is a point of the loop where one of two places holds a symbol of its own, or a gamma node that no
edge there brings. What an edge to a cut brings for both is read in terms of what they held at the cut that was passed
last, which is the same one on all ways there; the symbols of that are not defined anew on the way, so it is what it
was. What else is new at a cut is a function of both numbers if it is that by each edge there (`derived_numbers`), where
a function that was found so is put in at the cut that the edge comes from.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from wcet_probe.analyzer.graph.supergraph import Edge
from wcet_probe.analyzer.loops.choices import choices, chosen
from wcet_probe.analyzer.loops.derived_numbers import functions_of, replaced
from wcet_probe.analyzer.loops.dwindling import Conditions
from wcet_probe.analyzer.values.properties.loop_shapes import LoopShape
from wcet_probe.analyzer.values.result import Values
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.analyzer.values.states.state import State
from wcet_probe.analyzer.values.symbolic.conditions import relations
from wcet_probe.analyzer.values.symbolic.locations import Location
from wcet_probe.analyzer.values.symbolic.symbol_names import defined_at
from wcet_probe.analyzer.values.symbolic.term_table import Term

_MOST_CUTS = 16
_MOST_DERIVED = 8
_MOST_PASSES = 3
"""Over all cuts, to find functions that need those of others."""

Pair = tuple[Location, Location]


class Way(NamedTuple):
    """An edge from a cut to a cut, where choices of which nothing is known are decided.

    Attributes:
        edge: to a cut.
        conditions: they hold where it is taken.
        brought: both numbers at the cut behind it.
    """

    edge: Edge
    conditions: Conditions
    brought: Sequence[Term]


class Cuts(NamedTuple):
    """The cuts of two numbers.

    Attributes:
        numbers: what stands for both in the ways from any cut.
        held: the terms of both at each cut.
        ways: from each cut the ways to others.
    """

    numbers: tuple[Term, Term]
    held: Mapping[int, tuple[Term, Term]]
    ways: Mapping[int, Sequence[Way]]


def cuts_of(values: Values, shape: LoopShape, killed: Mapping[Edge, frozenset[Term]], pair: Pair) -> Cuts | None:
    """The cuts of the numbers in the places ``pair`` of a loop; None where the ways between them are not known.

    Args:
        values: what is known of the function.
        shape: a loop that is entered by its header alone.
        killed: what each edge kills.
        pair: two places of as many bytes.

    *Soundness:* as said of the module.
    """
    return _Finder(values, shape, killed, pair).found()


def is_defined_by(values: Values, term: Term | None, point: int) -> bool:
    """Whether ``term`` is a symbol that stands for what arrives at ``point``."""
    node = None if term is None else values.terms[term]
    return node is not None and node.opcode == "symbol" and node.arguments[:2] == ("phi", (point,))


def numbers_in(state: State, places: Iterable[Location]) -> list[Term] | None:
    """What ``places`` hold, if all of it is numbers."""
    each = [state.read(place) for place in places]
    found = [term for term in each if term is not None and state.base(term) is Base.NUMBER]
    return found if len(found) == len(each) else None


class _Finder:
    def __init__(self, values: Values, shape: LoopShape, killed: Mapping[Edge, frozenset[Term]], pair: Pair) -> None:
        self._values, self._shape, self._killed, self._pair = values, shape, killed, pair
        self._terms = terms = values.terms
        self._within = [*values.within(shape.loop.nodes)]
        self._held: dict[int, tuple[Term, Term]] = {}
        self._latest: dict[int, int] = {}
        """Of each point the cut that was passed last."""
        self._named: dict[int, dict[Term, Term]] = {}
        """Of each cut, what is put in for its terms."""
        low, high = (terms.symbol(("number", at), 8 * place.size_bytes) for at, place in enumerate(pair))
        self._numbers = low, high

    def found(self) -> Cuts | None:
        """See `cuts_of`."""
        for point in sorted(self._shape.loop.nodes & self._values.states.keys()):
            if any(self._is_new(point, place) for place in self._pair):
                held = numbers_in(self._values.states[point], self._pair)
                if held is None or len(self._held) == _MOST_CUTS:
                    return None
                self._held[point] = held[0], held[1]
        if self._shape.loop.header not in self._held or not self._follow():
            return None
        self._named = {cut: dict(zip(held, self._numbers, strict=True)) for cut, held in self._held.items()}
        passes = 0
        while passes < _MOST_PASSES and sum(self._derive(cut) for cut in self._held):
            passes += 1
        ways: dict[int, list[Way]] = {cut: [] for cut in self._held}
        for edge in self._within:
            if edge.target in self._held:
                own = self._ways_by(edge)
                if not own:
                    return None
                ways[self._latest[edge.source]] += own
        return Cuts(self._numbers, self._held, ways)

    def _is_new(self, point: int, place: Location) -> bool:
        """Whether ``place`` holds at ``point`` what no edge brings there."""
        term = self._values.states[point].read(place)
        if term is None or self._terms[term].opcode != "GAMMA":
            return is_defined_by(self._values, term, point)
        return all(self._values.edges[edge].state.read(place) != term for edge in self._values.arriving[point])

    def _follow(self) -> bool:
        """Whether from each point the cut that was passed last is known, and what both numbers were there is kept."""
        found = self._latest = {self._shape.loop.header: self._shape.loop.header}
        todo = [self._shape.loop.header]
        leaving: dict[int, list[Edge]] = {}
        for edge in self._within:
            leaving.setdefault(edge.source, []).append(edge)
        while todo:
            for edge in leaving.get(todo.pop(), ()):
                cut = edge.target if edge.target in self._held else found[edge.source]
                if edge.target not in found:
                    found[edge.target] = cut
                    todo.append(edge.target)
                elif found[edge.target] != cut:
                    return False
        return all(edge.source in found and self._keeps(edge, self._held[found[edge.source]]) for edge in self._within)

    def _keeps(self, edge: Edge, held: Iterable[Term]) -> bool:
        """Whether ``edge`` leads to a cut, or leaves terms what they were at the cut that was passed last."""
        cut = self._latest[edge.source]
        for symbol in {one for term in held for one in self._terms.symbols(term)}:
            place = defined_at(self._terms[symbol].arguments)
            is_defined_later = place is not None and self._latest.get(place) == cut
            is_killed = edge.target not in self._held and symbol in self._killed[edge]
            if place is None or is_killed or (is_defined_later and not is_defined_by(self._values, symbol, cut)):
                return False
        return True

    def _derive(self, cut: int) -> bool:
        """Find what is new at ``cut`` and a function of both numbers; whether something further was found."""
        own, state = self._named[cut], self._values.states[cut]
        places: dict[Term, Location] = {}
        for place, term in state.locations.items():
            is_wide = self._terms[term].bits == self._terms[self._numbers[0]].bits
            if term not in own and is_wide and self._is_new(cut, place):
                places.setdefault(term, place)
        before, leaving = len(own), [edge for edge in self._within if self._latest[edge.source] == cut]
        for term, place in [*places.items()][:_MOST_DERIVED]:
            function = self._function(cut, term, place) if all(self._keeps(edge, (term,)) for edge in leaving) else None
            if function is not None:
                own[term] = function
        return len(own) > before

    def _function(self, cut: int, held: Term, place: Location) -> Term | None:
        """The function of both numbers that each edge to ``cut`` brings to ``place``, which holds ``held`` there."""
        each = list[dict[Term, Term]]()
        for edge in self._values.arriving[cut]:
            brought = numbers_in(self._values.edges[edge].state, (*self._pair, place))
            names = self._named[self._latest[edge.source]] if edge.source in self._latest else {}
            put_in = [replaced(self._terms, term, names) for term in brought or ()]
            known = [term for term in put_in if term is not None]
            if len(known) < len(self._pair) + 1:
                return None
            each.append(dict(zip((*self._numbers, held), known, strict=True)))
        return next(functions_of(self._terms, held, self._numbers, each), None)

    def _ways_by(self, edge: Edge) -> list[Way] | None:
        """What ``edge`` to a cut brings, by each choice; None where that is not known."""
        found, terms, names = self._values.edges[edge], self._terms, self._named[self._latest[edge.source]]
        brought = numbers_in(found.state, self._pair)
        numbers = [replaced(terms, term, names) for term in brought or ()]
        if None in numbers:
            return None
        facts = ((term, bool(truth.value)) for term, truth in found.state.known.items() if truth.is_constant)
        told = [(term, holds) for term, holds in facts if any(relations(terms, term, holds=holds))]
        conditions = [
            (replaced(terms, term, names), holds) for term, holds in dict.fromkeys((*found.conditions, *told))
        ]
        ways = list[Way]()
        for decided in choices(terms, [term for term in numbers if term is not None], lambda _: True):
            each = [chosen(terms, term, decided) for term in numbers if term is not None]
            own = [(None if term is None else chosen(terms, term, decided), holds) for term, holds in conditions]
            known = [term for term in each if term is not None]
            if len(known) < len(self._pair):
                return None
            of_ways = [(term, holds) for term, holds in (*own, *decided.items()) if term is not None]
            ways.append(Way(edge, of_ways, known))
        return ways
