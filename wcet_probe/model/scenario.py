"""Heap operations, and a scenario: the trace that reaches a state, the measured operation, what is predicted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum


class OperationKind(StrEnum):
    """Kind of a heap operation."""

    MALLOC = "malloc"
    FREE = "free"


@dataclass(frozen=True, slots=True)
class Operation:
    """One heap operation. ``slot`` names the block: malloc stores its result there, free takes it from there."""

    kind: OperationKind
    slot: int
    size_bytes: int = 0
    cache_set: int = 0


@dataclass(frozen=True, slots=True)
class Trace:
    """A sequence of operations, as columns of equal length: tuples, or arrays of words where they are long.

    Attributes:
        kinds: 0 for malloc, 1 for free.
        slots: block names, 0 ≤ slot < ``slot_count``.
        sizes_bytes: requested sizes, 0 for free.
        cache_sets: requested cache sets, for allocators that take one.
        slot_count: number of slots.
    """

    kinds: Sequence[int]
    slots: Sequence[int]
    sizes_bytes: Sequence[int]
    cache_sets: Sequence[int]
    slot_count: int

    def __len__(self) -> int:
        return len(self.kinds)

    def __getitem__(self, index: int) -> Operation:
        kind = OperationKind.FREE if self.kinds[index] else OperationKind.MALLOC
        return Operation(kind, self.slots[index], self.sizes_bytes[index], self.cache_sets[index])


class InitialCache(StrEnum):
    """Content of the caches when the measured call starts.

    ``cold``: every line invalid. ``warm``: what the set-up operations left. ``dirty``: every line valid with data that
    the program never uses, modified in a write-back data cache, so that every first fill also costs a write-back.
    """

    COLD = "cold"
    WARM = "warm"
    DIRTY = "dirty"


@dataclass(frozen=True, slots=True)
class FoundBy:
    """The search that found a state, which no rule gives.

    Attributes:
        target: on which it was found.
        unit: what was compared, ``instructions`` or ``cycles``.
        value: of the measured operation in that unit, with the image and the caches of the search.
        constructed: the most that any constructed state had then.
        evaluations, seed: of ``wcet-probe search``; 0 where another program found it.
        origin: the variant of the constructed state that it was made from.
    """

    target: str
    unit: str
    value: int
    constructed: int
    evaluations: int
    seed: int
    origin: str


@dataclass(frozen=True, slots=True)
class ScenarioPlan:
    """A scenario for one heap: how to reach the state, what to measure, and why.

    Attributes:
        scenario: its name, e.g. ``worst-alloc``.
        trace: operations that reach the state.
        measured: the one operation that is measured.
        initial_cache: content of the caches before the measured call, unless the user asks for another.
        state: the state that is predicted, in words, for the first screen.
        why: why the measured operation is the slowest (or fastest) from there; one sentence an entry.
        prediction: the same state as numbers, compared with the guest's heap after set-up.
        variant: which of the scenario's candidate states this is.
        driver: what the cost grows with, as a closed form: ``nodes visited = floor(H / 2M)``; empty if constant.
        driver_value: its value for this heap.
        refused: whether the measured allocation is to be refused; None where the state does not tell.
        set_up_may_refuse: whether allocations on the way to the state may be refused.
        found_by: the search that found the state; None where it is constructed.
    """

    scenario: str
    variant: str
    trace: Trace
    measured: Operation
    initial_cache: InitialCache
    state: str
    why: tuple[str, ...]
    prediction: Mapping[str, int | str]
    driver: str = ""
    driver_value: int | None = None
    refused: bool | None = False
    set_up_may_refuse: bool = False
    found_by: FoundBy | None = None


@dataclass(frozen=True, slots=True)
class Block:
    """A block of a guest heap as its walker found it: header and payload in bytes, free or in use."""

    address: int
    size_bytes: int
    header_bytes: int
    free: bool
