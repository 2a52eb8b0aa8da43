# SPDX-License-Identifier: 0BSD
"""Strided intervals of 32-bit words: what the checker knows of a register or of a word of memory.

A value is a base and an offset from ``low`` to ``high`` in steps of ``stride``. The base ``number`` is 0, for what is
*not derived from the stack pointer*, see the rule of stores; ``any`` is 0 as well, for what may be. They are *plain*:
words from 0 on, or from below 0 to above it, as signed numbers. ``stack`` is the stack pointer where the analysed
function is entered, ``link`` the address that the function returns to. Bases that begin with ``@`` stand for what a
place held where a round of a loop began, see `counters`.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache, reduce
from math import gcd
from typing import NamedTuple

WORD = 1 << 32
_HALF = 1 << 31
TAINTED = "@any "
"""What the names of bases begin with that stand for something that may be derived from the stack pointer."""
_MOST_REMEMBERED = 1 << 14
"""So many answers are remembered: an execution of a block asks much of what the one before it did."""


class Value(NamedTuple):
    """``base + low + k * stride``, at most ``base + high``; of a constant the stride is 0."""

    base: str
    low: int
    high: int
    stride: int

    @property
    def is_number(self) -> bool:
        """Whether it is not derived from the stack pointer, and known as a plain number."""
        return self.base == "number"

    @property
    def is_plain(self) -> bool:
        """Whether it is known as a plain number, from wherever it is derived."""
        return self.base in {"number", "any"}

    @property
    def is_constant(self) -> bool:
        """Whether it is one word, given its base."""
        return self.low == self.high

    @property
    def may_be_stack(self) -> bool:
        """Whether it may be derived from the stack pointer."""
        return self.base in {"stack", "any"} or self.base.startswith(TAINTED)

    @property
    def size(self) -> int:
        """How many words it may be."""
        return (self.high - self.low) // self.stride + 1 if self.stride else 1

    def words(self) -> range:
        """All that the offset may be."""
        return range(self.low, self.high + 1, self.stride or 1)


ANY = Value("any", 0, WORD - 1, 1)
TOP = Value("number", 0, WORD - 1, 1)
LINK = Value("link", 0, 0, 0)


def number(low: int, high: int | None = None, stride: int = 1) -> Value:
    """The numbers from ``low`` to ``high`` (None: only ``low``), cut down to the steps of ``stride``."""
    high = low if high is None else high
    if low == high:
        return Value("number", low, low, 0)
    high -= (high - low) % stride
    return Value("number", low, high, stride if high > low else 0)


def constant(word: int) -> Value:
    """The word ``word`` modulo 2**32."""
    return Value("number", word % WORD, word % WORD, 0)


def signed(word: int) -> int:
    """A word as a signed number."""
    return (word + _HALF) % WORD - _HALF


def bare(value: Value) -> Value:
    """``value`` by the name alone that it has, whether or not it may be derived from the stack pointer."""
    return Value(f"@{value.base[len(TAINTED) :]}", *value[1:]) if value.base.startswith(TAINTED) else value


def unknown(*operands: Value) -> Value:
    """Something that was computed from ``operands``."""
    return ANY if any(one.may_be_stack for one in operands) else TOP


def _derived(value: Value, *operands: Value) -> Value:
    """The number ``value``, which was computed from ``operands``."""
    return _based(value, unknown(*operands).base)


def _based(value: Value, base: str) -> Value:
    return value if value.base == base else Value(base, value.low, value.high, value.stride)


def unsigned(a: Value) -> Value:
    """All of ``a`` as words from 0 on; of what is not plain, all words."""
    if not a.is_plain:
        return unknown(a)
    return a if a.low >= 0 else _based(_steps_alone(a.low, a.stride), a.base)


def _steps_alone(low: int, stride: int) -> Value:
    """What steps keep of numbers modulo 2**32: a power of two."""
    step = min(stride & -stride, WORD)
    return TOP if step < 2 else number(low % step, WORD - step + low % step, step)


def _wrapped(low: int, high: int, stride: int) -> Value:
    """Numbers modulo 2**32: as they are in one turn, from 0 or from -2**31 on, else what their steps keep."""
    first = low % WORD
    last = first + high - low
    if last >= WORD:
        first, last = first - WORD, last - WORD
    is_signed = -_HALF <= first <= last < _HALF and last - first + stride < WORD
    if is_signed or 0 <= first <= last < WORD:
        return number(first, last, stride or 1)
    return _steps_alone(low, stride)


def parts(a: Value, *, is_signed: bool) -> list[Value]:
    """What is plain, in one part or two: as words from 0 on, or from -2**31 on."""
    edge = _HALF if is_signed else 0
    below, above = clamped(a, a.low, edge - 1), clamped(a, edge, a.high)
    moved = (below, 0 if is_signed else WORD), (above, -WORD if is_signed else 0)
    return [_moved(one, by) for one, by in moved if one is not None]


def _moved(value: Value, by: int) -> Value:
    return Value(value.base, value.low + by, value.high + by, value.stride) if by else value


def join(a: Value, b: Value) -> Value:
    """All that is in one of the two."""
    return a if a == b else _join(a, b)


@lru_cache(_MOST_REMEMBERED)
def _join(a: Value, b: Value) -> Value:
    if not (a.is_plain and b.is_plain):
        return _hull(a, b) if a.base == b.base else unknown(a, b)
    found = []
    for is_signed in (False, True):
        one, other = parts(a, is_signed=is_signed), parts(b, is_signed=is_signed)
        if len(one) == len(other) == 1:
            found.append(_hull(one[0], other[0]))
    least = min(found, key=lambda one: one.high - one.low, default=None)
    if least is None:
        return _derived(_steps_alone(a.low, gcd(a.stride, b.stride, abs(a.low - b.low))), a, b)
    return _derived(_wrapped(least.low, least.high, least.stride), a, b)


def _hull(a: Value, b: Value) -> Value:
    stride = gcd(a.stride, b.stride, abs(a.low - b.low))
    return Value(a.base, min(a.low, b.low), max(a.high, b.high), stride)


def within(a: Value, b: Value) -> bool:
    """Whether all of ``a`` is in ``b``."""
    if b in (a, ANY):
        return True
    if not (a.is_plain and b.is_plain):
        return _is_part(a, b) if a.base == b.base else a.base == "link" and b == TOP
    if a.may_be_stack and not b.may_be_stack:
        return False
    if b.high - b.low + b.stride == WORD:  # all words of their steps
        return (a.low - b.low) % b.stride == a.stride % b.stride == 0
    return any(_is_part(_moved(a, by), b) for by in (0, WORD, -WORD))


def _is_part(a: Value, b: Value) -> bool:
    if not b.low <= a.low <= a.high <= b.high:
        return False
    return b.is_constant or ((a.low - b.low) % b.stride == 0 and a.stride % b.stride == 0)


def clamped(value: Value, low: int, high: int) -> Value | None:
    """What of something plain lies from ``low`` to ``high``, read as it is; None where nothing does."""
    low, high = max(low, value.low), min(high, value.high)
    if value.stride:
        low += -(low - value.low) % value.stride
        high -= (high - value.low) % value.stride
    if low > high:
        return None
    return Value(value.base, low, high, value.stride if high > low else 0)


def _shifted(value: Value, low: int, high: int, stride: int) -> Value:
    """``value``, which is not plain, with a number added, from ``low`` to ``high``, that is taken as signed."""
    if value.base == "link" or ">" in value.base:
        return unknown(value)
    if low >= _HALF:
        low, high = low - WORD, high - WORD
    low, high = value.low + low, value.high + high
    return Value(value.base, low, high, gcd(value.stride, stride)) if -_HALF <= low <= high < _HALF else ANY


def _has_sign(a: Value) -> bool:
    """Whether it is a number whose words, read as signed numbers, are one range."""
    return a.is_number and not a.low < _HALF <= a.high


def add(a: Value, b: Value) -> Value:
    """The sum."""
    if a.is_plain and b.is_plain:
        return _derived(_wrapped(a.low + b.low, a.high + b.high, gcd(a.stride, b.stride)), a, b)
    if a.is_plain:
        a, b = b, a
    return _shifted(a, b.low, b.high, b.stride) if _has_sign(b) else unknown(a, b)


def subtract(a: Value, b: Value) -> Value:
    """The difference; of two values with one base it is a number."""
    if a.is_plain and b.is_plain:
        return _derived(_wrapped(a.low - b.high, a.high - b.low, gcd(a.stride, b.stride)), a, b)
    if a.base == b.base and ">" not in a.base:
        return _wrapped(a.low - b.high, a.high - b.low, gcd(a.stride, b.stride))
    if a.is_plain or not _has_sign(b):
        return unknown(a, b)
    low, high = (b.low - WORD, b.high - WORD) if b.low >= _HALF else (b.low, b.high)
    return _shifted(a, -high, -low, b.stride)


def multiply(a: Value, b: Value) -> Value:
    """The product modulo 2**32."""
    if not (a.is_plain and b.is_plain):
        return unknown(a, b)
    if b.is_constant:
        return _derived(_wrapped(a.low * b.low, a.high * b.low, a.stride * b.low), a, b)
    if a.is_constant:
        return multiply(b, a)
    one, other = unsigned(a), unsigned(b)
    return _derived(_small(one.low * other.low, one.high * other.high), a, b)


def _small(low: int, high: int) -> Value:
    """The numbers from ``low`` to ``high``, if they are words."""
    return number(low, high) if high < WORD else TOP


def shift_left(a: Value, b: Value) -> Value:
    """``a`` shifted by ``b`` bits; the bits that leave the word are lost."""
    bits = unsigned(b)
    if not a.is_plain or bits.high > 31:
        return unknown(a, b)
    if bits.is_constant:
        return _derived(multiply(a, constant(1 << bits.low)), a, b)
    a = unsigned(a)
    low, high, unit = a.low << bits.low, a.high << bits.high, gcd(a.low, a.stride) << bits.low
    return _derived(number(low, high, unit or 1) if high < WORD else _steps_alone(0, unit), a, b)


def shift_right(a: Value, b: Value) -> Value:
    """``a``, unsigned, shifted by ``b`` bits."""
    if a.base.startswith("@") and a.low == a.high == 0 and b.is_number and b.is_constant and 0 < b.low < 32:
        return Value(f"{a.base}>{b.low}", 0, 0, 0) if ">" not in a.base else unknown(a)
    word, bits = unsigned(a), unsigned(b)
    low, high = word.low >> min(bits.high, 32), word.high >> min(bits.low, 32)
    unit = 1 << min(bits.low, 32)
    exact = bits.is_constant and word.stride % unit == 0
    return _derived(number(low, high, word.stride // unit if exact and word.stride else 1), a, b)


def shift_right_signed(a: Value, b: Value) -> Value:
    """``a``, signed, shifted by ``b`` bits."""
    if a.is_plain and 0 <= a.low <= a.high < _HALF:
        return shift_right(a, b)
    if a.is_plain and b.is_plain and b.is_constant and b.low < 32:
        halves = parts(a, is_signed=True)
        return _derived(_joined(_wrapped(one.low >> b.low, one.high >> b.low, 1) for one in halves), a, b)
    return unknown(a, b)


def _joined(values: Iterable[Value]) -> Value:
    return reduce(join, values)


def conjunction(a: Value, b: Value) -> Value:
    """The bits that are set in both."""
    return _derived(_conjunction(unsigned(a), unsigned(b)), a, b)


def _conjunction(a: Value, b: Value) -> Value:
    if a.is_constant and not b.is_constant:
        a, b = b, a
    if a.is_constant and b.is_constant:
        return constant(a.low & b.low)
    if b.is_constant:
        mask = b.low
        unit = mask & -mask
        if a.stride % (1 << mask.bit_length()) == 0:
            return constant(a.low & mask)
        if mask & mask + unit == 0 and unit and a.low // (mask + unit) == a.high // (mask + unit):
            # The mask takes one field of bits, above which nothing changes in ``a``.
            low, high = a.low & mask, a.high & mask
            return number(low, high, a.stride if a.stride and a.stride % unit == 0 else unit)
        return number(0, min(a.high, mask) & -unit, unit) if unit else constant(0)
    return number(0, min(a.high, b.high))


def with_low_bits(whole: Value, modulus: int, part: Value) -> Value | None:
    """The hull of those of the numbers ``whole`` that are one of ``part`` modulo ``modulus``; None where none is.

    Args:
        whole: numbers.
        modulus: a power of two.
        part: from 0 on, below ``modulus``.
    """
    low, high, first, last = part.low, part.high, whole.low, whole.high
    first += max(0, low - first % modulus) if first % modulus <= high else modulus + low - first % modulus
    last -= max(0, last % modulus - high) if last % modulus >= low else last % modulus + modulus - high
    return number(first, last) if first <= last else None


def disjunction(a: Value, b: Value) -> Value:
    """The bits that are set in one of the two."""
    return _derived(_disjunction(unsigned(a), unsigned(b)), a, b)


def _disjunction(a: Value, b: Value) -> Value:
    if a.is_constant and b.is_constant:
        return constant(a.low | b.low)
    if a.is_constant:
        a, b = b, a
    if b.is_constant and b.low == 0:
        return a
    for one, other in ((a, b), (b, a)):
        unit = gcd(one.low, one.stride)
        if unit & -unit > other.high:  # no bit is in both
            return add(one, other)
    return number(max(a.low, b.low), (1 << max(a.high, b.high).bit_length()) - 1)


def exclusive(a: Value, b: Value) -> Value:
    """The bits that are set in one of the two only."""
    one, other = unsigned(a), unsigned(b)
    if one.is_constant and other.is_constant:
        return _derived(constant(one.low ^ other.low), a, b)
    return _derived(number(0, (1 << max(one.high, other.high).bit_length()) - 1), a, b)


def complement(a: Value) -> Value:
    """All bits turned over."""
    return _derived(_wrapped(-1 - a.high, -1 - a.low, a.stride), a) if a.is_plain else unknown(a)


def extended(a: Value, bits: int, *, is_signed: bool) -> Value:
    """The lowest ``bits`` bits as a word."""
    word, half, full = unsigned(a), 1 << bits - 1, 1 << bits
    if word.high < (half if is_signed else full):
        return word
    if not is_signed:
        return conjunction(a, constant(full - 1))
    if half <= word.low and word.high < full:
        return _derived(_wrapped(word.low - full, word.high - full, word.stride), a)
    return _derived(number(-half, half - 1), a)


def leading_zeros(a: Value) -> Value:
    """How many of the highest bits are 0."""
    word = unsigned(a)
    return _derived(number(32 - word.high.bit_length(), 32 - word.low.bit_length()), a)


def divide(a: Value, b: Value) -> Value:
    """The unsigned quotient, rounded down."""
    one, other = unsigned(a), unsigned(b)
    if other.low == 0:
        return unknown(a, b)
    return _derived(number(one.low // other.high, one.high // other.low), a, b)


_OPPOSITE = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_MIRRORED = {"==": "==", "!=": "!=", "<": ">", ">": "<", "<=": ">=", ">=": "<="}


def opposite(relation: str) -> str:
    """The relation that holds where ``relation`` does not."""
    return _OPPOSITE[relation]


def refined(a: Value, relation: str, b: Value, *, is_signed: bool) -> Value | None:
    """What ``a`` may be where ``a relation b`` holds; None where it cannot. Anything but plain numbers stays."""
    return _refined(a, relation, b, is_signed=is_signed) if a.is_plain and b.is_plain else a


@lru_cache(_MOST_REMEMBERED)
def _refined(a: Value, relation: str, b: Value, *, is_signed: bool) -> Value | None:
    if relation == "!=":
        return _without(a, b.low) if b.is_constant else a
    others = parts(b, is_signed=is_signed)
    low, high = min(one.low for one in others), max(one.high for one in others)
    least, most = -WORD, WORD
    match relation:
        case "<":
            most = high - 1
        case "<=":
            most = high
        case ">":
            least = low + 1
        case ">=":
            least = low
        case "==":
            least, most = low, high
    clipped = [clamped(one, least, most) for one in parts(a, is_signed=is_signed)]
    found = [_wrapped(one.low, one.high, one.stride) for one in clipped if one is not None]
    return _derived(_joined(found), a) if found else None


def _without(a: Value, word: int) -> Value | None:
    if a.is_constant:
        return None if a.low == word else a
    first, last = a.low % WORD == word % WORD, a.high % WORD == word % WORD
    found = clamped(a, a.low + first, a.high - last)
    return None if found is None else _derived(_wrapped(found.low, found.high, found.stride), a)


def mirrored(relation: str) -> str:
    """The relation of the sides exchanged."""
    return _MIRRORED[relation]
