"""Sums of terms with constant coefficients, modulo a power of two.

Words: linear form, term (docs/explanation/glossary.md).

*Soundness:* identities of arithmetic modulo 2**bits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Linear(NamedTuple):
    """The sum of ``coefficients``, by the number of the term, times terms plus ``constant``, modulo 2**bits."""

    coefficients: Mapping[int, int]
    constant: int
    bits: int


def combined(one: Linear, other: Linear, factor: int) -> Linear:
    """``one + factor * other``, without zero coefficients."""
    mask = (1 << one.bits) - 1
    coefficients = dict(one.coefficients)
    for term, coefficient in other.coefficients.items():
        coefficients[term] = coefficients.get(term, 0) + factor * coefficient & mask
    return Linear(
        {term: c for term, c in sorted(coefficients.items()) if c},
        (one.constant + factor * other.constant) & mask,
        one.bits,
    )
