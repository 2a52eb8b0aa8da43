"""The operations that lead to a state of dlmalloc27, and the orders in which its chunks are freed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from wcet_probe.errors import HeapTooSmallError
from wcet_probe.model.scenario import Trace
from wcet_probe.scenarios.dlmalloc27_heap import MINIMUM_BYTES, OVERHEAD_BYTES
from wcet_probe.scenarios.families import HeapRequest

MINIMUM_HEAP_BYTES = 80
"""Below it no state of an allocation is built."""
MANY_STATES_BYTES = 1 << 20
"""Largest heap in bytes for which all states are tried: beyond it sorting is most of the cost."""
ORDER_NAMES = {False: "in address order", True: "scattered"}


@dataclass(slots=True)
class Script:
    """A trace in the making, as columns: millions of operations would be slow as objects.

    Attributes:
        heap_bytes: size of the heap.
        used_bytes: what is cut off top.
    """

    heap_bytes: int
    used_bytes: int = 0
    _kinds: list[int] = field(default_factory=list)
    _slots: list[int] = field(default_factory=list)
    _sizes: list[int] = field(default_factory=list)
    _next_slot: int = 0

    @property
    def room_bytes(self) -> int:
        """What can be cut off top yet: top keeps a least chunk."""
        return self.heap_bytes - self.used_bytes - MINIMUM_BYTES

    def cut(self, size: int) -> int:
        """Allocates a chunk of ``size`` bytes off top; its slot."""
        if size > self.room_bytes:
            raise too_small(self.heap_bytes)
        self.used_bytes += size
        return self.malloc(size)

    def malloc(self, size: int) -> int:
        """Allocates a chunk of ``size`` bytes, from wherever it comes; its slot."""
        self._kinds.append(0)
        self._slots.append(self._next_slot)
        self._sizes.append(size - OVERHEAD_BYTES)
        self._next_slot += 1
        return self._next_slot - 1

    def free(self, slots: Sequence[int]) -> None:
        """Frees blocks in the order given."""
        self._kinds += [1] * len(slots)
        self._slots += slots
        self._sizes += [0] * len(slots)

    def trace(self) -> Trace:
        """All operations so far."""
        none = (0,) * len(self._kinds)
        return Trace(tuple(self._kinds), tuple(self._slots), tuple(self._sizes), none, self._next_slot)


def too_small(heap_bytes: int) -> HeapTooSmallError:
    """The refusal of a heap that has no room for the state."""
    least = max(MINIMUM_HEAP_BYTES, 2 * heap_bytes)
    return HeapTooSmallError(
        f"a heap of {heap_bytes} bytes cannot hold the scenario's state; give at least {least} with --heap."
    )


def scattered(slots: Sequence[int]) -> list[int]:
    """In bit-reversed order: neighbours are far apart in time, and what follows each other in time is far apart."""
    order = [0]
    while len(order) < len(slots):
        order = [2 * index for index in order] + [2 * index + 1 for index in order]
    return [slots[index] for index in order if index < len(slots)]


def orders(request: HeapRequest) -> tuple[bool, ...]:
    """Whether to scatter: it costs misses and saves a few instructions, so that without a cache it never pays off."""
    if request.data_line_bytes is None:
        return (False,)
    return (False, True) if request.heap_bytes <= MANY_STATES_BYTES else (True,)
