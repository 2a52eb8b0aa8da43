"""What Arm's saturating sums, differences, halves and bytes compute, in p-code, and its sums of absolute differences.

SLEIGH cuts sums to the width of their operands before it saturates them, and takes halves for unsigned, or in Thumb for
words. Here they are computed in twice the width. Source: ARM DDI 0406C, A8.8.135 (``QADD``) and those of its kin.
Absolute differences of bytes are an operation without a meaning there, in ARM of differences cut to a byte. Source: ARM
DDI 0406C, A8.8.254 (``USAD8``) and A8.8.255 (``USADA8``).

Words: lifting, P-code (docs/explanation/glossary.md).

*Soundness:* the sticky flag Q, which they may set, is not written: what reads it is unknown (`corrections`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import NamedTuple

from wcet_probe.analyzer.pcode.operations import PcodeOp, Varnode
from wcet_probe.errors import DecodeError

_WORD_BYTES = 4
_SUM, _DOUBLED, _DIFFERENCE, _DOUBLED_DIFFERENCE = range(4)
_LANES: Mapping[int, tuple[int, str]] = {
    0b000: (1, "++++"),  # add8
    0b001: (2, "++"),  # add16
    0b010: (2, "x-+"),  # asx
    0b100: (1, "----"),  # sub8
    0b101: (2, "--"),  # sub16
    0b110: (2, "x+-"),  # sax
}
"""By the field ``op1`` of Thumb: bytes of a lane, whether the second operand's are exchanged (x), and the signs."""
_OF_A32 = {0b000: 0b001, 0b001: 0b010, 0b010: 0b110, 0b011: 0b101, 0b100: 0b000, 0b111: 0b100}
"""The field ``op2`` of ARM, as ``op1`` of Thumb."""


class _Asked(NamedTuple):
    """A saturating instruction: the numbers of its registers, and what it does.

    ``kind`` is one of the sums, ``op1`` of `_LANES`, the place up to which halves are saturated, or the number of the
    register to which absolute differences are added, 15 for none.
    """

    form: str
    d: int
    n: int
    m: int
    kind: int
    is_signed: bool = True


def saturation(address: int, word: int, registers: Mapping[str, Varnode], *, is_thumb: bool) -> list[PcodeOp] | None:
    """The operations of an instruction, without its condition; None where it is none of these.

    Args:
        address: of the instruction.
        word: the instruction; in Thumb its first halfword is the upper one.
        registers: of the language, by lower-case name.
        is_thumb: whether it is of Thumb, else of ARM.

    Raises:
        DecodeError: of its registers it is UNPREDICTABLE.
    """
    asked = _of_thumb(word) if is_thumb else _of_arm(word)
    if asked is None:
        return None
    is_difference = asked.form == "differences"
    added = {asked.kind} - {15} if is_difference else set()
    if ({asked.d, asked.n, asked.m} | added) & ({13, 15} if is_thumb else {15}):
        what = "take the differences of" if is_difference else "saturate"
        raise DecodeError(f"the instruction at {address:#010x} is UNPREDICTABLE: {what} other registers.")
    d, n, m = (registers[f"r{number}"] for number in (asked.d, asked.n, asked.m))
    made = _Operations()
    match asked.form:
        case "word":
            result = _saturated_word(made, asked.kind, n, m)
        case "halves":
            result = made.joined(
                [made.clamped(lane, asked.kind, is_signed=asked.is_signed) for lane in made.lanes(n, 2, "S")]
            )
        case "differences":
            result = _absolute_differences(made, n, m)
            for number in added:
                result = made.add("INT_ADD", _WORD_BYTES, result, registers[f"r{number}"])
        case _:
            result = _saturated_lanes(made, asked, n, m)
    return [*made.ops, PcodeOp("COPY", d, (result,))]


def _of_thumb(word: int) -> _Asked | None:
    d, n, m = word >> 8 & 15, word >> 16 & 15, word & 15
    if word & 0xFFF0_F0C0 == 0xFA80_F080:
        return _Asked("word", d, n, m, (_SUM, _DOUBLED, _DIFFERENCE, _DOUBLED_DIFFERENCE)[word >> 4 & 3])
    op1 = word >> 20 & 7
    if word & 0xFF80_F0B0 == 0xFA80_F010 and op1 in _LANES:
        return _Asked("lanes", d, n, m, op1, is_signed=not word & 0x40)
    if word & 0xFF70_F0F0 == 0xF320_0000:
        return _Asked("halves", d, n, n, m, is_signed=not word & 0x80_0000)
    if word & 0xFFF0_00F0 == 0xFB70_0000:
        return _Asked("differences", d, n, m, word >> 12 & 15)
    return None


def _of_arm(word: int) -> _Asked | None:
    d, n, m = word >> 12 & 15, word >> 16 & 15, word & 15
    if word & 0x0F90_0FF0 == 0x0100_0050:
        return _Asked("word", d, n, m, (_SUM, _DIFFERENCE, _DOUBLED, _DOUBLED_DIFFERENCE)[word >> 21 & 3])
    op2 = word >> 5 & 7
    if word & 0x0FB0_0F10 == 0x0620_0F10 and op2 in _OF_A32:
        return _Asked("lanes", d, n, m, _OF_A32[op2], is_signed=not word & 0x40_0000)
    if word & 0x0FB0_0FF0 == 0x06A0_0F30:
        return _Asked("halves", d, m, m, n, is_signed=not word & 0x40_0000)
    if word & 0x0FF0_00F0 == 0x0780_0010:
        return _Asked("differences", n, m, word >> 8 & 15, d)
    return None


class _Operations:
    """Operations in order, and temporaries for their results."""

    def __init__(self) -> None:
        self.ops: list[PcodeOp] = []
        self._places = count(0, 8)

    def add(self, opcode: str, size_bytes: int, *inputs: Varnode, user_op: str = "") -> Varnode:
        output = Varnode("unique", next(self._places), size_bytes)
        self.ops.append(PcodeOp(opcode, output, inputs, user_op))
        return output

    def lanes(self, register: Varnode, size_bytes: int, extension: str) -> Iterator[Varnode]:
        """The parts of a register from its lowest one on, as words, extended by sign (S) or by 0 (Z)."""
        for offset in range(0, _WORD_BYTES, size_bytes):
            lane = self.add("SUBPIECE", size_bytes, register, Varnode("const", offset, _WORD_BYTES))
            yield self.add(f"INT_{extension}EXT", _WORD_BYTES, lane)

    def clamped(self, value: Varnode, place: int, *, is_signed: bool) -> Varnode:
        """``value`` saturated: ``place`` is its sign bit then, or how many bits it has."""
        name = "SignedSaturate" if is_signed else "UnsignedSaturate"
        return self.add("CALLOTHER", value.size_bytes, value, Varnode("const", place, _WORD_BYTES), user_op=name)

    def joined(self, lanes: Sequence[Varnode]) -> Varnode:
        """A word of the low parts of ``lanes``, the lowest one first."""
        size_bytes, zero = _WORD_BYTES // len(lanes), Varnode("const", 0, _WORD_BYTES)
        parts = [self.add("SUBPIECE", size_bytes, lane, zero) for lane in lanes]
        while len(parts) > 1:
            size_bytes *= 2
            parts = [self.add("PIECE", size_bytes, *parts[at : at + 2][::-1]) for at in range(0, len(parts), 2)]
        return parts[0]


def _saturated_word(made: _Operations, kind: int, n: Varnode, m: Varnode) -> Varnode:
    """Of two words; the second operand is ``n``, which may be doubled, and saturated, first."""
    first, second = (made.add("INT_SEXT", 2 * _WORD_BYTES, one) for one in (m, n))
    sign = 8 * _WORD_BYTES - 1
    if kind in {_DOUBLED, _DOUBLED_DIFFERENCE}:
        second = made.clamped(made.add("INT_ADD", 2 * _WORD_BYTES, second, second), sign, is_signed=True)
    opcode = "INT_ADD" if kind in {_SUM, _DOUBLED} else "INT_SUB"
    result = made.clamped(made.add(opcode, 2 * _WORD_BYTES, first, second), sign, is_signed=True)
    return made.add("SUBPIECE", _WORD_BYTES, result, Varnode("const", 0, _WORD_BYTES))


def _saturated_lanes(made: _Operations, asked: _Asked, n: Varnode, m: Varnode) -> Varnode:
    size_bytes, signs = _LANES[asked.kind]
    first, second = (list(made.lanes(one, size_bytes, "S" if asked.is_signed else "Z")) for one in (n, m))
    if signs.startswith("x"):
        second.reverse()
    place = 8 * size_bytes - asked.is_signed
    return made.joined(
        [
            made.clamped(
                made.add("INT_ADD" if sign == "+" else "INT_SUB", _WORD_BYTES, *pair), place, is_signed=asked.is_signed
            )
            for sign, *pair in zip(signs.removeprefix("x"), first, second, strict=True)
        ]
    )


def _absolute_differences(made: _Operations, n: Varnode, m: Varnode) -> Varnode:
    """The sum of the bytes' absolute differences: of a difference, its sign is taken off twice."""
    total = Varnode("const", 0, _WORD_BYTES)
    for pair in zip(*(list(made.lanes(one, 1, "Z")) for one in (n, m)), strict=True):
        difference = made.add("INT_SUB", _WORD_BYTES, *pair)
        sign = made.add("INT_SRIGHT", _WORD_BYTES, difference, Varnode("const", 8 * _WORD_BYTES - 1, _WORD_BYTES))
        absolute = made.add("INT_SUB", _WORD_BYTES, made.add("INT_XOR", _WORD_BYTES, difference, sign), sign)
        total = made.add("INT_ADD", _WORD_BYTES, total, absolute)
    return total
