"""What a value is as a number, told by comparisons: for all numbers for which they hold."""

import random

import pytest

from tests.analyzer.values.symbolic.test_terms import CORNERS, evaluated
from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.analyzer.values.states.learning import assume
from wcet_probe.analyzer.values.states.plain_numbers import plain_number
from wcet_probe.analyzer.values.states.state import State
from wcet_probe.analyzer.values.symbolic.terms import Terms

RELATIONS = ("INT_EQUAL", "INT_NOTEQUAL", "INT_LESS", "INT_LESSEQUAL", "INT_SLESS", "INT_SLESSEQUAL")
MINUS_ONE = (1 << 32) - 1


def multiple(terms, x, factor, constant):
    product = terms.apply("INT_MULT", (x, terms.constant(factor, 32)), 32)
    return terms.apply("INT_ADD", (product, terms.constant(constant, 32)), 32)


def setting():
    terms = Terms()
    state = State(terms, big_endian=False)
    return terms, state, state.define((0, 0, 0), 32, base=Base.ANY)


@pytest.mark.parametrize("part", range(4))
def test_each_number_that_meets_the_comparisons_is_told(part):
    draw, checked, sharp = random.Random(f"plain {part}"), 0, 0
    for _ in range(60):
        terms, state, x = setting()
        number = draw.choice((draw.choice(CORNERS), draw.randrange(20)))
        for _ in range(draw.randint(1, 3)):
            side = multiple(terms, x, draw.choice((1, 1, MINUS_ONE, 2)), draw.choice((0, 1, -4, 12)))
            limit = terms.constant(draw.choice((number, number + draw.randrange(30), draw.choice(CORNERS))), 32)
            sides = (side, limit) if draw.random() < 0.5 else (limit, side)
            condition = terms.apply(draw.choice(RELATIONS), sides, 8)
            assert assume(state, condition, bool(evaluated(terms, condition, {x: number})))
        term = multiple(terms, x, draw.choice((1, 1, 2, 4, MINUS_ONE)), draw.choice((0, 3, -8)))
        found = plain_number(state, term)
        assert evaluated(terms, term, {x: number}) in found
        sharp += not found.is_top
        checked += 1
    assert sharp > checked // 3


def test_a_checked_index_is_in_its_range_be_it_what_it_may():
    terms, state, x = setting()
    assert assume(state, terms.apply("INT_LESS", (x, terms.constant(10, 32)), 8), True)
    assert state.value(x).is_top
    assert plain_number(state, x) == strided.between(32, 0, 9)
    assert plain_number(state, multiple(terms, x, 4, 100)) == strided.between(32, 100, 136, 4)


def test_one_side_that_is_less_a_constant_tells_the_number_too():
    terms, state, x = setting()
    less = multiple(terms, x, 1, -5)
    assert assume(state, terms.apply("INT_LESSEQUAL", (less, terms.constant(3, 32)), 8), True)
    assert plain_number(state, x) == strided.between(32, 5, 8)


def low_half(terms, x):
    return terms.apply("SUBPIECE", (x, terms.constant(0, 32)), 16)


def extended(terms, opcode, half):
    return terms.apply(opcode, (half,), 32)


@pytest.mark.parametrize("compared", ["INT_ZEXT", "INT_SEXT", "", "half"])
@pytest.mark.parametrize("asked", ["INT_ZEXT", "INT_SEXT", "INT_AND"])
def test_an_extended_half_is_told_by_the_other_extension_and_by_the_word(compared, asked):
    """A short is checked as a signed number, and extended by 0 for a table's index: gsm_enc by Clang, -Os."""
    draw, sharp = random.Random(f"{compared} {asked}"), 0
    for _ in range(60):
        terms, state, x = setting()
        loaded = state.define((0, 4, 0), 16, base=Base.ANY)
        half = loaded if compared == "half" else low_half(terms, x)
        number = draw.choice((draw.choice(CORNERS), draw.randrange(20), draw.randrange(0x7FF0, 0x8010)))
        values = {x: number, loaded: number & 0xFFFF}
        side = extended(terms, compared if compared.startswith("INT") else "INT_SEXT", half) if compared else x
        at = evaluated(terms, side, values)
        for relation in draw.sample(("INT_LESS", "INT_SLESS", "INT_LESSEQUAL", "INT_SLESSEQUAL"), 2):
            limit = terms.constant(at + draw.choice((0, 1, 9, -5)), 32)
            condition = terms.apply(relation, (side, limit), 8)
            assert assume(state, condition, bool(evaluated(terms, condition, values)))
        term = (
            extended(terms, asked, half)
            if asked != "INT_AND"
            else terms.apply(asked, (x, terms.constant(0x1F, 32)), 32)
        )
        term = multiple(terms, term, draw.choice((1, 4)), draw.choice((0, 12)))
        found = plain_number(state, term)
        assert evaluated(terms, term, values) in found
        sharp += found.size < 1 << 15
    assert sharp > 10


def test_comparisons_of_other_values_tell_nothing():
    terms, state, x = setting()
    other = state.define((0, 4, 0), 32, base=Base.ANY)
    assert assume(state, terms.apply("INT_LESS", (other, terms.constant(10, 32)), 8), True)
    assert assume(state, terms.apply("INT_LESS", (x, other), 8), True)  # of either, nothing is told of both
    assert plain_number(state, x).is_top
    twice = multiple(terms, x, 2, 0)
    assert assume(state, terms.apply("INT_LESS", (twice, terms.constant(10, 32)), 8), True)
    assert plain_number(state, x).is_top  # the half of it may have the highest bit


def test_a_number_is_its_value():
    terms, state, _ = setting()
    number = state.define((0, 8, 0), 32, strided.between(32, 4, 8))
    assert plain_number(state, number) == strided.between(32, 4, 8)
    assert plain_number(state, terms.constant(7, 32)) == strided.constant(32, 7)
