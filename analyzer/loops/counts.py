"""What is found out about a counted loop: the noun of `loops.counting`, for those who bound and print.

Words: loop bound, induction variable (docs/explanation/glossary.md).

*Soundness:* it claims nothing itself; who makes one says why it holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from wcet_probe.analyzer.graph.supergraph import Edge
from wcet_probe.analyzer.values.symbolic.term_table import Term

FOLLOWED = "rounds"
"""The relation of a count of rounds that were followed; ``counter`` says how."""


@dataclass(frozen=True, slots=True)
class Count:
    """Why a loop ends: the condition to go on is ``first relation second``; in iteration t their distance has shrunk.

    Attributes:
        relation: ``!=``, ``<``, ``<=``, ``==``, ``>> != 0`` for a value that loses bits until it is 0,
            or `FOLLOWED`: the distance is what is left of the rounds.
        step: by how much an iteration changes the distance (of ``>>``: by how many bits it shifts).
        distance_low, distance_high: least and greatest distance in the first iteration, unsigned.
        max_header: most executions of the header for each entry.
        total: most executions of the header for each entry of the enclosing loop, or None.
        counter: what counts, for people.
        distance: the distance at entry, or the counter, as coefficients of terms, and a constant.
        lasts: for how many executions of the header the condition, once broken, is known to stay so.
        is_exact: whether the loop, if nothing else ends it, repeats so often for each entry; nothing rests on it.
    """

    relation: str
    step: int
    distance_low: int
    distance_high: int
    max_header: int
    total: int | None
    counter: str
    distance: tuple[tuple[tuple[Term, int], ...], int] = ((), 0)
    lasts: int = 0
    is_exact: bool = False


class Together(NamedTuple):
    """What loops of a nest do together, for each entry of the outer one.

    Attributes:
        taken: edges with how often each counts.
        most: the most that they count in all.
    """

    taken: Mapping[Edge, int]
    most: int


def followed_rounds(most: int, how: str) -> Count:
    """A loop that has at most ``most`` rounds for each entry, as these were followed; ``how`` is for people."""
    return Count(FOLLOWED, 1, 0, most - 1, most, None, how)
