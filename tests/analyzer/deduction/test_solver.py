"""Questions to the solver: what is said to hold does, what is not answered is not said to hold."""

import sys
from contextlib import nullcontext
from types import SimpleNamespace

import pytest
import z3
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from wcet_probe.analyzer.deduction.formulas import TRUE, apply, condition, conjunction, negation, unknown
from wcet_probe.analyzer.deduction.solver import TIME_LIMIT_S, Questions
from wcet_probe.errors import UsageError

X, Y = unknown("x"), unknown("y")


def bits(value):
    return condition("bits constant", value)


def test_what_follows_holds_in_its_scope():
    questions = Questions()
    questions.enter()
    questions.assume(conjunction(X.equals(Y), apply("f", X) >= 3))
    assert questions.holds(apply("f", Y) >= 3)
    assert not questions.holds(apply("f", Y) >= 4)
    questions.leave()
    assert not questions.holds(apply("f", Y) >= 3)
    assert not questions.is_contradiction()
    questions.assume(X + 1 <= X)
    assert questions.is_contradiction()
    assert questions.asked == 5


def test_what_is_possible_is_no_contradiction():
    questions = Questions()
    questions.assume(X >= 3)
    assert questions.is_possible()
    questions.assume(X <= 2)
    assert not questions.is_possible()


def test_a_question_beyond_its_work_is_not_shown():
    """No three cubes of numbers above 0 make a cube's sum of two: what is not found out is no proof."""
    hard = conjunction(*(apply("f", X * 7 + Y * number).differs(number) for number in range(40)))
    assert not Questions(work_limit=1).holds(hard)


FORMULAS = st.sampled_from(
    [
        formula
        for one, other in ((X, Y), (Y, X), (apply("f", X), apply("f", Y)))
        for formula in (one <= other, one + 1 <= other, one.equals(other))
    ]
)
STEPS = st.lists(
    st.tuples(st.sampled_from(("assume", "holds", "enter", "leave", "is_contradiction", "is_possible")), FORMULAS),
    max_size=25,
)


@given(STEPS)
@settings(max_examples=examples(25), deadline=None)
def test_values_that_refuted_something_refute_nothing_that_follows(steps):
    """Answers are those of a solver that was asked nothing before, in whatever order scopes begin and end."""
    questions, scopes = Questions(), [[]]
    for name, formula in steps:
        if name == "enter":
            questions.enter()
            scopes.append([])
        elif name == "leave":
            if len(scopes) > 1:
                questions.leave()
                scopes.pop()
        elif name == "assume":
            questions.assume(formula)
            scopes[-1].append(formula)
        else:
            afresh = Questions()
            for one in (formula for scope in scopes for formula in scope):
                afresh.assume(one)
            arguments = (formula,) if name == "holds" else ()
            assert getattr(questions, name)(*arguments) == getattr(afresh, name)(*arguments)


def test_most_of_what_does_not_hold_is_refuted_without_the_solver(monkeypatch):
    questions = Questions()
    questions.assume(X >= 3)
    assert not questions.holds(X >= 4)
    monkeypatch.setattr(questions, "_answer", None)
    assert not questions.holds(X >= 5)
    assert not questions.is_contradiction()
    assert questions.is_possible()


def test_what_one_solver_does_not_answer_another_one_is_asked(monkeypatch):
    questions = Questions()
    questions.assume(X >= 3)
    questions.enter()
    questions.assume(Y.equals(X))
    unanswered = SimpleNamespace(check=lambda _: z3.unknown, assertions=questions._solver.assertions)
    monkeypatch.setattr(questions, "_solver", unanswered)
    assert questions.holds(Y >= 3)
    assert not questions.holds(Y >= 4)


def test_what_is_left_open_is_asked_in_other_orders_of_choices(monkeypatch):
    """Some questions end with one order and not with another; each is given up behind a time, too."""
    questions, seeds = Questions(), []

    def afresh(seed):
        seeds.append(seed)
        return SimpleNamespace(check=lambda _: z3.unsat if seed == 1 else z3.unknown)

    monkeypatch.setattr(questions, "_solver", SimpleNamespace(check=lambda _: z3.unknown))
    monkeypatch.setattr(questions, "_afresh", afresh)
    assert questions.holds(X >= 3)
    assert seeds == [0, 1]


def test_what_is_assumed_already_is_not_told_again_but_behind_its_scope_it_is():
    questions = Questions()
    questions.enter()
    for _ in range(2):
        questions.assume(X >= 3)
    assert len(questions._solver.assertions()) == 1
    questions.leave()
    assert not questions.holds(X >= 3)
    questions.assume(X >= 3)
    assert questions.holds(X >= 3)


def test_the_same_question_about_bits_is_asked_once_and_others_are_refuted_by_the_same_values(monkeypatch):
    word, other = condition("bits unknown", "w"), condition("bits unknown", "other")
    questions, premise = Questions(), condition("bits less", word, bits(7))
    assert questions.bits_hold([premise], condition("bits less", word, bits(8)))
    assert not questions.bits_hold([], premise)
    monkeypatch.setattr(questions, "_answer", None)
    assert questions.bits_hold([premise, premise], condition("bits less", word, bits(8)))
    assert not questions.bits_hold([], premise)
    assert not questions.bits_hold([], condition("bits less", word, bits(6)))
    with pytest.raises(TypeError, match="not callable"):
        questions.bits_hold([premise], condition("bits equal", other, other))


def test_premises_that_are_asked_for_are_those_that_values_are_against():
    word, questions, numbers = condition("bits unknown", "w"), Questions(), []

    def more(number):
        numbers.append(number(word))
        return [condition("bits less", word, bits(10))] if numbers[-1] >= 10 else []

    assert questions.bits_hold([], condition("bits less", word, bits(10)), more)
    assert numbers[0] >= 10
    numbers.clear()
    assert not questions.bits_hold([], condition("bits less", word, bits(9)), more)
    assert numbers[-1] == 9


def test_bits_that_have_no_answer_are_not_shown(monkeypatch):
    questions = Questions()
    monkeypatch.setattr(questions, "_answer", lambda *_: z3.unknown)
    assert not questions.bits_hold([], TRUE, lambda _: pytest.fail("there are no values"))


def test_the_solver_that_was_asked_before_gives_up_first(monkeypatch):
    seconds = []
    monkeypatch.setattr(
        "wcet_probe.analyzer.deduction.solver.limited", lambda _, limit: seconds.append(limit) or nullcontext()
    )
    hard = conjunction(*(apply("f", X * 7 + Y * number).differs(number) for number in range(40)))
    assert not Questions(work_limit=1).holds(hard)
    first, *others = seconds
    assert first < min(others) == TIME_LIMIT_S


def test_bits_hold_of_words_of_32_bits():
    word = condition("bits unknown", "w")
    masked = condition("bits INT_AND", word, bits(7))
    questions = Questions()
    assert questions.bits_hold([TRUE], condition("bits less", masked, bits(8)))
    assert not questions.bits_hold([TRUE], condition("bits less", masked, bits(7)))
    assert questions.bits_hold([condition("bits less", word, bits(7))], condition("bits less", masked, bits(7)))


@pytest.mark.parametrize("number", [0, 1, 2, 127, 128, 0x0FFFFFFF, 0x80000000, 0xFFFFFFFF])
def test_leading_zeros_are_counted(number):
    zeros = condition("bits LZCOUNT", bits(number))
    questions = Questions()
    assert questions.bits_hold([], condition("bits equal", zeros, bits(32 - number.bit_length())))
    assert not questions.bits_hold([], negation(condition("bits equal", zeros, bits(32 - number.bit_length()))))


def test_without_z3_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "z3", None)
    with pytest.raises(UsageError, match=r"pip install 'wcet-probe\[deduction\]'"):
        Questions()


def test_the_work_of_questions_does_not_depend_on_others():
    """What is shown within the limit is so in each run, whenever objects of other questions are let go."""

    def work():
        questions = Questions()
        for number in range(1, 9):
            questions.assume(apply("f", X * number) >= apply("f", Y + number))
            questions.holds(apply("f", X + Y) >= apply("f", Y) + number)
        return questions.work

    alone = work()
    others = [Questions() for _ in range(3)]
    for one in others:
        one.assume(conjunction(*(apply("f", X * number).differs(number) for number in range(50))))
        one.is_possible()
    del others[::2]
    assert work() == alone > 0


def test_a_question_that_takes_too_much_processor_time_is_not_shown_and_the_next_one_is_answered(monkeypatch):
    monkeypatch.setattr("wcet_probe.analyzer.deduction.solver.TIME_LIMIT_S", 0.1)
    monkeypatch.setattr("wcet_probe.analyzer.deduction.solver._SEEDS", 0)
    questions = Questions(work_limit=0)  # none
    a, b, c = (condition("bits unknown", name) for name in "abc")
    carries = condition("bits INT_MULT", bits(2), condition("bits INT_AND", a, b))
    parts = [condition("bits INT_MULT", one, c) for one in (condition("bits INT_XOR", a, b), carries)]
    whole = condition("bits INT_MULT", condition("bits INT_ADD", a, b), c)
    assert not questions.bits_hold([], condition("bits equal", condition("bits INT_ADD", *parts), whole))  # it is true
    assert questions.bits_hold([], condition("bits equal", bits(1), bits(1)))
    assert questions.holds(X.equals(X))
