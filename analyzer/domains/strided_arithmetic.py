"""Widths and arithmetic of p-code on wrapped strided intervals.

Words: strided interval (docs/explanation/glossary.md).

*Soundness:* each result contains the operation's result for all values of the operands, none of which is empty.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import gcd

from wcet_probe.analyzer.domains.strided_interval import Run, StridedInterval, arc, top, union


def zero_extended(bits: int, a: StridedInterval) -> StridedInterval:
    """``a`` in ``bits`` bits: cut off, or filled up with zeros."""
    return arc(bits, a.low, a.stride, a.steps) if bits <= a.bits else union(bits, a.unsigned_runs())


def sign_extended(bits: int, a: StridedInterval) -> StridedInterval:
    """``a`` in ``bits`` bits: cut off, or filled up with the sign."""
    return arc(bits, a.low, a.stride, a.steps) if bits <= a.bits else union(bits, a.signed_runs())


def subpiece(bits: int, a: StridedInterval, b: StridedInterval) -> StridedInterval:
    """``bits`` bits of ``a``, without the ``b`` lowest bytes."""
    if b.steps:
        return top(bits)
    if b.low == 0:
        return zero_extended(bits, a)
    return union(bits, quotients(a.unsigned_runs(), 1 << min(8 * b.low, a.bits)))


def piece(bits: int, a: StridedInterval, b: StridedInterval) -> StridedInterval:
    """``a`` with the bits of ``b`` below."""
    return added(scaled(zero_extended(bits, a), 1 << b.bits), zero_extended(bits, b))


def negative(a: StridedInterval) -> StridedInterval:
    """``-a``, exact."""
    return arc(a.bits, -a.low - a.extent, a.stride, a.steps)


def inverted(a: StridedInterval) -> StridedInterval:
    """``~a``, exact."""
    return arc(a.bits, -1 - a.low - a.extent, a.stride, a.steps)


def added(a: StridedInterval, b: StridedInterval) -> StridedInterval:
    """``a + b``; exact where one of them is a constant."""
    if b.steps == 0:
        return arc(a.bits, a.low + b.low, a.stride, a.steps)
    if a.steps == 0:
        return arc(a.bits, a.low + b.low, b.stride, b.steps)
    stride = gcd(a.stride, b.stride)
    return arc(a.bits, a.low + b.low, stride, (a.extent + b.extent) // stride)


def subtracted(a: StridedInterval, b: StridedInterval) -> StridedInterval:
    """``a - b``; exact where one of them is a constant."""
    return added(a, negative(b))


def scaled(a: StridedInterval, factor: int) -> StridedInterval:
    """``a * factor``; exact where the product stays within one turn, as that of multiples and an inverse does."""
    return arc(a.bits, a.low * factor, a.stride * factor, a.steps)


def multiplied(a: StridedInterval, b: StridedInterval) -> StridedInterval:
    """``a * b``."""
    if b.steps == 0:
        return scaled(a, b.low)
    if a.steps == 0:
        return scaled(b, a.low)
    (a_low, a_high), (b_low, b_high) = _around_zero(a), _around_zero(b)
    corners = (a_low * b_low, a_low * b_high, a_high * b_low, a_high * b_high)
    stride = gcd(a_low * b.stride, b_low * a.stride, a.stride * b.stride)
    return arc(a.bits, min(corners), stride, (max(corners) - min(corners)) // stride)


def _around_zero(a: StridedInterval) -> tuple[int, int]:
    """The ends as integers. Any that are right modulo 2**bits serve; those nearest to zero give the least product."""
    low = a.low - (1 << a.bits) if 2 * a.low + a.extent >= 1 << a.bits else a.low
    return low, low + a.extent


def quotients(runs: Sequence[Run], divisor: int) -> list[Run]:
    """The runs divided by a positive constant, rounded down."""
    result = []
    for low, stride, steps in runs:
        first = low // divisor
        if stride % divisor == 0:
            result.append((first, stride // divisor, steps))
        else:
            result.append((first, 1, (low + stride * steps) // divisor - first))
    return result


def quotient(dividend: Run, divisor: Run) -> Run:
    """Quotients, rounded down, of integers >= 0 by integers > 0."""
    low, stride, steps = dividend
    least, step, more = divisor
    if more == 0:
        return quotients([dividend], least)[0]
    first = low // (least + step * more)
    return first, 1, (low + stride * steps) // least - first


def remainder(dividend: Run, divisor: Run) -> Run:
    """Remainders of integers >= 0 by integers > 0."""
    low, stride, steps = dividend
    least, step, more = divisor
    high = low + stride * steps
    if more == 0 and low // least == high // least:
        return low % least, stride, steps
    if high < least:
        return dividend
    shared = gcd(stride, least, step)
    first = low % shared
    return first, shared, (min(high, least + step * more - 1) - first) // shared


def by_division(
    compute: Callable[[Run, Run], Run],
    a: StridedInterval,
    b: StridedInterval,
    *,
    is_signed: bool,
) -> StridedInterval:
    """`quotient` rounded towards zero, or `remainder` with the sign of ``a``; a division by zero gives 0."""
    parts = []
    for b_is_negative, (least, step, more) in _magnitudes(b, is_signed=is_signed):
        divisor = least, step, more
        if least == 0:
            parts.append((0, 0, 0))
            if more == 0:
                continue
            divisor = step, step, more - 1
        for a_is_negative, dividend in _magnitudes(a, is_signed=is_signed):
            low, stride, steps = compute(dividend, divisor)
            is_negative = a_is_negative if compute is remainder else a_is_negative != b_is_negative
            parts.append((-low - stride * steps if is_negative else low, stride, steps))
    return union(a.bits, parts)


def _magnitudes(a: StridedInterval, *, is_signed: bool) -> Iterator[tuple[bool, Run]]:
    """The values in runs of one sign each: whether it is negative, and the run of absolute values."""
    full = 1 << a.bits
    half = full >> 1 if is_signed else full
    for low, stride, steps in a.unsigned_runs():
        high = low + stride * steps
        if high < half:
            yield False, (low, stride, steps)
        elif low >= half:
            yield True, (full - high, stride, steps)
        else:
            positive = (half - 1 - low) // stride
            yield False, (low, stride, positive)
            yield True, (full - high, stride, steps - positive - 1)
