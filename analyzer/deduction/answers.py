"""The answers that a deduction rests on, kept as they were given, to go through it again without a solver.

An operation is deduced by questions in a certain order, of which each depends on the answers before. So the answers are
all that is kept: of a question over integers that something follows, which of what is assumed then suffices; of one
over bits the numbers that words were where it did not follow yet (`solver.Questions.bits_hold`). Numbers of what is
assumed count from 0 on, the outermost scope first.

Words: SMT, verification condition (docs/explanation/glossary.md).

*Soundness:* none is claimed of an answer. Whoever goes by them asks another solver of each that says *it follows*.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from wcet_probe.analyzer.deduction.formulas import FALSE, Node
from wcet_probe.analyzer.deduction.smt_lib import Further
from wcet_probe.analyzer.deduction.solver import Questions


class OfIntegers(NamedTuple):
    """What was answered to a question over integers.

    Attributes:
        suffices: the numbers of what is assumed that it follows from, or None where it was not shown to.
    """

    suffices: tuple[int, ...] | None


class OfBits(NamedTuple):
    """What was answered to a question over bits.

    Attributes:
        is_shown: whether it follows, in the end.
        numbers: of each time that values were found against it, what the words were that were asked for.
    """

    is_shown: bool
    numbers: tuple[tuple[int, ...], ...]


Answer = OfIntegers | OfBits
_NOT_YET = OfBits(is_shown=False, numbers=())


class KeptQuestions(Questions):
    """Questions whose answers are kept.

    Attributes:
        answers: in the order in which the questions were asked; one that is asked for another one is behind it.

    Raises:
        UsageError: z3 is not installed.
    """

    def __init__(self) -> None:
        super().__init__(with_cores=True)
        self.answers: list[Answer] = []

    def holds(self, formula: Node) -> bool:
        """As `Questions.holds`."""
        return self._kept(super().holds(formula), formula)

    def is_contradiction(self) -> bool:
        """As `Questions.is_contradiction`."""
        return self._kept(super().is_contradiction(), FALSE)

    def _kept(self, is_shown: bool, formula: Node) -> bool:  # noqa: FBT001
        self.answers.append(OfIntegers(self.core(formula) if is_shown else None))
        return is_shown

    def bits_hold(
        self,
        premises: Iterable[Node],
        formula: Node,
        more: Further = lambda _: (),
    ) -> bool:
        """As `Questions.bits_hold`."""
        place, numbers = len(self.answers), list[list[int]]()
        self.answers.append(_NOT_YET)

        def kept_more(number: Callable[[Node], int]) -> Iterable[Node]:
            own: list[int] = []
            numbers.append(own)

            def kept_number(word: Node) -> int:
                own.append(number(word))
                return own[-1]

            return more(kept_number)

        is_shown = super().bits_hold(premises, formula, kept_more)
        self.answers[place] = OfBits(is_shown, tuple(map(tuple, numbers)))
        return is_shown
