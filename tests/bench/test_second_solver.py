"""The table of what another solver answers, and its exit codes."""

import pytest

from bench.second_solver import answers, main
from wcet_probe.analyzer.deduction.other_solvers import OPEN, UNSAT

HEAD = "(set-option :global-declarations true)\n(set-logic QF_UFLIA)\n(declare-fun |x| () Int)\n"
TRUE, FALSE = "(assert (<= |x| 3))\n(check-sat)\n", "(push 1)\n(assert (< |x| |x|))\n(check-sat)\n(pop 1)\n"


@pytest.mark.parametrize(
    ("script", "code", "told"),
    [
        (HEAD + FALSE, 0, ["| some | 1 | 0 | 0 |", "1 of 1 are"]),
        (HEAD + FALSE + TRUE, 1, ["| some | 1 | 1 | 0 |", "1 of 2 are"]),
        (HEAD, 4, ["| some | 0 | 0 | 0 |", "0 of 0 are"]),
    ],
)
def test_the_table_has_a_row_for_each_file(tmp_path, capsys, script, code, told):
    (tmp_path / "some.smt2").write_text(script)
    assert main([str(tmp_path)]) == code
    out = capsys.readouterr().out
    assert all(one in out for one in told)


def test_what_is_left_open_is_asked_once_more_with_all_that_is_declared(monkeypatch):
    asked = []

    class Solver:
        def __init__(self, work, *, for_more=True):
            self.work, self.for_more = work, for_more

        def told(self, commands):
            if not self.for_more:
                asked.append((self.work, commands.splitlines()))
            return OPEN if self.for_more else UNSAT

    monkeypatch.setattr("bench.second_solver.Cvc5", Solver)
    script = "(push 1)\n(declare-fun |y| () Int)\n(assert (= |y| 1))\n(pop 1)\n(assert (< |y| |y|))\n(check-sat)\n"
    assert list(answers(HEAD + script, 5)) == [UNSAT]
    again = [*HEAD.splitlines(), "(declare-fun |y| () Int)", "(assert (< |y| |y|))", "(check-sat)"]
    assert asked == [(10, again)]


def test_what_the_solver_does_not_understand_is_told():
    with pytest.raises(RuntimeError, match="nonsense"):
        list(answers(HEAD + "(assert nonsense)\n(check-sat)\n", 1))
