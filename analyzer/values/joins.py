"""Where paths meet: the least abstract state that covers several, widening, and the order of states.

*Soundness:* see `join`; a widened state covers what it was made of; `covers` answers yes only where it is so.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.domains.lattice import Lattice
from wcet_probe.analyzer.values.locations import Location
from wcet_probe.analyzer.values.state import ENTRY, RELATIONS, TRUTHS, Base, State, defined_at
from wcet_probe.analyzer.values.terms import Node, SymbolName, Term, Terms


def join(states: Sequence[State], place: SymbolName, former: State | None = None, *, gated: bool = False) -> State:
    """The least state of this form that holds wherever one of ``states`` does.

    Args:
        states: at least one.
        place: names where the paths meet; the symbols that are made here carry it.
        former: the result of an earlier join here: what was a symbol of this place stays one.
        gated: whether two states that know the opposite of one condition make gamma nodes of it, and no symbols.

    *Soundness:* a location keeps its term only where all states agree on it; else it becomes a symbol of this place,
    whose value covers the values of all. Locations that share a symbol held equal values in each of the states. A gamma
    node is its first part in all that the state with the condition stands for, and its second part in the rest.
    """
    if len(states) == 1 and former is None:
        return states[0].copy()
    terms = states[0].terms
    merged = State(terms, big_endian=states[0].big_endian)
    predicate = _predicate(states, place) if gated and former is None else None
    classes: dict[tuple[Term | None, tuple[Term, ...]], Term] = {}
    every = sorted(set().union(*(state.locations for state in states)))
    first, *others = (state.locations for state in states)
    earlier, own_symbols = former.locations if former else {}, terms.meeting(place)
    for location in every:
        shared = first.get(location)
        if (
            shared is not None
            and all(other.get(location) == shared for other in others)
            and earlier.get(location) not in own_symbols
            and terms.symbols(shared).isdisjoint(own_symbols)
        ):
            merged.keep_location(location, shared)
            continue
        held = [state.read(location) for state in states]
        if None in held:
            if location.space == "register":
                # Left out, it would be read as its value at entry.
                unknown = terms.symbol(("phi", place, location), 8 * location.size_bytes)
                merged.set_location(location, unknown)
                merged.set_base(unknown, Base.ANY)
            continue
        parts: tuple[Term, ...] = tuple(held)  # type: ignore[arg-type]
        before = former.locations.get(location) if former else None
        own = before if before is not None and _is_of(terms, before, place) else None
        if own is None and len(set(parts)) == 1 and not _speaks_of(terms, parts[:1], place):
            merged.set_location(location, parts[0])
            continue
        symbol = classes.get((own, parts))
        if symbol is None and predicate is not None and not _speaks_of(terms, parts, place):
            symbol = terms.gamma(predicate, *parts)
            if symbol is not None:
                classes[own, parts] = symbol
                _gamma_value(merged, symbol, states, parts)
        if symbol is None:
            symbol = terms.symbol(("phi", place, location), 8 * location.size_bytes)
            classes[own, parts] = symbol
            _join_values(merged, symbol, states, parts)
        merged.set_location(location, symbol)
    _keep_common(merged, states, place, predicate)
    return merged


def _predicate(states: Sequence[State], place: SymbolName) -> Term | None:
    """A condition that holds in the first of two states and not in the second, and speaks of no symbol of ``place``."""
    if len(states) != 2:
        return None
    one, other = states
    terms = one.terms
    candidates = [
        term
        for term, value in one.known.items()
        if terms[term].opcode in TRUTHS
        and value.is_constant
        and value.value == 1
        and term in other.known
        and other.known[term].is_constant
        and other.known[term].value == 0
        and not _speaks_of(terms, (term,), place)
    ]
    return min(candidates, key=lambda term: (terms[term].opcode not in RELATIONS, term), default=None)


def _is_of(terms: Terms, term: Term, place: SymbolName) -> bool:
    return term in terms.meeting(place)


def _speaks_of(terms: Terms, parts: Iterable[Term], place: SymbolName) -> bool:
    """Whether a symbol of ``place`` is in ``parts``: an older value there than the one that is made at ``place``."""
    own = terms.meeting(place)
    return bool(own) and any(not terms.symbols(part).isdisjoint(own) for part in parts)


def _join_values(merged: State, symbol: Term, states: Sequence[State], parts: Sequence[Term]) -> None:
    bases = {state.base(part) for state, part in zip(states, parts, strict=True)}
    is_part = any(state.has_low_part(part) for state, part in zip(states, parts, strict=True))
    base = bases.pop() if len(bases) == 1 and not is_part else Base.ANY
    if base is not Base.NUMBER:
        merged.set_base(symbol, base)
    if base is Base.ANY:
        return
    value = strided.bottom(merged.terms[symbol].bits)
    for state, part in zip(states, parts, strict=True):
        value = strided.join(value, state.value(part))
    merged.set_known(symbol, value)


def _gamma_value(merged: State, chosen: Term, states: Sequence[State], parts: Sequence[Term]) -> None:
    """What each state knows of its part, which may follow from the condition in a way that values do not tell later."""
    if merged.terms[chosen].opcode == "CHOICE" and all(
        state.base(part) is Base.NUMBER for state, part in zip(states, parts, strict=True)
    ):
        value = strided.bottom(merged.terms[chosen].bits)
        for state, part in zip(states, parts, strict=True):
            value = strided.join(value, state.value(part))
        if not value.is_top:
            merged.set_known(chosen, value)


def _keep_common(merged: State, states: Sequence[State], place: SymbolName, predicate: Term | None) -> None:
    """What all states know of terms that are still spoken of; ``predicate`` is that of the gamma nodes, if any.

    Only where blocks meet a symbol may be given another value: `live_symbols` lets others see it.
    """
    terms = merged.terms
    live = (live_symbols(merged) | _still_held(terms, states)).difference(terms.meeting(place))
    if predicate is not None and len(place) == 1:
        free = {symbol for symbol in live - terms.symbols(predicate) if defined_at(terms[symbol].arguments) != ENTRY}
        states = [_completed(state, states, free) for state in states]
    for symbol in live.intersection({symbol for state in states for symbol in state.bases}):
        bases = {state.bases.get(symbol, Base.NUMBER) for state in states}
        base = bases.pop() if len(bases) == 1 else Base.ANY
        if base is not Base.NUMBER:
            merged.set_base(symbol, base)
    first, *others = sorted(states, key=lambda state: len(state.known))
    for term in first.known:
        if term in merged.known or not terms.symbols(term) <= live or merged.base(term) is Base.ANY:
            continue
        if not all(term in other.known or term in live or _sure(other, term) for other in others):
            continue
        value = first.known[term]
        for other in others:
            if other.known.get(term) != value:
                value = strided.join(value, other.value(term))
        merged.set_known(term, value)


def _still_held(terms: Terms, states: Sequence[State]) -> set[Term]:
    """The values at entry of which something is known and that registers hold which no path has written.

    *Soundness:* such a register is in no state's locations, and then holds its value at entry, see `state.State.read`.
    """
    found: set[Term] = set()
    for term in states[0].known:
        match terms[term]:
            case Node("leaf", ("in", Location() as register)) if not any(one.overlapping(register) for one in states):
                found.add(term)
    return found


def _completed(state: State, states: Sequence[State], live: set[Term]) -> State:
    """``state`` with what the other one knows of the symbols among ``live`` that it does not speak of.

    *Soundness:* such a symbol came in through a gamma node; where ``state`` holds, the gamma node is the other part, so
    the symbol can be given any value that the other one allows. Not among ``live`` are the symbols of the gamma node's
    condition, and values at entry, which registers that are not in the state hold.
    """
    killed = live - live_symbols(state)
    if not killed:
        return state
    other = states[0] if states[1] is state else states[1]
    result = state.copy()
    for term in [term for term in result.known if not result.terms.symbols(term).isdisjoint(killed)]:
        result.set_known(term, None)
    for symbol in killed:
        result.set_base(symbol, other.bases.get(symbol, Base.NUMBER))
        if symbol in other.known:
            result.set_known(symbol, other.known[symbol])
    return result


def live_symbols(state: State) -> set[Term]:
    """The symbols that locations of ``state`` are made of.

    *Soundness:* along an execution, a symbol has one value from its definition on to the next as long as it is spoken
    of on each edge; behind an edge that does not (it kills the binding), it may be another where a gamma node brings it
    back.
    """
    return set().union(*map(state.terms.symbols, set(state.locations.values())))


def _sure(state: State, term: Term) -> bool:
    """Whether a condition is decided by what the state knows besides."""
    return state.terms[term].opcode in TRUTHS and state.value(term).is_constant


def resumed(entering: Sequence[State], place: SymbolName, former: State, *, in_haste: bool) -> State:
    """What holds at a loop's header where ``entering`` do, if what comes round is as it was in ``former``.

    What was a symbol of the place is one again, with at least the values that it had; memory that was lost is not held.

    Args:
        entering: from outside, at least one.
        place: the header's.
        former: what the loop had come to, from what entered then.
        in_haste: take nothing that ``former`` does not know.

    *Soundness:* it covers ``entering``.
    """
    if in_haste:
        return settled(former, join([former, *entering], place, former), place)
    result = join(entering, place, former)
    terms = result.terms
    result.forget([at for at in result.locations if at.space != "register" and at not in former.locations])
    held = set(result.locations.values())
    for symbol in sorted({term for term in former.locations.values() if term in held and _is_of(terms, term, place)}):
        if former.bases.get(symbol, Base.NUMBER) is not result.bases.get(symbol, Base.NUMBER):
            result.set_base(symbol, Base.ANY)
        before, now = former.known.get(symbol), result.known.get(symbol)
        if now is not None:
            lost = before is None or result.bases.get(symbol) is Base.ANY
            result.set_known(symbol, None if lost or before is None else strided.join(before, now))
    return result


def widened(old: State, new: State, thresholds: Sequence[int]) -> State:
    """``new``, which covers ``old``, with values that still grow taken to the next threshold."""
    result = new.copy()
    for term in list(new.known):
        before = old.known.get(term)
        value = strided.top(new.terms[term].bits) if before is None else before
        if before is not None or term in old.locations.values():
            grown = strided.widen(value, strided.join(value, new.known[term]), thresholds)
            result.set_known(term, grown)
    return result


def settled(old: State, new: State, place: SymbolName) -> State:
    """Above ``new``, and nothing that ``old`` does not say, so that a chain of them ends.

    *Soundness:* what is said is said by ``new``, of the same terms or of a symbol of the place that stands for them. A
    step of a chain drops a location, makes a symbol of one, forgets a known term, takes its value further by a widening
    without thresholds, or no longer knows what a symbol is measured from; none of them is ever undone.
    """
    terms = new.terms
    result = State(terms, big_endian=new.big_endian)
    for location, term in new.locations.items():
        before = old.locations.get(location)
        if before == term or _is_of(terms, term, place):
            result.set_location(location, term)
        elif location.space == "register":
            symbol = terms.symbol(("phi", place, location), 8 * location.size_bytes)
            result.set_location(location, symbol)
            result.set_base(symbol, Base.ANY)
    live, before_symbols = live_symbols(result), live_symbols(old)
    for symbol in live:
        base = new.bases.get(symbol, Base.NUMBER) if symbol not in result.bases else Base.ANY
        if symbol in before_symbols and base is not old.bases.get(symbol, Base.NUMBER):
            base = Base.ANY
        result.set_base(symbol, base)
    former_symbols = set(old.locations.values())
    for term, value in new.known.items():
        if not terms.symbols(term) <= live or any(
            result.bases.get(symbol) is Base.ANY for symbol in terms.symbols(term)
        ):
            continue
        before_value = old.known.get(term)
        if before_value is not None:
            result.set_known(term, strided.widen(before_value, strided.join(before_value, value), ()))
        elif _is_of(terms, term, place) and term not in former_symbols:
            result.set_known(term, value)
    return result


class HeaderStates(Lattice[State]):
    """The domain of the states of one loop header, whose symbols of that place stand for whatever comes round.

    *Soundness:* `covers` tells term by term, so what it does not know to be below may be all the same.
    """

    def __init__(self, place: SymbolName) -> None:
        self._place = place

    def leq(self, one: State, other: State) -> bool:
        """See `covers`."""
        return covers(other, one)

    def join(self, one: State, other: State) -> State:
        """See `join`; ``one`` is what was known before."""
        return join([one, other], self._place, one)

    def widen(self, former: State, grown: State) -> State:
        """The widening that ends every chain, see `settled`."""
        return settled(former, self.join(former, grown), self._place)


def covers(old: State, new: State) -> bool:
    """Whether everything that ``new`` stands for is in ``old``, as far as it can be told term by term."""
    if old == new:
        return True
    missing = new.locations.keys() - old.locations.keys()
    if old.locations.keys() - new.locations.keys() or any(location.space == "register" for location in missing):
        return False
    if any(new.locations[location] != term for location, term in old.locations.items()):
        return False
    if old.bases != new.bases:
        mentioned = live_symbols(old).union(*(old.terms.symbols(term) for term in old.known))
        for symbol in mentioned & (old.bases.keys() | new.bases.keys()):
            if old.bases.get(symbol, Base.NUMBER) not in (new.bases.get(symbol, Base.NUMBER), Base.ANY):
                return False
    return all(
        strided.leq(new.known.get(term, unknown), value) or strided.leq(new.value(term), value)
        for term, value in old.known.items()
        for unknown in (strided.top(value.bits),)
    )
