"""The steps that states of CAMA are made of, and which of them a heap can hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from wcet_probe.errors import HeapTooSmallError
from wcet_probe.model.scenario import Operation, OperationKind, ScenarioPlan
from wcet_probe.scenarios.cama.heap import Geometry, Layout
from wcet_probe.scenarios.families import HeapRequest


class TooSmallError(Exception):
    """The heap cannot hold a candidate."""


class Site:
    """A layout with the steps that the states are made of. Sizes are those of blocks, with the word before them."""

    def __init__(self, request: HeapRequest) -> None:
        self.geometry = Geometry.of_values(request.allocator.values)
        if self.geometry.top_behind(self.geometry.area_from(0)) + self.geometry.minimum_block > request.heap_bytes:
            raise TooSmallError
        self.layout = Layout(self.geometry, request.heap_bytes)
        self.threshold = self.geometry.threshold
        # The largest size of the least class of large blocks: a block of the threshold's size is of the same class.
        width = self.threshold // self.geometry.columns
        self.request = self.threshold + width - self.geometry.alignment
        # A size that is rounded up to the threshold.
        self.rounded_request = self.threshold - self.geometry.alignment

    @property
    def top(self) -> int:
        """The break."""
        return self.layout.heap.top

    @property
    def available(self) -> int:
        """How many descriptors are left."""
        return self.layout.heap.available

    def used(self, size: int, cache_set: int | None = None) -> int:
        """A used block, at the break unless a set is named; its slot."""
        slot = self.layout.malloc(size, cache_set)
        if slot is None:
            raise TooSmallError
        return slot

    def used_until(self, start: int) -> None:
        """A used block up to ``start``, or up to the same place of the next cache page that leaves room for one."""
        size, page = start - self.top, self.geometry.page_bytes
        self.used(size if size >= self.threshold else self.threshold + (size - self.threshold) % page)

    def gap_and_used(self) -> None:
        """A gap of a line at most and a used block of the least large size: two descriptors for little memory."""
        self.used(self.threshold, (self.geometry.set_of(self.top) + 1) % self.geometry.sets)

    def use_descriptors_up(self, left: int, end: int) -> None:
        """Use all descriptors up but 0 or 1; the break is then at ``end``, or some pages behind it."""
        while self.available > 4:
            self.gap_and_used()
        if self.available == 4:
            self.used(self.threshold)
        line = self.geometry.line_bytes
        self.used_until(end - self.threshold - (line if left == 0 else 0))
        if left == 0:
            self.used(self.threshold, (self.geometry.set_of(self.top) + 1) % self.geometry.sets)
        else:
            self.used(self.threshold)

    def next_area(self) -> int:
        """Where the reserved sets of the next cache page begin."""
        return self.geometry.area_from(self.geometry.area_end(self.layout.heap.areas[-1]))

    def measured(self, size: int, cache_set: int) -> Operation:
        """The allocation of a block of ``size`` bytes in ``cache_set``."""
        return Operation(OperationKind.MALLOC, 0, size - self.geometry.word_bytes, cache_set)


def that_fit(request: HeapRequest, *candidates: Callable[[], ScenarioPlan]) -> tuple[ScenarioPlan, ...]:
    """The candidates that the heap can hold.

    Raises:
        HeapTooSmallError: there is none.
    """
    plans = tuple(_fitting(candidates))
    if not plans:
        larger = max(4 * Geometry.of_values(request.allocator.values).page_bytes, 2 * request.heap_bytes)
        message = f"a heap of {request.heap_bytes} bytes cannot hold the scenario's state; give --heap {larger}."
        raise HeapTooSmallError(message)
    return plans


def _fitting(candidates: tuple[Callable[[], ScenarioPlan], ...]) -> Iterator[ScenarioPlan]:
    for candidate in candidates:
        try:
            yield candidate()
        except TooSmallError:
            continue


def require(holds: bool) -> None:  # noqa: FBT001  (an assertion about the layout)
    """Refuse the heap for the candidate unless the layout is as wanted."""
    if not holds:
        raise TooSmallError


def free_blocks(layout: Layout) -> int:
    """Free blocks and gaps, small ones included."""
    heap = layout.heap
    small = sum(start in heap.small for starts in heap.lists.values() for start in starts)
    return small + sum(d.free for d in heap.described)


def second_word(geometry: Geometry) -> int:
    """The least size whose class is in the second word of a bit vector; a size like others if there is one word."""
    return geometry.class_floor(32) if geometry.vector_words > 1 else 8 * geometry.threshold
