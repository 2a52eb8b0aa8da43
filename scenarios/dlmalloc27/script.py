"""The operations that lead to a state of dlmalloc27, and the orders in which its chunks are freed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

from wcet_probe.errors import HeapTooSmallError
from wcet_probe.model.scenario import Trace
from wcet_probe.scenarios.dlmalloc27.heap import GRANULE_BYTES, MINIMUM_BYTES, OVERHEAD_BYTES, PAGE_BYTES
from wcet_probe.scenarios.families import HeapRequest

_HEADER_BYTES = 8
"""A chunk's links start behind it."""
_MOST_RUNS = 4096
_LEAST_RUN = 16
MINIMUM_HEAP_BYTES = 80
"""Below it no state of an allocation is built."""
_LEAST_PAGES = 5
"""Fewer fit into four ways."""
_MANY_PAGES_BYTES = 1 << 20
"""Largest heap in bytes whose chunks are merged page by page before they are sorted."""
_MANY_STATES_BYTES = 1 << 17
"""Largest heap in bytes for which all states are tried: beyond it sorting is most of the cost."""


class Order(Enum):
    """In which order neighbours are released, in words."""

    BY_ADDRESS = "in address order"
    SCATTERED = "scattered"
    IN_SWEEPS = "in sweeps"
    BY_PAGES = "page by page in turn"


WHY_BY_PAGES = (
    "A page after another merges one more chunk, all at the same place of the page: what a merge touches of its page "
    "and of those beside it in the unsorted list shares a few sets of the cache, and other pages have evicted it since."
)


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


def script_for(request: HeapRequest) -> Script:
    """No operation yet; of the heap what is a multiple of the alignment is used."""
    return Script(request.heap_bytes - request.heap_bytes % GRANULE_BYTES)


def too_small(heap_bytes: int) -> HeapTooSmallError:
    """The refusal of a heap that has no room for the state."""
    least = max(MINIMUM_HEAP_BYTES, 2 * heap_bytes)
    return HeapTooSmallError(
        f"a heap of {heap_bytes} bytes cannot hold the scenario's state; give at least {least} with --heap."
    )


def ordered(slots: Sequence[int], order: Order, per_page: int = PAGE_BYTES // MINIMUM_BYTES) -> list[int]:
    """Neighbouring ``slots``, of which so many are in each page, in an order."""
    match order:
        case Order.BY_ADDRESS:
            return list(slots)
        case Order.SCATTERED:
            return _scattered(slots)
        case Order.IN_SWEEPS:
            return _in_sweeps(slots)
        case Order.BY_PAGES:
            return _by_pages(slots, per_page)


def _scattered(slots: Sequence[int]) -> list[int]:
    """In bit-reversed order: neighbours are far apart in time, and what follows each other in time is far apart."""
    order = [0]
    while len(order) < len(slots):
        order = [2 * index for index in order] + [2 * index + 1 for index in order]
    return [slots[index] for index in order if index < len(slots)]


def _in_sweeps(slots: Sequence[int]) -> list[int]:
    """Many runs of neighbours, which grow by one slot in turn.

    What a run has merged into becomes the first unsorted chunk. Of two neighbours in that list one has its turn in a
    sweep, and those that follow each other there have it far apart in time.
    """
    length = max(1, -(-len(slots) // min(_MOST_RUNS, max(1, len(slots) // _LEAST_RUN))))
    runs = [iter(slots[start : start + length]) for start in range(0, len(slots), length)]
    left = [min(length, len(slots) - start) for start in range(0, len(slots), length)]
    turn = _scattered(range(len(runs)))
    listed: list[int] = []
    found: list[int] = []
    while turn:
        found += [next(runs[run]) for run in turn]
        for run in turn:
            left[run] -= 1
        moved = set(turn)
        listed = [*reversed(turn), *(run for run in listed if run not in moved)]
        pairs = (max(listed[at : at + 2], key=left.__getitem__) for at in range(0, len(listed), 2))
        turn = _scattered([run for run in pairs if left[run]])
    return found


def _by_pages(slots: Sequence[int], length: int) -> list[int]:
    """Runs of ``length`` neighbours, a page long, grow by one slot in turn.

    All that a merge touches of its run, and of those beside it in the list, is at the same places of a page: in a few
    sets of the cache, where other runs have evicted it since. Neighbours in the list have turns far apart in time.
    """
    runs = [slots[start : start + length] for start in range(0, len(slots), length)]
    turn = list(range(len(runs)))
    found: list[int] = []
    for place in range(length):
        found += [runs[run][place] for run in turn if place < len(runs[run])]
        turn = _scattered(turn)
    return found


def tries_all(request: HeapRequest) -> bool:
    """Whether the heap is small enough for all states to be tried."""
    return request.heap_bytes <= _MANY_STATES_BYTES


def pad_bytes(line_bytes: int) -> int:
    """A used chunk at the arena's start: behind it one starts whose two first words end a cache line."""
    return max(MINIMUM_BYTES + GRANULE_BYTES, line_bytes - _HEADER_BYTES)


def orders(request: HeapRequest) -> tuple[Order, ...]:
    """Which orders are tried: in sweeps each merge moves a chunk in its list; others save misses or instructions.

    Page by page most is evicted, where there is a cache and pages are more than its ways; where sorting is most of the
    cost, what that order gives to merging it takes from sorting.
    """
    tried = tuple(Order) if tries_all(request) else (Order.IN_SWEEPS, Order.BY_PAGES)
    has_pages = request.data_line_bytes and _LEAST_PAGES * PAGE_BYTES <= request.heap_bytes <= _MANY_PAGES_BYTES
    return tried if has_pages else tuple(order for order in tried if order is not Order.BY_PAGES)
