"""Worst, best and random states of dlmalloc27, and those that the literature calls worst.

What malloc and free put off is paid by one call, and two costs add up in it. Consolidation is linear: every chunk of a
fast bin is merged with its neighbours. Sorting is quadratic: every merged chunk that goes to a large bin passes all
larger ones there. One malloc pays both if the chunks merge into regions of the sizes of one large bin, in descending
order.

Sizes here are those of chunks, in bytes; a request is 4 bytes less. Sources: C06 §2 and table 1, M06 §2; the worst
states are derived in the README of the allocator.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from wcet_probe.errors import HeapTooSmallError
from wcet_probe.model.scenario import Block, InitialCache, Operation, OperationKind, ScenarioPlan, Trace
from wcet_probe.scenarios.families import Family, GuestHeap, HeapRequest
from wcet_probe.scenarios.random_workload import random_plans

_HEADER_BYTES = 8
_OVERHEAD = 4
_LINKS = 8
"""Offset of the links of a free chunk."""
_PREV_IN_USE = 1

_LEAST = 16
_MARK = 24
"""Ends a region: its fast bin is emptied after that of 16, so that its place there is the region's place in time."""
_LARGE = 512
_SORTED_SIZES = tuple(range(568, _LARGE, -8))
"""The sizes of the first large bin but the least: one chunk of that suffices for the others not to be appended."""
_NEED = 40
"""Chunk of the measured request. No fast bin in use here, no small bin and no rest of top below 56 bytes serves it."""
_NO_FAST = 96
"""More than any fast bin takes."""
_LEAST_HEAP = 80

_MANY_STATES = 1 << 20
"""Largest heap in bytes for which all states are tried: beyond it sorting is most of the cost."""


# ------------------------------------------------------------------------------------------------------------- set-up


@dataclass(slots=True)
class _Script:
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
        return self.heap_bytes - self.used_bytes - _LEAST

    def cut(self, size: int) -> int:
        """Allocates a chunk of ``size`` bytes off top; its slot."""
        if size > self.room_bytes:
            raise _too_small(self.heap_bytes)
        self.used_bytes += size
        return self.malloc(size)

    def malloc(self, size: int) -> int:
        """Allocates a chunk of ``size`` bytes, from wherever it comes; its slot."""
        self._kinds.append(0)
        self._slots.append(self._next_slot)
        self._sizes.append(size - _OVERHEAD)
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


def _too_small(heap_bytes: int) -> HeapTooSmallError:
    least = max(_LEAST_HEAP, 2 * heap_bytes)
    return HeapTooSmallError(
        f"a heap of {heap_bytes} bytes cannot hold the scenario's state; give at least {least} with --heap."
    )


def _scattered(slots: Sequence[int]) -> list[int]:
    """In bit-reversed order: neighbours are far apart in time, and what follows each other in time is far apart."""
    order = [0]
    while len(order) < len(slots):
        order = [2 * index for index in order] + [2 * index + 1 for index in order]
    return [slots[index] for index in order if index < len(slots)]


# -------------------------------------------------------------------------------------------------- the state of malloc


def region_counts(budget_bytes: int) -> dict[int, int]:
    """How many fenced regions of each size make sorting pass most nodes: the sum of n_i * n_j over pairs of sizes.

    With c_i = size + fence and d sizes that sum is greatest for n_i = N * (1 - (d - 1) * c_i / sum(c)), where N follows
    from sum(n_i * c_i) = budget. What rounding down leaves is filled up one by one.
    """
    costs = {size: size + _LEAST for size in _SORTED_SIZES}
    whole = sum(costs.values())
    others = len(costs) - 1
    scale = whole * whole - others * sum(cost * cost for cost in costs.values())
    counts = {size: max(0, budget_bytes * (whole - others * cost) // scale) for size, cost in costs.items()}
    left = budget_bytes - sum(counts[size] * cost for size, cost in costs.items())
    while fitting := [size for size, cost in costs.items() if cost <= left]:
        regions = sum(counts.values())
        best = max(fitting, key=lambda size: (regions - counts[size]) / costs[size])
        counts[best] += 1
        left -= costs[best]
    return counts


def nodes_passed(counts: Iterable[int]) -> int:
    """Nodes that are passed when regions come in descending order of size: pairs of regions of different sizes."""
    counts = tuple(counts)
    return (sum(counts) ** 2 - sum(count * count for count in counts)) // 2


def nodes_passed_with_rest(counts: Mapping[int, int], rest_bytes: int, *, is_last: bool) -> int:
    """As ``nodes_passed``, if what is left of the heap merges into a chunk of ``rest_bytes``, first or last of all.

    Only a chunk that is large is sorted among them: it passes the larger ones, or the smaller ones pass it.
    """
    between = range(_LARGE + 1, rest_bytes)
    larger = sum(count for size, count in counts.items() if size > rest_bytes > _LARGE)
    smaller = sum(count for size, count in counts.items() if size in between)
    return nodes_passed(counts.values()) + (larger if is_last else smaller)


@dataclass(frozen=True, slots=True)
class _Deferred:
    """A heap full of put-off work.

    Attributes:
        script: the operations that lead there.
        fast: chunks in fast bins.
        unsorted: chunks in the unsorted bin.
        regions: how many free chunks there will be.
        passed: nodes that sorting them will pass.
    """

    script: _Script
    fast: int
    unsorted: int
    regions: int
    passed: int


def _deferred(request: HeapRequest, *, sort: bool, scatter: bool, alternate: bool) -> _Deferred:
    """Regions of least chunks, fenced from each other, all of them freed.

    Parameters:
        request: for which heap.
        sort: many regions of the first large bin, in descending order behind one of its least size; else one region.
        scatter: the chunks are merged in an order that no cache likes.
        alternate: every second chunk is no fast chunk but a free one that malloc must sort before it consolidates.
    """
    script = _Script(request.heap_bytes)
    # Two chunks at the heap's end. Merged before all others they are the exact fit that ends the sorting at once.
    pair_bytes = 2 * _LEAST
    reserve = pair_bytes + _LEAST
    counts = dict.fromkeys(_SORTED_SIZES, 0)
    order: list[int] = []
    if sort:
        counts = region_counts(script.room_bytes - reserve - (_LARGE + _LEAST))
        order = [_LARGE, *(size for size, count in counts.items() for _ in range(count))]
    least: list[list[int]] = []
    marks: list[int] = []
    for size in order:
        marks_here = 1 if size % _LEAST else 2
        least.append([script.cut(_LEAST) for _ in range((size - marks_here * _MARK) // _LEAST)])
        marks += [script.cut(_MARK) for _ in range(marks_here)]
        script.cut(_LEAST)
    rest = [script.cut(_LEAST) for _ in range((script.room_bytes - reserve) // _LEAST)]
    pair = [script.cut(_LEAST), script.cut(_LEAST)]
    script.cut(_LEAST)
    rest_bytes = _LEAST * len(rest) + pair_bytes
    free: list[int] = []
    if alternate:
        # Each between two chunks of fast bins. Before a mark one more would fit: it adds instructions but saves misses.
        last = -1 if scatter else None
        free = [slot for region in least for slot in region[1:last:2]] + rest[1:-1:2]
        script.free(list(reversed(_scattered(free) if scatter else free)))
        script.free(pair)
        pair = [script.malloc(pair_bytes)]
        script.free(pair)
    else:
        rest += pair
    kept = set(free)
    fast = [slot for region in (*least, rest) for slot in region if slot not in kept]
    # Fast bins are last in, first out: what is to be merged first is freed last.
    script.free(list(reversed(marks)))
    script.free(list(reversed(_scattered(fast) if scatter else fast)))
    pair_is_fast = request.allocator.values["fast-request"] >= pair_bytes - _OVERHEAD
    return _Deferred(
        script=script,
        fast=len(fast) + len(marks) + (alternate and pair_is_fast),
        unsorted=len(free) + (alternate and not pair_is_fast),
        regions=len(order) + 1,
        passed=nodes_passed_with_rest(counts, rest_bytes, is_last=alternate and pair_is_fast),
    )


_WHY_CONSOLIDATE = (
    "Nothing else serves the request, so all fast bins are consolidated: each chunk is merged with its neighbours."
)
_WHY_ALTERNATE = (
    "Every second chunk was left unsorted by an earlier consolidation: it is sorted into a small bin, then merged too."
)
_WHY_SORT = (
    "The merged chunks are then sorted into one large bin in descending order of size: each passes all larger ones.",
    "The first is the least of the bin's sizes: without it each would be the smallest and appended without a walk.",
    "Seven sizes share the bin, so that few pairs are equal: two sizes would pass over a third less.",
    "It is the first large bin, whose chunks are smallest: the number of chunks counts squared.",
)
_WHY_NO_SORT = "In a heap this small the fences of many regions would cost more than sorting them does."
_ORDERS = {False: "in address order", True: "scattered"}
_PASSED = "nodes passed = sum of n_i * n_j over the sizes i < j of a large bin, about (H / 853)^2"
_MERGED = "chunks merged = floor((H - 32) / 16)"


def _orders(request: HeapRequest) -> tuple[bool, ...]:
    """Whether to scatter: it costs misses and saves a few instructions, so that without a cache it never pays off."""
    if request.data_line_bytes is None:
        return (False,)
    return (False, True) if request.heap_bytes <= _MANY_STATES else (True,)


def _alloc_states(request: HeapRequest) -> Iterator[tuple[bool, bool]]:
    """Which states are tried: (sort, scatter)."""
    if request.heap_bytes < _LEAST_HEAP:
        raise _too_small(request.heap_bytes)
    for sort in (False, True):
        for scatter in _orders(request):
            if (request.heap_bytes >= 4 * _LARGE) if sort else (request.heap_bytes <= _MANY_STATES):
                yield sort, scatter


def _worst_alloc(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    return tuple(_alloc_plan(request, "worst-alloc", sort=s, scatter=o) for s, o in _alloc_states(request))


def _worst_failing_alloc(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    return tuple(_alloc_plan(request, "worst-failing-alloc", sort=s, scatter=o) for s, o in _alloc_states(request))


def _alloc_plan(request: HeapRequest, scenario: str, *, sort: bool, scatter: bool) -> ScenarioPlan:
    refused = scenario == "worst-failing-alloc"
    state = _deferred(request, sort=sort, scatter=scatter, alternate=not refused)
    size = request.heap_bytes - _LEAST if refused else _NEED - _OVERHEAD
    what = f"{state.regions} regions" if sort else "one region"
    merged = state.fast + state.unsorted
    return ScenarioPlan(
        scenario=scenario,
        variant=f"{what}, merged {_ORDERS[scatter]}",
        trace=state.script.trace(),
        measured=Operation(OperationKind.MALLOC, 0, size),
        initial_cache=InitialCache.DIRTY,
        state=(
            f"{state.fast} chunks in fast bins and {state.unsorted} unsorted ones, which merge into {what}; "
            f"malloc({size}) merges and sorts them all" + (" and is refused" if refused else "")
        ),
        why=(
            _WHY_CONSOLIDATE,
            *((_WHY_ALTERNATE,) if state.unsorted else ()),
            *(_WHY_SORT if sort else (_WHY_NO_SORT,)),
            "C06 table 1 claims O(H/M); that is the state of paper-alloc.",
        ),
        prediction={
            "nodes passed while sorting": state.passed,
            "regions to merge": state.regions,
            "chunks in fast bins": state.fast,
            "unsorted chunks": state.unsorted,
            "bytes of top": request.heap_bytes - state.script.used_bytes,
        },
        driver=_PASSED if sort else _MERGED,
        driver_value=state.passed if sort else merged,
        refused=refused,
    )


def _paper_alloc(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    script = _Script(request.heap_bytes)
    chunks = script.room_bytes // _LEAST
    script.free([script.cut(_LEAST) for _ in range(chunks)])
    size = request.heap_bytes // 2
    return (
        ScenarioPlan(
            scenario="paper-alloc",
            variant="all of the heap in one fast bin",
            trace=script.trace(),
            measured=Operation(OperationKind.MALLOC, 0, size),
            initial_cache=InitialCache.DIRTY,
            state=f"{chunks} chunks of {_LEAST} bytes, all in one fast bin; malloc({size}) merges them into top",
            why=(
                "A large request consolidates the fast bins: each chunk is merged with its neighbours.",
                "C06 calls this the worst case; it is linear in the heap. worst-alloc is not.",
            ),
            prediction={"chunks in fast bins": chunks, "used blocks": 0, "nodes passed while sorting": 0},
            driver="chunks merged = floor((H - 16) / 16)",
            driver_value=chunks,
        ),
    )


# ---------------------------------------------------------------------------------------------------- the state of free


class _Freed(NamedTuple):
    """A used chunk between two free ones, and chunks in a fast bin."""

    trace: Trace
    slot: int
    fast: int
    merged_bytes: int
    after_bytes: int


def _between_free(request: HeapRequest, threshold: int, *, scatter: bool = False) -> _Freed:
    """All but the chunks that merge into ``threshold`` bytes goes to a fast bin; nothing does if that is 0."""
    script = _Script(request.heap_bytes)
    after = max(threshold - 2 * _NO_FAST, _NO_FAST + 8)
    end = 2 * _NO_FAST + after + _LEAST
    fast: list[int] = []
    helper = after + 8
    helpers: list[int] = []
    if threshold:
        fast = [script.cut(_LEAST) for _ in range((script.room_bytes - end) // _LEAST)]
    else:
        helpers = [script.cut(helper)]
        script.cut(_LEAST)
    before_slot, slot, after_slot = (script.cut(size) for size in (_NO_FAST, _NO_FAST, after))
    script.cut(_LEAST)
    script.free([before_slot, after_slot, *helpers, *reversed(_scattered(fast) if scatter else fast)])
    if helpers:
        # The helper fits exactly: the neighbours, which are older, are sorted before it is reached.
        script.malloc(helper)
    return _Freed(script.trace(), slot, len(fast), 2 * _NO_FAST + after, after)


def _constant_free(request: HeapRequest, scenario: str, remark: str) -> ScenarioPlan:
    state = _between_free(request, 0)
    return ScenarioPlan(
        scenario=scenario,
        variant="both neighbours free, no consolidation",
        trace=state.trace,
        measured=Operation(OperationKind.FREE, state.slot),
        initial_cache=InitialCache.DIRTY,
        state=(
            f"a used chunk of {_NO_FAST} bytes between free ones of {_NO_FAST} and {state.after_bytes} bytes, each "
            f"alone in its bin; free merges them into {state.merged_bytes} bytes"
        ),
        why=(
            "Too large for a fast bin, and both neighbours are free: two chunks leave their bins, two merges are made.",
            "Each neighbour is alone in its bin: two bits are cleared.",
            remark,
        ),
        prediction={
            "chunks in fast bins": 0,
            "bytes before": _NO_FAST,
            "bytes behind": state.after_bytes,
            "others in the bin before": 0,
            "others in the bin behind": 0,
        },
        driver="",
        driver_value=None,
    )


def _paper_free(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    remark = (
        "C06 table 1 claims O(1) for every free. So it is while less than the consolidation threshold is free there."
    )
    return (_constant_free(request, "paper-free", remark),)


def _worst_free(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    threshold = request.allocator.values["consolidation-threshold"]
    if request.heap_bytes < threshold + 4 * _LEAST:
        remark = (
            f"The heap is too small for a free that consolidates: that needs {threshold} free bytes and a fast bin."
        )
        return (_constant_free(request, "worst-free", remark),)
    return tuple(_consolidating_free(request, threshold, scatter=scatter) for scatter in _orders(request))


def _consolidating_free(request: HeapRequest, threshold: int, *, scatter: bool) -> ScenarioPlan:
    state = _between_free(request, threshold, scatter=scatter)
    return ScenarioPlan(
        scenario="worst-free",
        variant=f"consolidation {_ORDERS[scatter]}",
        trace=state.trace,
        measured=Operation(OperationKind.FREE, state.slot),
        initial_cache=InitialCache.DIRTY,
        state=(
            f"{state.fast} chunks of {_LEAST} bytes in a fast bin, and a used one of {_NO_FAST} between free ones; "
            f"free makes a chunk of {state.merged_bytes} bytes and then merges the whole fast bin"
        ),
        why=(
            f"The freed chunk and its free neighbours are {threshold} bytes together: free consolidates all fast bins.",
            "All else of the heap is in a fast bin, in least chunks: each is merged with its neighbours.",
            "C06 table 1 claims O(1) for free. It is O(H/M).",
        ),
        prediction={
            "chunks in fast bins": state.fast,
            "bytes that merge at the block": threshold,
            "bytes before": _NO_FAST,
            "bytes behind": state.after_bytes,
        },
        driver=f"chunks merged = floor((H - {threshold + 2 * _LEAST}) / 16)",
        driver_value=state.fast,
    )


# ------------------------------------------------------------------------------------------------------- best states


def _best_alloc(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    script = _Script(request.heap_bytes)
    script.free([script.cut(_LEAST)])
    return (
        ScenarioPlan(
            scenario="best-alloc",
            variant="the fast bin of the request holds a chunk",
            trace=script.trace(),
            measured=Operation(OperationKind.MALLOC, 0, _LEAST - _OVERHEAD),
            initial_cache=InitialCache.WARM,
            state=f"one chunk of {_LEAST} bytes in its fast bin; malloc({_LEAST - _OVERHEAD}) takes it",
            why=("The first chunk of a fast bin is taken as it is: no other chunk is looked at.",),
            prediction={"chunks in fast bins": 1, "used blocks": 0},
        ),
    )


def _best_free(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    script = _Script(request.heap_bytes)
    slot = script.cut(_LEAST)
    return (
        ScenarioPlan(
            scenario="best-free",
            variant="into a fast bin",
            trace=script.trace(),
            measured=Operation(OperationKind.FREE, slot),
            initial_cache=InitialCache.WARM,
            state=f"a used chunk of {_LEAST} bytes; free puts it into its fast bin",
            why=("A chunk of a fast bin's size is linked there: its neighbours are not looked at.",),
            prediction={"chunks in fast bins": 0, "used blocks": 1},
        ),
    )


# ------------------------------------------------------------------------------------------ the guest's heap, read back

_USED, _FREE, _FAST = range(3)


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


# Offsets in struct dlmalloc27_control, see the README of the allocator.
_TOP, _BINS, _BIN_COUNT = 8, 36, 128
_FAST_BINS = _BINS + 8 * _BIN_COUNT


def _read_heap(guest: GuestHeap) -> _Heap:
    base, control = guest.heap.base_address, guest.symbols["dlmalloc27_control"]
    arena = guest.read(base, guest.heap.size_bytes)
    words = struct.unpack(f"{_byte_order(guest)}{len(arena) // 4}I", arena)
    top = guest.read_word(control + _TOP) - base
    sizes, kinds = _chain(words, top)
    fast = tuple(_fast_chunks(guest, words))
    kinds.update(dict.fromkeys(fast, _FAST))
    return _Heap(sizes, kinds, fast, _bins(guest, words), words[top // 4 + 1] & ~_PREV_IN_USE)


def _byte_order(guest: GuestHeap) -> str:
    """As the heads of the bins show it that are never used: they lead to themselves, at two different addresses."""
    heads = [guest.symbols["dlmalloc27_control"] + _BINS + 8 * number for number in (0, _BIN_COUNT - 1)]
    is_little = all(int.from_bytes(guest.read(head, 4), "little") == head for head in heads)
    return "<" if is_little else ">"


def _chain(words: Sequence[int], top: int) -> tuple[dict[int, int], dict[int, int]]:
    sizes: dict[int, int] = {}
    kinds: dict[int, int] = {}
    offset = 0
    while offset < top:
        size = words[offset // 4 + 1] & ~_PREV_IN_USE
        if not size:
            break
        sizes[offset] = size
        kinds[offset] = _USED if words[(offset + size) // 4 + 1] & _PREV_IN_USE else _FREE
        offset += size
    return sizes, kinds


def _fast_chunks(guest: GuestHeap, words: Sequence[int]) -> Iterator[int]:
    base, control = guest.heap.base_address, guest.symbols["dlmalloc27_control"]
    for number in range(_fast_bin_count(guest.values["fast-request"])):
        node = guest.read_word(control + _FAST_BINS + 4 * number)
        while node:
            yield node - base - _LINKS
            node = words[(node - base) // 4]


def _fast_bin_count(largest_request: int) -> int:
    return (-(-(largest_request + _OVERHEAD) // 8) * 8 - _LEAST) // 8 + 1


def _bins(guest: GuestHeap, words: Sequence[int]) -> dict[int, tuple[int, ...]]:
    base, heads = guest.heap.base_address, guest.symbols["dlmalloc27_control"] + _BINS
    found = {}
    for number in range(_BIN_COUNT):
        head = heads + 8 * number
        node = guest.read_word(head)
        offsets = []
        while node not in (head, 0):
            offsets.append(node - base - _LINKS)
            node = words[(node - base) // 4]
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
    """The bin of a size: eight bytes wide below 512, then in groups of half as many, eight times as wide."""
    if size < _LARGE:
        return size // 8
    start, group, count, width = _LARGE, 64, 32, 64
    while count > 1:
        if size < start + count * width:
            return group + (size - start) // width
        start, group, count, width = start + count * width, group + count, count // 2, width * 8
    return group


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
        if size < _LARGE or region in at_top:
            continue
        counts = bins.setdefault(bin_of(size), Counter())
        if counts and size > min(counts):
            passed += sum(count for other, count in counts.items() if other > size)
        counts[size] += 1
    return passed


def _state(guest: GuestHeap, plan: ScenarioPlan) -> Mapping[str, int | str]:
    """Facts of the guest's heap, from its chunks, its fast bins and its bins."""
    heap = _read_heap(guest)
    numbers, regions = _regions(heap)
    facts: dict[str, int | str] = {
        "chunks in fast bins": len(heap.fast),
        "unsorted chunks": len(heap.bins.get(1, ())),
        "used blocks": sum(kind == _USED for kind in heap.kinds.values()),
        "regions to merge": len(regions),
        "bytes of top": heap.top_bytes,
        "nodes passed while sorting": _nodes_passed(heap, numbers, regions),
    }
    if plan.scenario in ("worst-free", "paper-free"):
        facts |= _neighbours(heap, guest.slot(plan.measured.slot) - _HEADER_BYTES - guest.heap.base_address)
    return facts


def _neighbours(heap: _Heap, own: int) -> Mapping[str, int | str]:
    offsets = list(heap.sizes)
    at = offsets.index(own)
    before, behind = offsets[at - 1], offsets[at + 1]
    bins = [next((chunks for chunks in heap.bins.values() if offset in chunks), ()) for offset in (before, behind)]
    return {
        "bytes before": heap.sizes[before] if bins[0] else 0,
        "bytes behind": heap.sizes[behind] if bins[1] else 0,
        "bytes that merge at the block": sum(heap.sizes[offset] for offset in (before, own, behind)),
        "others in the bin before": len(bins[0]) - 1,
        "others in the bin behind": len(bins[1]) - 1,
    }


FAMILY = Family(
    builders=MappingProxyType(
        {
            "worst-alloc": _worst_alloc,
            "worst-free": _worst_free,
            "best-alloc": _best_alloc,
            "best-free": _best_free,
            "random": random_plans,
            "worst-failing-alloc": _worst_failing_alloc,
            "paper-alloc": _paper_alloc,
            "paper-free": _paper_free,
        }
    ),
    walk=walk,
    state=_state,
)
