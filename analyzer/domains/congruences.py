"""Congruences: the numbers with one residue modulo a power of two.

Source: P. Granger, Static analysis of arithmetical congruences, 1989; here modulo powers of
two only, which arithmetic modulo the size of a word keeps.

Words: congruence, lattice (docs/explanation/glossary.md).

*Soundness:* the join holds all numbers of either class.
"""

from __future__ import annotations

from typing import NamedTuple

from wcet_probe.analyzer.domains.lattice import Lattice


class Congruence(NamedTuple):
    """The numbers that are ``residue`` modulo ``modulus``, a power of two."""

    modulus: int
    residue: int

    def modulo(self, most: int) -> Congruence:
        """The class modulo ``most`` at most, which is a power of two."""
        modulus = min(self.modulus, most)
        return Congruence(modulus, self.residue % modulus)


def joined(one: Congruence, other: Congruence) -> Congruence:
    """The least class above two.

    *Soundness:* exact.
    """
    modulus = min(one.modulus, other.modulus)
    while (one.residue - other.residue) % modulus:
        modulus //= 2
    return Congruence(modulus, one.residue % modulus)


class CongruenceLattice(Lattice[Congruence | None]):
    """Classes of numbers, ordered by inclusion; None is the class of no number, below all others. Chains are finite."""

    def bottom(self) -> Congruence | None:
        """No number."""
        return None

    def top(self) -> Congruence | None:
        """All numbers."""
        return Congruence(1, 0)

    def leq(self, one: Congruence | None, other: Congruence | None) -> bool:
        """Whether all numbers of ``one`` are in ``other``."""
        return self.join(one, other) == other

    def join(self, one: Congruence | None, other: Congruence | None) -> Congruence | None:
        """The least class above both."""
        return other if one is None else one if other is None else joined(one, other)
