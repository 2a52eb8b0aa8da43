"""Solvers that are asked a question as a script of SMT-LIB, by name: z3 and cvc5, by their own readers of the language.

Words: SMT (docs/explanation/glossary.md).

*Soundness:* an answer is the solver's, and believed. Each question is asked of one that was told nothing before. No
answer within its work is `OPEN`, and so is what it does not understand. Work is limited by each solver's own count, so
that the same script has the same answer; only z3, some of whose loops do not count, is limited in time, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from wcet_probe.analyzer.deduction.processor_time import limited
from wcet_probe.errors import UsageError

UNSAT, SAT, OPEN = "unsat", "sat", "open"
_CHECK = "(check-sat)"
CVC5_WORK = 200_000
"""Most units of cvc5's work for a question, some seconds; where it is asked once more, twice as many."""
_Z3_WORK = 100_000_000
_Z3_TIME_S = 120


def _z3(script: str) -> str:
    try:
        import z3  # type: ignore[import-untyped,unused-ignore]  # noqa: PLC0415  an extra, which may be absent
    except ImportError as error:
        raise _missing("z3", "'wcet-probe[deduction]'") from error
    context = z3.Context()
    solver = z3.Solver(ctx=context)
    solver.set("rlimit", _Z3_WORK)
    solver.set("ctrl_c", False)
    try:
        solver.from_string(script.replace(_CHECK, ""))
        with limited(context.interrupt, _Z3_TIME_S):
            return str(solver.check())
    except z3.Z3Exception:
        return OPEN


class Cvc5:
    """Cvc5, which is told commands of SMT-LIB.

    Args:
        work: most units of its work for a question.
        for_more: whether it is to answer more than one; what it does for one alone may take minutes, and may tell more.

    Raises:
        UsageError: it is not installed.
    """

    def __init__(self, work: int = CVC5_WORK, *, for_more: bool = True) -> None:
        try:
            import cvc5  # noqa: PLC0415  no dependency, so that it may be absent
        except ImportError as error:
            raise _missing("cvc5", "cvc5") from error
        self._language = cvc5.InputLanguage.SMT_LIB_2_6
        self._solver = cvc5.Solver(cvc5.TermManager())
        self._solver.setOption("rlimit-per", str(work))
        self._solver.setOption("incremental", str(for_more).lower())
        self._parser = cvc5.InputParser(self._solver)

    def told(self, commands: str) -> str:
        """The answer to the last question in ``commands``: `UNSAT`, `SAT` or `OPEN`, as where there is none.

        Raises:
            RuntimeError: it does not understand them.
        """
        self._parser.setStringInput(self._language, commands, "questions")
        said = ""
        while not (command := self._parser.nextCommand()).isNull():
            said = command.invoke(self._solver, self._parser.getSymbolManager()).strip()
        return said if said in {UNSAT, SAT} else OPEN


def _cvc5(script: str) -> str:
    try:
        said = Cvc5().told(script)
        return said if said != OPEN else Cvc5(2 * CVC5_WORK, for_more=False).told(script)
    except RuntimeError:
        return OPEN


def _missing(name: str, package: str) -> UsageError:
    return UsageError(f"the SMT solver {name} is not installed: pip install {package}.")


SOLVERS: Mapping[str, Callable[[str], str]] = {"z3": _z3, "cvc5": _cvc5}
"""By name."""


def answer(script: str, solver: str) -> str:
    """What ``solver``, of `SOLVERS`, says of the one question in ``script``: `UNSAT`, `SAT` or `OPEN`.

    Raises:
        UsageError: the solver is not installed.
    """
    said = SOLVERS[solver](script)
    return said if said in {UNSAT, SAT} else OPEN
