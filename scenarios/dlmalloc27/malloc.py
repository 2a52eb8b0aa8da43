"""Worst allocations of dlmalloc27: all that malloc and free put off, paid by one call.

Two costs add up in it. Consolidation is linear: every chunk of a fast bin is merged with its neighbours. Sorting is
quadratic: every merged chunk that goes to a large bin passes all larger ones there. One malloc pays both if the chunks
merge into regions of the sizes of one large bin, in descending order.

Sources: C06 §2 and table 1, M06 §2; the worst states are derived in the README of the allocator.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from wcet_probe.model.scenario import InitialCache, Operation, OperationKind, ScenarioPlan
from wcet_probe.scenarios.dlmalloc27.heap import LARGE_BYTES, MINIMUM_BYTES, OVERHEAD_BYTES, largest_fast
from wcet_probe.scenarios.dlmalloc27.script import (
    MANY_STATES_BYTES,
    MINIMUM_HEAP_BYTES,
    Order,
    Script,
    ordered,
    orders,
    script_for,
    too_small,
)
from wcet_probe.scenarios.families import HeapRequest

_BIN_BYTES = 64
"""Width of the first large bin."""

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
_PASSED = "nodes passed = sum of n_i * n_j over the sizes i < j of a large bin, about (H / {})^2"
_ROOTS = {8: 853, 16: 969}
"""Of the bytes for which sorting passes a node once more, about, by granule."""
_MERGED = "chunks merged = floor((H - 32) / 16)"


def sorted_sizes(granule: int) -> tuple[int, ...]:
    """The sizes of the first large bin but the least: one chunk of that suffices for the others not to be appended."""
    return tuple(range(LARGE_BYTES + _BIN_BYTES - granule, LARGE_BYTES, -granule))


def region_counts(budget_bytes: int, granule: int) -> dict[int, int]:
    """How many fenced regions of each size make sorting pass most nodes: the sum of n_i * n_j over pairs of sizes.

    With c_i = size + fence and d sizes that sum is greatest for n_i = N * (1 - (d - 1) * c_i / sum(c)), where N follows
    from sum(n_i * c_i) = budget. What rounding down leaves is filled up one by one.
    """
    costs = {size: size + MINIMUM_BYTES for size in sorted_sizes(granule)}
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
    between = range(LARGE_BYTES + 1, rest_bytes)
    larger = sum(count for size, count in counts.items() if size > rest_bytes > LARGE_BYTES)
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

    script: Script
    fast: int
    unsorted: int
    regions: int
    passed: int


def _deferred(request: HeapRequest, order: Order, *, sort: bool, alternate: bool) -> _Deferred:
    """Regions of least chunks, fenced from each other, all of them freed.

    Parameters:
        request: for which heap.
        sort: many regions of the first large bin, in descending order behind one of its least size; else one region.
        order: in which order the chunks of a fast bin are merged.
        alternate: every second chunk is no fast chunk but a free one that malloc must sort before it consolidates.
    """
    script = script_for(request)
    # Two chunks at the heap's end. Merged before all others they are the exact fit that ends the sorting at once.
    pair_bytes = 2 * MINIMUM_BYTES
    reserve = pair_bytes + MINIMUM_BYTES
    granule = request.allocator.values["granule"]
    # Ends a region: its fast bin is emptied after that of the least chunks, so that its place there is the region's.
    mark = MINIMUM_BYTES + granule
    counts = dict.fromkeys(sorted_sizes(granule), 0)
    regions: list[int] = []
    if sort:
        counts = region_counts(script.room_bytes - reserve - (LARGE_BYTES + MINIMUM_BYTES), granule)
        regions = [LARGE_BYTES, *(size for size, count in counts.items() for _ in range(count))]
    least: list[list[int]] = []
    marks: list[int] = []
    for size in regions:
        marks_here = 1 if (size - mark) % MINIMUM_BYTES == 0 else 2
        least.append([script.cut(MINIMUM_BYTES) for _ in range((size - marks_here * mark) // MINIMUM_BYTES)])
        marks += [script.cut(mark) for _ in range(marks_here)]
        script.cut(MINIMUM_BYTES)
    rest = [script.cut(MINIMUM_BYTES) for _ in range((script.room_bytes - reserve) // MINIMUM_BYTES)]
    pair = [script.cut(MINIMUM_BYTES), script.cut(MINIMUM_BYTES)]
    script.cut(MINIMUM_BYTES)
    rest_bytes = MINIMUM_BYTES * len(rest) + pair_bytes
    free: list[int] = []
    if alternate:
        # Each between two chunks of fast bins. Before a mark one more would fit: it adds instructions but saves misses.
        last = None if order is Order.BY_ADDRESS else -1
        free = [slot for region in least for slot in region[1:last:2]] + rest[1:-1:2]
        script.free(list(reversed(ordered(free, order))))
        script.free(pair)
        pair = [script.malloc(pair_bytes)]
        script.free(pair)
    else:
        rest += pair
    kept = set(free)
    fast = [slot for region in (*least, rest) for slot in region if slot not in kept]
    # Fast bins are last in, first out: what is to be merged first is freed last.
    script.free(list(reversed(marks)))
    script.free(list(reversed(ordered(fast, order))))
    pair_is_fast = largest_fast(request.allocator.values) >= pair_bytes
    return _Deferred(
        script=script,
        fast=len(fast) + len(marks) + (alternate and pair_is_fast),
        unsorted=len(free) + (alternate and not pair_is_fast),
        regions=len(regions) + 1,
        passed=nodes_passed_with_rest(counts, rest_bytes, is_last=alternate and pair_is_fast),
    )


def _alloc_states(request: HeapRequest) -> Iterator[tuple[bool, Order]]:
    """Which states are tried: whether many chunks are sorted, and in which order they are merged."""
    if request.heap_bytes < MINIMUM_HEAP_BYTES:
        raise too_small(request.heap_bytes)
    for sort in (False, True):
        for order in orders(request):
            if (request.heap_bytes >= 4 * LARGE_BYTES) if sort else (request.heap_bytes <= MANY_STATES_BYTES):
                yield sort, order


def worst_alloc(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    """The states that are tried for an allocation that succeeds."""
    return tuple(_alloc_plan(request, "worst-alloc", o, sort=s) for s, o in _alloc_states(request))


def worst_failing_alloc(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    """The same for one that is refused in the end."""
    return tuple(_alloc_plan(request, "worst-failing-alloc", o, sort=s) for s, o in _alloc_states(request))


def _alloc_plan(request: HeapRequest, scenario: str, order: Order, *, sort: bool) -> ScenarioPlan:
    refused = scenario == "worst-failing-alloc"
    state = _deferred(request, order, sort=sort, alternate=not refused)
    granule = request.allocator.values["granule"]
    # No fast bin in use here, no small bin and no rest of top that is less serves it.
    need = 2 * MINIMUM_BYTES + granule
    size = request.heap_bytes - MINIMUM_BYTES if refused else need - OVERHEAD_BYTES
    what = f"{state.regions} regions" if sort else "one region"
    merged = state.fast + state.unsorted
    return ScenarioPlan(
        scenario=scenario,
        variant=f"{what}, merged {order.value}",
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
            "bytes of top": state.script.heap_bytes - state.script.used_bytes,
        },
        driver=_PASSED.format(_ROOTS[granule]) if sort else _MERGED,
        driver_value=state.passed if sort else merged,
        refused=refused,
    )


def paper_alloc(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    """All of the heap in one fast bin: consolidation alone."""
    script = script_for(request)
    chunks = script.room_bytes // MINIMUM_BYTES
    script.free([script.cut(MINIMUM_BYTES) for _ in range(chunks)])
    size = request.heap_bytes // 2
    return (
        ScenarioPlan(
            scenario="paper-alloc",
            variant="all of the heap in one fast bin",
            trace=script.trace(),
            measured=Operation(OperationKind.MALLOC, 0, size),
            initial_cache=InitialCache.DIRTY,
            state=f"{chunks} chunks of {MINIMUM_BYTES} bytes, all in one fast bin; malloc({size}) merges them into top",
            why=(
                "A large request consolidates the fast bins: each chunk is merged with its neighbours.",
                "C06 calls this the worst case; it is linear in the heap. worst-alloc is not.",
            ),
            prediction={"chunks in fast bins": chunks, "used blocks": 0, "nodes passed while sorting": 0},
            driver="chunks merged = floor((H - 16) / 16)",
            driver_value=chunks,
        ),
    )
