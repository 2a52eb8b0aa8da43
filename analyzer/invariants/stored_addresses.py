"""Which addresses of static data are stored anywhere: where a loaded one may lead to.

What init, malloc and free compute of static data and store, such as the head of a list in its own two links, is loaded
again as it is. So a word that was loaded, and is such an address, is one of few.

Words: data invariant (docs/explanation/glossary.md).

*Soundness:* a loaded address of static data, as it is, is one that some operation has computed and stored, or that the
image holds. What is computed from a loaded one, and stored or carried to where paths meet, makes it unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from wcet_probe.analyzer.domains.strided import StridedInterval
from wcet_probe.analyzer.invariants.kinds import WORD_BITS, Kind, Word
from wcet_probe.analyzer.invariants.typed_operations import TypedOperation
from wcet_probe.analyzer.values.states.state import State
from wcet_probe.analyzer.values.symbolic.linear import Linear
from wcet_probe.analyzer.values.symbolic.term_table import Term
from wcet_probe.analyzer.values.symbolic.terms import Terms

_WORD_BYTES = WORD_BITS // 8
_MOST_ADDRESSES = 64
"""So many are told one by one."""

Ends = tuple[tuple[int, int], ...]
"""Addresses, from each first one to its last."""


@dataclass(frozen=True, slots=True)
class Looks:
    """What is known so far of terms, of an operation by its number and in a state.

    Attributes:
        word: what a term may be.
        value: which number or address it may be.
        kind_of: what a constant is.
        initial: addresses that static data begins with.
    """

    word: Callable[[int, State, Term], Word]
    value: Callable[[int, State, Term], StridedInterval]
    kind_of: Callable[[int], Kind]
    initial: frozenset[int]


def stored_addresses(operations: Sequence[TypedOperation], looks: Looks) -> Ends | None:
    """The addresses of static data that are stored anywhere; None: not known.

    Args:
        operations: of the module.
        looks: what is known of their terms.

    *Soundness:* as said of the module.
    """
    addresses = set(looks.initial)
    for index, one in enumerate(operations):
        arriving = {meeting.symbol: meeting.arriving for meeting in one.meetings if meeting.arriving}
        made = _Made(index, looks, arriving)
        kept = [
            made.stored(access.transfer.state, access.transfer.value, set())
            for access in one.accesses
            if access.transfer.value is not None and access.transfer.size_bytes == _WORD_BYTES
        ]
        carried = [made.carried(state, term) for meeting in one.meetings for state, term in meeting.arriving]
        found = _united((*kept, *carried))
        if found is None:
            return None
        addresses |= found
    if len(addresses) > _MOST_ADDRESSES:
        return ((min(addresses), max(addresses)),)
    return tuple((one, one) for one in sorted(addresses))


def is_copy(terms: Terms, term: Term, form: Linear | None = None) -> bool:
    """Whether ``term``, or what a constant is added to in its ``form``, is a symbol, or one of some as they are."""
    if form is not None:
        return list(form.coefficients.values()) == [1] and is_copy(terms, next(iter(form.coefficients)))
    if terms[term].opcode == "GAMMA":
        return all(is_copy(terms, one) for one in terms.operands(term)[1:])
    return terms[term].opcode in {"symbol", "const"}


@dataclass(frozen=True, slots=True)
class _Made:
    """The addresses of static data that an operation makes."""

    index: int
    looks: Looks
    arriving: dict[Term, tuple[tuple[State, Term], ...]]

    def stored(self, state: State, term: Term, seen: set[Term]) -> set[int] | None:
        """Those that ``term``, which is stored, may be, but for loaded ones as they are; None: not known.

        ``seen`` are symbols of where paths meet whose arrivals were looked at.
        """
        loads = [part.is_loaded for part in self._static(state, term)]
        told = self._told(state, term)
        if not loads or told is not None:
            return told or set()
        if state.terms[term].opcode == "GAMMA":
            return _united(self.stored(state, one, seen) for one in state.terms.operands(term)[1:])
        if term in self.arriving:
            if term in seen:
                return set()
            seen.add(term)
            return _united(self.stored(each, one, seen) for each, one in self.arriving[term])
        return set() if state.terms[term].opcode == "symbol" and all(loads) else None

    def carried(self, state: State, term: Term) -> set[int] | None:
        """Nothing, if ``term``, which arrives where paths meet, is no loaded address but as it is; None else.

        What was not loaded is looked at where it is stored.
        """
        if not any(part.is_loaded for part in self._static(state, term)) or self._told(state, term) is not None:
            return self._told(state, term) or set()
        if state.terms[term].opcode == "GAMMA":
            return _united(self.carried(state, one) for one in state.terms.operands(term)[1:])
        return set() if state.terms[term].opcode == "symbol" else None

    def _static(self, state: State, term: Term) -> Word:
        if state.terms[term].bits != WORD_BITS or self.looks.value(self.index, state, term).is_bottom:
            return ()
        return tuple(part for part in self.looks.word(self.index, state, term) if part.kind is Kind.STATIC)

    def _told(self, state: State, term: Term) -> set[int] | None:
        """The addresses that ``term`` is among, where its value tells; the ends and many more where they are many."""
        value = self.looks.value(self.index, state, term)
        if state.terms[term].bits != WORD_BITS or value.is_bottom or not self._static(state, term):
            return None
        low, high = value.unsigned_range()
        if not all(self.looks.kind_of(end) is Kind.STATIC for end in (low, high)):
            return None
        if value.size > _MOST_ADDRESSES:
            return {*range(low, low + _MOST_ADDRESSES), high}
        return {*value.values()}


def _united(found: Iterable[set[int] | None]) -> set[int] | None:
    """All of them; None where one is not known."""
    every: set[int] = set()
    for one in found:
        if one is None:
            return None
        every |= one
    return every
