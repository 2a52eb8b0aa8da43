"""Answers are kept as they were given, with no more of what is assumed than suffices."""

from tests.analyzer.deduction.test_solver import X, Y
from wcet_probe.analyzer.deduction.answers import KeptQuestions, OfBits, OfIntegers
from wcet_probe.analyzer.deduction.formulas import condition


def test_no_more_is_kept_than_suffices():
    kept = KeptQuestions()
    kept.assume(Y >= 5)
    kept.enter()
    kept.assume(X >= 3)
    kept.assume(X >= 2)
    assert kept.holds(X >= 3)
    kept.assume(Y.equals(X))
    assert kept.holds(Y >= 3)
    kept.leave()
    assert not kept.holds(X >= 3)
    kept.assume(Y <= 4)
    assert kept.is_contradiction()
    assert kept.answers == [OfIntegers((1,)), OfIntegers((0,)), OfIntegers(None), OfIntegers((0, 1))]


def test_of_bits_the_numbers_are_kept_and_what_is_asked_meanwhile_is_behind():
    kept, word = KeptQuestions(), condition("bits unknown", "a")

    def less(number):
        return condition("bits less", word, condition("bits constant", number))

    def more(number):
        return [less(8)] if number(word) >= 8 and not kept.holds(X.equals(Y)) else []

    assert kept.bits_hold((), less(9), more)
    (own, behind), ((number,),) = kept.answers, kept.answers[0].numbers
    assert number >= 9
    assert (own, behind) == (OfBits(is_shown=True, numbers=((number,),)), OfIntegers(None))
