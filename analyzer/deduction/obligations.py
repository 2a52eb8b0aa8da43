"""What is asked of an operation, what was shown, and what an access of it is shown to be to.

Words: obligation, claim (docs/explanation/glossary.md).

*Soundness:* what was not answered is open, and kept with its instruction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType
from typing import TypeVar

from wcet_probe.analyzer.deduction.execution import End
from wcet_probe.analyzer.deduction.smt_lib import Event
from wcet_probe.analyzer.domains.congruences import Congruence

_Told = TypeVar("_Told")

IN_THE_RESERVED_SETS = "in the reserved sets"
STORED_BEFORE_LOADED = "stored before it is loaded"
OF_THE_OWN_BLOCK = "of the own block"
IN_ITS_MEMORY = "in the arena or the control structure"
ACCESS_OBLIGATIONS = frozenset({IN_THE_RESERVED_SETS, STORED_BEFORE_LOADED, OF_THE_OWN_BLOCK, IN_ITS_MEMORY})
"""What is asked of an access where it takes place."""
OF_ANOTHER_BLOCK = "a block that is not held yet"
LARGE_ENOUGH = "a block that holds what is wanted"
"""What is asked of the block that malloc returns."""
UNCHANGED = "nothing is changed where it fails"


class Reached(StrEnum):
    """What an access is shown to be to."""

    STACK = "the stack"
    CONTROL = "static data that are no tables"
    TABLES = "the tables"
    BLOCK = "a block's first word, or the word before it"
    DESCRIPTOR = "a place in the reserved sets that does not begin a cache page"
    AREA = "a place in the reserved sets"


@dataclass(frozen=True, slots=True)
class Obligation:
    """Something that was to be shown of a way.

    Attributes:
        way: number of the way, from 1 on; 0 of what the caller writes.
        instruction_address: of an access, or the last instruction of the way.
        what: the name of a claim, or what was to be shown of an access.
        is_shown: whether it was.
    """

    way: int
    instruction_address: int
    what: str
    is_shown: bool


@dataclass(frozen=True, slots=True)
class Deduced:
    """What came of an operation.

    Attributes:
        operation: ``init``, ``caller`` (what the caller writes), or a part of free or malloc, such as ``free-small``.
        ways: how many were found, to their ends or not.
        obligations: in the order in which they were asked.
        choices: of each way, the branches whose condition is not constant, and whether each was taken.
        reached: of each instruction that accesses data on a way, what it accesses, if nothing is open.
        aligned: of each such instruction, the classes of its addresses, if nothing is open.
        questions: of each part of it what was assumed and shown, for another solver (`smt_lib`).
    """

    operation: str
    ways: int
    obligations: tuple[Obligation, ...]
    choices: tuple[tuple[tuple[int, bool], ...], ...]
    reached: Mapping[int, frozenset[Reached]] = field(default_factory=dict)
    aligned: Mapping[int, frozenset[Congruence]] = field(default_factory=dict)
    questions: tuple[Sequence[Event], ...] = field(default=(), repr=False)

    @property
    def open(self) -> tuple[Obligation, ...]:
        """What was not shown."""
        return tuple(one for one in self.obligations if not one.is_shown)

    @property
    def shown(self) -> int:
        """How much was shown."""
        return len(self.obligations) - len(self.open)

    @property
    def open_by_name(self) -> Mapping[str, tuple[int, ...]]:
        """What was not shown, and at which instructions."""
        found: dict[str, tuple[int, ...]] = {}
        for one in self.open:
            places = (*found.get(one.what, ()), one.instruction_address)
            found[one.what] = tuple(dict.fromkeys(places))
        return found

    @property
    def accesses(self) -> int:
        """How many instructions access data, where all that was asked of their accesses was shown."""
        asked = [one for one in self.obligations if one.what in ACCESS_OBLIGATIONS]
        bad = {one.instruction_address for one in asked if not one.is_shown}
        return len({one.instruction_address for one in asked} - bad)

    def then(self, part: Deduced) -> Deduced:
        """With what came of another part, whose ways are numbered behind these."""
        behind = tuple(replace(one, way=one.way and one.way + self.ways) for one in part.obligations)
        ways, obligations = self.ways + part.ways, (*self.obligations, *behind)
        reached, aligned = reached_by((self, part)), aligned_by((self, part))
        choices, questions = (*self.choices, *part.choices), (*self.questions, *part.questions)
        return Deduced(self.operation, ways, obligations, choices, reached, aligned, questions)


class Answers:
    """What is asked of the ways of one operation, while it is under way: in the order in which it was asked.

    Args:
        told: is called at the end of each way.
    """

    def __init__(self, told: Callable[[], None]) -> None:
        self._told = told
        self._obligations: list[Obligation] = []
        self._pending: list[tuple[int, str, bool]] = []
        self._choices: list[tuple[tuple[int, bool], ...]] = []

    def add(self, what: str, instruction_address: int, is_shown: bool) -> None:  # noqa: FBT001
        """Keep an answer, of the way that is followed."""
        self._pending.append((instruction_address, what, is_shown))

    def end_way(self, end: End | None) -> None:
        """End a way, or what the caller writes; one that was not followed to its end is open."""
        if end and end.reason:
            self.add(f"followed to its end: {end.reason}", end.instruction_address, is_shown=False)
        self._keep(len(self._choices) + 1 if end else 0)
        if end:
            self._choices.append(end.choices)

    def leave_way(self) -> None:
        """Leave a way to another part of the operation; what was asked of its accesses is kept, as of a way 0."""
        self._keep(0)

    def _keep(self, way: int) -> None:
        self._obligations.extend(Obligation(way, *one) for one in self._pending)
        self._pending.clear()
        self._told()

    def deduced(
        self,
        operation: str,
        asked: Sequence[Event],
        aligned: Mapping[int, Iterable[Congruence]],
        reached: Mapping[int, Iterable[Reached]] = MappingProxyType({}),
    ) -> Deduced:
        """What came of ``operation``, for which so much was ``asked``; the rest is told as `Deduced` does."""
        unique = tuple(dict.fromkeys(self._obligations))
        places = {address: frozenset(own) for address, own in reached.items()}
        classes = {address: frozenset(own) for address, own in aligned.items()}
        return Deduced(operation, len(self._choices), unique, tuple(self._choices), places, classes, (asked,))


def reached_by(parts: Iterable[Deduced]) -> Mapping[int, frozenset[Reached]]:
    """What instructions access on the ways of all ``parts``."""
    return _united(part.reached for part in parts)


def aligned_by(parts: Iterable[Deduced]) -> Mapping[int, frozenset[Congruence]]:
    """The classes of the addresses that instructions access on the ways of all ``parts``."""
    return _united(part.aligned for part in parts)


def _united(parts: Iterable[Mapping[int, frozenset[_Told]]]) -> Mapping[int, frozenset[_Told]]:
    found: dict[int, frozenset[_Told]] = {}
    for part in parts:
        for address, own in part.items():
            found[address] = found.get(address, frozenset()) | own
    return found
