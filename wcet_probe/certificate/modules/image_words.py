# SPDX-License-Identifier: 0BSD
"""What the words of an image are made of."""

from __future__ import annotations

from wcet_probe.certificate.values.kinds import NULL, NUMBER, STATIC, UNKNOWN, Part, Word
from wcet_probe.certificate.values.residues import MODULUS, residue
from wcet_probe.model.image import Image

_AROUND = 1 << 16  # so near to the image a constant is taken for an address in it: compilers subtract from it later


def constant_word(image: Image, value: int) -> Word:
    """The word ``value``: null, a number, an address of static data, or what nobody can tell from one of the code."""
    known, offset = residue(value), value % MODULUS
    if value == 0:
        return (Part(NULL, False, known, offset),)
    ends = [(one.writable, one.address, one.address + one.size_bytes) for one in image.segments]
    near = {writable for writable, low, high in ends if low - _AROUND <= value <= high + _AROUND}
    inside = {writable for writable, low, high in ends if low <= value <= high}
    kind = NUMBER if not near else STATIC if (inside or near) == {True} else UNKNOWN
    return (Part(kind, False, known, offset, reach=(value, value) if kind == STATIC else None),)
