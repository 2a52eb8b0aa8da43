"""Answers that were kept: gone by again they show the same, and none of them is believed."""

import pytest
from hypothesis import given, settings

from tests.analyzer.deduction.test_solver import STEPS, X
from tests.examples import examples
from wcet_probe.analyzer.deduction.answers import KeptQuestions, OfBits, OfIntegers
from wcet_probe.analyzer.deduction.formulas import condition
from wcet_probe.analyzer.deduction.other_solvers import UNSAT, answer
from wcet_probe.analyzer.deduction.replay import OtherQuestionsError, Replayed
from wcet_probe.analyzer.deduction.smt_lib import script_of

A = condition("bits unknown", "a")


def bits(value):
    return condition("bits constant", value)


def less(value):
    return condition("bits less", A, bits(value))


def gone(asked, steps):
    """What is answered to ``steps``."""
    found, depth = [], 0
    for name, formula in steps:
        if name == "leave" and not depth:
            continue
        depth += {"enter": 1, "leave": -1}.get(name, 0)
        arguments = (formula,) if name in {"assume", "holds"} else ()
        if name != "is_possible":
            found.append(getattr(asked, name)(*arguments))
    return found


@given(STEPS)
@settings(max_examples=examples(25), deadline=None)
def test_what_was_answered_is_answered_again_and_follows_by_itself(steps):
    kept = KeptQuestions()
    found = gone(kept, steps)
    replayed = Replayed(kept.answers)
    assert gone(replayed, steps) == found
    assert replayed.is_at_end
    assert [answer(script_of(one), "z3") for one in replayed.shown] == [UNSAT] * len(replayed.shown)


def test_numbers_tell_which_further_premises_bits_want():
    def more(number):
        return [less(8)] if number(A) >= 8 else []

    def ask(asked):
        return asked.bits_hold((), less(9), more), asked.bits_hold((), less(7), more)

    kept = KeptQuestions()
    assert ask(kept) == (True, False)
    assert [one.is_shown for one in kept.answers] == [True, False]
    replayed = Replayed(kept.answers)
    assert ask(replayed) == (True, False)
    assert [(one.premises, one.formula) for one in replayed.shown] == [((less(8),), less(9))]
    # premises are those that hold in truth, whatever numbers are said
    other = Replayed([OfBits(is_shown=True, numbers=()), OfBits(is_shown=True, numbers=((3,),))])
    assert ask(other) == (True, False)
    assert [(one.premises, one.formula) for one in other.shown] == [((), less(9))]
    assert answer(script_of(other.shown[0]), "z3") != UNSAT


@pytest.mark.parametrize(
    ("answers", "what"),
    [
        ([], "question 0 is another one: it is more"),
        ([OfBits(is_shown=True, numbers=())], "of integers"),
        ([OfIntegers((1,))], "with 1 formulas assumed"),
    ],
)
def test_answers_to_other_questions_are_told(answers, what):
    replayed = Replayed(answers)
    replayed.assume(X >= 3)
    with pytest.raises(OtherQuestionsError, match=what):
        replayed.holds(X >= 2)


@pytest.mark.parametrize(("numbers", "what"), [(None, "of bits"), (((),), "of more words")])
def test_answers_to_other_questions_of_bits_are_told(numbers, what):
    replayed = Replayed([OfIntegers(None) if numbers is None else OfBits(is_shown=True, numbers=numbers)])
    with pytest.raises(OtherQuestionsError, match=what):
        replayed.bits_hold((), less(8), lambda number: [less(number(A))])
