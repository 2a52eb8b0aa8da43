"""Classes of numbers modulo a power of two against the numbers themselves."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from wcet_probe.analyzer.domains.congruences import Congruence, CongruenceLattice, joined

CLASSES = st.builds(
    lambda power, number: Congruence(1 << power, number % (1 << power)), st.integers(0, 5), st.integers(0, 31)
)


def numbers(of: Congruence) -> set[int]:
    return set(range(of.residue, 64, of.modulus))


@given(CLASSES, CLASSES)
def test_the_join_is_the_least_class_above_both(one, other):
    both = joined(one, other)
    assert numbers(one) | numbers(other) <= numbers(both)
    finer = Congruence(2 * both.modulus, one.residue % (2 * both.modulus))
    assert both.modulus == min(one.modulus, other.modulus) or not numbers(one) | numbers(other) <= numbers(finer)
    assert joined(other, one) == both


@given(CLASSES, st.integers(0, 6))
def test_a_coarser_class_has_the_numbers_of_the_finer(one, power):
    coarser = one.modulo(1 << power)
    assert coarser.modulus == min(one.modulus, 1 << power)
    assert numbers(one) <= numbers(coarser)


@given(CLASSES, CLASSES)
def test_the_order_is_inclusion_and_no_number_is_below_all(one, other):
    lattice = CongruenceLattice()
    assert lattice.leq(one, other) == (numbers(one) <= numbers(other))
    assert lattice.leq(None, one)
    assert not lattice.leq(one, None)
    assert lattice.join(None, one) == lattice.join(one, None) == one
    assert numbers(lattice.top()) == set(range(64))
