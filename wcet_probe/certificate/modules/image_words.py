# SPDX-License-Identifier: 0BSD
"""What the words of an image are made of, and which of them its constant tables hold."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from wcet_probe.certificate.values.kinds import (
    ANYTHING,
    CONSTANT,
    NULL,
    NUMBER,
    STATIC,
    UNKNOWN,
    Part,
    Word,
    known_as,
    reaching,
    word,
)
from wcet_probe.certificate.values.numbers import Value, unsigned
from wcet_probe.certificate.values.residues import MODULUS, of_value, residue
from wcet_probe.model.image import Image

_WORD_BYTES = 4
_AROUND = 1 << 16  # so near to the image a constant is taken for an address in it: compilers subtract from it later
_BESIDE = 8
"""So near to a constant table likewise: one or two words before its first one, for loops that count first."""
_FILLED = 64
"""So far before a table there are to be zeros, or to where another ends: fewer may be the end of what is no table."""
_LOW = 1 << 16
"""No memory lies below."""
_MOST_REMEMBERED = 1 << 14
"""So many answers are remembered: few words of many are of another kind or number than before."""


def constant_word(image: Image, value: int) -> Word:
    """The word ``value``: null, a number, an address of static data or of a constant table, or what nobody can tell."""
    known, offset = residue(value), value % MODULUS
    if value == 0:
        return (Part(NULL, False, known, offset),)
    ends = [(one.writable, one.address, one.address + one.size_bytes) for one in image.segments]
    near = {writable for writable, low, high in ends if low - _AROUND <= value <= high + _AROUND}
    inside = {writable for writable, low, high in ends if low <= value <= high}
    kind = NUMBER if not near else STATIC if (inside or near) == {True} else UNKNOWN
    if True not in (inside or near) and kind == UNKNOWN and _is_at_table(image, value):
        kind = CONSTANT
    return (Part(kind, False, known, offset, reach=(value, value) if kind == STATIC else None),)


@lru_cache(_MOST_REMEMBERED)
def number_word(value: Value, parts: Word) -> Word:
    """The word ``parts``, which is known as the number ``value``, too."""
    if parts == ANYTHING:
        return (Part(NUMBER, False, of_value(value)),) if unsigned(value).high < _LOW else ANYTHING
    own, limits = tuple(part for part in parts if part.kind != NULL or 0 in value.words()), unsigned(value)
    return reaching(known_as(own, of_value(value)), limits.low, limits.high)


def table_word(image: Image, residues: int) -> Word:
    """What the constant tables of ``image`` hold at addresses with these residues."""
    values = set[int]()
    for start, data in _tables(image):
        for place in range(len(data) - _WORD_BYTES + 1):
            if residues >> (start + place) % MODULUS & 1:
                order = "big" if image.big_endian else "little"
                values.add(int.from_bytes(data[place : place + _WORD_BYTES], order))  # type: ignore[arg-type]
    return word(part for one in values for part in constant_word(image, one))


def _is_at_table(image: Image, value: int) -> bool:
    """Whether an address is one of a table, or beside one where the image holds nothing that may be another's.

    Of data without a symbol of its own, such as the second table of one name, nobody knows what it holds: so there are
    only instructions behind a table, or nothing, and before it zeros, which fill up, or these. It is asked of all that
    is beside the table, on both sides of the address: it may be behind such data, or in the midst of it.
    """
    is_code = any(one.is_function and one.address == value for one in image.symbols.values())
    ends = [(start, start + len(data)) for start, data in _tables(image)]
    if is_code or any(low <= value < high for low, high in ends):
        return not is_code
    return any(
        (
            low - _BESIDE <= value < low
            and not any(_data(image, max([low - _FILLED, *(end for _, end in ends if end <= low)]), low))
        )
        or (high <= value <= high + _BESIDE and not _data(image, high, value + 1))
        for low, high in ends
    )


def _data(image: Image, low: int, high: int) -> list[int]:
    """The bytes that an image holds in some place, instructions left out."""
    held = ((one, place) for one in image.segments for place in range(low, high) if one.address <= place)
    return [
        (one.data[place - one.address : place - one.address + 1] or b"\0")[0]
        for one, place in held
        if place < one.address + one.size_bytes and not any(place in code for code in image.code)
    ]


def _tables(image: Image) -> Iterator[tuple[int, bytes]]:
    """The data of ``image`` that is not written and of which its symbols tell: addresses and contents."""
    for symbol in image.symbols.values():
        for segment in image.segments:
            place = symbol.address - segment.address
            data = segment.data[place : place + symbol.size_bytes] if place >= 0 else b""
            if not (symbol.is_function or segment.writable) and symbol.size_bytes and len(data) == symbol.size_bytes:
                yield symbol.address, data
