# SPDX-License-Identifier: 0BSD
"""Numbers modulo powers of two, which is what an address is called aligned by."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from wcet_probe.certificate.values.numbers import Value

MOST_MODULUS = 1 << 12
"""Of no number more is told."""
_WORD_BITS = 32
UNKNOWN_SPAN = 1 << 31
"""A number of so many values is one of which nothing is known but its lowest bits."""


class Congruence(NamedTuple):
    """A number is ``residue`` modulo ``modulus``, a power of two."""

    modulus: int
    residue: int

    def moved(self, offset: int) -> Congruence:
        """The class of the number plus ``offset``."""
        return Congruence(self.modulus, (self.residue + offset) % self.modulus)

    def coarser(self, modulus: int) -> Congruence:
        """The same number by a smaller modulus."""
        modulus = min(modulus, self.modulus)
        return Congruence(modulus, self.residue % modulus)


UNALIGNED = Congruence(1, 0)
BELIEVED = Congruence(2 * MOST_MODULUS, 0)
"""A number of which nothing is known but what the fact of the code says that makes an access by it."""


def residue_of(value: Value) -> Congruence:
    """The class of a number by its steps; of a distance from the stack pointer at entry, modulo 8: stack-alignment."""
    if not (value.is_plain or value.base == "stack"):
        return UNALIGNED
    modulus = min(value.stride & -value.stride, MOST_MODULUS) if value.stride else MOST_MODULUS
    if value.base == "stack":
        modulus = min(modulus, 8)
    return Congruence(modulus, value.low % modulus)


def shifted(known: Congruence, bits: int | None, number: Value) -> Congruence:
    """The class of a number that is shifted left so far; None: otherwise.

    If ``number``, which it was or became, may be any, it has its class from facts, which do not speak of multiples.
    """
    if bits is None or bits >= _WORD_BITS:
        return UNALIGNED if bits is None else Congruence(MOST_MODULUS, 0)
    if bits and not (number.is_number and number.high - number.low < UNKNOWN_SPAN):
        known = UNALIGNED
    return Congruence(min(MOST_MODULUS, known.modulus << bits), known.residue << bits).moved(0)


def implies(known: Congruence, wanted: Congruence) -> bool:
    """Whether all numbers of one class are of the other."""
    return wanted.modulus <= known.modulus and known.coarser(wanted.modulus) == wanted


def either(one: Congruence, other: Congruence) -> Congruence:
    """The class of a number that is of one of two."""
    modulus = min(one.modulus, other.modulus)
    apart = (one.residue - other.residue) % modulus
    return one.coarser(min(modulus, apart & -apart or modulus))


def difference(one: Congruence, other: Congruence) -> Congruence:
    """The class of one number less another."""
    modulus = min(one.modulus, other.modulus, MOST_MODULUS)
    return Congruence(modulus, (one.residue - other.residue) % modulus)


def total(one: Congruence, other: Congruence) -> Congruence:
    """The class of the sum of two numbers."""
    return difference(one, negative(other))


def negative(known: Congruence) -> Congruence:
    """The class of a number that is negated."""
    return difference(Congruence(MOST_MODULUS, 0), known)


def class_of_fact(numbers: Sequence[int]) -> Congruence:
    """The class that a fact tells by a divisor and a remainder."""
    multiple_of, *remainder = numbers
    modulus = power_of_two((multiple_of,))
    return Congruence(modulus, sum(remainder) % modulus)


def power_of_two(numbers: Iterable[int]) -> int:
    """The greatest power of two up to 4,096 that divides all of ``numbers``, but for zeros."""
    return min((number & -number for number in numbers if number), default=MOST_MODULUS)
