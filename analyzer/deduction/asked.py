"""Who is asked while an operation is deduced, and who is told how far it came.

Words: SMT (docs/explanation/glossary.md).

*Soundness:* an operation is shown by what is said to hold, so that whoever is asked may say so only of what follows
from what is assumed then. To say it of too little is sound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from wcet_probe.analyzer.deduction.formulas import Node
from wcet_probe.analyzer.deduction.smt_lib import Event, Further
from wcet_probe.analyzer.deduction.solver import Questions


class Asked(Protocol):
    """What is assumed so far, and questions whether something follows; methods are those of `solver.Questions`."""

    @property
    def shown(self) -> Sequence[Event]:
        """What was assumed, and what was shown to follow, in order; questions that stand by themselves if need be."""

    def assume(self, formula: Node) -> None:
        """Take ``formula`` for granted until the next `leave`."""

    def enter(self) -> None:
        """Begin a scope of assumptions."""

    def leave(self) -> None:
        """Forget what was assumed since `enter`."""

    def holds(self, formula: Node) -> bool:
        """Whether ``formula`` was shown to follow from what is assumed."""

    def is_contradiction(self) -> bool:
        """Whether what is assumed was shown to be never true."""

    def bits_hold(self, premises: Iterable[Node], formula: Node, more: Further) -> bool:
        """Whether ``formula`` of words as bits was shown to follow from ``premises``, or with ``more`` of them."""


def _nobody() -> None:
    pass


@dataclass(frozen=True, slots=True)
class Course:
    """How an operation is deduced.

    Attributes:
        told: is called at the end of each way.
        asked: makes who is asked, anew for each part of an operation.
    """

    told: Callable[[], None] = _nobody
    asked: Callable[[], Asked] = Questions


BY_Z3 = Course()
"""Z3 is asked, and nobody is told."""
Asking = Callable[[str], Callable[[], Asked]]
"""Of an operation, by its name: what makes who is asked, for each of its parts."""


def asking_z3(_: str) -> Callable[[], Asked]:
    """Z3 is asked."""
    return Questions
