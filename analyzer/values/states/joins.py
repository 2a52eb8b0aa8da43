"""Where paths meet: the least abstract state that covers several.

Words: join, symbolic variable, gamma node (docs/explanation/glossary.md).

*Soundness:* see `join`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.domains.strided import StridedInterval
from wcet_probe.analyzer.pcode.truths import RELATIONS, TRUTHS
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.analyzer.values.states.counted_pointers import with_constants
from wcet_probe.analyzer.values.states.state import State
from wcet_probe.analyzer.values.symbolic.linear import combined
from wcet_probe.analyzer.values.symbolic.locations import Location
from wcet_probe.analyzer.values.symbolic.symbol_names import ENTRY, defined_at
from wcet_probe.analyzer.values.symbolic.term_table import SymbolName, Term
from wcet_probe.analyzer.values.symbolic.terms import Terms

_MOST_REMEMBERED = 1 << 16
_FLAG_BITS = 8

# The same few questions are asked at each point of a function.
_join = lru_cache(_MOST_REMEMBERED)(strided.join)


def join(
    states: Sequence[State],
    place: SymbolName,
    former: State | None = None,
    *,
    gated: bool = False,
    related: bool = False,
    fork: State | None = None,
) -> State:
    """The least state of this form that holds wherever one of ``states`` does.

    Args:
        states: at least one.
        place: names where the paths meet; the symbols that are made here carry it.
        former: the result of an earlier join here: what was a symbol of this place stays one.
        gated: whether two states that know the opposite of one condition make gamma nodes of it, and no symbols.
        related: whether locations that differ by a constant, the same in all states, are to do so in the result. At a
            loop's header: a pointer and a counter that advance together.
        fork: a state that all are like, from which the result is made by changes; the first where there is none.
            It tells nothing, and saves that what it has evaluated is evaluated again.

    *Soundness:* a location keeps its term only where all states agree on it; else it becomes a symbol of this place,
    whose value covers the values of all. Locations that share a symbol held equal values in each of the states. A gamma
    node is its first part in all that the state with the condition stands for, and its second part in the rest. What
    ``states`` hold or know otherwise than ``fork`` is told anew by all of them; the rest all of them say as it does.
    """
    if len(states) == 1 and former is None:
        return states[0].copy()
    merged = (fork or states[0]).copy()
    predicate = _predicate(states, place) if gated and former is None else None
    made = _merge_locations(merged, states, place, former, predicate, related=related)
    _keep_common(merged, states, place, predicate, made)
    return merged


class _Made(NamedTuple):
    """The terms that a join makes for what is not the same in all states, with what they are in each.

    Attributes:
        symbols: of the place, newly defined.
        gammas: the gamma nodes.
        unknown: symbols of registers of which nothing is known.
        named: symbols that stand for a condition, with that.
    """

    symbols: dict[Term, tuple[Term, ...]]
    gammas: dict[Term, tuple[Term, ...]]
    unknown: list[Term]
    named: dict[Term, Term]


def _merge_locations(
    merged: State,
    states: Sequence[State],
    place: SymbolName,
    former: State | None,
    predicate: Term | None,
    *,
    related: bool,
) -> _Made:
    """Let ``merged`` hold what all ``states`` do; only where they differ from it is it looked at."""
    terms = merged.terms
    own, speaking = terms.meeting(place), terms.speaking(place)
    earlier = former.locations if former else {}
    made = _Made({}, {}, [], {})
    classes: dict[tuple[Term | None, tuple[Term, ...]], Term] = {}
    sums = _Sums(terms, own, states, earlier) if related else None
    for location in _to_merge(merged, states, place, earlier):
        held = [state.read(location) for state in states]
        if None in held:
            if location.space == "register":
                # Left out, it would be read as its value at entry.
                unknown = terms.symbol(("phi", place, location), 8 * location.size_bytes)
                merged.set_location(location, unknown)
                made.unknown.append(unknown)
            elif location in merged.locations:
                merged.forget([location])
            continue
        parts: tuple[Term, ...] = tuple(held)  # type: ignore[arg-type]
        before = earlier.get(location)
        is_symbol = before in own
        speaks = not speaking.isdisjoint(parts)
        term = sums.kept(before, parts) if sums and before is not None and not is_symbol else None
        if term is None and not is_symbol and not speaks and len(set(parts)) == 1:
            term = parts[0]
        if term is None:
            key = before if is_symbol else None, parts
            if key not in classes:
                classes[key] = (sums and sums.found(parts, is_symbol=is_symbol)) or _made_term(
                    states, place, None if speaks else predicate, location, parts, made=made
                )
                if sums:
                    sums.add(classes[key], parts)
            term = classes[key]
        merged.set_location(location, term)
    return made


def _made_term(
    states: Sequence[State],
    place: SymbolName,
    predicate: Term | None,
    location: Location,
    parts: tuple[Term, ...],
    *,
    made: _Made,
) -> Term:
    """A gamma node, if ``predicate`` is one that can choose, or else a symbol of the place."""
    terms = states[0].terms
    if predicate is not None:
        term = terms.gamma(predicate, *parts)
        if term is None:
            term = _gamma_by_name(states, place, predicate, parts, made)
        if term is not None:
            made.gammas[term] = parts
            return term
    term = terms.symbol(("phi", place, location), 8 * location.size_bytes)
    made.symbols[term] = parts
    truth = None if predicate is None else terms.chosen_truth(predicate, *map(_truth, states, parts))
    if truth is not None:
        made.named[term] = truth
    return term


class _Sums:
    """Locations that are the sum of a symbol of the place and a constant: pointers and counters that advance together.

    Those that are a multiple of one and what does not change are kept, too: see `counted_pointers`.

    *Soundness:* a location is told as such a sum where it is that in each of the states, by the laws of `linear`, and
    the symbol's own location holds the symbol again: what nobody holds would be a number, also of stack addresses.
    """

    def __init__(
        self, terms: Terms, own: Collection[Term], states: Sequence[State], earlier: Mapping[Location, Term]
    ) -> None:
        self._terms, self._own, self._states, self._earlier = terms, own, states, earlier
        self._symbols: dict[object, tuple[Term, Term]] = {}
        """A symbol and its first part by what its other parts are more than that."""

    def add(self, symbol: Term, parts: Sequence[Term]) -> None:
        """``symbol`` stands for one of ``parts``."""
        if len(parts) > 1:
            self._symbols.setdefault(self._changes(parts), (symbol, parts[0]))

    def found(self, parts: Sequence[Term], *, is_symbol: bool) -> Term | None:
        """``parts`` as a sum; of what was a symbol before, none is made."""
        known = None if is_symbol or len(parts) == 1 else self._symbols.get(self._changes(parts))
        if known is None:
            return None
        symbol, first = known
        more = self._terms.difference(parts[0], first)
        if more.coefficients:
            return None
        return self._terms.apply("INT_ADD", (symbol, self._terms.constant(more.constant, more.bits)), more.bits)

    def kept(self, before: Term, parts: Sequence[Term]) -> Term | None:
        """``before``, where it is such a sum and ``parts`` are."""
        form = self._terms.linear(before)
        own = [symbol for symbol in form.coefficients if symbol in self._own]
        if len(own) != 1:
            return None
        (symbol,) = own
        match self._terms[symbol].arguments:
            case ("phi", _, Location() as location) if self._earlier.get(location) == symbol:
                others = [state.read(location) for state in self._states]
            case _:
                return None
        if not any(location in state.locations for state in self._states):
            return None  # a register that nobody has written now
        factor = form.coefficients[symbol]
        rest = combined(form, self._terms.linear(symbol), -factor)
        for state, part, other in zip(self._states, parts, others, strict=True):
            if other is None or self._terms[other].bits != form.bits:
                return None
            more = combined(self._terms.linear(part), self._terms.linear(other), -factor)
            if more != rest and with_constants(state, more) != with_constants(state, rest):
                return None
        return before

    def _changes(self, parts: Sequence[Term]) -> object:
        changes = [self._terms.difference(part, parts[0]) for part in parts[1:]]
        return tuple((tuple(one.coefficients.items()), one.constant, one.bits) for one in changes)


def _gamma_by_name(
    states: Sequence[State], place: SymbolName, predicate: Term, parts: Sequence[Term], made: _Made
) -> Term | None:
    """A gamma node by a symbol that is 1 where ``predicate`` holds and else 0, for one that would be too deep.

    A part whose truth value its state knows is that.
    """
    terms, (one, other) = states[0].terms, map(_truth, states, parts)
    bits = terms[predicate].bits
    symbol = terms.symbol(("phi", place, "condition"), bits)
    term = terms.gamma(symbol, one, other)
    if term is not None:
        made.symbols[symbol] = terms.constant(1, bits), terms.constant(0, bits)
        made.named[symbol] = predicate
    return term


def _truth(state: State, part: Term) -> Term:
    value = state.value(part)
    is_told = state.terms[part].opcode in TRUTHS and value.is_constant
    return state.terms.constant(value.value, value.bits) if is_told else part


def _to_merge(
    merged: State, states: Sequence[State], place: SymbolName, earlier: Mapping[Location, Term]
) -> Sequence[Location]:
    """The locations of ``states`` that ``merged`` cannot keep as they are."""
    terms = merged.terms
    speaking = terms.speaking(place)
    found = merged.differing_locations(states)
    found.update(merged.holding(speaking))
    if speaking:
        found.update(at for at, term in earlier.items() if term in speaking)
    gone = [at for at in found if not any(at in one.locations for one in states)]
    merged.forget([at for at in gone if at in merged.locations])
    return sorted(found.difference(gone))


def _predicate(states: Sequence[State], place: SymbolName) -> Term | None:
    """A condition that holds in the first of two states and not in the second, and speaks of no symbol of ``place``."""
    if len(states) != 2:
        return None
    one, other = states
    terms, speaking = one.terms, one.terms.speaking(place)
    candidates = [
        term
        for term in one.differing_known((other,))
        if (terms[term].opcode in TRUTHS or _is_flag(states, term))
        and _is(one.known.get(term), 1)
        and _is(other.known.get(term), 0)
        and term not in speaking
    ]
    return min(candidates, key=lambda term: _preference(terms[term].opcode, term), default=None)


def _is_flag(states: Sequence[State], term: Term) -> bool:
    """Whether ``term`` is a byte of which no comparison is known, as a flag that ways have brought together.

    *Soundness:* where it is the number 1 in one state and 0 in the other, it says which of them holds, as a truth does.
    """
    node = states[0].terms[term]
    return node.opcode == "symbol" and node.bits == _FLAG_BITS and all(one.base(term) is Base.NUMBER for one in states)


def _preference(opcode: str, term: Term) -> tuple[bool, bool, Term]:
    """Comparisons before what is made of them, and both before flags of which nothing is told but their value."""
    return opcode not in RELATIONS, opcode not in TRUTHS, term


def _is(value: StridedInterval | None, number: int) -> bool:
    return value is not None and value.is_constant and value.value == number


def is_made_at(terms: Terms, term: Term, place: SymbolName) -> bool:
    """Whether ``term`` was made where ways meet at ``place``."""
    return term in terms.meeting(place)


def _join_values(merged: State, symbol: Term, states: Sequence[State], parts: Sequence[Term]) -> None:
    parts = [_chosen(state, part) for state, part in zip(states, parts, strict=True)]
    bases = {state.base(part) for state, part in zip(states, parts, strict=True)}
    is_part = any(state.has_low_part(part) for state, part in zip(states, parts, strict=True))
    base = bases.pop() if len(bases) == 1 and not is_part else Base.ANY
    merged.set_base(symbol, base)
    merged.set_known(symbol, None if base is Base.ANY else _joined(states, parts))


def _chosen(state: State, part: Term) -> Term:
    """What ``part`` is in ``state``, where it is a choice that may be an address, and ``state`` knows what is chosen.

    So a register that predicated instructions write is a number where they were executed, whatever it held before.

    *Soundness:* a gamma node is the part that its condition chooses, and no execution that ``state`` stands for has
    another condition than the one that it knows.
    """
    while state.terms[part].opcode == "GAMMA" and state.base(part) is Base.ANY:
        condition, first, second = state.terms.operands(part)
        decided = state.value(condition)
        if not decided.is_constant:
            break
        part = first if decided.value else second
    return part


def _gamma_value(states: Sequence[State], parts: Sequence[Term]) -> StridedInterval | None:
    """What each state knows of its part, which may follow from the condition in a way that values do not tell later."""
    terms = states[0].terms
    if all(terms.value(part) is not None for part in parts):
        return None  # a choice of constants tells as much by itself
    if any(state.base(part) is not Base.NUMBER for state, part in zip(states, parts, strict=True)):
        return None
    value = _joined(states, parts)
    return None if value.is_top else value


def _joined(states: Sequence[State], parts: Sequence[Term]) -> StridedInterval:
    """The values of all ``parts``, each in its state."""
    value = states[0].value(parts[0])
    for state, part in zip(states[1:], parts[1:], strict=True):
        value = _join(value, state.value(part))
    return value


def _keep_common(
    merged: State, states: Sequence[State], place: SymbolName, predicate: Term | None, made: _Made
) -> None:
    """What all states know of terms that are still live; ``predicate`` is that of the gamma nodes, if any.

    Only where blocks meet a symbol may be given another value: `live_symbols` lets others see it. ``merged`` knows
    something already; only what a state knows otherwise, or what is live no more, is looked at.
    """
    terms = merged.terms
    live = (live_symbols(merged) | _still_held(terms, states)).difference(terms.meeting(place))
    known = states
    if predicate is not None and len(place) == 1:
        known = _all_completed(states, live, terms.symbols(predicate))
    differing = merged.differing_known(known)
    merged.keep_live(live)
    for symbol in merged.differing_bases(known) & live:
        bases = {state.bases.get(symbol, Base.NUMBER) for state in known}
        merged.set_base(symbol, bases.pop() if len(bases) == 1 else Base.ANY)
    for symbol, parts in made.symbols.items():
        _join_values(merged, symbol, states, parts)
    for symbol in made.unknown:
        merged.set_base(symbol, Base.ANY)
    decided = set()
    for gamma, parts in made.gammas.items():
        value = _gamma_value(states, parts) if terms[gamma].opcode == "GAMMA" else None
        if value is not None:
            merged.set_known(gamma, value)
            decided.add(gamma)
    symbols = terms.symbols
    merged.keep_known_numbers(differing)
    first, *others = sorted(known, key=lambda state: len(state.known))
    for term in sorted(differing):
        if term not in decided and symbols(term) <= live:
            merged.set_known(term, _common(merged, first, others, term, live))
    _name_conditions(merged, made, live)


def _name_conditions(merged: State, made: _Made, live: set[Term]) -> None:
    """Let ``merged`` know of the symbols that stand for conditions that they are the same.

    *Soundness:* a symbol is 1 exactly where its condition holds, in each of the states. What the condition speaks of is
    live, and no symbol of the place.
    """
    terms = merged.terms
    for symbol, condition in made.named.items():
        if terms.symbols(condition) <= live:
            same = terms.apply("INT_EQUAL", (symbol, condition), terms[condition].bits)
            if same is not None:
                merged.set_known(same, strided.constant(terms[same].bits, 1))


def _common(
    merged: State, first: State, others: Sequence[State], term: Term, live: Collection[Term]
) -> StridedInterval | None:
    """What all of ``first`` and ``others`` know of ``term``, which they know something different of."""
    value = first.known.get(term)
    if value is None or merged.base(term) is Base.ANY:
        return None
    for other in others:
        if term not in other.known and term not in live and not _sure(other, term):
            return None
    for other in others:
        if other.known.get(term) != value:
            value = _join(value, other.value(term))
    return value


def _still_held(terms: Terms, states: Sequence[State]) -> set[Term]:
    """The values at entry that something is known of, by themselves or as parts, if no path has written the register.

    *Soundness:* such a register is in no state's locations, and then holds its value at entry, see `state.State.read`.
    """
    found = set()
    for term in terms.given & set().union(*map(terms.symbols, states[0].known)):
        register = terms[term].arguments[1]
        if not any(one.overlapping(register) for one in states):  # type: ignore[arg-type]
            found.add(term)
    return found


def _all_completed(states: Sequence[State], live: set[Term], fixed: Collection[Term]) -> Sequence[State]:
    """``states``, two of them, each completed by the other but for the symbols ``fixed``; see `_completed`."""
    terms = states[0].terms
    killed = [live - live_symbols(state) for state in states]
    free = {symbol for symbol in set().union(*killed).difference(fixed) if defined_at(terms[symbol].arguments) != ENTRY}
    if not free:
        return states
    one, other = states
    return [_completed(one, other, killed[0] & free), _completed(other, one, killed[1] & free)]


def _completed(state: State, other: State, killed: set[Term]) -> State:
    """``state`` with what the other one knows of the symbols ``killed``, which it does not speak of.

    *Soundness:* such a symbol came in through a gamma node; where ``state`` holds, the gamma node is the other part, so
    the symbol can be given any value that the other one allows. Not among ``killed`` are the symbols of the gamma
    node's condition, and values at entry, which registers that are not in the state hold.
    """
    if not killed:
        return state
    result = state.copy()
    symbols = result.terms.symbols
    for term in [term for term in result.known if not killed.isdisjoint(symbols(term))]:
        result.set_known(term, None)
    for symbol in killed:
        result.set_base(symbol, other.bases.get(symbol, Base.NUMBER))
        if symbol in other.known:
            result.set_known(symbol, other.known[symbol])
    return result


def live_symbols(state: State) -> set[Term]:
    """The symbols that locations of ``state`` are made of.

    *Soundness:* along an execution, a symbol has one value from its definition on to the next as long as it is live
    on each edge; behind an edge where it is not (that kills the binding), it may be another where a gamma node has it
    again.
    """
    return set().union(*map(state.terms.symbols, set(state.locations.values())))


def _sure(state: State, term: Term) -> bool:
    """Whether a condition is decided by what the state knows besides."""
    return state.terms[term].opcode in TRUTHS and state.value(term).is_constant
