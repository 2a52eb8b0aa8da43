"""What a word that arrived where paths meet tells of the way there: conditions on what the call was given.

A function that refuses its arguments and one that goes on meet again where the caller compares what they return. Behind
that comparison the ways of the refusals are none, and what held on the others holds still, as arguments do not change:

>>> def init(arena, size):
...     return -1 if (arena | size) & 7 else 0
>>> def outer_init(arena, size):
...     if init(arena, size) != 0:
...         return None
...     return arena % 8 + size % 8  # 0: there is no way here on which one of them is no multiple of 8

Words: join, symbolic variable (docs/explanation/glossary.md).

*Soundness:* what a state knows of a symbol of where paths meet, it knows of what arrived when they last did, if they
did on every way to it and no edge since killed the symbol (`situations.carried`): a join keeps what one side knows of a
symbol that the other side does not speak of. So one of the edges was taken on which a word arrives that it may be, and
what the state of that edge knew was true. Of that are kept the conditions on symbols of the call's entry alone, which
no edge has killed, as far as they are known on all edges that may have been taken: the values of these symbols are the
same for the whole call. Where the edges to a place are not all told, nothing is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet

from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.domains.strided import StridedInterval
from wcet_probe.analyzer.invariants.situations import carried
from wcet_probe.analyzer.values.result import Values
from wcet_probe.analyzer.values.states.state import State
from wcet_probe.analyzer.values.symbolic.symbol_names import ENTRY, defined_at
from wcet_probe.analyzer.values.symbolic.term_table import Term

_MOST_PLACES = 4
"""So many places where paths meet are looked through, one behind another."""

Conditions = Mapping[Term, StridedInterval]
"""What terms that are conditions are."""
Arriving = Mapping[Term, Sequence[tuple[State, Term]]]
"""By symbol of where paths meet, what arrives on each edge; of one of which that is not known, nothing."""


def ways_taken(values: Values, arriving: Arriving, point_of: Callable[[State], int]) -> Callable[[State], Conditions]:
    """What a state's words tell of conditions on what the call was given, beside what the state knows itself.

    Args:
        values: of the operation.
        arriving: the words that arrive where paths meet.
        point_of: at which point a state holds, or on which way out of it; of none where that is not known.

    *Soundness:* as said of the module.
    """
    spoken_of = _spoken_of(values, arriving)
    found: dict[tuple[Term, StridedInterval, int], Conditions] = {}
    of_entry: dict[int, Conditions] = {}

    def implied(symbol: Term, value: StridedInterval, places: int) -> Conditions:
        """What holds where ``symbol`` is one of ``value``, by so many places where paths meet."""
        if not places or symbol not in arriving:
            return {}
        key = symbol, value, places
        if key not in found:
            ways = [on(way, value, places) for way in arriving[symbol]]
            first, *others = [one for one in ways if one is not None] or [{}]
            found[key] = {term: first[term] for term in first if all(one.get(term) == first[term] for one in others)}
        return found[key]

    def on(way: tuple[State, Term], value: StridedInterval, places: int) -> Conditions | None:
        """What holds on a way where one of ``value`` arrives; None where none does."""
        state, term = way
        arrived = strided.meet(state.value(term), value)
        if arrived.is_bottom:
            return None
        if id(state) not in of_entry:
            of_entry[id(state)] = _of_entry(state, spoken_of.get(point_of(state), frozenset()))
        return {**of_entry[id(state)], **implied(term, arrived, places - 1)}

    def told(state: State) -> Conditions:
        conditions: dict[Term, StridedInterval] = {}
        for symbol in sorted(spoken_of.get(point_of(state), frozenset()) & arriving.keys() & state.known.keys()):
            if state.known[symbol].is_constant:
                conditions |= implied(symbol, state.known[symbol], _MOST_PLACES)
        return conditions

    return told


def _spoken_of(values: Values, arriving: Arriving) -> Mapping[int, AbstractSet[Term]]:
    """By point, the symbols of the entry and of where paths meet that are defined on all ways to it, and not killed."""
    terms = values.terms
    entry = {term for term in range(len(terms)) if terms[term].opcode == "symbol" and _is_of_entry(values, term)}
    defined: dict[int, set[Term]] = {0: entry}
    for symbol in arriving:
        match terms[symbol].arguments:
            case ("phi", (int(place),), *_):
                defined.setdefault(place, set()).add(symbol)

    def behind(point: int, held: frozenset[Term]) -> frozenset[Term]:
        return held | defined.get(point, set())

    return {point: behind(point, held) for point, held in carried(values, behind, int).items()}


def _is_of_entry(values: Values, symbol: Term) -> bool:
    return defined_at(values.terms[symbol].arguments) == ENTRY


def _of_entry(state: State, spoken_of: AbstractSet[Term]) -> Conditions:
    """The conditions of ``state`` on nothing but symbols of the call's entry, all of which are ``spoken_of``."""
    terms = state.terms
    return {
        term: value
        for term, value in state.known.items()
        if value.is_constant
        and terms[term].opcode != "symbol"
        and all(one in spoken_of and defined_at(terms[one].arguments) == ENTRY for one in terms.symbols(term))
    }
