"""Loops in each other, or with ways that meet, that search by bisection together: they halve one distance.

>>> def found(keys, key):
...     low, high = 0, len(keys) - 1
...     while low <= high:
...         middle = (low + high) // 2
...         while keys[middle] < key:
...             low = middle + 1
...             if low > high: return
...             middle = (low + high) // 2
...         high = middle - 1

Compilers make such a nest of the one loop of `bisection`. The range of ``high - low`` is followed from one point that
may define either number to the next, all loops together, and each edge back is a step. How often each header is
reached, and how often their edges back are taken together, is bounded by the steps until no distance is left.

Words: loop bound, back edges, linear constraint, symbolic variable (docs/explanation/glossary.md).

*Soundness:* the ranges at a cut after some steps are the hull of what all ways there bring (`bisection_cuts`,
`bisection.after_round`). Between two steps no cut is passed twice, as the ways to cuts that are no edges back make no
circle. So a cut is executed at most once for each number of steps after which it has any range, and the edges back to
cuts are taken, all together, at most as often as there is a further step. Of other loops in the nest nothing is said.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import permutations
from typing import NamedTuple

from wcet_probe.analyzer.graph.supergraph import Edge
from wcet_probe.analyzer.loops.bisection import HALVED, Numbers, Range, after_round, distance_of, hull, meet
from wcet_probe.analyzer.loops.bisection_cuts import Cuts, Pair, Way, cuts_of, is_defined_by, numbers_in
from wcet_probe.analyzer.loops.counts import Count, Together, followed_rounds
from wcet_probe.analyzer.values.properties.loop_shapes import LoopShape
from wcet_probe.analyzer.values.result import Values
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.analyzer.values.states.state import State
from wcet_probe.analyzer.values.symbolic.conditions import relations
from wcet_probe.analyzer.values.symbolic.locations import Location
from wcet_probe.analyzer.values.symbolic.term_table import Term

_MOST_STEPS = 256
_LOOK_BACK = 4
"""Steps after which the range of the distance must not hold the former one; that a nest is given up says nothing."""
_MOST_PAIRS = 16


class HalvedNest(NamedTuple):
    """A distance that the loops of a nest halve together.

    Attributes:
        counts: of each loop that has a part in it, by header, its rounds for each entry of the nest.
        together: of their edges back, those to cuts.
    """

    counts: Mapping[int, Count]
    together: Together


_Informed = Callable[[State, Iterable[Term]], State]


def halved_nest(
    values: Values, shape: LoopShape, killed: Mapping[Edge, frozenset[Term]], informed: _Informed
) -> HalvedNest | None:
    """The distance that a loop and those in it halve, if one is found.

    Args:
        values: what is known of the function.
        shape: the loop.
        killed: what each edge kills.
        informed: a state with the ranges of the counters of enclosing loops that terms are made of.

    *Soundness:* as said of the module.
    """
    header, nodes = shape.loop.header, shape.loop.nodes
    into = (edge for node in nodes - {header} for edge in values.arriving.get(node, ()))
    if header == 0 or any(edge.source not in nodes for edge in into):
        return None
    for pair in _pairs(values, shape):
        cuts = cuts_of(values, shape, killed, pair)
        for is_signed in (True, False) if cuts is not None else ():
            found = None if cuts is None else _Nest(values, shape, cuts, informed, is_signed=is_signed).followed(pair)
            if found is not None:
                return found
    return None


def _pairs(values: Values, shape: LoopShape) -> Sequence[Pair]:
    """Places of numbers of the header that the loop compares, those first that it compares with each other."""
    terms, header = values.terms, shape.loop.header
    state = values.states[header]
    own = {
        location: terms[term].bits
        for location, term in state.locations.items()
        if is_defined_by(values, term, header) and state.base(term) is Base.NUMBER
    }
    found, compared = dict[Pair, None](), dict[Location, None]()
    for edge in values.within(shape.loop.nodes):
        for condition, holds in values.conditions[edge]:
            for relation, _, first, second in relations(terms, condition, holds=holds):
                if relation in ("<", "<="):
                    sides = [one for side in (first, second) for one in sorted({*_named(values, side)} & own.keys())]
                    found |= dict.fromkeys(permutations(dict.fromkeys(sides), 2))
                    compared |= dict.fromkeys(sides)
    found |= dict.fromkeys(permutations(compared, 2))
    return [(one, other) for one, other in found if own[one] == own[other]][:_MOST_PAIRS]


def _named(values: Values, term: Term) -> Iterator[Location]:
    """The places whose symbols ``term`` is made of, wherever in a function these are defined."""
    for symbol in values.terms.symbols(term):
        match values.terms[symbol].arguments:
            case ("phi", (int(),), Location() as location):
                yield location


class _Nest:
    """Follows the ranges of two numbers, read with a sign or without."""

    def __init__(self, values: Values, shape: LoopShape, cuts: Cuts, informed: _Informed, *, is_signed: bool) -> None:
        self._values, self._shape, self._cuts, self._informed = values, shape, cuts, informed
        self._is_signed = is_signed
        headers = {loop.header: loop for loop in shape.loop.walk()}
        self._backs = [
            edge
            for edge in values.within(shape.loop.nodes)
            if edge.target in cuts.held and edge.target in headers and edge.source in headers[edge.target].nodes
        ]

    def followed(self, pair: Pair) -> HalvedNest | None:
        """What the nest does, if the distance of the numbers in the places ``pair`` at entry is followed to its end."""
        order, start = self._order(), self._start(pair)
        if order is None or start is None:
            return None
        at, executed, ranges = {self._shape.loop.header: start}, dict.fromkeys(self._cuts.held, 0), list[Range]()
        for steps in range(_MOST_STEPS):
            following = self._step(order, at)
            if following is None:
                return None
            executed |= {cut: executed[cut] + 1 for cut in at}
            if not following:
                return self._found(executed, steps)
            ranges.append(hull([one.distances for one in at.values()]))
            if steps >= _LOOK_BACK and meet(ranges[-1], ranges[-1 - _LOOK_BACK]) == ranges[-1 - _LOOK_BACK]:
                return None
            at = following
        return None

    def _step(self, order: Sequence[int], at: dict[int, Numbers]) -> dict[int, Numbers] | None:
        """What the numbers are behind one edge back, at each cut; None where that is not known.

        What they are at cuts that are reached before is added to ``at``.
        """
        following = dict[int, Numbers]()
        for cut in order:
            for way in self._cuts.ways[cut] if cut in at else ():
                after = self._after(at[cut], cut, way)
                if after is None:
                    return None
                reached, target = following if way.edge in self._backs else at, way.edge.target
                if not after.is_empty:
                    reached[target] = _joined([after, *([reached[target]] if target in reached else [])])
        return following

    def _found(self, executed: Mapping[int, int], steps: int) -> HalvedNest:
        headers = [loop.header for loop in self._shape.loop.walk() if loop.header in executed]
        counts = {header: followed_rounds(max(1, executed[header]), HALVED) for header in headers}
        return HalvedNest(counts, Together(dict.fromkeys(self._backs, 1), steps))

    def _order(self) -> Sequence[int] | None:
        """The cuts, each behind those from which it is reached without a step; None where they make a circle."""
        sorter = TopologicalSorter[int](dict.fromkeys(sorted(self._cuts.held), ()))
        for cut, own in self._cuts.ways.items():
            for way in own:
                if way.edge not in self._backs:
                    sorter.add(way.edge.target, cut)
        try:
            return [*sorter.static_order()]
        except CycleError:
            return None

    def _start(self, pair: Pair) -> Numbers | None:
        """What both numbers may be when the loop is entered."""
        found = list[Numbers]()
        for edge in self._shape.entry_edges:
            state = self._values.edges[edge].state
            brought = numbers_in(state, pair)
            if brought is None:
                return None
            state = self._informed(state, brought)
            if not any(state.value(term).is_bottom for term in brought):
                lows, highs = (self._range(state, term) for term in brought)
                found.append(Numbers(*self._cuts.numbers, lows, highs, distance_of(lows, highs), self._is_signed))
        return _joined(found) if found else None

    def _after(self, numbers: Numbers, cut: int, way: Way) -> Numbers | None:
        """What both are where ``way`` leads, from ``cut`` where they are ``numbers``; None where it is not known."""
        state, own = self._values.edges[way.edge].state, self._cuts.held[cut]
        if any(state.value(term).is_bottom for term in own):
            return numbers._replace(distances=(1, 0))
        lows, highs = meet(numbers.lows, self._range(state, own[0])), meet(numbers.highs, self._range(state, own[1]))
        distances = meet(numbers.distances, distance_of(lows, highs))
        within = numbers._replace(lows=lows, highs=highs, distances=distances)
        return within if within.is_empty else after_round(self._values.terms, within, way.conditions, way.brought)

    def _range(self, state: State, term: Term) -> Range:
        value = state.value(term)
        return value.signed_range() if self._is_signed else value.unsigned_range()


def _joined(each: Sequence[Numbers]) -> Numbers:
    """What covers all of ``each``."""
    lows, highs = hull([one.lows for one in each]), hull([one.highs for one in each])
    return each[0]._replace(lows=lows, highs=highs, distances=hull([one.distances for one in each]))
