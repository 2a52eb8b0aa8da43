"""Indices of static data: what loaded words may be, and what stored words are and nothing else.

A number is an index where it is scaled by the bytes of a word and added to an address of static data.

Words: kind, data invariant (docs/explanation/glossary.md).

*Soundness:* definitions only, of what the lemma ``words-keep-their-kind`` speaks of: of loads more are told than are
indices, of stores fewer, so that less is taken for granted. A size in units is told apart as far as the operation
shows it to be one: as it is made of a size, or is what a block's header keeps.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from wcet_probe.analyzer.invariants.kinds import WORD_BITS, Kind
from wcet_probe.analyzer.pcode.semantics import signed
from wcet_probe.analyzer.values.execution.accesses import WordTransfer
from wcet_probe.analyzer.values.result import Values
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.analyzer.values.symbolic.term_table import Term

_WORD_BYTES = WORD_BITS // 8
_CLASSIFYING = frozenset({
    "INT_EQUAL", "INT_NOTEQUAL", "INT_LESS", "INT_LESSEQUAL", "INT_SLESS", "INT_SLESSEQUAL", "LZCOUNT",
})  # fmt: skip
"""Of what these tell of a number, it cannot be computed again: no size follows from its class."""
Arriving = tuple[Term, tuple[Term, ...]]
"""A symbol of where paths meet, and what it is along each edge."""


def scaled_to_index(values: Values, kind_of: Callable[[int], Kind]) -> Iterator[Term]:
    """The terms that are scaled by the bytes of a word and added to static data, be it accessed there or not."""
    for term in range(len(values.terms)):
        form = values.terms.linear(term)
        if kind_of(form.constant) is Kind.STATIC:
            yield from (one for one, factor in form.coefficients.items() if factor == _WORD_BYTES)


def stored_indices(
    values: Values,
    transfers: Collection[WordTransfer],
    meetings: Iterable[Arriving],
    blocks: Collection[Term],
    kind_of: Callable[[int], Kind],
) -> frozenset[Term]:
    """The terms that an operation stores, accesses static data by as an index, and takes for nothing else.

    Parameters:
        values: of the operation.
        transfers: its loads and stores.
        meetings: symbols of where paths meet.
        blocks: that it is given or returns.
        kind_of: of a constant, what it is.

    *Soundness:* as said of the module. Where what is stored, what it is made of, or what either becomes where paths
    meet, is a part of another word that is stored, of a block, or of an address that is none of static data, it is
    something else as well. So may be what is stored before a block's start: all that meet that block read its header.
    """
    terms, arriving = values.terms, tuple(meetings)
    pointers = {one.pointer for one in transfers if one.state.base(one.pointer) is not Base.STACK}
    static = {one for one in pointers if kind_of(terms.linear(one).constant) is Kind.STATIC}
    offsets = [terms.linear(one).coefficients for one in static]
    stored = {one.value for one in transfers if one.value is not None}
    others = (pointers - static) | stored.union(blocks)
    starts = _starts(values, blocks, dict(arriving))
    headers = {one.value for one in transfers if any(_is_before(values, one.pointer, *start) for start in starts)}

    def is_index(term: Term) -> bool:
        form = terms.linear(term).coefficients
        if not form or {one: _WORD_BYTES * factor for one, factor in form.items()} not in offsets:
            return False
        parts = _becoming(values, _made_of(values, form, dict(arriving)), arriving)
        return not any(_has(values, other, parts) for other in others - {term})

    return frozenset(term for term in stored - headers if is_index(term))


def _starts(values: Values, blocks: Iterable[Term], arriving: Mapping[Term, tuple[Term, ...]]) -> set[tuple[Term, int]]:
    """``blocks``, and what each may be that arrives as one where paths meet: a term, and a number to be added."""
    terms, seen = values.terms, set[Term]()
    todo, found = [(one, 0) for one in blocks], set[tuple[Term, int]]()
    while todo:
        one, more = todo.pop()
        found.add((one, more))
        form = terms.linear(one)
        for met in (each for each, factor in form.coefficients.items() if factor == len(form.coefficients) == 1):
            if met not in seen:
                seen.add(met)
                todo += [(each, more + form.constant) for each in _arriving(values, met, arriving)]
    return found


def _is_before(values: Values, pointer: Term, start: Term, more: int) -> bool:
    """Whether ``pointer`` is a constant distance before ``start`` and ``more`` bytes."""
    one, other = values.terms.linear(pointer), values.terms.linear(start)
    distance = (one.constant - other.constant - more) % (1 << WORD_BITS)
    return one.coefficients == other.coefficients and signed(WORD_BITS, distance) < 0


def _arriving(values: Values, term: Term, arriving: Mapping[Term, tuple[Term, ...]]) -> tuple[Term, ...]:
    """What ``term`` is along each path, if it is a word of where paths meet."""
    is_gamma = values.terms[term].opcode == "GAMMA"
    return tuple(values.terms.operands(term)[1:]) if is_gamma else arriving.get(term, ())


def _made_of(values: Values, parts: Iterable[Term], arriving: Mapping[Term, tuple[Term, ...]]) -> frozenset[Term]:
    """``parts``, and what they are made of, so that it can be computed again but for its lowest bits, or is bounded.

    It cannot, where it was only compared, zeros of it were counted, or two different words of it arrive where paths
    meet: a class is made so.
    """
    terms, todo, found = values.terms, list(parts), set[Term]()
    while todo:
        one = todo.pop()
        if one in found or terms[one].opcode == "const":
            continue
        found.add(one)
        met = [each for each in _arriving(values, one, arriving) if terms[each].opcode != "const"]
        if met:
            todo += met if len(met) == 1 else ()
        elif terms[one].opcode not in _CLASSIFYING:
            todo += terms.operands(one)
    return frozenset(found)


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
