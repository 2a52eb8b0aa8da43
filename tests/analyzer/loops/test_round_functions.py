"""Functions of rounds compute what p-code computes, and only what is asked for."""

import pytest

from wcet_probe.analyzer.loops.dwindling import Back, Round, Rounds
from wcet_probe.analyzer.loops.round_functions import function_of, round_function
from wcet_probe.analyzer.pcode.semantics import UndefinedResultError
from wcet_probe.analyzer.values.symbolic.terms import Terms


@pytest.fixture
def terms():
    return Terms()


def following(terms, own, ways, back, fixed=()):
    return round_function(terms, Rounds(own, fixed, [Round(ways, back)]))


def test_all_edges_back_whose_conditions_hold_are_taken_if_each_block_has_a_way_on(terms):
    index, end = terms.symbol(("index",), 32), terms.symbol(("end",), 32)
    less = terms.apply("INT_LESS", (index, end), 1)
    more = terms.apply("INT_ADD", (index, terms.constant(1, 32)), 32)
    twice = terms.apply("INT_LEFT", (index, terms.constant(1, 32)), 32)
    back = [Back([(less, True)], (more,)), Back([], (twice,)), Back([(less, False)], (index,))]
    assert following(terms, (index,), [], back, (end,))(((3,), (5,))) == [((4,), (5,)), ((6,), (5,))]
    follow = following(terms, (index,), [[[(less, False)], [(less, True)]], [[(less, True)]]], back, (end,))
    assert follow(((3,), (5,))) == [((4,), (5,)), ((6,), (5,))]
    assert follow(((5,), (5,))) == []


def test_rounds_may_differ_and_numbers_wrap_around(terms):
    number = terms.symbol(("number",), 32)
    less = terms.apply("INT_SUB", (number, terms.constant(1, 32)), 32)
    whole = [Round([], [Back([], (less,))]), Round([], [Back([], (terms.constant(7, 32),))])]
    assert round_function(terms, Rounds((number,), (), whole))(((0,), ())) == [((0xFFFF_FFFF,), ()), ((7,), ())]


def test_what_one_round_computed_is_not_that_of_the_next(terms):
    number = terms.symbol(("number",), 32)
    square = terms.apply("INT_MULT", (number, number), 32)
    follow = following(terms, (number,), [], [Back([], (square,))])
    assert [follow(((one,), ())) for one in (2, 3)] == [[((4,), ())], [((9,), ())]]


def test_only_the_part_that_a_condition_chooses_is_computed(terms):
    number, unknown = terms.symbol(("number",), 32), terms.symbol(("unknown",), 32)
    is_zero = terms.apply("INT_EQUAL", (number, terms.constant(0, 32)), 1)
    chosen = terms.gamma(is_zero, terms.constant(5, 32), unknown)
    follow = following(terms, (number,), [], [Back([], (chosen,))])
    assert follow(((0,), ())) == [((5,), ())]
    with pytest.raises(UndefinedResultError):
        follow(((1,), ()))


def test_behind_a_condition_that_does_not_hold_nothing_is_computed(terms):
    number, unknown = terms.symbol(("number",), 32), terms.symbol(("unknown",), 1)
    is_zero = terms.apply("INT_EQUAL", (number, terms.constant(0, 32)), 1)
    follow = following(terms, (number,), [[[(is_zero, True), (unknown, True)]]], [Back([], (number,))])
    assert follow(((1,), ())) == []
    with pytest.raises(UndefinedResultError):
        follow(((0,), ()))


def test_a_symbol_is_computed_by_nothing(terms):
    assert function_of(terms, terms.symbol(("number",), 32)) is None
