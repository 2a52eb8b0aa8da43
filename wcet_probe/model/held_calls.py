"""Calls that were held against a proof: what was counted in them, and the first claim that one of them violated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class ClaimKind(StrEnum):
    """What was claimed; at a point of the proof, of an access there, and of the way on from it."""

    ADDRESS = "address"
    SET = "set"
    FRAME = "frame"
    CROSSES = "crosses"
    VISIT = "visit"
    CHANGES = "changes"
    LINES = "lines"
    LINES_OF_SET = "lines of a set"
    WORD = "word"
    FLOW = "flow"
    INSTRUCTIONS = "instructions"
    CYCLES = "cycles"
    POINT = "point"
    WAY = "way"
    SAVED = "saved"


@dataclass(frozen=True, slots=True)
class BrokenClaim:
    """A claim that a call violated.

    Attributes:
        kind: what was claimed.
        entry: the function that was called.
        fact: where the fact stands that claims it; empty where none does.
        statement: of a flow fact, what it says; where control went astray, that the call returns, if that is assumed.
        limit: what was claimed, for claims of a number.
        value: what the call showed.
        instruction_address, address, is_store: of the data access that showed it; 0 where none did.
    """

    kind: ClaimKind
    entry: str
    fact: str
    statement: str
    limit: int
    value: int
    instruction_address: int
    address: int
    is_store: bool


@dataclass(frozen=True, slots=True)
class HeldCalls:
    """What was counted in the calls of one function.

    Attributes:
        calls: how many there were.
        accesses: executed loads and stores, by address of the instruction and whether it is a store.
        facts: executed accesses of which a fact about pointers speaks, by fact.
        line_changes, lines, lines_of_set: the most of them in a call, by the fact that counts them.
        word_loads: how often each word was loaded of which a fact speaks, by fact.
        flow_maxima: the largest sum in a call of each flow claim.
        instructions, cycles: the most of a call.
    """

    calls: int = 0
    accesses: Mapping[tuple[int, bool], int] = field(default_factory=dict, repr=False)
    facts: Mapping[str, int] = field(default_factory=dict)
    line_changes: Mapping[str, int] = field(default_factory=dict)
    lines: Mapping[str, int] = field(default_factory=dict)
    lines_of_set: Mapping[str, int] = field(default_factory=dict)
    word_loads: Mapping[str, int] = field(default_factory=dict)
    flow_maxima: tuple[int, ...] = ()
    instructions: int = 0
    cycles: int = 0
