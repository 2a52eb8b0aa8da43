"""Comparisons whose sides move, held against the rounds that numbers of few bits make."""

from itertools import product

import pytest

from wcet_probe.analyzer.loops.moving_sides import cannot_wrap, lasting, most_apart
from wcet_probe.analyzer.values.symbolic.conditions import limits, repetitions

_BITS = 4
_NUMBERS = 1 << _BITS


def _ordered(number, order_signed):
    number %= _NUMBERS
    return number - _NUMBERS if order_signed and number >= _NUMBERS // 2 else number


def _rounds(first, second, relation, step, *, order_signed, rising):
    """How often the comparison holds before it does not; None where it always does."""
    for done in range(_NUMBERS + 1):
        one = _ordered(first + step * done * rising, order_signed)
        other = _ordered(second - step * done * (not rising), order_signed)
        if not (one < other or (relation == "<=" and one == other)):
            return done
    return None


def _sides(order_signed):
    """Some hulls of two numbers."""
    lowest, highest = limits(order_signed, _BITS)
    ends = sorted({lowest, lowest + 1, lowest + 3, -1 if order_signed else 6, highest - 2, highest})
    return [(low, high) for low, high in product(ends, ends) if low <= high]


@pytest.mark.parametrize("relation", ["<", "<="])
@pytest.mark.parametrize("rising", [False, True])
@pytest.mark.parametrize("order_signed", [False, True])
def test_as_often_as_sides_are_apart_and_no_oftener_a_comparison_holds(relation, rising, order_signed):
    tried = 0
    for (one, other), step in product(product(_sides(order_signed), repeat=2), (1, 2, 3)):
        fixed = other if rising else one
        if not cannot_wrap(fixed, relation, step, _BITS, order_signed=order_signed, rising=rising):
            continue
        tried += 1
        most = repetitions(relation, step, most_apart(one, other))
        pairs = product(range(one[0], one[1] + 1), range(other[0], other[1] + 1))
        rounds = [
            _rounds(first, second, relation, step, order_signed=order_signed, rising=rising) for first, second in pairs
        ]
        assert all(each is not None and each <= most for each in rounds)
    assert tried > 100


@pytest.mark.parametrize("rising", [False, True])
@pytest.mark.parametrize("order_signed", [False, True])
def test_a_side_does_not_wrap_as_long_as_it_is_said_to_last(order_signed, rising):
    lowest, highest = limits(order_signed, _BITS)
    for (low, high), step in product(_sides(order_signed), (1, 2, 3)):
        for done in range(lasting((low, high), step, _BITS, order_signed=order_signed, rising=rising)):
            moved = step * done if rising else -step * done
            assert lowest <= low + moved
            assert high + moved <= highest


def test_of_a_side_that_is_not_known_nothing_is_told():
    assert not cannot_wrap(None, "<", 1, _BITS, order_signed=False, rising=True)
    assert not lasting(None, 1, _BITS, order_signed=False, rising=True)
    assert most_apart(None, (0, 1)) is None
    assert most_apart((0, 1), None) is None
    assert most_apart((5, 9), (1, 3)) == 0
