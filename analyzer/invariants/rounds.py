"""What the numbers of a loop are together, round by round, where its rounds are few.

A logarithm by binary search has three variables that move together, and what it ends with is a number of all three. The
value analysis knows each of them for itself, over all rounds. Here the rounds are followed one by one, and with them
each way through the body that the conditions of gamma nodes tell apart:

>>> def log2(value):  # of 15 and more it is 3 at least
...     log, step = 0, 16
...     while step:
...         if value >> step:
...             value, log = value >> step, log + step
...         step >>= 1
...     return log

Words: header, gamma node (docs/explanation/glossary.md).

*Soundness:* the tuples of a header cover what its symbols are together in every visit: those that enter, and of each
tuple what each way round makes of it; where there are too many, nothing is said. A tuple says nothing of a symbol that
a state does not speak of (`joins.live_symbols`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.domains.strided import StridedInterval
from wcet_probe.analyzer.graph.loop_forest import loops_of
from wcet_probe.analyzer.graph.supergraph import Edge
from wcet_probe.analyzer.values.result import Values
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.analyzer.values.states.joins import live_symbols
from wcet_probe.analyzer.values.states.learning import assume, learn
from wcet_probe.analyzer.values.states.state import State
from wcet_probe.analyzer.values.symbolic.locations import Location
from wcet_probe.analyzer.values.symbolic.term_table import Term

_MOST_TUPLES = 128
_MOST_CONDITIONS = 4

Numbers = tuple[StridedInterval, ...]
"""What the symbols of a header are together, in their order."""


@dataclass(frozen=True, slots=True)
class Rounds:
    """A loop whose rounds are few.

    Attributes:
        symbols: of its header, all numbers.
        inside: what they are together in some round.
        outside: those of the last round, behind the loop.
        nodes: the points of the loop.
    """

    symbols: tuple[Term, ...]
    inside: tuple[Numbers, ...]
    outside: tuple[Numbers, ...]
    nodes: frozenset[int]

    def value(self, state: State, term: Term, bound: AbstractSet[Term], *, is_inside: bool) -> StridedInterval:
        """What ``term`` may be in ``state``, where the symbols ``bound`` have the values that the header gave them.

        *Soundness:* as said of the module.
        """
        told = bound & live_symbols(state)
        found = strided.bottom(state.terms[term].bits)
        for numbers in self.inside if is_inside else self.outside:
            side = _in_round(state, self.symbols, numbers, told)
            if side is not None:
                for way in _cases(side, (term,), _MOST_CONDITIONS):
                    found = strided.join(found, way.value(term))
        return strided.meet(found, state.value(term))


def header_symbols(values: Values) -> Mapping[int, Mapping[Location, Term]]:
    """By header of a loop, the symbols that it defines, which are numbers, by the first location that holds them."""
    headers = {loop.header for loop in loops_of(values.forest)} - {0}
    return {header: _numbers(values.states[header], header) for header in sorted(headers & values.states.keys())}


def rounds_of(values: Values, bound: Mapping[int, frozenset[Term]]) -> Mapping[int, Rounds]:
    """The loops of ``values`` whose rounds are few, by header.

    Args:
        values: of an operation.
        bound: by point, the symbols of headers that have the value of the last round there.

    *Soundness:* as said of the module.
    """
    symbols = header_symbols(values)
    found = {}
    for loop in loops_of(values.forest):
        places = symbols.get(loop.header)
        if not places:
            continue
        entering = [edge for edge in values.arriving[loop.header] if edge.source not in loop.nodes]
        back = [edge for edge in values.arriving[loop.header] if edge.source in loop.nodes]
        inside = _inside(values, places, bound, entering, back)
        if inside:
            leaving = [edge for edge in values.edges if edge.source in loop.nodes and edge.target not in loop.nodes]
            own = tuple(places.values())
            found[loop.header] = Rounds(own, inside, _outside(values, own, bound, inside, leaving), loop.nodes)
    return found


def _numbers(state: State, header: int) -> Mapping[Location, Term]:
    """The symbols that ``header`` defines, which are numbers, by the first location that holds them."""
    found: dict[Term, Location] = {}
    for location, term in state.locations.items():
        match state.terms[term].arguments:
            case ("phi", (int(place),), Location()) if place == header and state.base(term) is Base.NUMBER:
                found.setdefault(term, location)
    return {location: term for term, location in sorted(found.items())}


def _inside(
    values: Values,
    places: Mapping[Location, Term],
    bound: Mapping[int, frozenset[Term]],
    entering: Iterable[Edge],
    back: Sequence[Edge],
) -> tuple[Numbers, ...]:
    """What the symbols of a header are together in any round; nothing where that is too much to tell."""
    symbols = tuple(places.values())
    found: list[Numbers] = []
    waiting: list[Numbers] = []
    for edge in entering:
        arrived = _arrived(values.edges[edge].state, places)
        if arrived is None:
            return ()
        waiting += arrived
    while waiting:
        numbers = waiting.pop()
        if any(_covers(other, numbers) for other in found):
            continue
        found.append(numbers)
        if len(found) > _MOST_TUPLES:
            return ()
        for edge in back:
            state = values.edges[edge].state
            side = _in_round(state, symbols, numbers, _told(state, bound, edge))
            if side is not None:
                arrived = _arrived(side, places)
                if arrived is None:
                    return ()
                waiting += arrived
    return tuple(found)


def _outside(
    values: Values,
    symbols: Sequence[Term],
    bound: Mapping[int, frozenset[Term]],
    inside: Iterable[Numbers],
    leaving: Iterable[Edge],
) -> tuple[Numbers, ...]:
    """The tuples that some edge out of the loop can be taken with."""
    sides = [(values.edges[edge].state, _told(values.edges[edge].state, bound, edge)) for edge in leaving]
    return tuple(
        numbers
        for numbers in inside
        if any(_in_round(state, symbols, numbers, told) is not None for state, told in sides)
    )


def _told(state: State, bound: Mapping[int, frozenset[Term]], edge: Edge) -> AbstractSet[Term]:
    """The symbols of headers that ``state``, that of ``edge``, speaks of."""
    return bound.get(edge.source, frozenset()) & live_symbols(state)


def _arrived(state: State, places: Mapping[Location, Term]) -> list[Numbers] | None:
    """What the locations ``places`` hold together in ``state``; None where one of them does not hold a number."""
    terms = [state.read(location) for location in places]
    held = tuple(term for term in terms if term is not None)
    if len(held) < len(terms) or any(state.base(term) is not Base.NUMBER for term in held):
        return None
    return [tuple(map(way.value, held)) for way in _cases(state, held, _MOST_CONDITIONS)]


def _in_round(state: State, symbols: Sequence[Term], numbers: Numbers, told: AbstractSet[Term]) -> State | None:
    """``state`` where those of ``symbols`` that are ``told`` are among ``numbers``; None where they cannot be."""
    side = state.copy()
    for symbol, number in zip(symbols, numbers, strict=True):
        if symbol in told:
            if strided.meet(side.value(symbol), number).is_bottom:
                return None
            learn(side, symbol, number)
    told_symbols, symbols_of = frozenset(symbols) & told, side.terms.symbols
    concerned = (term for term in side.known if not told_symbols.isdisjoint(symbols_of(term)))
    return None if any(side.value(term).is_bottom for term in concerned) else side


def _cases(state: State, terms: Sequence[Term], most: int) -> Iterator[State]:
    """``state``, for each truth value of the conditions that ``terms`` are chosen by."""
    condition = next((one for term in terms for one in _conditions(state, term)), None) if most else None
    if condition is None:
        yield state
        return
    for holds in (True, False):
        side = state.copy()
        if assume(side, condition, holds):
            yield from _cases(side, terms, most - 1)


def _conditions(state: State, term: Term) -> Iterator[Term]:
    """The conditions in ``term`` that are not decided."""
    operands = state.terms.operands(term)
    if state.terms[term].opcode == "GAMMA" and not state.value(operands[0]).is_constant:
        yield operands[0]
    for one in operands:
        yield from _conditions(state, one)


def _covers(one: Numbers, other: Numbers) -> bool:
    return all(strided.leq(each, whole) for each, whole in zip(other, one, strict=True))
