"""Comparisons, overflow and saturation of p-code on wrapped strided intervals, and what a comparison tells.

Words: strided interval, predicate (docs/explanation/glossary.md).

*Soundness:* each result contains the operation's result for all values of the operands, none of which is empty.
"""

from __future__ import annotations

from functools import cache

from wcet_probe.analyzer.domains.strided_arithmetic import sign_extended
from wcet_probe.analyzer.domains.strided_interval import (
    StridedInterval,
    arc,
    between,
    bottom,
    clip,
    constant,
    meet,
    top,
)

_NEGATED = {
    "INT_EQUAL": "INT_NOTEQUAL",
    "INT_NOTEQUAL": "INT_EQUAL",
    "INT_LESS": "INT_LESSEQUAL",
    "INT_LESSEQUAL": "INT_LESS",
    "INT_SLESS": "INT_SLESSEQUAL",
    "INT_SLESSEQUAL": "INT_SLESS",
}
"""The relation that holds where the other does not; of the orders, with the sides exchanged."""


def constrain(
    opcode: str,
    left: StridedInterval,
    right: StridedInterval,
    holds: bool,  # noqa: FBT001  a truth value it is
) -> tuple[StridedInterval, StridedInterval]:
    """What the operands of a comparison may be where its result is known; two empty sets where it cannot be so.

    Args:
        opcode: ``INT_EQUAL``, ``INT_NOTEQUAL``, ``INT_LESS``, ``INT_LESSEQUAL``, ``INT_SLESS`` or ``INT_SLESSEQUAL``.
        left: first operand.
        right: second operand, as wide.
        holds: whether the comparison is true.

    *Soundness:* keeps each pair of values that agrees with ``holds``.
    """
    nothing = bottom(left.bits)
    if left.steps < 0 or right.steps < 0:
        return nothing, nothing
    if not holds:
        opcode = _NEGATED[opcode]
        if "LESS" in opcode:
            right, left = constrain(opcode, right, left, holds=True)
            return left, right
    if opcode == "INT_EQUAL":
        both = meet(left, right)
        return both, both
    if opcode == "INT_NOTEQUAL":
        new_left, new_right = _without(left, right), _without(right, left)
    else:
        is_signed, strict = opcode.startswith("INT_S"), int(not opcode.endswith("EQUAL"))
        least = -1 << (left.bits - 1) if is_signed else 0
        most = least + (1 << left.bits) - 1
        left_low, right_high = _range(left, is_signed=is_signed)[0], _range(right, is_signed=is_signed)[1]
        new_left = clip(left, least, right_high - strict, is_signed=is_signed)
        new_right = clip(right, left_low + strict, most, is_signed=is_signed)
    return (nothing, nothing) if new_left.steps < 0 or new_right.steps < 0 else (new_left, new_right)


def _range(interval: StridedInterval, *, is_signed: bool) -> tuple[int, int]:
    return interval.signed_range() if is_signed else interval.unsigned_range()


def _without(interval: StridedInterval, other: StridedInterval) -> StridedInterval:
    """``interval`` less the value of ``other``, where that is one value, and at an end or in a residue class."""
    if other.steps or other.low not in interval:
        return interval
    bits, stride, steps = interval.bits, interval.stride, interval.steps
    if interval.is_residue_class or other.low == interval.low:
        return arc(bits, other.low + stride, stride, steps - 1)
    if other.low == (interval.low + interval.extent) & ((1 << bits) - 1):
        return arc(bits, interval.low, stride, steps - 1)
    return interval


@cache
def truth(bits: int, *, value: bool | None) -> StridedInterval:
    """A truth value as a number; None: it is not known."""
    return between(bits, 0, 1) if value is None else constant(bits, int(value))


def equal(bits: int, a: StridedInterval, b: StridedInterval, *, wanted: bool) -> StridedInterval:
    """Whether the values are equal, or (``wanted`` is False) whether they differ."""
    return truth(bits, value=not wanted if meet(a, b).steps < 0 else None)


def ordered(bits: int, a: StridedInterval, b: StridedInterval, *, is_signed: bool, or_equal: int) -> StridedInterval:
    """Whether ``a`` is less than ``b``, or (``or_equal`` is 1) equal."""
    (a_low, a_high), (b_low, b_high) = _range(a, is_signed=is_signed), _range(b, is_signed=is_signed)
    if a_high < b_low + or_equal:
        return truth(bits, value=True)
    return truth(bits, value=False if a_low >= b_high + or_equal else None)


def carry(bits: int, a: StridedInterval, b: StridedInterval) -> StridedInterval:
    """Whether the unsigned sum needs a bit more."""
    (a_low, a_high), (b_low, b_high) = a.unsigned_range(), b.unsigned_range()
    return _outside(bits, a_low + b_low, a_high + b_high, 0, (1 << a.bits) - 1)


def signed_overflow(sign: int, bits: int, a: StridedInterval, b: StridedInterval) -> StridedInterval:
    """Whether the signed sum (``sign`` 1) or difference (-1) needs a bit more."""
    (a_low, a_high), (b_low, b_high) = a.signed_range(), b.signed_range()
    if sign < 0:
        b_low, b_high = -b_high, -b_low
    half = 1 << (a.bits - 1)
    return _outside(bits, a_low + b_low, a_high + b_high, -half, half - 1)


def _outside(bits: int, low: int, high: int, least: int, most: int) -> StridedInterval:
    """Whether the values of ``low`` .. ``high`` lie outside of ``least`` .. ``most``."""
    if least <= low and high <= most:
        return truth(bits, value=False)
    return truth(bits, value=True if high < least or low > most else None)


def saturated(opcode: str, bits: int, a: StridedInterval, b: StridedInterval) -> StridedInterval:
    """``SignedSaturate`` or ``UnsignedSaturate`` of ``a`` to a constant width."""
    if b.steps:
        return top(bits)
    least, most = _saturation_bounds(opcode, a, b)
    low, high = a.signed_range()
    if least <= low and high <= most:
        return sign_extended(bits, a)
    return between(bits, min(max(low, least), most), max(min(high, most), least))


def saturates(opcode: str, bits: int, a: StridedInterval, b: StridedInterval) -> StridedInterval:
    """Whether `saturated` changes the value."""
    if b.steps:
        return truth(bits, value=None)
    return _outside(bits, *a.signed_range(), *_saturation_bounds(opcode, a, b))


def _saturation_bounds(opcode: str, a: StridedInterval, b: StridedInterval) -> tuple[int, int]:
    power = 1 << min(b.low, a.bits)
    return (-power if opcode.startswith("Signed") else 0), power - 1
