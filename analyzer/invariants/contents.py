"""What a word of memory may hold: numbers and addresses in the arena, told apart by their lowest two bits.

A *number* is known by a strided interval of its value, an *arena address* by its remainder modulo the bytes of a way:
where the arena lies nobody knows, but cache sets and alignments follow from the remainder. Null is apart from both, and
so are words whose lowest bits differ: allocators put flags there, and store links and tags in one place.

Words: kind, strided interval, congruence (docs/explanation/glossary.md).

*Soundness:* contents stand for all words that one of their parts stands for. A number's interval holds of the word
itself. That a word is an address in the arena is told by how it is made: from the arena's start and numbers, as often
added as subtracted but for once (lemma ``objects-apart`` of `invariants.lemmas`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import IntEnum
from functools import lru_cache
from typing import NamedTuple

from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.domains.lattice import Lattice
from wcet_probe.analyzer.domains.strided import StridedInterval

WORD_BITS = 32
_FLAGS = 4
"""So many classes do the lowest bits make."""
_NULL = -1
NEAR_NULL = 256
"""No memory of an allocator lies below this address; small numbers are apart from others, as null plus an offset is."""


class Region(IntEnum):
    """What a word is: any word, a number, an address in the arena."""

    ANY = 0
    NUMBER = 1
    ARENA = 2


class Part(NamedTuple):
    """Words of one ``region`` with the same lowest bits, which ``flags`` tell, or null; small numbers have flags above.

    ``value`` are the words of a number; of others it is all words. ``way`` are their remainders modulo a way.
    """

    region: Region
    flags: int
    value: StridedInterval
    way: StridedInterval

    @property
    def is_null(self) -> bool:
        """Whether it is null alone."""
        return self.flags == _NULL


Contents = tuple[Part, ...]
"""Parts by region and flags, each at most once; none: there is no such word. Any word is `anything`."""


def remainder_of(value: StridedInterval, way_bits: int) -> StridedInterval:
    """The lowest ``way_bits`` of ``value``."""
    if value.bits <= way_bits:
        return strided.apply("INT_ZEXT", (value,), way_bits) if value.bits < way_bits else value
    return strided.apply("SUBPIECE", (value, strided.constant(WORD_BITS, 0)), way_bits)


def anything(way_bits: int) -> Contents:
    """Any word."""
    return (Part(Region.ANY, 0, strided.top(WORD_BITS), strided.top(way_bits)),)


def is_anything(contents: Contents) -> bool:
    """Whether nothing is known."""
    return any(part.region is Region.ANY for part in contents)


def number(value: StridedInterval, way_bits: int, way: StridedInterval | None = None) -> Contents:
    """The words of ``value``, whose remainders are among ``way``, too."""
    own = remainder_of(value, way_bits)
    return contents_of((Part(Region.NUMBER, 0, value, own if way is None else strided.meet(own, way)),), way_bits)


def in_arena(way: StridedInterval) -> Contents:
    """Addresses in the arena with these remainders."""
    return contents_of((Part(Region.ARENA, 0, strided.top(WORD_BITS), way),), way.bits)


def contents_of(parts: Iterable[Part], way_bits: int) -> Contents:
    """The words of ``parts``, in their normal form."""
    return _normal(tuple(parts), way_bits)


@lru_cache(1 << 16)
def _normal(parts: tuple[Part, ...], way_bits: int) -> Contents:
    if any(part.region is Region.ANY for part in parts):
        return anything(way_bits)
    return _united(part for whole in parts for part in _told_apart(whole, way_bits))


def _united(parts: Iterable[Part]) -> Contents:
    """One part for each region and flags."""
    found: dict[tuple[Region, int], Part] = {}
    for part in parts:
        key = part.region, part.flags
        other = found.get(key)
        found[key] = part if other is None else Part(*key, *_joined(other, part))
    return tuple(found[key] for key in sorted(found))


def _joined(one: Part, other: Part) -> tuple[StridedInterval, StridedInterval]:
    return strided.join(one.value, other.value), strided.join(one.way, other.way)


def _told_apart(part: Part, way_bits: int) -> Iterator[Part]:
    if part.value.is_bottom or part.way.is_bottom:
        return
    if part.region is Region.ARENA:
        yield Part(part.region, 0, strided.top(WORD_BITS), part.way)
        return
    value = part.value
    if value.low == 0 and not value.is_residue_class:
        if 0 in part.way:
            zero = strided.constant(WORD_BITS, 0)
            yield Part(part.region, _NULL, zero, remainder_of(zero, way_bits))
        if value.is_constant:
            return
        value = strided.between(WORD_BITS, value.stride, value.extent, value.stride)
    for flags in range(_FLAGS):
        own = strided.meet(value, strided.residue_class(WORD_BITS, flags, _FLAGS))
        way = strided.meet(part.way, strided.residue_class(way_bits, flags, _FLAGS))
        if not own.is_bottom and not way.is_bottom:
            is_small = own.unsigned_range()[1] < NEAR_NULL
            yield Part(part.region, flags + _FLAGS * is_small, own, strided.meet(way, remainder_of(own, way_bits)))


class ContentsLattice(Lattice[Contents]):
    """The domain of the contents of a word, ordered part by part.

    Args:
        way_bits: of a remainder.
    """

    def __init__(self, way_bits: int) -> None:
        self._way_bits = way_bits

    def bottom(self) -> Contents:
        """No word."""
        return ()

    def top(self) -> Contents:
        """Any word."""
        return anything(self._way_bits)

    def leq(self, one: Contents, other: Contents) -> bool:
        """Whether each part of ``one`` is in one of ``other``."""
        if is_anything(other):
            return True
        return all(
            any(
                part.region is whole.region
                and (part.is_null or part.flags % _FLAGS == whole.flags % _FLAGS)
                and strided.leq(part.value, whole.value)
                and strided.leq(part.way, whole.way)
                for whole in other
            )
            for part in one
        )

    def join(self, one: Contents, other: Contents) -> Contents:
        """Part by part."""
        if self.leq(other, one):
            return one
        if is_anything(one) or is_anything(other):
            return self.top()
        return _united((*one, *other))

    def widen(self, former: Contents, grown: Contents) -> Contents:
        """What grew goes to the end."""
        known = {(part.region, part.flags): part for part in former}
        parts = []
        for part in self.join(former, grown):
            old = known.get((part.region, part.flags))
            if old is None or part.region is Region.ANY:
                parts.append(part)
                continue
            value, way = _joined(old, part)
            wider = strided.widen(old.value, value, ()), strided.widen(old.way, way, ())
            parts.append(Part(part.region, part.flags, *wider))
        # Not in their normal form again: a widened number may run over null, which is a part of its own.
        return tuple(parts)


def met(one: Contents, other: Contents, way_bits: int) -> Contents:
    """The words of ``one`` that are among ``other``, too.

    An address in the arena may be a number of which little is known, but not null.
    """
    if is_anything(one):
        return other
    if is_anything(other):
        return one
    return contents_of(
        (
            Part(mine.region, 0, strided.meet(mine.value, its.value), strided.meet(mine.way, its.way))
            for mine in one
            for its in other
            if mine.region is its.region or not (mine.is_null or its.is_null)
        ),
        way_bits,
    )
