"""Sums of unknowns modulo 2^32, and how they compare."""

from hypothesis import given
from hypothesis import strategies as st

from wcet_probe.analyzer.deduction.formulas import FALSE, TRUE, condition, unknown
from wcet_probe.analyzer.deduction.words import SPAN, Word, base_of, less, low_bits, same, signed_less, word_of

X, Y = unknown("x"), unknown("y")
FACTORS = st.sampled_from([0, 1, 8, 4096, -1, 1 << 31, SPAN - 8]) | st.integers(-100, 100)
WORDS = st.builds(lambda constant, x, y: word_of(constant, {X: x, Y: y}), st.integers(0, SPAN - 1), FACTORS, FACTORS)
NUMBERS = st.integers(0, SPAN - 1)


def value(word, x, y):
    return (word.constant + sum(factor * {X: x, Y: y}[node] for node, factor in word.parts)) % SPAN


@given(WORDS, WORDS, FACTORS, NUMBERS, NUMBERS)
def test_sums_are_those_of_the_machine(one, other, factor, x, y):
    assert value(one.plus(other, factor), x, y) == (value(one, x, y) + factor * value(other, x, y)) % SPAN
    assert value(one, x, y) % one.alignment == 0
    assert value(base_of(one), x, y) * one.alignment % SPAN == value(one, x, y)
    unit, low = low_bits(one)
    assert value(one, x, y) % unit == low


@given(WORDS, WORDS, NUMBERS, NUMBERS)
def test_equality_is_of_the_same_numbers_on_whatever_sides(one, other, x, y):
    for first, second in ((one, other), (one.plus(other, -1), Word(0))):
        compared = same(first, second)
        is_same = value(one, x, y) == value(other, x, y)
        if compared in {TRUE, FALSE}:
            assert (compared is TRUE) == is_same
        else:
            left, right = (value(word, x, y) for word in compared.arguments)
            assert (left == right) == is_same


@given(NUMBERS, NUMBERS)
def test_constants_are_compared(one, other):
    signed = [number - SPAN if number >= SPAN // 2 else number for number in (one, other)]
    assert (less(Word(one), Word(other)) is TRUE) == (one < other)
    assert (signed_less(Word(one), Word(other)) is TRUE) == (signed[0] < signed[1])
    assert (same(Word(one), Word(other)) is TRUE) == (one == other)


def test_flags_compare_what_was_subtracted():
    x, y = (Word(0, ((node, 1),)) for node in (X, Y))
    assert same(x.plus(y, -1), Word(0)) is same(x, y)
    assert same(x.plus(Word(SPAN - 5)), Word(0)) is same(x, Word(5))
    assert same(x.plus(Word(5)), Word(0)) is condition("same", x.plus(Word(5)), Word(0))
