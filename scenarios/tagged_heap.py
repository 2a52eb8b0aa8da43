"""Heaps with boundary tags and circular lists, in plain Python: what first-fit, best-fit and half-fit have in common.

Written from ``allocators/common/boundary_tags.h`` and ``dlist.h``, and kept equal to them by the state proof of every
run.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from wcet_probe.errors import HeapTooSmallError
from wcet_probe.model.scenario import Block, InitialCache, Operation, OperationKind, ScenarioPlan, Trace
from wcet_probe.model.target import MemoryRange
from wcet_probe.scenarios.families import Blocks, GuestHeap, HeapRequest, chained_blocks

WORD_BYTES = 4
OVERHEAD_BYTES = 8
"""Header and footer of a block; also the two fences of a heap."""
_FREE_BIT = 1


@dataclass(frozen=True, slots=True)
class Sizes:
    """The build parameters that sizes depend on: sizes of blocks, tags included."""

    alignment: int
    minimum: int
    split: int

    @classmethod
    def of(cls, values: Mapping[str, int]) -> Sizes:
        """As the allocator's parameter values say."""
        minimum = values["minimum-block"]
        return cls(values["alignment"], minimum, max(minimum, values["split-threshold"]))

    def block(self, request_bytes: int) -> int:
        """Size of the block that serves a request."""
        return max(self.up(request_bytes + OVERHEAD_BYTES), self.minimum)

    def up(self, size: int) -> int:
        """The least legal size from ``size`` on, the minimum apart."""
        return -(-size // self.alignment) * self.alignment


def any_request(_: int) -> int:
    """The largest block that a request can cut from a single free one: the whole of it."""
    return sys.maxsize


@dataclass(slots=True)
class Layout:
    """Cuts a virgin heap into blocks of exact sizes, from low addresses to high ones, then frees some of them.

    Attributes:
        request: for which heap.
        largest_cut: size of the largest block that can be cut from a single free one of a given size.
        position_bytes: offset of the next block's header from the start of the heap.
    """

    request: HeapRequest
    largest_cut: Callable[[int], int] = any_request
    position_bytes: int = WORD_BYTES
    _sizes: list[int] = field(default_factory=list)
    _freed: list[int] = field(default_factory=list)

    @property
    def sizes(self) -> Sizes:
        """Of the allocator's build."""
        return Sizes.of(self.request.allocator.values)

    @property
    def room_bytes(self) -> int:
        """Bytes that are not laid out yet."""
        return self.request.heap_bytes - WORD_BYTES - self.position_bytes

    @property
    def used_blocks(self) -> int:
        """Blocks that stay in use."""
        return len(self._sizes) - len(self._freed)

    def cut(self, totals: Sequence[int]) -> range:
        """Blocks of these sizes, in use; their slots."""
        left = self.room_bytes - sum(totals)
        if left and left < self.sizes.split:
            raise too_small(self.request)
        self.position_bytes += sum(totals)
        first = len(self._sizes)
        self._sizes.extend([total - OVERHEAD_BYTES for total in totals])
        return range(first, len(self._sizes))

    def block(self, total: int) -> list[int]:
        """A block, or several side by side that are one when they are freed; their slots."""
        slots: list[int] = []
        while total:
            piece = min(total, self.largest_cut(self.room_bytes))
            if 0 < total - piece < self.sizes.minimum:
                piece -= self.sizes.minimum
            if piece < self.sizes.minimum:  # Nothing smaller is ever cut: the loop would not end.
                raise too_small(self.request)
            slots.extend(self.cut([piece]))
            total -= piece
        return slots

    def align(self, *, apart: int | None = None) -> None:
        """A fence behind which a header is the last word of its cache line, so that its links lie in the next line."""
        line = self.request.data_line_bytes
        if line is None or line <= OVERHEAD_BYTES:
            if apart:
                self.block(apart)
            return
        gap = (line - WORD_BYTES - self.position_bytes) % line
        while gap < (apart or (self.sizes.minimum if gap else 0)):
            gap += line
        if gap:
            self.block(self.sizes.up(gap))

    def fill(self) -> None:
        """Fences up to the end of the heap."""
        while self.room_bytes:
            room = self.room_bytes
            piece = min(room, self.largest_cut(room))
            taken = room if room - piece < self.sizes.split else piece
            self._sizes.append(piece - OVERHEAD_BYTES)
            self.position_bytes += taken

    def free(self, slots: Iterable[int]) -> None:
        """Free these, in this order, after all blocks are cut."""
        self._freed.extend(slots)

    def trace(self) -> Trace:
        """The operations that reach the layout; what is not laid out is one free block at the end."""
        blocks, freed = len(self._sizes), len(self._freed)
        return Trace(
            kinds=(0,) * blocks + (1,) * freed,
            slots=(*range(blocks), *self._freed),
            sizes_bytes=(*self._sizes, *((0,) * freed)),
            cache_sets=(0,) * (blocks + freed),
            slot_count=blocks,
        )


def freed_into_empty_list(layout: Layout, filed: str) -> ScenarioPlan:
    """The cheapest free: no neighbour is free, and the list that the block goes into is empty, as ``filed`` says."""
    _, slot = layout.cut([layout.sizes.minimum] * 2)
    layout.fill()
    return ScenarioPlan(
        scenario="best-free",
        variant="into an empty list",
        trace=layout.trace(),
        measured=Operation(OperationKind.FREE, slot),
        initial_cache=InitialCache.WARM,
        state=f"a used block between used ones; {filed}",
        why=("No neighbour is free: nothing is merged.",),
        prediction={"free blocks": 0, "used blocks": layout.used_blocks},
    )


def too_small(request: HeapRequest) -> HeapTooSmallError:
    """The error for a heap that cannot hold a state."""
    return HeapTooSmallError(
        f"a heap of {request.heap_bytes} bytes is too small for the scenario's state; "
        f"give at least {2 * request.heap_bytes} with --heap."
    )


@dataclass(frozen=True, slots=True)
class TaggedHeap:
    """The guest's heap, read at once."""

    base_address: int
    words: array[int]

    @classmethod
    def read(cls, guest: GuestHeap, control: str) -> TaggedHeap:
        """The whole arena; ``control`` is a symbol whose first word is an address, which tells the byte order."""
        address = guest.symbols[control]
        words = array("I", guest.read(guest.heap.base_address, guest.heap.size_bytes))
        if int.from_bytes(guest.read(address, WORD_BYTES), sys.byteorder) != guest.read_word(address):
            words.byteswap()
        return cls(guest.heap.base_address, words)

    @property
    def end_address(self) -> int:
        """Of the upper fence."""
        return self.base_address + WORD_BYTES * (len(self.words) - 1)

    def size(self, address: int) -> int:
        """Size of the block at ``address``."""
        return self.words[(address - self.base_address) >> 2] & ~_FREE_BIT

    def sizes_of(self, addresses: Iterable[int]) -> list[int]:
        """Sizes of the blocks at ``addresses``."""
        words, base = self.words, self.base_address
        return [words[(address - base) >> 2] & ~_FREE_BIT for address in addresses]

    def size_before(self, address: int) -> int:
        """Size of the block that ends at ``address``."""
        return self.words[((address - self.base_address) >> 2) - 1] & ~_FREE_BIT

    def free_list(self, guest: GuestHeap, head: int) -> list[int]:
        """Addresses of the blocks of the circular list whose head is at ``head``."""
        words, base = self.words, self.base_address
        blocks, node = list[int](), guest.read_word(head)
        add = blocks.append
        while node != head:
            add(node - WORD_BYTES)
            node = words[(node - base) >> 2]
        return blocks

    def blocks(self) -> Blocks:
        """All blocks; the footer is left out of the header's bytes."""
        first = self.base_address + WORD_BYTES
        extent = MemoryRange(first, self.end_address - first)
        return chained_blocks(
            self.words, self.base_address, extent, header_bytes=WORD_BYTES, flags=_FREE_BIT, free={_FREE_BIT}
        )

    def walk(self) -> tuple[Block, ...]:
        """As ``blocks``, an object each."""
        return tuple(self.blocks())
