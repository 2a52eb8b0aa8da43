"""What an address is made of, so that a flow fact about links is used for links only.

An address is a *link* plus a constant, where the link is one word that was loaded, or that arrives where paths meet; or
it is computed, and its remainder modulo the bytes of a cache way may then be known: ``x & ~31`` has the remainder of
``x & 0xfe0``, which a comparison may have bounded. A gamma node is all of its parts, each where its condition lets it
be.

Words: congruence, asserted, gamma node (docs/explanation/glossary.md).

*Soundness:* remainders follow from the values at the entry of the block; of an address with a symbol that the block
itself defines nothing but its form is used.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.domains.strided import StridedInterval
from wcet_probe.analyzer.pcode.semantics import signed
from wcet_probe.analyzer.values.result import Values
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.analyzer.values.states.learning import assume
from wcet_probe.analyzer.values.states.state import State
from wcet_probe.analyzer.values.symbolic.symbol_names import defined_at
from wcet_probe.analyzer.values.symbolic.term_table import Term

_WORD_BITS = 32
_MOST_CHOICES = 6
"""Most gamma nodes in each other that are looked through."""


@dataclass(frozen=True, slots=True)
class Reach:
    """One alternative of an address: ``link`` plus ``offset``, or one with one of ``remainders``; the others are None.

    ``remainders`` are modulo the bytes of a way, as a set of so many bits.
    """

    link: Term | None = None
    offset: int | None = None
    remainders: StridedInterval | None = None


def reaches(values: Values, way_bytes: int) -> Iterator[tuple[Reach, ...]]:
    """Of each access, in the order of ``bound.accesses``, the alternatives of its address; none where it is not known.

    Args:
        values: of the operation.
        way_bytes: of a way of the cache, a power of two.

    *Soundness:* each address that the access may have is one of the alternatives.
    """
    bits = way_bytes.bit_length() - 1
    for index in sorted(values.states):
        state = values.states[index]
        for access in values.accesses[index]:
            pointer = access.pointer
            if pointer is None or access.base is not Base.NUMBER or values.terms[pointer].bits != _WORD_BITS:
                yield ()
                continue
            is_old = all(_is_older(values, symbol, index) for symbol in values.terms.symbols(pointer))
            yield tuple(_alternatives(state, pointer, bits, is_old=is_old))


def _is_older(values: Values, symbol: Term, index: int) -> bool:
    """Whether ``symbol`` has at the entry of point ``index`` the value that it has at the access."""
    name = values.terms[symbol].arguments
    place = defined_at(name)
    return place is not None and (place != index or name[:2] == ("phi", (index,)))


def _alternatives(state: State, pointer: Term, bits: int, *, is_old: bool, depth: int = 0) -> Iterator[Reach]:
    terms = state.terms
    form = terms.linear(pointer)
    if len(form.coefficients) == 1:
        ((part, factor),) = form.coefficients.items()
        node = terms[part]
        if factor == 1 and node.opcode == "GAMMA" and depth < _MOST_CHOICES:
            condition, *chosen = terms.operands(part)
            for one, holds in zip(chosen, (True, False), strict=True):
                side = state.copy()
                if is_old and not assume(side, condition, holds):
                    continue
                address = terms.apply("INT_ADD", (one, terms.constant(form.constant, _WORD_BITS)), _WORD_BITS)
                if address is None:
                    yield Reach(remainders=strided.top(bits))
                else:
                    yield from _alternatives(side, address, bits, is_old=is_old, depth=depth + 1)
            return
        if factor == 1 and node.opcode == "symbol" and node.arguments[0] != "in":
            yield Reach(part, signed(_WORD_BITS, form.constant))
            return
    yield Reach(remainders=remainder(state, pointer, bits) if is_old else strided.top(bits))


def remainder(state: State, term: Term, bits: int) -> StridedInterval:
    """What ``term`` may be modulo ``2**bits``.

    *Soundness:* a sum is one of remainders, and a mask that keeps the lower bits keeps the remainder.
    """
    terms, mask = state.terms, (1 << bits) - 1
    if state.base(term) is not Base.NUMBER:
        return strided.top(bits)
    form = terms.linear(term)
    total = strided.constant(bits, form.constant & mask)
    for part, factor in _parts(state, term, bits).items():
        own = _low_bits(state, part, bits)
        total = strided.apply(
            "INT_ADD", (total, strided.apply("INT_MULT", (own, strided.constant(bits, factor)), bits)), bits
        )
    return total


def _parts(state: State, term: Term, bits: int) -> dict[Term, int]:
    """The terms that ``term`` is a sum of modulo ``2**bits``, each with its factor, without its constant.

    A masked term of which no lower bit is masked is the term itself; one of which all are is nothing.
    """
    terms, mask = state.terms, (1 << bits) - 1
    found: dict[Term, int] = {}
    for part, factor in terms.linear(term).coefficients.items():
        kept = _mask_of(state, part)
        own = {part: 1}
        if kept is not None and not kept & mask:
            own = {}
        elif kept is not None:
            masked = terms.apply(
                "INT_AND", (terms.operands(part)[0], terms.constant(kept & mask, _WORD_BITS)), _WORD_BITS
            )
            own = {masked: 1} if masked is not None and terms[masked].opcode != "const" else {part: 1}
        for one, count in own.items():
            found[one] = (found.get(one, 0) + factor * count) & mask
    return {one: factor for one, factor in found.items() if factor}


def _mask_of(state: State, term: Term) -> int | None:
    if state.terms[term].opcode != "INT_AND":
        return None
    return state.terms.value(state.terms.operands(term)[1])


def _low_bits(state: State, term: Term, bits: int) -> StridedInterval:
    if state.terms[term].bits != _WORD_BITS:
        return strided.top(bits)
    zero = strided.constant(_WORD_BITS, 0)
    return strided.apply("SUBPIECE", (state.value(term), zero), bits)
