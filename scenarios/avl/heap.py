"""The heap of best fit over an AVL tree in plain Python: sizes, how to lay blocks out, and how to read them back.

Kept equal to ``allocators/avl-best-fit/avl_best_fit.c`` by the state proof of every run.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass

from wcet_probe.errors import HeapTooSmallError
from wcet_probe.model.scenario import Trace
from wcet_probe.model.target import MemoryRange
from wcet_probe.scenarios.avl.candidates import ANYWHERE, Spacing, in_order
from wcet_probe.scenarios.avl.shapes import sparsest_nodes
from wcet_probe.scenarios.cache_sets import fences
from wcet_probe.scenarios.families import Blocks, GuestHeap, HeapRequest, chained_blocks

HEADER_BYTES = 8
BALANCED, TALLER = 1, 2
_USED = 0
_STATE_MASK = 3


@dataclass(frozen=True, slots=True)
class Sizes:
    """Sizes of blocks, headers included, in bytes.

    Attributes:
        heap: bytes that hold the blocks and the sentinel.
        minimum: the least block.
        rest: the least that is split off.
        unit: all are multiples of it.
    """

    heap: int
    minimum: int
    rest: int
    unit: int

    def larger(self, size: int) -> int:
        """The next size above ``size``."""
        return size + self.unit


def sizes_of(request: HeapRequest) -> Sizes:
    """The sizes of the heap of ``request``."""
    values = request.allocator.values
    unit = unit_of(values)
    minimum, split = (rounded_up(values[name], unit) for name in ("minimum-block", "split-threshold"))
    heap = (request.heap_bytes - HEADER_BYTES) // unit * unit + HEADER_BYTES
    return Sizes(heap, minimum, max(minimum, split), unit)


def unit_of(values: Mapping[str, int]) -> int:
    """What all sizes of a build are multiples of, in bytes."""
    return max(values["granule"], values["alignment"])


def evicting(unit: int) -> int:
    """How far into a node a line begins where it lies in as many lines as it can, in bytes."""
    return HEADER_BYTES if unit <= HEADER_BYTES else 0


def rounded_up(size: int, unit: int) -> int:
    """The least multiple of ``unit`` that is not below ``size``."""
    return -(-size // unit) * unit


def highest(sizes: Sizes, extra: Callable[[int], int], least: int) -> int:
    """Height of the highest sparsest tree of least blocks that the heap holds, with fences and a last used block.

    ``extra`` tells how many bytes the blocks that must be larger add to a tree of a height.

    Raises:
        HeapTooSmallError: it is below ``least``.
    """

    def needed(height: int) -> int:
        return 2 * sizes.minimum * sparsest_nodes(height) + extra(height) + sizes.rest + HEADER_BYTES

    if needed(least) > sizes.heap:
        message = (
            f"a heap of {sizes.heap} bytes cannot hold the scenario's state; give at least {needed(least)} with --heap."
        )
        raise HeapTooSmallError(message)
    height = least
    while needed(height + 1) <= sizes.heap:
        height += 1
    return height


def set_up(
    sizes: Sizes,
    free_sizes: list[int],
    order: Iterator[int],
    moved: Collection[int] = (),
    spacing: Spacing = ANYWHERE,
) -> Trace:
    """Free blocks of ``free_sizes`` in address order, freed in ``order``, each with a fence behind it; no more is free.

    Block i is in slot 2i, the fence behind it in slot 2i + 1. The blocks ``moved`` begin where a line does, or end
    their headers there if nodes can lie in two, at the addresses of a ``spacing``: they evict each other. If that has
    an order, as many in that order as the heap has room for are twice as far apart, and at least one.

    Raises:
        HeapTooSmallError: the heap has no room to move them.
    """
    levels = list(order)
    between = _between(sizes, free_sizes, levels, moved, spacing)
    rest = _left(sizes, free_sizes, between)
    bodies = [b - HEADER_BYTES for pair in zip(free_sizes, between, strict=True) for b in pair]
    bodies.append(rest - HEADER_BYTES)
    freed = [2 * at for at in levels]
    count = len(bodies)
    return Trace(
        kinds=(0,) * count + (1,) * len(freed),
        slots=(*range(count), *freed),
        sizes_bytes=(*bodies, *((0,) * len(freed))),
        cache_sets=(0,) * (count + len(freed)),
        slot_count=count,
    )


def _left(sizes: Sizes, free_sizes: list[int], between: list[int]) -> int:
    """Bytes of the last used block."""
    return sizes.heap - HEADER_BYTES - sum(free_sizes) - sum(between)


def _between(
    sizes: Sizes, free_sizes: list[int], levels: list[int], moved: Collection[int], spacing: Spacing
) -> list[int]:
    """Sizes of the fences that bring the blocks ``moved`` where `set_up` says."""
    residue = (-spacing.stack_bytes - evicting(sizes.unit)) % (2 * spacing.modulus)
    ranked = in_order(spacing.first, moved, levels) if spacing.first else []

    def spread(count: int) -> list[int]:
        wider = set(ranked[:count])
        modulus = spacing.modulus
        return list(fences(free_sizes, sizes.minimum, moved, residue=residue, modulus=modulus, wider=wider))

    least = min(1, len(ranked))
    between = spread(least)
    if _left(sizes, free_sizes, between) < sizes.rest:
        message = f"a heap of {sizes.heap} bytes cannot hold the scenario's state; give a larger --heap."
        raise HeapTooSmallError(message)
    low, high = least, len(ranked) + 1
    while high - low > 1:
        middle = (low + high) // 2
        wider = spread(middle)
        if _left(sizes, free_sizes, wider) < sizes.rest:
            high = middle
        else:
            low, between = middle, wider
    return between


def free_blocks_apart(sizes: Sizes, trace: Trace, spacing: Spacing) -> dict[str, int]:
    """What is predicted of a trace of `set_up`: free blocks at the addresses of the nodes that come first, if any."""
    if not spacing.first:
        return {}
    doubled, offset, found = spacing.doubled, evicting(sizes.unit) + spacing.stack_bytes, 0
    for slot, size in enumerate(trace.sizes_bytes[: trace.slot_count - 1]):
        found += slot % 2 == 0 and offset % doubled.modulus == 0
        offset += size + HEADER_BYTES
    return {f"free blocks{doubled.text}": found}


@dataclass(frozen=True, slots=True)
class Words:
    """The guest's heap as words, and the root of its tree."""

    words: array[int]
    base: int
    root: int

    def at(self, address: int) -> int:
        """The word at ``address``."""
        return self.words[(address - self.base) >> 2]

    def size(self, block: int) -> int:
        """Bytes of ``block``."""
        return self.at(block) & ~_STATE_MASK

    def state(self, block: int) -> int:
        """``BALANCED``, ``TALLER`` plus a side, or used."""
        return self.at(block) & _STATE_MASK

    def child(self, block: int, side: int) -> int:
        """The child on the left side, 0, or the right one, 1; 0 if there is none."""
        return self.at(block + 8 + 4 * side)


def words_of(guest: GuestHeap) -> Words:
    """The words of the guest's heap, read at once."""
    control, heap = guest.symbols["avl_best_fit_control"], guest.heap
    words = array("I", guest.read(heap.base_address, heap.size_bytes // 4 * 4))
    # control.first is the heap's base: read in the guest's byte order and in the host's, it tells both apart.
    if int.from_bytes(guest.read(control + 16, 4), sys.byteorder) != heap.base_address:
        words.byteswap()
    return Words(words, heap.base_address, guest.read_word(control + 8))


def walk(guest: GuestHeap) -> Blocks:
    """The blocks of the guest's heap in address order, the sentinel left out."""
    return blocks_of(guest, words_of(guest))


def blocks_of(guest: GuestHeap, heap: Words) -> Blocks:
    """As ``walk``, of words that have been read."""
    unit = unit_of(guest.values)
    extent = MemoryRange(heap.base, (guest.heap.size_bytes - HEADER_BYTES) // unit * unit)
    states = {*range(_STATE_MASK + 1)} - {_USED}
    return chained_blocks(heap.words, heap.base, extent, header_bytes=HEADER_BYTES, flags=_STATE_MASK, free=states)
