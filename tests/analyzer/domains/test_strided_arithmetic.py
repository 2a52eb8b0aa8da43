"""Arithmetic of strided intervals against plain integers: all sets of three bits, and runs by Hypothesis."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.analyzer.domains.intervals import every_interval, members
from wcet_probe.analyzer.domains import strided_arithmetic as arithmetic
from wcet_probe.analyzer.domains.strided_interval import arc, between, constant, top

BITS = 3
SOME = every_interval(BITS)[1:]
RUNS = st.tuples(st.integers(0, 300), st.integers(1, 20), st.integers(0, 12))
DIVISORS = st.tuples(st.integers(1, 60), st.integers(1, 20), st.integers(0, 12))


def signed(value: int, bits: int = BITS) -> int:
    return value - (1 << bits) if value >> bits - 1 else value


def numbers(run: tuple[int, int, int]) -> set[int]:
    low, stride, steps = run
    return {low + stride * step for step in range(steps + 1)}


def test_what_is_said_to_be_exact_is():
    for one in SOME:
        inside = members(one)
        assert members(arithmetic.negative(one)) == {-value & 7 for value in inside}
        assert members(arithmetic.inverted(one)) == {~value & 7 for value in inside}
        for value in range(8):
            other = constant(BITS, value)
            assert members(arithmetic.added(one, other)) == {each + value & 7 for each in inside}
            assert arithmetic.added(other, one) == arithmetic.added(one, other)
            assert members(arithmetic.subtracted(one, other)) == {each - value & 7 for each in inside}
            assert members(arithmetic.subtracted(other, one)) == {value - each & 7 for each in inside}


def test_sums_differences_and_products_contain_those_of_all_pairs():
    for one, other in product(SOME, SOME[::2]):
        pairs = list(product(one.values(), other.values()))
        assert {a + b & 7 for a, b in pairs} <= members(arithmetic.added(one, other))
        assert {a - b & 7 for a, b in pairs} <= members(arithmetic.subtracted(one, other))
        assert {a * b & 7 for a, b in pairs} <= members(arithmetic.multiplied(one, other))
        assert {8 * a + b for a, b in pairs} <= members(arithmetic.piece(2 * BITS, one, other))


def test_a_factor_within_one_turn_is_exact():
    for one, factor in product(SOME, range(8)):
        found = arithmetic.scaled(one, factor)
        expected = {value * factor & 7 for value in one.values()}
        assert expected <= members(found)
        if one.low + one.extent < 8 and (one.low + one.extent) * factor < 8:
            assert expected == members(found)
    assert arithmetic.scaled(arc(32, 0, 24, 50), 0xAAAAAAAB) == between(32, 0, 400, 8)


@pytest.mark.parametrize("bits", [1, 2, 3, 5])
def test_another_width_cuts_off_or_fills_up(bits):
    full = (1 << bits) - 1
    for one in SOME:
        assert {value & full for value in one.values()} <= members(arithmetic.zero_extended(bits, one))
        assert {signed(value) & full for value in one.values()} <= members(arithmetic.sign_extended(bits, one))
        if bits > BITS and one.low + one.extent < 8:
            assert members(one) == members(arithmetic.zero_extended(bits, one))


def test_the_lowest_bytes_are_left_out():
    one = between(24, 0x1234, 0x11234, 0x100)
    for skipped in range(5):
        found = arithmetic.subpiece(8, one, constant(8, skipped))
        assert {value >> 8 * skipped & 0xFF for value in one.values()} <= members(found)
    assert arithmetic.subpiece(8, one, between(8, 0, 1)) == top(8)


@given(RUNS, DIVISORS)
def test_quotients_and_remainders_contain_those_of_all_pairs(dividend, divisor):
    pairs = list(product(numbers(dividend), numbers(divisor)))
    assert {a // b for a, b in pairs} <= numbers(arithmetic.quotient(dividend, divisor))
    assert {a % b for a, b in pairs} <= numbers(arithmetic.remainder(dividend, divisor))
    (found,) = arithmetic.quotients([dividend], divisor[0])
    assert {a // divisor[0] for a in numbers(dividend)} <= numbers(found)


@pytest.mark.parametrize("is_signed", [False, True])
def test_a_division_rounds_towards_zero_and_by_zero_gives_zero(is_signed):
    for one, other in product(SOME, SOME[::3]):
        pairs = [(signed(a), signed(b)) if is_signed else (a, b) for a, b in product(one.values(), other.values())]
        divided = {int(a / b) if b else 0 for a, b in pairs}
        left = {a - b * int(a / b) if b else 0 for a, b in pairs}
        quotients = arithmetic.by_division(arithmetic.quotient, one, other, is_signed=is_signed)
        remainders = arithmetic.by_division(arithmetic.remainder, one, other, is_signed=is_signed)
        assert {value & 7 for value in divided} <= members(quotients)
        assert {value & 7 for value in left} <= members(remainders)
        if other.is_constant and not other.value:
            assert members(quotients) == members(remainders) == {0}
