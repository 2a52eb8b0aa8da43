"""Two solvers read a script and say the same of it; what they do not understand is open."""

import os
import signal
import sys
import threading

import pytest

from wcet_probe.analyzer.deduction import other_solvers
from wcet_probe.analyzer.deduction.formulas import apply, condition, unknown
from wcet_probe.analyzer.deduction.other_solvers import CVC5_WORK, OPEN, SAT, SOLVERS, UNSAT, answer
from wcet_probe.analyzer.deduction.smt_lib import FollowsOfBits, FollowsOfIntegers, script_of
from wcet_probe.errors import UsageError

X, Y = unknown("x"), unknown("y")
A = condition("bits unknown", "a")


@pytest.mark.parametrize("solver", SOLVERS)
def test_what_follows_has_no_values_against_it(solver):
    premises = (X.equals(Y), apply("f", X) >= 3)
    assert answer(script_of(FollowsOfIntegers(premises, apply("f", Y) >= 3)), solver) == UNSAT
    assert answer(script_of(FollowsOfIntegers(premises, apply("f", Y) >= 4)), solver) == SAT
    assert answer(script_of(FollowsOfIntegers(premises[1:], apply("f", Y) >= 3)), solver) == SAT
    low = condition("bits less", A, condition("bits constant", 8))
    lower = condition("bits less", A, condition("bits constant", 9))
    assert answer(script_of(FollowsOfBits((low,), lower)), solver) == UNSAT
    assert answer(script_of(FollowsOfBits((lower,), low)), solver) == SAT


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(
    "script",
    [
        "(set-logic QF_UFLIA)\n(assert (= unheard_of 3))\n(assert false)\n(check-sat)\n",
        "(set-logic QF_UFLIA)\n(assert false\n(check-sat)\n",
    ],
)
def test_what_is_not_understood_is_open(solver, script):
    assert answer(script, solver) == OPEN


def test_cvc5_is_asked_once_more_alone_where_it_leaves_a_question_open(monkeypatch):
    asked = []

    class Solver:
        def __init__(self, work=CVC5_WORK, *, for_more=True):
            asked.append((work, for_more))
            self.says = OPEN if for_more else UNSAT

        def told(self, _):
            return self.says

    monkeypatch.setattr(other_solvers, "Cvc5", Solver)
    assert answer("(check-sat)", "cvc5") == UNSAT
    assert asked == [(CVC5_WORK, True), (2 * CVC5_WORK, False)]


def test_who_interrupts_the_program_interrupts_it_also_in_a_question():
    """Z3 would take it for itself: the question would be open, and the program go on."""
    least = "(assert (bvugt {0} (_ bv1 64)))\n(assert (bvult {0} (_ bv4294967296 64)))\n"
    factors = (
        "(set-logic QF_BV)\n(declare-const a (_ BitVec 64))\n(declare-const b (_ BitVec 64))\n"
        f"{least.format('a')}{least.format('b')}(assert (= (bvmul a b) (_ bv10967535067535067531 64)))\n(check-sat)\n"
    )
    former = signal.signal(signal.SIGINT, signal.default_int_handler)  # workers of a test run ignore it
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        with pytest.raises(KeyboardInterrupt):
            answer(factors, "z3")
    finally:
        signal.signal(signal.SIGINT, former)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_solver_that_is_not_installed_is_told(solver, monkeypatch):
    monkeypatch.setitem(sys.modules, solver, None)
    with pytest.raises(UsageError, match=rf"{solver} is not installed: pip install"):
        answer("(set-logic QF_UFLIA)\n(check-sat)\n", solver)
