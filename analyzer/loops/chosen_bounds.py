"""Which of several bounds of one loop is taken: what was counted, or what a fact or a pragma says.

Words: loop bound, flow fact (docs/explanation/glossary.md).

*Soundness:* each is a bound by itself; the least is taken, and a proved one where they are equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from wcet_probe.analyzer.facts.binding import BoundFact
from wcet_probe.analyzer.loops.counts import FOLLOWED, Count, followed_rounds
from wcet_probe.model.proof import Origin


@dataclass(frozen=True, slots=True)
class ChosenBound:
    """The bound of a loop and where it is from: a count, or a fact's expression, which is ``offset`` less."""

    max_header: int
    count: Count | None
    fact: BoundFact | None
    expression: str
    offset: int

    @property
    def origin(self) -> Origin:
        """Who says so."""
        return Origin.PROVED if self.fact is None else Origin(self.fact.origin)

    @property
    def where(self) -> str:
        """The place of the fact or pragma; empty if it is proved."""
        return "" if self.fact is None else self.fact.where


def chosen_bound(count: Count | None, facts: Sequence[BoundFact]) -> ChosenBound | None:
    """The least of what was counted of a loop and of what ``facts`` say of it; None where nothing is known.

    *Soundness:* as said of the module.
    """
    choices: list[ChosenBound] = []
    if count is not None:
        words = (
            f"{count.counter or 'a counter'} {count.relation}, steps of {count.step}, {count.distance_high} at entry"
            if count.relation != FOLLOWED
            else count.counter
        )
        choices.append(ChosenBound(count.max_header, count, None, words, 0))
    for fact in facts:
        if fact.max_header is not None:
            choices.append(ChosenBound(max(1, fact.max_header), None, fact, fact.max_expression, _offset(fact)))
        if fact.total is not None and not fact.within:
            most = max(1, fact.total + fact.total_for_each_entry)
            choices.append(ChosenBound(most, None, fact, fact.total_expression, fact.total_for_each_entry))
    return min(choices, key=lambda choice: choice.max_header, default=None)


def _offset(fact: BoundFact) -> int:
    """How far the bound is above its expression, with the round that is left in the midst, which is not of the body."""
    is_number = fact.max_expression.isdecimal() and fact.max_header is not None
    return (fact.max_header or 0) - int(fact.max_expression) if is_number else fact.offset


def followed_count(rounds: int) -> Count:
    """The count of a loop that was followed to its end; the distance is what is left of its rounds."""
    return followed_rounds(rounds, "followed round by round from constants")
