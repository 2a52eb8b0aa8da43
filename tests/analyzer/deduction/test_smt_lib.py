"""Scripts of what was shown: another solver, which is asked in another way, finds the same."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.second_solver import answers
from tests.analyzer.deduction.cama_builds import program as cama
from tests.analyzer.deduction.half_fit_builds import deduced as half_fit
from tests.examples import examples
from wcet_probe.analyzer.deduction.formulas import (
    FALSE,
    TRUE,
    apply,
    choice,
    condition,
    conjunction,
    disjunction,
    equivalence,
    negation,
    term,
    unknown,
)
from wcet_probe.analyzer.deduction.smt_lib import Assumed, Follows, FollowsOfBits, Scope, scripts
from wcet_probe.analyzer.deduction.solver import Questions
from wcet_probe.cache_sets.deduction import OPERATIONS, deduce
from wcet_probe.cache_sets.half_fit_deduction import OPERATIONS as OF_HALF_FIT

X, Y, Z = unknown("x"), unknown("y"), unknown("odd name z.1")
LEAVES = st.sampled_from([X, Y, Z, term(-3), term(0), term(7)])
INTEGERS = st.recursive(
    LEAVES,
    lambda of: st.one_of(
        st.builds(lambda one, other, factor: one + factor * other, of, of, st.integers(-3, 3)),
        of.map(lambda one: apply("f", one)),
        st.builds(lambda one, other: apply("g h", one, other), of, of),
        st.builds(lambda one, other, first, second: choice(one <= other, first, second), of, of, of, of),
    ),
    max_leaves=6,
)
FORMULAS = st.recursive(
    st.one_of(
        st.builds(lambda one, other: one <= other, INTEGERS, INTEGERS),
        st.builds(lambda one, other: one.equals(other), INTEGERS, INTEGERS),
        st.just(unknown("p", "bool")),
        INTEGERS.map(lambda one: apply("q", one, sort="bool")),
    ),
    lambda of: st.one_of(
        of.map(negation),
        st.builds(conjunction, of, of),
        st.builds(disjunction, of, of),
        st.builds(equivalence, of, of),
    ),
    max_leaves=5,
)
BITWISE = ["INT_ADD", "INT_AND", "INT_OR", "INT_XOR", "INT_LEFT", "INT_RIGHT"]
WORDS = st.recursive(
    st.one_of(
        st.sampled_from([condition("bits unknown", name) for name in ("a", "b")]),
        st.sampled_from([-4, 0, 1, 5, 31, 0x80000000]).map(lambda one: condition("bits constant", one)),
    ),
    lambda of: st.one_of(
        st.builds(lambda name, one, other: condition(f"bits {name}", one, other), st.sampled_from(BITWISE), of, of),
        st.builds(  # by a constant, as the claims have it: products of unknowns may take a solver for ever
            lambda one, factor: condition("bits INT_MULT", one, condition("bits constant", factor)),
            of,
            st.sampled_from([4, 9, 4096]),
        ),
        st.builds(
            lambda name, one: condition(f"bits {name}", one),
            st.sampled_from(["INT_NEGATE", "LZCOUNT", "REVERSED"]),
            of,
        ),
        st.builds(lambda one, other: condition("bits choice", condition("bits less", one, other), other, one), of, of),
    ),
    max_leaves=4,
)
PREDICATES = st.builds(
    lambda name, one, other: condition(f"bits {name}", one, other),
    st.sampled_from(["equal", "less", "signed less"]),
    WORDS,
    WORDS,
)


def answered(events):
    return [one for script in scripts(events) for one in answers(script.text)]


def answers_of(deduced):
    return [one for part in deduced for asked in part.questions for one in answered(asked)]


@settings(max_examples=examples(20))
@given(st.lists(FORMULAS, max_size=3), FORMULAS)
def test_both_solvers_agree_of_integers(assumed, formula):
    questions = Questions()
    for one in assumed:
        questions.assume(one)
    expected = "unsat" if questions.holds(formula) else "sat"
    assert answered([*map(Assumed, assumed), Follows(formula)]) == [expected]


@settings(max_examples=examples(20))
@given(st.lists(PREDICATES, max_size=2), PREDICATES)
def test_both_solvers_agree_of_bits(premises, formula):
    expected = "unsat" if Questions().bits_hold(premises, formula) else "sat"
    assert answered([FollowsOfBits(tuple(premises), formula)]) == [expected]


def test_what_was_shown_is_told_in_its_scope_and_what_was_not_is_not():
    questions = Questions()
    questions.assume(TRUE)
    questions.enter()
    questions.assume(X >= 3)
    assert questions.holds(X > 0)
    assert not questions.holds(X > 3)
    questions.assume(X < 0)
    assert questions.is_contradiction()
    questions.leave()
    assert not questions.holds(X > 0)
    assert not questions.is_contradiction()
    assert questions.shown == [
        Scope(begins=True),
        Assumed(X >= 3),
        Follows(X > 0),
        Assumed(X < 0),
        Follows(FALSE),
        Scope(begins=False),
    ]
    assert answered(questions.shown) == ["unsat", "unsat"]


def test_each_answer_over_bits_is_told_once():
    questions, word = Questions(), condition("bits unknown", "a")
    masked = condition("bits less", condition("bits INT_AND", word, condition("bits constant", 7)), word)
    at_most = negation(condition("bits less", word, condition("bits INT_AND", word, condition("bits constant", 7))))
    assert questions.bits_hold((), at_most)
    assert questions.bits_hold((), at_most)
    assert not questions.bits_hold((), masked)
    assert questions.shown == [FollowsOfBits((), at_most)]


def test_a_question_that_does_not_follow_is_answered_otherwise():
    assert answered([Assumed(X >= 3), Follows(X > 3), Follows(X > 2)]) == ["sat", "unsat"]
    assert list(scripts([Assumed(X >= 3), Scope(begins=True), Scope(begins=False)])) == []


def test_another_solver_answers_what_init_of_half_fit_rests_on():
    (asked,) = half_fit("init").questions
    assert set(found := answered(asked)) == {"unsat"}
    assert len(found) > 140


@pytest.mark.slow
def test_another_solver_answers_what_free_of_a_small_block_of_cama_rests_on():
    assert set(answers_of(deduce(cama(), ("free-small",)))) == {"unsat"}


@pytest.mark.slow
@pytest.mark.parametrize("operation", OF_HALF_FIT)
def test_another_solver_contradicts_nothing_of_half_fit(operation):
    assert "sat" not in answers_of([half_fit(operation)])


@pytest.mark.slow
@pytest.mark.parametrize("operation", OPERATIONS)
def test_another_solver_contradicts_nothing_of_cama(operation):
    assert "sat" not in answers_of(deduce(cama(), (operation,)))
