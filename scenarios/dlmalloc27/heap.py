"""The heap of dlmalloc27: sizes of chunks, and what the guest's memory holds of chunks, fast bins and bins.

Offsets are from the start of the arena. A region is a run of free chunks, those of fast bins among them: consolidation
merges it into one.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from wcet_probe.model.scenario import Block, ScenarioPlan
from wcet_probe.scenarios.families import GuestHeap

_HEADER_BYTES = _ALIGNMENT_BYTES = 8
OVERHEAD_BYTES = 4
_TAG, _NEXT = 4, 8
"""Offsets in a chunk. Behind the first link there is the other one."""
_PREV_IN_USE = 1
_FLAGS = 3
"""What is no part of the size in a tag."""
GRANULE_BYTES = 8
"""Sizes are multiples of it."""
MINIMUM_BYTES = 16
"""The least chunk."""
LARGE_BYTES = 256
"""The least chunk of a large bin."""
PAGE_BYTES = 4096
"""What one way of most data caches holds: lines that are a multiple of it apart share a set."""

# Offsets in struct dlmalloc27_control, see the README of the allocator.
_FAST, _FAST_COUNT, _TOP, _HEADS, _FIRST = 4, 10, 44, 52, 836
_BIN_COUNT = 96
_UNSORTED = 1

_USED, _FREE, _DEFERRED = range(3)


@dataclass(frozen=True, slots=True)
class _Heap:
    """What the guest's memory holds. Offsets are from the start of the arena.

    Attributes:
        sizes: size by offset of each chunk but top, in address order.
        kinds: used, free or in a fast bin, likewise.
        fast: offsets of the chunks in fast bins, in the order of consolidation.
        bins: offsets of the chunks in each bin that is not empty, first to last; bin 1 is the unsorted one.
        top_bytes: size of top.
    """

    sizes: Mapping[int, int]
    kinds: Mapping[int, int]
    fast: tuple[int, ...]
    bins: Mapping[int, tuple[int, ...]]
    top_bytes: int


def _read_heap(guest: GuestHeap) -> _Heap:
    base, control = guest.heap.base_address, guest.symbols["dlmalloc27_control"]
    arena = guest.read(base, guest.heap.size_bytes)
    words = struct.unpack(f"{_byte_order(guest)}{len(arena) // 4}I", arena)
    top = guest.read_word(control + _TOP) - base
    sizes, kinds = _chain(words, top)
    fast = tuple(_fast_chunks(guest, words))
    kinds.update(dict.fromkeys(fast, _DEFERRED))
    return _Heap(sizes, kinds, fast, _bins(guest, words), words[(top + _TAG) // 4] & ~_FLAGS)


def _byte_order(guest: GuestHeap) -> str:
    """As the words show it that hold where the arena starts and how long it is."""
    control = guest.symbols["dlmalloc27_control"]
    words = (guest.heap.base_address, guest.heap.size_bytes)
    found = [int.from_bytes(guest.read(control + _FIRST + 4 * number, 4), "little") for number in range(2)]
    return "<" if found == list(words) else ">"


def _chain(words: Sequence[int], top: int) -> tuple[dict[int, int], dict[int, int]]:
    sizes: dict[int, int] = {}
    kinds: dict[int, int] = {}
    offset = 0
    while offset < top:
        size = words[(offset + _TAG) // 4] & ~_FLAGS
        if not size:
            break
        sizes[offset] = size
        kinds[offset] = _USED if words[(offset + size + _TAG) // 4] & _PREV_IN_USE else _FREE
        offset += size
    return sizes, kinds


def _fast_chunks(guest: GuestHeap, words: Sequence[int]) -> Iterator[int]:
    base, fast_bins = guest.heap.base_address, guest.symbols["dlmalloc27_control"] + _FAST
    for number in range(_FAST_COUNT):
        chunk = guest.read_word(fast_bins + 4 * number)
        while chunk:
            yield chunk - base
            chunk = words[(chunk + _NEXT - base) // 4]


def largest_fast(values: Mapping[str, int]) -> int:
    """The largest chunk that a fast bin takes, in a build with these parameters."""
    return -(-(values["fast-request"] + OVERHEAD_BYTES) // GRANULE_BYTES) * GRANULE_BYTES


def _bins(guest: GuestHeap, words: Sequence[int]) -> dict[int, tuple[int, ...]]:
    base, heads = guest.heap.base_address, guest.symbols["dlmalloc27_control"] + _HEADS
    found = {}
    for number in range(_BIN_COUNT):
        head = heads + 8 * number - _NEXT
        chunk = guest.read_word(head + _NEXT)
        offsets = []
        while chunk not in (head, 0):
            offsets.append(chunk - base)
            chunk = words[(chunk + _NEXT - base) // 4]
        if offsets:
            found[number] = tuple(offsets)
    return found


def walk(guest: GuestHeap) -> tuple[Block, ...]:
    """The chunks of the guest's heap in address order, top the last; those of fast bins are free."""
    base, heap = guest.heap.base_address, _read_heap(guest)
    blocks = [
        Block(base + offset, size, _HEADER_BYTES, heap.kinds[offset] != _USED) for offset, size in heap.sizes.items()
    ]
    end = base + sum(heap.sizes.values())
    return (*blocks, Block(end, heap.top_bytes, _HEADER_BYTES, free=True))


def _regions(heap: _Heap) -> tuple[dict[int, int], list[int]]:
    """The number of its region by offset of each chunk that is not used, and the bytes of each region."""
    numbers: dict[int, int] = {}
    regions: list[int] = []
    joins = False
    for offset, size in heap.sizes.items():
        if heap.kinds[offset] == _USED:
            joins = False
            continue
        if not joins:
            regions.append(0)
        joins = True
        numbers[offset] = len(regions) - 1
        regions[-1] += size
    return numbers, regions


def bin_of(size: int) -> int:
    """The bin of a size: eight bytes wide below 256, then four to each power of two; the last one has no end."""
    if size < LARGE_BYTES:
        return size // GRANULE_BYTES
    power = size.bit_length() - 1
    return min(_BIN_COUNT - 1, 4 * power + (size >> power - 2) % 4)


def _nodes_passed(heap: _Heap, numbers: Mapping[int, int], regions: Sequence[int]) -> int:
    """Nodes that the next malloc passes if it consolidates and then sorts all: each region as it is last merged."""
    last_merged = {numbers[offset]: None for offset in reversed(heap.fast)}
    in_order = list(last_merged)[::-1]
    end = sum(heap.sizes.values())
    at_top = {
        numbers[offset] for offset in list(heap.sizes)[-1:] if offset + heap.sizes[offset] == end and offset in numbers
    }
    bins: dict[int, Counter[int]] = {}
    passed = 0
    for region in in_order:
        size = regions[region]
        if size < LARGE_BYTES or region in at_top:
            continue
        counts = bins.setdefault(bin_of(size), Counter())
        if counts and size > min(counts):
            passed += sum(count for other, count in counts.items() if other > size)
        counts[size] += 1
    return passed


def _fewest_at_place(heap: _Heap, numbers: Mapping[int, int], regions: Sequence[int]) -> int:
    """Of the places in a page where regions of the first large bin start, but for its least: the fewest at one."""
    starts = {numbers[offset]: offset for offset in reversed(heap.sizes) if offset in numbers}
    end = sum(heap.sizes.values())
    places = Counter(
        start % PAGE_BYTES
        for region, start in starts.items()
        if regions[region] > LARGE_BYTES
        and bin_of(regions[region]) == bin_of(LARGE_BYTES)
        and start + regions[region] < end
    )
    return min(places.values(), default=0)


def state(guest: GuestHeap, plan: ScenarioPlan) -> Mapping[str, int | str]:
    """Facts of the guest's heap, from its chunks, its fast bins and its bins."""
    heap = _read_heap(guest)
    numbers, regions = _regions(heap)
    facts: dict[str, int | str] = {
        "chunks in fast bins": len(heap.fast),
        "unsorted chunks": len(heap.bins.get(_UNSORTED, ())),
        "used blocks": sum(kind == _USED for kind in heap.kinds.values()),
        "regions to merge": len(regions),
        "bytes of top": heap.top_bytes,
        "nodes passed while sorting": _nodes_passed(heap, numbers, regions),
        "fewest regions at a place in a page": _fewest_at_place(heap, numbers, regions),
    }
    if plan.scenario in ("worst-free", "paper-free"):
        facts |= _neighbours(heap, guest.slot(plan.measured.slot) - _HEADER_BYTES - guest.heap.base_address)
    return facts


def _neighbours(heap: _Heap, own: int) -> Mapping[str, int | str]:
    offsets = list(heap.sizes)
    at = offsets.index(own)
    before, behind = offsets[at - 1], offsets[at + 1]
    bins = [next((chunks for chunks in heap.bins.values() if offset in chunks), ()) for offset in (before, behind)]
    around = [
        chunks[(chunks.index(offset) + step) % len(chunks)]
        for offset, chunks in zip((before, behind), bins, strict=True)
        for step in (-1, 1)
        if chunks
    ]
    return {
        "places in a page of chunks beside the neighbours": len({offset % PAGE_BYTES for offset in around}),
        "bytes before": heap.sizes[before] if bins[0] else 0,
        "bytes behind": heap.sizes[behind] if bins[1] else 0,
        "bytes that merge at the block": sum(heap.sizes[offset] for offset in (before, own, behind)),
        "others in the bin before": len(bins[0]) - 1,
        "others in the bin behind": len(bins[1]) - 1,
    }
