"""Which numbers of an address facts about pointers speak of."""

import pytest

from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.values.states.unknown_numbers import UNKNOWN_EXTENT, is_unknown

MINUS_ONE = (1 << 32) - 1


@pytest.mark.parametrize("factor", [1, MINUS_ONE])
def test_a_number_without_a_range_that_is_added_or_subtracted_once_is_unknown(factor):
    assert is_unknown(factor, strided.top(32))
    assert is_unknown(factor, strided.residue_class(32, 4, 8))
    assert is_unknown(factor, strided.between(32, 0, UNKNOWN_EXTENT))


@pytest.mark.parametrize("factor", [0, 2, 4, MINUS_ONE - 1, -1])
def test_a_multiple_is_computed_and_no_pointer(factor):
    assert not is_unknown(factor, strided.top(32))


def test_a_number_with_a_range_is_known_be_it_signed():
    assert not is_unknown(1, strided.between(32, 0, UNKNOWN_EXTENT - 1))
    assert not is_unknown(1, strided.between(32, -100, 100))
    assert not is_unknown(1, strided.constant(32, MINUS_ONE))


def test_the_factor_is_that_of_the_numbers_own_width():
    assert is_unknown((1 << 40) - 1, strided.top(40))
    assert not is_unknown(MINUS_ONE, strided.top(40))
