"""What was run of a firmware beside its bound: calls of the bounded function, and what a search found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ObservedCall:
    """One call of the entry: its text, what it took, what it returned, and whether the second engine repeated it."""

    call: str
    instructions: int
    cycles: int
    result: int
    is_repeated: bool


@dataclass(frozen=True, slots=True)
class Found:
    """What a search found: the dearest call in cycles, and the statements that set its inputs up and make it."""

    evaluations: int
    seed: int
    instructions: int
    cycles: int
    script: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Observed:
    """What was run.

    Attributes:
        statements: as they were written.
        calls: those of the entry, in order; of several within the call of another function the dearest in each unit.
        instructions, cycles: of the dearest call of each unit, those of the search included.
        found: what a search found.
        executions: in how many each assumption was checked, by its id.
        flow_maxima: the largest sum of each flow claim.
        loop_maxima: most executions of the headers of loops, by address.
        held: how many calls of the entry were made and held against everything, without those of a search.
        repeated: how many of these the second engine repeated.
    """

    statements: tuple[str, ...]
    calls: tuple[ObservedCall, ...]
    instructions: int
    cycles: int
    found: Found | None
    executions: Mapping[str, int] = field(default_factory=dict)
    loop_maxima: Mapping[int, int] = field(default_factory=dict)
    flow_maxima: tuple[int, ...] = ()
    held: int = 0
    repeated: int = 0
