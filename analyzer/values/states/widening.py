"""States of a loop's header: how they grow until nothing does, and the order of states.

Words: widening, symbolic variable, abstract state (docs/explanation/glossary.md).

*Soundness:* a widened, settled or resumed state covers what it was made of; `covers` answers yes only where it is so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.domains.lattice import Lattice
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.analyzer.values.states.joins import is_made_at, join, live_symbols
from wcet_probe.analyzer.values.states.state import State
from wcet_probe.analyzer.values.symbolic.term_table import SymbolName, Term


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
        return settled(former, join([former, *entering], place, former, related=True), place)
    result = join(entering, place, former, related=True)
    terms = result.terms
    result.forget([at for at in result.locations if at.space != "register" and at not in former.locations])
    held = set(result.locations.values())
    for symbol in sorted(
        {term for term in former.locations.values() if term in held and is_made_at(terms, term, place)}
    ):
        if former.bases.get(symbol, Base.NUMBER) is not result.bases.get(symbol, Base.NUMBER):
            result.set_base(symbol, Base.ANY)
        before, now = former.known.get(symbol), result.known.get(symbol)
        if now is not None:
            lost = before is None or result.bases.get(symbol) is Base.ANY
            result.set_known(symbol, None if lost or before is None else strided.join(before, now))
    return result


def widened(old: State, new: State, thresholds: Sequence[int], own: Mapping[Term, Sequence[int]]) -> State:
    """``new``, which covers ``old``, with values that still grow taken to the next threshold.

    Those that have thresholds of their ``own`` stop there, and elsewhere only behind the last of them.
    """
    result = new.copy()
    for term in list(new.known):
        before = old.known.get(term)
        value = strided.top(new.terms[term].bits) if before is None else before
        if before is not None or term in old.locations.values():
            joined = strided.join(value, new.known[term])
            grown = strided.widen(value, joined, own.get(term, ()))
            if grown == strided.widen(value, joined, ()):
                grown = strided.widen(value, joined, thresholds)
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
        if before == term or is_made_at(terms, term, place):
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
        elif is_made_at(terms, term, place) and term not in former_symbols:
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
    if any(at in old.locations or at.space == "register" for at in old.differing_locations((new,))):
        return False
    if old.bases != new.bases:
        mentioned = live_symbols(old).union(*(old.terms.symbols(term) for term in old.known))
        for symbol in mentioned & (old.bases.keys() | new.bases.keys()):
            if old.bases.get(symbol, Base.NUMBER) not in (new.bases.get(symbol, Base.NUMBER), Base.ANY):
                return False
    return all(
        strided.leq(new.known.get(term) or strided.top(value.bits), value) or strided.leq(new.value(term), value)
        for term in old.differing_known((new,))
        if (value := old.known.get(term)) is not None
    )
