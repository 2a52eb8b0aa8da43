"""A deduction gone through again by the answers that it was given before, without a solver.

Words: SMT, verification condition (docs/explanation/glossary.md).

*Soundness:* no answer is believed. What is said to follow is told in `Replayed.shown`, with no more assumed than the
answer names of what is assumed at that place; what is deduced is shown if a solver answers each of these by itself. The
questions are those that the code asks now, whatever they were when the answers were given. An answer *not shown* is
sound of any question.

With an answer that names too little, what is told is another question, which a solver finds values against:

>>> from wcet_probe.analyzer.deduction.formulas import unknown
>>> size = unknown("size")
>>> asked = Replayed([OfIntegers((1,)), OfIntegers(None)])
>>> asked.assume(size >= 8)
>>> asked.assume(size <= 16)
>>> asked.holds(size > 0), asked.holds(size > 8)
(True, False)
>>> [premise is (size <= 16) for premise in asked.shown[0].premises]
[True]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from wcet_probe.analyzer.deduction.answers import Answer, OfBits, OfIntegers
from wcet_probe.analyzer.deduction.formulas import FALSE, TRUE, Node
from wcet_probe.analyzer.deduction.smt_lib import FollowsOfBits, FollowsOfIntegers, Further, Question
from wcet_probe.errors import WcetProbeError


class OtherQuestionsError(WcetProbeError):
    """Answers are not those to the questions that are asked."""


class Replayed:
    """Who gives the answers that were given before.

    Attributes:
        shown: what is to follow from what, each once, in order.

    Args:
        answers: in the order in which the questions were asked.
    """

    def __init__(self, answers: Sequence[Answer]) -> None:
        self._answers = answers
        self._next = 0
        self._scopes: list[dict[Node, None]] = [{}]
        self._shown: dict[Question, None] = {}

    @property
    def shown(self) -> Sequence[Question]:
        """What is to follow from what, each once, in order."""
        return tuple(self._shown)

    @property
    def is_at_end(self) -> bool:
        """Whether each answer was given."""
        return self._next == len(self._answers)

    def assume(self, formula: Node) -> None:
        """As `solver.Questions.assume`."""
        if formula is not TRUE and not any(formula in own for own in self._scopes):
            self._scopes[-1][formula] = None

    def enter(self) -> None:
        """As `solver.Questions.enter`."""
        self._scopes.append({})

    def leave(self) -> None:
        """As `solver.Questions.leave`."""
        self._scopes.pop()

    def holds(self, formula: Node) -> bool:
        """What was answered; as `solver.Questions.holds`.

        Raises:
            OtherQuestionsError: no such question was answered here.
        """
        answer = self._answer()
        if not isinstance(answer, OfIntegers):
            raise self._other("of integers")
        if answer.suffices is None:
            return False
        assumed = [one for own in self._scopes for one in own]
        if any(number not in range(len(assumed)) for number in answer.suffices):
            raise self._other(f"with {len(assumed)} formulas assumed")
        self._shown[FollowsOfIntegers(tuple(assumed[number] for number in answer.suffices), formula)] = None
        return True

    def is_contradiction(self) -> bool:
        """What was answered; as `solver.Questions.is_contradiction`.

        Raises:
            OtherQuestionsError: as `holds`.
        """
        return self.holds(FALSE)

    def bits_hold(
        self,
        premises: Iterable[Node],
        formula: Node,
        more: Further = lambda _: (),
    ) -> bool:
        """What was answered; as `solver.Questions.bits_hold`.

        *Soundness:* of the numbers nothing is taken but which premises are wanted, all of which hold in truth.

        Raises:
            OtherQuestionsError: as `holds`.
        """
        answer = self._answer()
        if not isinstance(answer, OfBits):
            raise self._other("of bits")
        known = tuple(dict.fromkeys(premises))
        for own in answer.numbers:
            further = tuple(more(self._number_of(own)))
            if not further:
                return False
            known = (*known, *further)
        if answer.is_shown:
            self._shown[FollowsOfBits(known, formula)] = None
        return answer.is_shown

    def _number_of(self, numbers: Sequence[int]) -> Callable[[Node], int]:
        left = iter(numbers)

        def number(_: Node) -> int:
            try:
                return next(left)
            except StopIteration:
                raise self._other("of more words") from None

        return number

    def _answer(self) -> Answer:
        if self.is_at_end:
            raise self._other("more")
        self._next += 1
        return self._answers[self._next - 1]

    def _other(self, what: str) -> OtherQuestionsError:
        return OtherQuestionsError(f"question {self._next} is another one: it is {what}")
