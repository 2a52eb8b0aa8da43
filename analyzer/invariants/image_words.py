"""What the words of an image are: which numbers are addresses of its data, and what its constant tables hold.

Words: kind, congruence (docs/explanation/glossary.md).

*Soundness:* a number that may be an address and something else is told as `Kind.ANY`, or as an address that a sum makes
`Kind.ANY` of where it would be none. What constant data holds is what the image does.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from wcet_probe.analyzer.invariants.kinds import (
    MODULUS,
    NOTHING,
    NULL,
    WORD_BITS,
    Kind,
    Part,
    Word,
    joined,
    residue,
)
from wcet_probe.errors import AnalysisError
from wcet_probe.model.image import Image

_WORD_BYTES = WORD_BITS // 8
_LAST = (1 << WORD_BITS) - 1
_AROUND = 1 << 16
"""So near to static data a constant is taken for an address in it: compilers add to it what is subtracted later."""
_BESIDE = 8
"""So near to constant data likewise: one or two words before its first one, for loops that count first."""


class Constants:
    """Which numbers are addresses of ``image``.

    Raises:
        AnalysisError: its memory lies so low that numbers cannot be told from addresses.
    """

    def __init__(self, image: Image) -> None:
        self._segments = image.segments
        self._order: Literal["big", "little"] = "big" if image.big_endian else "little"
        self._constants = _constant_data(image)
        self._words: dict[int, Word] = {}
        self._initial: dict[tuple[int, int, int], Word] = {}
        if any(segment.writable and segment.address < 2 * _AROUND for segment in image.segments):
            raise AnalysisError("static data lies so low that its addresses cannot be told from sizes.")

    def kind_of(self, value: int) -> Kind:
        """Of a constant."""
        near = {
            segment.writable
            for segment in self._segments
            if segment.address - _AROUND <= value <= segment.address + segment.size_bytes + _AROUND
        }
        inside = {
            segment.writable
            for segment in self._segments
            if segment.address <= value <= segment.address + segment.size_bytes
        }
        if not near:
            return Kind.NUMBER
        if (inside or near) == {True}:
            return Kind.STATIC
        tables = (low - _BESIDE <= value <= low + len(data) + _BESIDE for low, data in self._constants)
        return Kind.CONSTANT if True not in (inside or near) and any(tables) else Kind.ANY

    def words(self, residues: int) -> Word:
        """The words of constant data at addresses with these residues."""
        if residues not in self._words:
            found = NOTHING
            for start, data in self._constants:
                for place in range(len(data) - _WORD_BYTES + 1):
                    if residues >> (start + place) % MODULUS & 1:
                        value = int.from_bytes(data[place : place + _WORD_BYTES], self._order)
                        found = joined(found, self._told(value))
            self._words[residues] = found
        return self._words[residues]

    def initial(self, residues: int, low: int, high: int) -> Word:
        """The words that static data begins with, at addresses from ``low`` to ``high`` with these residues.

        *Soundness:* each word that begins there is told, also where it begins in one object and ends in another one.
        """
        key = residues, low, high
        if key not in self._initial:
            found = NOTHING
            for address, value in self._writable(low, high):
                if residues >> address % MODULUS & 1:
                    found = joined(found, self._told(value))
            self._initial[key] = found
        return self._initial[key]

    def pointers(self) -> frozenset[int]:
        """The words that static data begins with which are addresses of static data."""
        return frozenset(value for _, value in self._writable(0, _LAST) if self.kind_of(value) is Kind.STATIC)

    def _told(self, value: int) -> Word:
        kind = self.kind_of(value)
        bits = (value.bit_length(), value.bit_length()) if kind is Kind.NUMBER else ()
        return (Part(kind, False, residue(value), *bits),) if value else NULL

    def _writable(self, low: int, high: int) -> Iterator[tuple[int, int]]:
        """The words of static data that begin from ``low`` to ``high``, by their addresses."""
        for segment in self._segments:
            first, last = max(low, segment.address), min(high, segment.address + segment.size_bytes - 1)
            if segment.writable and first <= last:
                start = first - segment.address
                data = segment.data[start : start + last - first + _WORD_BYTES].ljust(last - first + _WORD_BYTES, b"\0")
                for place in range(last - first + 1):
                    yield first + place, int.from_bytes(data[place : place + _WORD_BYTES], self._order)


def _constant_data(image: Image) -> tuple[tuple[int, bytes], ...]:
    """The read-only data of ``image`` of which its symbols tell: addresses and contents."""
    found = dict[int, bytes]()
    for symbol in image.symbols.values():
        for segment in image.segments:
            place = symbol.address - segment.address
            data = segment.data[place : place + symbol.size_bytes] if place >= 0 else b""
            if not (symbol.is_function or segment.writable) and symbol.size_bytes and len(data) == symbol.size_bytes:
                found[symbol.address] = max(found.get(symbol.address, b""), data, key=len)
    return tuple(sorted(found.items()))
