"""Shifts, bitwise operations and counts of bits of p-code on wrapped strided intervals.

Where arithmetic does what the operation does, it is used, for it keeps strides; else what is known of the single bits.

Words: strided interval (docs/explanation/glossary.md).

*Soundness:* each result contains the operation's result for all values of the operands, none of which is empty.
"""

from __future__ import annotations

from wcet_probe.analyzer.domains.strided_arithmetic import added, inverted, quotients, scaled, zero_extended
from wcet_probe.analyzer.domains.strided_interval import (
    StridedInterval,
    arc,
    between,
    bottom,
    constant,
    join,
    top,
    union,
)


def shift(opcode: str, bits: int, a: StridedInterval, b: StridedInterval) -> StridedInterval:
    """``INT_LEFT``, ``INT_RIGHT`` or ``INT_SRIGHT`` of ``a`` by all amounts of ``b``."""
    if a.bits != bits:
        return top(bits)
    # From the width on all amounts do the same.
    if b.steps <= bits:
        amounts = {min(amount, bits) for amount in b.values()}
    else:
        low, high = b.unsigned_range()
        amounts = set(range(min(low, bits), min(high, bits) + 1))
    result = bottom(bits)
    for amount in sorted(amounts):
        if opcode == "INT_LEFT":
            shifted = scaled(a, 1 << amount)
        else:
            runs = a.unsigned_runs() if opcode == "INT_RIGHT" else a.signed_runs()
            shifted = union(bits, quotients(runs, 1 << amount))
        result = join(result, shifted)
    return result


def known_bits(a: StridedInterval) -> tuple[int, int]:
    """The bits that are one in all values, and the bits that may be zero or one."""
    low, high = a.unsigned_range()
    # Below the lowest bit of the stride all values agree, above the highest bit where the ends differ too.
    unknown = ((1 << (low ^ high).bit_length()) - 1) & -(a.stride & -a.stride)
    return low & ~unknown, unknown


def bitwise(opcode: str, a: StridedInterval, b: StridedInterval) -> StridedInterval:
    """``INT_AND``, ``INT_OR`` or ``INT_XOR`` of two sets of one width."""
    if a.steps == 0:
        a, b = b, a
    exact = _with_constant(opcode, a, b.low) if b.steps == 0 else None
    if exact is not None:
        return exact
    (a_ones, a_unknown), (b_ones, b_unknown) = known_bits(a), known_bits(b)
    (a_low, a_high), (b_low, b_high) = a.unsigned_range(), b.unsigned_range()
    a_most, b_most = a_ones | a_unknown, b_ones | b_unknown
    if opcode == "INT_AND":
        ones, most = a_ones & b_ones, a_most & b_most
        low, high = 0, min(a_high, b_high)
    elif not a_most & b_most:
        return added(a, b)
    elif opcode == "INT_OR":
        ones, most = a_ones | b_ones, a_most | b_most
        low, high = max(a_low, b_low), a_high + b_high
    else:
        unknown = a_unknown | b_unknown
        ones = (a_ones ^ b_ones) & ~unknown
        most, low, high = ones | unknown, 0, a_high + b_high
    return _of_bits(a.bits, ones, most, low, high)


def _of_bits(bits: int, ones: int, most: int, low: int, high: int) -> StridedInterval:
    """The values of ``low`` .. ``high`` that have at least the bits ``ones`` and at most the bits ``most``."""
    unknown = most & ~ones
    if not unknown:
        return constant(bits, ones)
    stride = unknown & -unknown
    first = max(ones, low + (ones - low) % stride)
    return arc(bits, first, stride, (min(most, high) - first) // stride)


def _with_constant(opcode: str, a: StridedInterval, mask: int) -> StridedInterval | None:
    """A bitwise operation with a constant, by arithmetic; None where that does not do it."""
    bits, all_ones = a.bits, (1 << a.bits) - 1
    if opcode == "INT_XOR":
        if mask == all_ones:
            return inverted(a)
        if mask >> (bits - 1):
            # To flip the highest bit is to add it.
            mask ^= 1 << (bits - 1)
            a = arc(bits, a.low + (1 << (bits - 1)), a.stride, a.steps)
    ones, unknown = known_bits(a)
    changed = all_ones & ~mask if opcode == "INT_AND" else mask
    if not changed & unknown:
        before = ones & changed
        after = {"INT_AND": 0, "INT_OR": changed, "INT_XOR": before ^ changed}[opcode]
        return arc(bits, a.low + after - before, a.stride, a.steps)
    if opcode == "INT_AND":
        return _masked(a, mask)
    if opcode == "INT_OR":
        return added(_masked(a, changed ^ all_ones), constant(bits, mask))
    return None


def _masked(a: StridedInterval, mask: int) -> StridedInterval:
    """``a & mask``: cut off above the mask's ones, rounded down below them; zeros among them by known bits."""
    bits, lowest = a.bits, mask & -mask
    if mask == 0:
        return constant(bits, 0)
    result = zero_extended(bits, zero_extended(mask.bit_length(), a))
    if lowest > 1:
        rounded = quotients(result.unsigned_runs(), lowest)
        result = union(bits, [(low * lowest, stride * lowest, steps) for low, stride, steps in rounded])
    if mask + lowest & mask == 0:
        return result
    ones, unknown = known_bits(result)
    return _of_bits(bits, ones & mask, (ones | unknown) & mask, 0, result.unsigned_range()[1])


def population(bits: int, a: StridedInterval) -> StridedInterval:
    """How many ones there are."""
    ones, unknown = known_bits(a)
    return between(bits, ones.bit_count(), (ones | unknown).bit_count())


def leading_zeros(bits: int, a: StridedInterval) -> StridedInterval:
    """How many zeros there are above the highest one."""
    low, high = a.unsigned_range()
    return between(bits, a.bits - high.bit_length(), a.bits - low.bit_length())
