# SPDX-License-Identifier: 0BSD
"""Strided intervals of 32-bit words: what the checker knows of a register or of a word of the stack.

A value is a base and an offset from ``low`` to ``high`` in steps of ``stride``. The base ``number`` is 0; ``stack`` is
the stack pointer where the analysed function is entered, ``link`` the address that the function returns to; ``any``
says nothing at all. A number is also what is *not derived from the stack pointer*: see the rule of stores. Bases that
begin with ``@`` stand for what a place held where a round of a loop began, see `counters`.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

WORD = 1 << 32
_HALF = 1 << 31


@dataclass(frozen=True, slots=True)
class Value:
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
    def is_constant(self) -> bool:
        """Whether it is one word, given its base."""
        return self.base != "any" and self.low == self.high

    @property
    def may_be_stack(self) -> bool:
        """Whether it may be derived from the stack pointer."""
        return self.base in {"stack", "any"}

    @property
    def count(self) -> int:
        """How many words it may be."""
        return (self.high - self.low) // self.stride + 1 if self.stride else 1

    def words(self) -> range:
        """All that the offset may be."""
        return range(self.low, self.high + 1, self.stride or 1)


ANY = Value("any", 0, 0, 0)
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


def join(a: Value, b: Value) -> Value:
    """All that is in one of the two."""
    if a == b:
        return a
    if a.base != b.base:
        return ANY if a.may_be_stack or b.may_be_stack else TOP
    if a.base == "any":
        return ANY
    stride = gcd(a.stride, b.stride, abs(a.low - b.low))
    return Value(a.base, min(a.low, b.low), max(a.high, b.high), stride)


def within(a: Value, b: Value) -> bool:
    """Whether all of ``a`` is in ``b``."""
    if b.base == "any" or a == b:
        return True
    if a.base != b.base:
        return a.base == "link" and b == TOP
    if not b.low <= a.low <= a.high <= b.high:
        return False
    return b.stride != 0 and (a.low - b.low) % b.stride == 0 and a.stride % b.stride == 0


def clamped(value: Value, low: int, high: int) -> Value | None:
    """What of a number lies from ``low`` to ``high``; None where nothing does."""
    low, high = max(low, value.low), min(high, value.high)
    if value.stride:
        low += -(low - value.low) % value.stride
        high -= (high - value.low) % value.stride
    if low > high:
        return None
    return Value("number", low, high, value.stride if high > low else 0)


def _wrapped(low: int, high: int, stride: int) -> Value:
    """Numbers modulo 2**32: in one turn as they are, else what their steps keep, a power of two."""
    if low // WORD == high // WORD:
        return number(low % WORD, high % WORD, stride or 1)
    step = stride & -stride
    return TOP if step in {0, 1} or step >= WORD else number(low % step, WORD - step + low % step, step)


def _shifted(value: Value, low: int, high: int, stride: int) -> Value:
    """``value`` with a number added, from ``low`` to ``high``; the number is taken as signed."""
    if value.base == "number":
        return _wrapped(value.low + low, value.high + high, gcd(value.stride, stride))
    if value.base in {"any", "link"} or ">" in value.base:
        return ANY if value.may_be_stack else TOP
    if low >= _HALF:
        low, high = low - WORD, high - WORD
    low, high = value.low + low, value.high + high
    return Value(value.base, low, high, gcd(value.stride, stride)) if -_HALF <= low <= high < _HALF else ANY


def add(a: Value, b: Value) -> Value:
    """The sum."""
    if b.base == "number" and not (a.base != "number" and b.low < _HALF <= b.high):
        return _shifted(a, b.low, b.high, b.stride)
    if a.base == "number" and not (b.base != "number" and a.low < _HALF <= a.high):
        return _shifted(b, a.low, a.high, a.stride)
    return _unknown(a, b)


def subtract(a: Value, b: Value) -> Value:
    """The difference; of two values with one base it is a number."""
    if a.base == b.base and a.base not in {"any", "number"} and ">" not in a.base:
        return _wrapped(a.low - b.high, a.high - b.low, gcd(a.stride, b.stride))
    if b.base != "number" or (a.base != "number" and b.low < _HALF <= b.high):
        return _unknown(a, b)
    if a.base == "number":
        return _wrapped(a.low - b.high, a.high - b.low, gcd(a.stride, b.stride))
    low, high = (b.low - WORD, b.high - WORD) if b.low >= _HALF else (b.low, b.high)
    if a.base in {"any", "link"} or ">" in a.base:
        return _unknown(a, b)
    low, high = a.low - high, a.high - low
    return Value(a.base, low, high, gcd(a.stride, b.stride)) if -_HALF <= low <= high < _HALF else ANY


def _unknown(*operands: Value) -> Value:
    """Something that was computed from ``operands``."""
    return ANY if any(one.may_be_stack for one in operands) else TOP


def multiply(a: Value, b: Value) -> Value:
    """The product modulo 2**32."""
    if not (a.is_number and b.is_number):
        return _unknown(a, b)
    if b.is_constant:
        return _wrapped(a.low * b.low, a.high * b.low, a.stride * b.low)
    if a.is_constant:
        return multiply(b, a)
    return number(a.low * b.low, a.high * b.high) if a.high * b.high < WORD else TOP


def shift_left(a: Value, b: Value) -> Value:
    """``a`` shifted by ``b`` bits; the bits that leave the word are lost."""
    if not (a.is_number and b.is_number) or b.high > 31:
        return _unknown(a, b)
    if b.is_constant:
        return multiply(a, Value("number", 1 << b.low, 1 << b.low, 0))
    return number(a.low << b.low, a.high << b.high) if a.high << b.high < WORD else TOP


def shift_right(a: Value, b: Value) -> Value:
    """``a``, unsigned, shifted by ``b`` bits."""
    if a.base.startswith("@") and a.low == a.high == 0 and b.is_number and b.is_constant and 0 < b.low < 32:
        return Value(f"{a.base}>{b.low}", 0, 0, 0) if ">" not in a.base else ANY
    if not (a.is_number and b.is_number):
        return _unknown(a, b)
    low, high = a.low >> min(b.high, 32), a.high >> min(b.low, 32)
    unit = 1 << min(b.low, 32)
    exact = b.is_constant and a.stride % unit == 0
    return number(low, high, a.stride // unit if exact and a.stride else 1)


def shift_right_signed(a: Value, b: Value) -> Value:
    """``a``, signed, shifted by ``b`` bits."""
    if a.is_number and a.high < _HALF:
        return shift_right(a, b)
    if a.is_number and b.is_number and b.is_constant and a.low >= _HALF and b.low < 32:
        return number((a.low - WORD >> b.low) % WORD, (a.high - WORD >> b.low) % WORD)
    return _unknown(a, b)


def conjunction(a: Value, b: Value) -> Value:
    """The bits that are set in both."""
    if not (a.is_number and b.is_number):
        return _unknown(a, b)
    if a.is_constant and not b.is_constant:
        a, b = b, a
    if a.is_constant and b.is_constant:
        return constant(a.low & b.low)
    if b.is_constant:
        mask = b.low
        unit = mask & -mask
        if mask & mask + unit == 0 and unit and a.low // (mask + unit) == a.high // (mask + unit):
            # The mask takes one field of bits, above which nothing changes in ``a``.
            low, high = a.low & mask, a.high & mask
            return number(low, high, a.stride if a.stride and a.stride % unit == 0 else unit)
        return number(0, min(a.high, mask) & -unit, unit) if unit else constant(0)
    return number(0, min(a.high, b.high))


def disjunction(a: Value, b: Value) -> Value:
    """The bits that are set in one of the two."""
    if not (a.is_number and b.is_number):
        return _unknown(a, b)
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
    if not (a.is_number and b.is_number):
        return _unknown(a, b)
    if a.is_constant and b.is_constant:
        return constant(a.low ^ b.low)
    return number(0, (1 << max(a.high, b.high).bit_length()) - 1)


def complement(a: Value) -> Value:
    """All bits turned over."""
    return Value("number", WORD - 1 - a.high, WORD - 1 - a.low, a.stride) if a.is_number else _unknown(a)


def extended(a: Value, bits: int, *, is_signed: bool) -> Value:
    """The lowest ``bits`` bits as a word."""
    if not a.is_number:
        return _unknown(a)
    if a.high < 1 << (bits - is_signed):
        return a
    return TOP if is_signed else conjunction(a, constant((1 << bits) - 1))


def leading_zeros(a: Value) -> Value:
    """How many of the highest bits are 0."""
    return number(32 - a.high.bit_length(), 32 - a.low.bit_length()) if a.is_number else number(0, 32)


def divide(a: Value, b: Value) -> Value:
    """The unsigned quotient, rounded down."""
    if not (a.is_number and b.is_number) or b.low == 0:
        return _unknown(a, b)
    return number(a.low // b.high, a.high // b.low)


_OPPOSITE = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_MIRRORED = {"==": "==", "!=": "!=", "<": ">", ">": "<", "<=": ">=", ">=": "<="}


def opposite(relation: str) -> str:
    """The relation that holds where ``relation`` does not."""
    return _OPPOSITE[relation]


def refined(a: Value, relation: str, b: Value, *, is_signed: bool) -> Value | None:
    """What ``a`` may be where ``a relation b`` holds; None where it cannot. Anything but numbers stays as it is."""
    if not (a.is_number and b.is_number):
        return a
    if relation == "==":
        found = clamped(a, b.low, b.high)
        return None if found is None or (b.is_constant and b.low not in a.words()) else found
    if relation == "!=":
        return _without(a, b.low) if b.is_constant else a
    if is_signed and max(a.high, b.high) >= _HALF:
        return _refined_signed(a, relation, b)
    return _below_or_above(a, relation, b, 0, WORD - 1)


def _below_or_above(a: Value, relation: str, b: Value, least: int, most: int) -> Value | None:
    match relation:
        case "<":
            return clamped(a, least, b.high - 1)
        case "<=":
            return clamped(a, least, b.high)
        case ">":
            return clamped(a, b.low + 1, most)
    return clamped(a, b.low, most)


def _refined_signed(a: Value, relation: str, b: Value) -> Value | None:
    """A signed comparison; values on both sides of zero are seen where the result is on one."""
    if any(one.low < _HALF <= one.high for one in (a, b)):
        if relation in {">", ">="} and b.high < _HALF:  # a is not negative
            return clamped(a, b.low + (relation == ">"), _HALF - 1)
        if relation in {"<", "<="} and b.low >= _HALF:  # a is negative
            return clamped(a, _HALF, b.high - (relation == "<"))
        return a
    low, high = (value - WORD if value >= _HALF else value for value in (b.low, b.high))
    base = -WORD if a.low >= _HALF else 0
    moved = _below_or_above(
        Value("number", a.low + base, a.high + base, a.stride), relation, Value("number", low, high, 1), -_HALF, _HALF
    )
    return None if moved is None else Value("number", moved.low - base, moved.high - base, moved.stride)


def _without(a: Value, word: int) -> Value | None:
    if a.is_constant:
        return None if a.low == word else a
    step = a.stride
    low, high = a.low + step * (a.low == word), a.high - step * (a.high == word)
    return Value("number", low, high, step if high > low else 0)


def mirrored(relation: str) -> str:
    """The relation of the sides exchanged."""
    return _MIRRORED[relation]
