"""Indices of static data: what loaded words may be, and what stored words are and nothing else.

A number is an index where it is scaled by the bytes of a word and added to an address of static data.

Words: kind, data invariant (docs/explanation/glossary.md).

*Soundness:* definitions only, of what the lemma ``words-keep-their-kind`` speaks of: of loads more are told than are
indices, of stores fewer, so that less is taken for granted.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator

from wcet_probe.analyzer.invariants.kinds import WORD_BITS, Kind
from wcet_probe.analyzer.values.execution.accesses import WordTransfer
from wcet_probe.analyzer.values.result import Values
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.analyzer.values.symbolic.term_table import Term

_WORD_BYTES = WORD_BITS // 8
Arriving = tuple[Term, tuple[Term, ...]]
"""A symbol of where paths meet, and what it is along each edge."""


def scaled_to_index(values: Values, kind_of: Callable[[int], Kind]) -> Iterator[Term]:
    """The terms that are scaled by the bytes of a word and added to static data, be it accessed there or not."""
    for term in range(len(values.terms)):
        form = values.terms.linear(term)
        if kind_of(form.constant) is Kind.STATIC:
            yield from (one for one, factor in form.coefficients.items() if factor == _WORD_BYTES)


def stored_indices(
    values: Values, transfers: Collection[WordTransfer], meetings: Iterable[Arriving], kind_of: Callable[[int], Kind]
) -> frozenset[Term]:
    """The terms that an operation stores, accesses static data by as an index, and takes for nothing else.

    Parameters:
        values: of the operation.
        transfers: its loads and stores.
        meetings: symbols of where paths meet.
        kind_of: of a constant, what it is.

    *Soundness:* as said of the module. Where what is stored, or what it becomes where paths meet, is a part of another
    word that is stored or of an address that is none of static data, it is something else as well.
    """
    terms, arriving = values.terms, tuple(meetings)
    pointers = {one.pointer for one in transfers if one.state.base(one.pointer) is not Base.STACK}
    static = {one for one in pointers if kind_of(terms.linear(one).constant) is Kind.STATIC}
    offsets = [terms.linear(one).coefficients for one in static]
    stored = {one.value for one in transfers if one.value is not None}

    def is_index(term: Term) -> bool:
        form = terms.linear(term).coefficients
        if not form or {one: _WORD_BYTES * factor for one, factor in form.items()} not in offsets:
            return False
        parts = _becoming(values, frozenset(form), arriving)
        return not any(_has(values, other, parts) for other in (pointers - static) | (stored - {term}))

    return frozenset(term for term in stored if is_index(term))


def _becoming(values: Values, parts: frozenset[Term], meetings: Iterable[Arriving]) -> frozenset[Term]:
    """``parts``, and the symbols of where paths meet along which a word with one of them arrives."""
    while True:
        met = {symbol for symbol, arriving in meetings if any(_has(values, one, parts) for one in arriving)}
        if met <= parts:
            return parts
        parts |= met


def _has(values: Values, term: Term, parts: frozenset[Term]) -> bool:
    """Whether ``term`` is made of one of ``parts``."""
    todo, seen = [term], set[Term]()
    while todo:
        one = todo.pop()
        if one in parts:
            return True
        if one not in seen:
            seen.add(one)
            todo += values.terms.operands(one)
    return False
