# SPDX-License-Identifier: 0BSD
"""Sets of residues modulo 64, as masks with a bit for each: flags in the lowest bits of a size stay apart so."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache

from wcet_probe.certificate.values.congruences import Congruence, residue_of
from wcet_probe.certificate.values.numbers import Value

MODULUS = 64
ALL = (1 << MODULUS) - 1
"""Every residue."""
_MOST_REMEMBERED = 1 << 14


def members(residues: int) -> Iterator[int]:
    """The residues of a mask."""
    return (one for one in range(MODULUS) if residues >> one & 1)


def residue(number: int) -> int:
    """The mask of the residue of ``number``."""
    return 1 << number % MODULUS


def each(residues: int, change: Callable[[int], int]) -> int:
    """The residues of what ``change``, which knows of a number its lowest bits, makes of numbers."""
    found = 0
    for one in members(residues):
        found |= residue(change(one))
    return found


def moved(residues: int, by: int) -> int:
    """The residues of numbers that ``by`` is added to."""
    amount = by % MODULUS
    return (residues << amount | residues >> MODULUS - amount) & ALL


def negated(residues: int) -> int:
    """The residues of negative numbers."""
    return scaled_by(residues, -1)


@lru_cache(_MOST_REMEMBERED)
def added_up(one: int, other: int) -> int:
    """The residues of sums."""
    found = 0
    for amount in members(one):
        found |= moved(other, amount)
    return found


@lru_cache(_MOST_REMEMBERED)
def scaled_by(residues: int, factor: int) -> int:
    """The residues of products with ``factor``."""
    return each(residues, lambda one: one * factor)


@lru_cache(_MOST_REMEMBERED)
def combined(operation: Callable[[int, int], int], one: int, other: int) -> int:
    """The residues of what an ``operation`` makes of two numbers that works bit by bit."""
    found = 0
    for first in members(one):
        found |= each(other, lambda second, first=first: operation(first, second))  # type: ignore[misc]
    return found


@lru_cache(_MOST_REMEMBERED)
def of_class(known: Congruence) -> int:
    """The residues of numbers of a class."""
    modulus = min(known.modulus, MODULUS)
    return sum(residue(one) for one in range(known.residue % modulus, MODULUS, modulus))


@lru_cache(_MOST_REMEMBERED)
def of_value(value: Value) -> int:
    """The residues of numbers, which are known as ``value``."""
    if value.size > MODULUS:
        return of_class(residue_of(value))
    found = 0
    for one in value.words():
        found |= residue(one)
    return found


@lru_cache(_MOST_REMEMBERED)
def text_of_residues(residues: int) -> str:
    """The least modulus by which ``residues`` repeat, and those that are less than it: ``8:0,1``."""
    modulus = MODULUS
    while modulus > 1 and moved(residues, modulus // 2) == residues:
        modulus //= 2
    return f"{modulus}:{','.join(str(one) for one in members(residues) if one < modulus)}"
