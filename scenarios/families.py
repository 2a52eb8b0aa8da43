"""What a family of scenarios offers to the probe, and what it may see of the guest."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import wraps

from wcet_probe.errors import HeapTooSmallError
from wcet_probe.model import Allocator, Block, MemoryRange, ScenarioPlan


class Extreme(StrEnum):
    """Which of a scenario's candidate states is the answer."""

    MOST_CYCLES = "most cycles"
    FEWEST_CYCLES = "fewest cycles"


def extreme_of(scenario: str) -> Extreme:
    """Which candidate answers ``scenario``: the cheapest one where the best is asked for, else the dearest."""
    return Extreme.FEWEST_CYCLES if scenario.startswith("best-") else Extreme.MOST_CYCLES


@dataclass(frozen=True, slots=True)
class HeapRequest:
    """For which heap a scenario is built.

    Attributes:
        allocator: with its parameter values.
        heap_bytes: size of the heap.
        data_line_bytes: line size of the D-cache, None without one: states may differ in how blocks lie across lines.
        seed: seed of a random workload.
    """

    allocator: Allocator
    heap_bytes: int
    data_line_bytes: int | None
    seed: int


Builder = Callable[[HeapRequest], tuple[ScenarioPlan, ...]]
"""Builds the candidate plans of a scenario for a heap."""

_LARGEST_HEAP_BYTES = 1 << 28


def naming_a_heap_that_works(builder: Builder) -> Builder:
    """``builder``, whose refusal of a heap names the least power of two that it does not refuse."""

    @wraps(builder)
    def build(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
        try:
            return builder(request)
        except HeapTooSmallError as error:
            message = (
                f"a heap of {request.heap_bytes} bytes is too small for the scenario's state on "
                f"{request.allocator.name}; give at least {_least_heap(builder, request)} with --heap."
            )
            raise HeapTooSmallError(message) from error

    return build


def _least_heap(builder: Builder, request: HeapRequest) -> int:
    heap_bytes = 1 << request.heap_bytes.bit_length()
    while heap_bytes < _LARGEST_HEAP_BYTES:
        try:
            builder(replace(request, heap_bytes=heap_bytes))
        except HeapTooSmallError:
            heap_bytes *= 2
        else:
            break
    return heap_bytes


@dataclass(frozen=True, slots=True)
class GuestHeap:
    """A guest's heap as a scenario reads it to prove its state.

    Attributes:
        read: bytes at an address: many at once are faster than word by word.
        read_word: the 32-bit word at an address, in the guest's byte order.
        slot: the address that a block of the trace was allocated at, by slot.
        symbols: addresses of the image's symbols.
        heap: the arena.
        values: build parameters of the allocator.
    """

    read: Callable[[int, int], bytes]
    read_word: Callable[[int], int]
    slot: Callable[[int], int]
    symbols: Mapping[str, int]
    heap: MemoryRange
    values: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Family:
    """The scenarios of one allocator.

    Attributes:
        builders: candidate plans of a heap, by scenario name; at least one each.
        walk: the blocks of a heap, in address order.
        state: facts of a guest's heap with the names that the predictions use; given the plan that is to be proved.
    """

    builders: Mapping[str, Builder]
    walk: Callable[[GuestHeap], tuple[Block, ...]]
    state: Callable[[GuestHeap, ScenarioPlan], Mapping[str, int | str]]
