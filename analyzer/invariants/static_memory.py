"""The words of static data as the image has them: what is there before anything is stored, and where they are.

Words: data invariant (docs/explanation/glossary.md).

*Soundness:* what is at an address that may be in static data is told; of addresses in the arena nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.domains.strided import StridedInterval
from wcet_probe.analyzer.invariants.contents import WORD_BITS, Contents, Part, Region, contents_of, number
from wcet_probe.analyzer.values.states.memory import MOST_READ
from wcet_probe.model.image import Image

_WORD_BYTES = 4


def number_of_null(way_bits: int) -> Contents:
    """Null alone."""
    return number(strided.constant(WORD_BITS, 0), way_bits)


class StaticMemory:
    """What the image says of its memory."""

    def __init__(self, image: Image, way_bits: int) -> None:
        self._image, self._way_bits = image, way_bits
        self._writable = [(s.address, s.address + s.size_bytes) for s in image.segments if s.writable]

    def within(self, address: Contents, constant: int) -> Contents:
        """``address`` without what is behind static data in which ``constant`` is (lemma ``objects-apart``).

        *Soundness:* the lemma speaks of what is computed from static data, which is so of a sum with its address.
        """
        own = [(start, end) for start, end in self._writable if start <= constant < end]
        return contents_of((self._clipped(part, own) for part in address), self._way_bits)

    @staticmethod
    def _clipped(part: Part, own: Iterable[tuple[int, int]]) -> Part:
        if part.region is Region.NUMBER:
            low, high = part.value.unsigned_range()
            for start, end in own:
                if start <= low < end <= high:
                    inside = strided.between(WORD_BITS, start, end - 1)
                    return Part(part.region, part.flags, strided.meet(part.value, inside), part.way)
        return part

    def is_object(self, address: Contents, size_bytes: int) -> bool:
        """Whether all of ``address`` is in the arena or in static data.

        *Soundness:* a number may be made of an address, as by a shift and back: only its values tell where it leads.
        """
        return self.is_static(tuple(part for part in address if part.region is not Region.ARENA), size_bytes)

    def is_static(self, address: Contents, size_bytes: int) -> bool:
        """Whether all of ``address`` is static data, to the last of ``size_bytes``."""
        return all(
            part.region is Region.NUMBER
            and any(
                segment.address <= part.value.unsigned_range()[0]
                and part.value.unsigned_range()[1] + size_bytes <= segment.address + segment.size_bytes
                for segment in self._image.segments
            )
            for part in address
        )

    def initial(self, address: Contents, stored: frozenset[int]) -> Contents:
        """What is at ``address`` before anything is stored; of the arena nothing (lemma ``stored-before-loaded``).

        Nothing, too, of addresses that are ``stored`` before they are loaded.
        """
        found: list[Part] = []
        for part in address:
            if part.region is Region.NUMBER and not (part.value.is_constant and part.value.value in stored):
                found += self._initial(part.value)
        return contents_of(found, self._way_bits)

    def _initial(self, value: StridedInterval) -> Iterator[Part]:
        for segment in self._image.segments:
            inside = strided.between(WORD_BITS, segment.address, segment.address + segment.size_bytes - _WORD_BYTES)
            words = strided.meet(value, inside)
            if words.is_bottom:
                continue
            low, high = words.unsigned_range()
            data = segment.data[low - segment.address : high + _WORD_BYTES - segment.address]
            if not any(data):
                yield from number_of_null(self._way_bits)
            elif words.size <= MOST_READ:
                for one in words.values():
                    yield from self._word(segment.data, one - segment.address)
            else:
                yield from number(strided.top(WORD_BITS), self._way_bits)

    def _word(self, data: bytes, offset: int) -> Contents:
        raw = data[offset : offset + _WORD_BYTES].ljust(_WORD_BYTES, b"\0")
        word = int.from_bytes(raw, "big" if self._image.big_endian else "little")
        return number(strided.constant(WORD_BITS, word), self._way_bits)
