"""What a word of memory may be: null, a number, an address in the arena or in data, each with its residues.

Much less is known than of `contents`: no value, but the residues modulo `MODULUS`, as the set of bits of a mask, and
how many significant bits a number has at least and at most. In exchange nothing is lost in it: the domain is finite, an
allocator's flags in the lowest bits stay apart, and a fixpoint needs no widening.

A word that was loaded from the arena is told from others: tags, links and sizes lie there at addresses that have the
same residues, so that a load of one seems to give the other, too. That it does not is a lemma, which is used for such
words only (`alignment`).

Words: kind, congruence, lattice (docs/explanation/glossary.md).

*Soundness:* a word's parts cover it: its kind is how it is made, an address of the arena being the arena's start plus
numbers, and a number what is made without addresses, or with as many added as subtracted. Residues of results contain
those of the operation on all residues of its operands. Numbers of significant bits are told where the values tell them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import IntEnum
from functools import lru_cache
from typing import NamedTuple

from wcet_probe.analyzer.domains.lattice import Lattice
from wcet_probe.analyzer.domains.strided import StridedInterval
from wcet_probe.analyzer.pcode.semantics import signed

MODULUS = 64
"""Residues are modulo this: no alignment of an allocator is greater, as far as facts tell of it."""
ALL = (1 << MODULUS) - 1
"""Every residue."""
WORD_BITS = 32
_RESIDUE_BITS = MODULUS.bit_length() - 1


class Kind(IntEnum):
    """How a word is made.

    ``NEAR``: of null and numbers; ``CONSTANT``: of an address of constant data, or a number that looks like one;
    ``MIXED``: of an address in a way that gives none; ``ANY``: not known; ``INDEX``: a number that was stored as an
    index of static data. Null is 0.
    """

    NULL = 0
    NEAR = 1
    NUMBER = 2
    ARENA = 3
    STATIC = 4
    CONSTANT = 5
    MIXED = 6
    ANY = 7
    INDEX = 8


class Part(NamedTuple):
    """Words of one ``kind``.

    Attributes:
        kind: how they are made.
        is_loaded: whether of a word from the arena.
        residues: a mask with a bit for each.
        least: significant bits of a number, and so its range, to the next powers of two; 0 of 0. Of addresses, 0.
        most: of the greatest one; all bits of addresses.
    """

    kind: Kind
    is_loaded: bool
    residues: int
    least: int = 0
    most: int = WORD_BITS


Word = tuple[Part, ...]
"""Parts by kind and by whether they are loaded, each at most once; none: there is no such word."""

NOTHING: Word = ()
ANYTHING: Word = (Part(Kind.ANY, False, ALL),)
NULL: Word = (Part(Kind.NULL, False, 1, 0, 0),)


def word(parts: Iterable[Part]) -> Word:
    """The words of ``parts``."""
    found: dict[tuple[Kind, bool], Part] = {}
    for one in parts:
        kind, is_loaded, residues, least, most = one
        if residues and least <= most:
            key = kind, is_loaded
            other = found.get(key)
            if other is not None and other != one:
                one = Part(*key, residues | other.residues, min(least, other.least), max(most, other.most))  # noqa: PLW2901
            found[key] = one
    return tuple(found.values()) if len(found) < 2 else tuple(found[key] for key in sorted(found))


def joined(one: Word, other: Word) -> Word:
    """The words of either."""
    return one if one == other or not other else other if not one else word((*one, *other))


class WordLattice(Lattice[Word]):
    """The domain of a word's parts, ordered part by part. It is finite."""

    def bottom(self) -> Word:
        """No word."""
        return NOTHING

    def top(self) -> Word:
        """Words of every kind."""
        return word(Part(kind, is_loaded, ALL) for kind in Kind for is_loaded in (False, True))

    def leq(self, one: Word, other: Word) -> bool:
        """Whether each part of ``one`` is in one of ``other``."""
        return joined(other, one) == other

    def join(self, one: Word, other: Word) -> Word:
        """Part by part."""
        return joined(one, other)

    def widen(self, former: Word, grown: Word) -> Word:
        """The join: chains are finite."""
        return joined(former, grown)


def number_range(numbers: Word) -> tuple[int, int] | None:
    """The least and the greatest number that ``numbers`` may be; None: they may be an address, or there are none.

    *Soundness:* a number of so many significant bits has that one set, and none above.
    """
    if not numbers or any(part.kind not in NUMBERS for part in numbers):
        return None
    least, most = min(part.least for part in numbers), max(part.most for part in numbers)
    return 1 << least >> 1, (1 << most) - 1


def as_index(numbers: Word) -> Word:
    """``numbers`` as they are stored by what takes them for an index, too; of null and addresses nothing changes."""
    return word(part._replace(kind=Kind.INDEX) if part.kind in _PLAIN else part for part in numbers)


# ------------------------------------------------------------------------------------------------------------- residues


def members(residues: int) -> Iterator[int]:
    """The residues of a mask."""
    return (one for one in range(MODULUS) if residues >> one & 1)


def residue(value: int) -> int:
    """The mask of a number's residue."""
    return 1 << value % MODULUS


@lru_cache(1 << 14)
def residues_of(values: StridedInterval) -> int:
    """The residues of numbers.

    *Soundness:* a number of a strided interval is its lowest one plus a multiple of its stride, modulo a power of two
    that is a multiple of `MODULUS`; of numbers of fewer bits all are told.
    """
    if values.is_bottom:
        return 0
    if values.size <= MODULUS:
        found = 0
        for one in values.values():
            found |= residue(one)
        return found
    if values.bits < _RESIDUE_BITS:
        return ALL
    return added(residue(values.low), _multiples(values.stride))


@lru_cache(1 << 10)
def _multiples(step: int) -> int:
    found = 0
    for number in range(MODULUS):
        found |= residue(number * step)
    return found


@lru_cache(1 << 14)
def added(one: int, other: int) -> int:
    """The residues of sums."""
    found = 0
    for amount in members(one):
        found |= other << amount
    return (found | found >> MODULUS) & ALL


@lru_cache(1 << 14)
def scaled(residues: int, factor: int) -> int:
    """The residues of products with ``factor``."""
    found = 0
    for one in members(residues):
        found |= residue(one * factor)
    return found


@lru_cache(1 << 14)
def bitwise(opcode: str, one: int, other: int) -> int:
    """The residues of results of ``opcode``, which is bitwise or a product."""
    found = 0
    for first in members(one):
        for second in members(other):
            if opcode == "INT_AND":
                result = first & second
            elif opcode == "INT_OR":
                result = first | second
            else:
                result = first ^ second if opcode == "INT_XOR" else first * second
            found |= residue(result)
    return found


def shifted(residues: int, amounts: Iterable[int]) -> int:
    """The residues of words shifted to the left by ``amounts``."""
    found = 0
    for amount in amounts:
        found |= scaled(residues, 1 << amount) if amount < _RESIDUE_BITS else 1
    return found


# ----------------------------------------------------------------------------------------------------------- operations


class _Sum(NamedTuple):
    """What was added up: addresses of each kind, less those subtracted; numbers but the constant."""

    arenas: int
    statics: int
    constants: int = 0
    is_null: bool = False
    is_mixed: bool = False
    is_any: bool = False
    is_loaded: bool = False
    is_named: bool = False
    is_head: bool = False
    has_numbers: bool = False


def summed(terms: Iterable[tuple[int, Word]], constant: Word, *, is_negative: bool = False) -> Word:
    """The sum of words, each times its factor, and of a ``constant``, which is not null, but may be negative.

    A loaded address of static data is the head of a list: with a number that is not constant, or a negative one, it
    makes no address.

    *Soundness:* all ways to choose a part of each word are told.
    """
    found: dict[_Sum, int] = {_Sum(0, 0, has_numbers=is_negative): 1}
    for number, (factor, parts) in enumerate(((1, constant), *terms)):
        more: dict[_Sum, int] = {}
        for before, residues in found.items():
            for part in parts:
                key = _plus(before, signed(WORD_BITS, factor), part, is_constant=number == 0)
                more[key] = more.get(key, 0) | added(residues, scaled(part.residues, factor % MODULUS))
        found = more
    kinds = ((_kind(one), one.is_loaded, residues) for one, residues in found.items())
    return word(Part(kind, is_loaded and kind is not Kind.ANY, residues) for kind, is_loaded, residues in kinds)


def _plus(before: _Sum, factor: int, part: Part, *, is_constant: bool) -> _Sum:
    return _Sum(
        before.arenas + factor * (part.kind is Kind.ARENA),
        before.statics + factor * (part.kind is Kind.STATIC),
        before.constants + factor * (part.kind is Kind.CONSTANT),
        before.is_null or (factor == 1 and part.kind in {Kind.NULL, Kind.NEAR}),
        before.is_mixed or part.kind is Kind.MIXED,
        before.is_any or part.kind is Kind.ANY,
        before.is_loaded or part.is_loaded,
        before.is_named or part.kind is Kind.CONSTANT or (part.kind is Kind.STATIC and not part.is_loaded),
        before.is_head or (part.kind is Kind.STATIC and part.is_loaded),
        before.has_numbers or (part.kind in {Kind.NUMBER, Kind.INDEX} and not is_constant),
    )


def _kind(one: _Sum) -> Kind:
    if one.is_any:
        return Kind.ANY
    kind = _OF_COUNTS.get((one.arenas, one.statics, one.constants), Kind.MIXED)
    if one.is_mixed or (one.is_head and one.has_numbers):
        kind = Kind.MIXED
    if kind is Kind.MIXED and one.is_named:  # what looks like data may be a number
        return Kind.ANY
    return Kind.NEAR if kind is Kind.NUMBER and one.is_null else kind


_OF_COUNTS: Mapping[tuple[int, int, int], Kind] = {
    (0, 0, 0): Kind.NUMBER,
    (1, 0, 0): Kind.ARENA,
    (0, 1, 0): Kind.STATIC,
    (0, 0, 1): Kind.CONSTANT,
}


def operated(opcode: str, one: Word, other: Word, mask: int | None) -> Word:
    """``opcode`` on two words that it does not add; ``mask`` is the second one where it is a constant.

    *Soundness:* an address whose bits below `MODULUS` alone are changed stays one, by the definition of its kind; of
    what else is made of an address nothing is told but that, and of what is surely one not even that. A few of its
    lowest bits are a number.
    """
    is_address = any(parts and all(part.kind in _ADDRESSES for part in parts) for parts in (one, other))
    found = []
    for first in one:
        for second in other:
            residues = bitwise(opcode, first.residues, second.residues) if opcode in _BITWISE else ALL
            is_loaded = first.is_loaded or second.is_loaded
            kind = _kind_of(opcode, first, second, mask)
            found.append(Part(Kind.ANY if kind is Kind.MIXED and is_address else kind, is_loaded, residues))
    return word(
        Part(part.kind, part.is_loaded and part.kind is not Kind.ANY, part.residues & _below(opcode, mask))
        for part in found
    )


_BITWISE = frozenset({"INT_AND", "INT_OR", "INT_XOR", "INT_MULT"})
NUMBERS = frozenset({Kind.NULL, Kind.NEAR, Kind.NUMBER, Kind.INDEX})
"""Kinds that are made of no address."""
_PLAIN = frozenset({Kind.NEAR, Kind.NUMBER})
_ADDRESSES = frozenset({Kind.ARENA, Kind.STATIC})
_MOST_BITS_MASK = 0xFFFF
"""What a mask with none above keeps is a number: no memory lies below."""


def _below(opcode: str, mask: int | None) -> int:
    """The residues that a small mask leaves."""
    return (1 << mask + 1) - 1 if opcode == "INT_AND" and mask is not None and mask < MODULUS else ALL


def _kind_of(opcode: str, first: Part, second: Part, mask: int | None) -> Kind:
    kinds = {first.kind, second.kind}
    if mask is not None:
        if opcode == "INT_AND" and mask <= _MOST_BITS_MASK:
            return Kind.NUMBER
        keeps = mask >= (1 << WORD_BITS) - MODULUS if opcode == "INT_AND" else mask < MODULUS
        if opcode in {"INT_AND", "INT_OR", "INT_XOR"} and keeps and first.kind in _ADDRESSES | {Kind.MIXED}:
            return first.kind
    if opcode == "INT_AND" and first.kind is Kind.NULL:
        return Kind.NULL
    if kinds <= NUMBERS:
        return Kind.NUMBER
    if kinds & {Kind.ANY, Kind.CONSTANT} or any(
        one.kind is Kind.STATIC and not one.is_loaded for one in (first, second)
    ):
        return Kind.ANY  # what looks like data may be a number
    # Where one of them was loaded it may seem to be an address, and be a number.
    return Kind.MIXED if first.is_loaded or second.is_loaded else Kind.ANY
