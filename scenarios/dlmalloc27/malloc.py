"""Worst allocations of dlmalloc27: all that malloc and free put off, paid by one call.

Two costs add up in it. Consolidation is linear: every chunk of a fast bin is merged with its neighbours. Sorting is
quadratic: every merged chunk that goes to a large bin passes all larger ones there. One malloc pays both if the chunks
merge into regions of the sizes of one large bin, in descending order.

Sources: C06 §2 and table 1, M06 §2; the worst states are derived in the README of the allocator.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate, cycle, product, takewhile

from wcet_probe.model.scenario import InitialCache, Operation, OperationKind, ScenarioPlan
from wcet_probe.scenarios.dlmalloc27.heap import (
    GRANULE_BYTES,
    LARGE_BYTES,
    MINIMUM_BYTES,
    OVERHEAD_BYTES,
    PAGE_BYTES,
    largest_fast,
)
from wcet_probe.scenarios.dlmalloc27.script import (
    MINIMUM_HEAP_BYTES,
    WHY_BY_PAGES,
    Order,
    Script,
    ordered,
    orders,
    pad_bytes,
    script_for,
    too_small,
    tries_all,
)
from wcet_probe.scenarios.families import HeapRequest

SORTED_BYTES = tuple(range(312, LARGE_BYTES, -GRANULE_BYTES))
"""The sizes of the first large bin but the least: one chunk of that suffices for the others not to be appended."""
MARK_BYTES = MINIMUM_BYTES + GRANULE_BYTES
"""Ends a region: its fast bin is emptied after that of the least chunks, so that its place there is the region's."""
_SMALL_BYTES = 40
"""A chunk that no fast bin in use here, no small bin and no rest of top serves."""
_LARGE_BYTES, _SERVER_BYTES = 320, 344
"""A chunk of the second large bin, and the least region there that serves it and is split."""
_PAGE = range(PAGE_BYTES // MINIMUM_BYTES)
"""The least chunks of a page."""
_LEAST_SORTED_HEAP_BYTES = 2048
"""In smaller heaps the fences of many regions cost more than sorting them does, by far."""

_WHY_CONSOLIDATE = "The request is large, or nothing else serves it: the fast bins are consolidated, chunk by chunk."
_WHY_ALTERNATE = (
    "Every second chunk was left unsorted by an earlier consolidation: it is sorted into a small bin, then merged too."
)
_WHY_SORT = (
    "The merged chunks are then sorted into one large bin in descending order of size: each passes all larger ones.",
    "The first is the least of the bin's sizes: without it each would be the smallest and appended without a walk.",
    "The seven other sizes share the heap, so that few pairs are equal: two sizes would pass almost a third less.",
    "It is the first large bin, whose chunks are smallest: the number of chunks counts squared.",
)
_WHY_STRADDLED = "Each merged chunk has its tag in one cache line and its links in the next: passing it loads both."
_WHY_PAGED = (
    f"Each {PAGE_BYTES} bytes hold the same regions at the same places, so that those of a size share a few sets of "
    "the cache: they are evicted before a walk passes them again, where all of them together would fit into the cache."
)
_WHY_NO_SORT = "In a heap this small the fences of many regions would cost more than sorting them does."
_PASSED = "nodes passed = sum of n_i * n_j over the sizes i < j of a large bin, about (H / 460)^2"
_PASSED_STRADDLED = "nodes passed = sum of n_i * n_j over the sizes i < j of a large bin"
_MERGED = "chunks merged = floor((H - 32) / 16)"


def fence_bytes(size: int, straddled_bytes: int) -> int:
    """The used chunk behind a region: the least one, or the least that starts the next region as far into a line.

    Parameters:
        size: of the region, in bytes.
        straddled_bytes: size of the line, 0 for the least fence.
    """
    return MINIMUM_BYTES + (-(size + MINIMUM_BYTES) % straddled_bytes if straddled_bytes else 0)


def region_counts(budget_bytes: int, straddled_bytes: int = 0) -> dict[int, int]:
    """How many fenced regions of each size make sorting pass most nodes: the sum of n_i * n_j over pairs of sizes.

    With c_i = size + fence and d sizes that sum is greatest for n_i = N * (1 - (d - 1) * c_i / sum(c)), where N follows
    from sum(n_i * c_i) = budget. What rounding down leaves is filled up one by one.
    """
    costs = {size: size + fence_bytes(size, straddled_bytes) for size in SORTED_BYTES}
    whole = sum(costs.values())
    others = len(costs) - 1
    scale = whole * whole - others * sum(cost * cost for cost in costs.values())
    counts = {size: max(0, budget_bytes * (whole - others * cost) // scale) for size, cost in costs.items()}
    return _filled(counts, costs, budget_bytes)


def _filled(counts: dict[int, int], costs: Mapping[int, int], budget_bytes: int) -> dict[int, int]:
    """One more of some size as long as it fits, or one in place of another as long as more nodes are passed then."""
    left = budget_bytes - sum(counts[size] * cost for size, cost in costs.items())
    while True:
        fitting = [size for size, cost in costs.items() if cost <= left]
        swaps = [
            (counts[taken] - counts[given], taken, given)
            for taken, given in product(costs, repeat=2)
            if counts[taken] > counts[given] + 1 and costs[given] - costs[taken] <= left
        ]
        if not fitting and not swaps:
            return counts
        if fitting:
            given = min(fitting, key=lambda size: (counts[size], costs[size]))
        else:
            _, taken, given = max(swaps)
            counts[taken] -= 1
            left += costs[taken]
        counts[given] += 1
        left -= costs[given]


def nodes_passed(counts: Iterable[int]) -> int:
    """Nodes that are passed when regions come in descending order of size: pairs of regions of different sizes."""
    counts = tuple(counts)
    return (sum(counts) ** 2 - sum(count * count for count in counts)) // 2


def nodes_passed_with_rest(counts: Mapping[int, int], rest_bytes: int, *, is_last: bool) -> int:
    """As ``nodes_passed``, if what is left of the heap merges into a chunk of ``rest_bytes``, first or last of all.

    Only a chunk of their bin is sorted among them: it passes the larger ones, or the smaller ones pass it.
    """
    if not LARGE_BYTES < rest_bytes <= SORTED_BYTES[0]:
        return nodes_passed(counts.values())
    between = range(LARGE_BYTES + 1, rest_bytes)
    larger = sum(count for size, count in counts.items() if size > rest_bytes)
    smaller = sum(count for size, count in counts.items() if size in between)
    return nodes_passed(counts.values()) + (larger if is_last else smaller)


@dataclass(frozen=True, slots=True)
class _Shape:
    """Which of the states is built.

    Attributes:
        order: in which order the chunks of a fast bin are merged.
        is_sorted: many regions of the first large bin, in descending order behind one of its least size; else one.
        straddled_bytes: where not 0, regions start so that their first two words end a cache line of so many bytes.
        alternates: for a small request, where every second chunk is no fast chunk but a free one that malloc must sort
            before it consolidates; else for a large one, which consolidates at once and sorts but once.
        is_refused: nothing serves the request; else a region of another bin does.
    """

    order: Order
    is_sorted: bool
    straddled_bytes: int
    alternates: bool
    is_refused: bool

    @property
    def is_paged(self) -> bool:
        """Whether regions lie in each page as in every other."""
        return self.is_sorted and self.order is Order.BY_PAGES


@dataclass(frozen=True, slots=True)
class _Deferred:
    """A heap full of put-off work.

    Attributes:
        script: the operations that lead there.
        fast: chunks in fast bins.
        unsorted: chunks in the unsorted bin.
        regions: how many free chunks there will be.
        passed: nodes that sorting them will pass.
        fewest_at_place: of the places in a page where regions of ``SORTED_BYTES`` start, the fewest regions at one.
    """

    script: Script
    fast: int
    unsorted: int
    regions: int
    passed: int
    fewest_at_place: int


def _laid_in_order(budget_bytes: int, line: int) -> list[tuple[int, int]]:
    counts = region_counts(budget_bytes, line)
    return [(size, fence_bytes(size, line)) for size, count in counts.items() for _ in range(count)]


def _laid_regions(budget_bytes: int, shape: _Shape) -> list[tuple[int, int]]:
    """Sizes of the regions of ``SORTED_BYTES`` and of the fences behind them, in address order."""
    line = shape.straddled_bytes
    if not shape.is_paged:
        return _laid_in_order(budget_bytes, line)
    page = _laid_in_order(PAGE_BYTES, line)
    size, fence = page[-1]
    page[-1] = size, fence + PAGE_BYTES - sum(map(sum, page))
    ends = takewhile(lambda end: end <= budget_bytes, accumulate(map(sum, cycle(page))))
    return [region for _, region in zip(ends, cycle(page), strict=False)]


def _deferred(request: HeapRequest, shape: _Shape) -> _Deferred:
    """Regions of least chunks, fenced from each other, all of them freed."""
    script = script_for(request)
    # Two chunks at the heap's end. Merged before all others they are the exact fit that ends the sorting at once.
    pair_bytes = 2 * MINIMUM_BYTES
    reserve = pair_bytes + MINIMUM_BYTES
    server_bytes = 0 if shape.alternates or shape.is_refused else _SERVER_BYTES
    if shape.straddled_bytes:
        script.cut(pad_bytes(shape.straddled_bytes))
    laid: list[tuple[int, int]] = []
    if shape.is_sorted:
        laid = [(LARGE_BYTES, fence_bytes(LARGE_BYTES, shape.straddled_bytes))]
        laid += _laid_regions(script.room_bytes - reserve - sum(laid[0]) - server_bytes, shape)
    sizes = [size for size, _ in laid]
    counts = {size: sizes.count(size) for size in SORTED_BYTES}
    regions: list[list[int]] = []
    marks: list[tuple[int, int]] = []
    places: Counter[int] = Counter()
    for size, fence in laid:
        places[script.used_bytes % PAGE_BYTES] += size != LARGE_BYTES
        marks_here = 1 if (size - MARK_BYTES) % MINIMUM_BYTES == 0 else 2
        least = (size - marks_here * MARK_BYTES) // MINIMUM_BYTES
        regions.append([script.cut(MINIMUM_BYTES) for _ in range(least)])
        marks += [(size, script.cut(MARK_BYTES)) for _ in range(marks_here)]
        script.cut(fence)
    marks.sort(key=lambda mark: (mark[0] != LARGE_BYTES, -mark[0]))
    rest = [script.cut(MINIMUM_BYTES) for _ in range((script.room_bytes - reserve) // MINIMUM_BYTES)]
    pair = [script.cut(MINIMUM_BYTES), script.cut(MINIMUM_BYTES)]
    script.cut(MINIMUM_BYTES)
    rest_bytes = MINIMUM_BYTES * len(rest) + pair_bytes
    free: list[int] = []
    if not shape.alternates:
        rest += pair
    # The page's regions come first: what is to be merged is counted in pages from there.
    merged = [*regions[1:], *regions[:1], rest]
    in_page = regions[1 : 1 + len(_laid_in_order(PAGE_BYTES, shape.straddled_bytes))] if shape.is_paged else [_PAGE]
    if shape.alternates:
        # Each chunk of a fast bin then stands between two of these, but for the first one perhaps and the last one.
        # The one before the pair must stay used here, or the pair would merge with it.
        free = [slot for region in merged[:-1] for slot in region[(len(region) + 1) % 2 :: 2]]
        free += rest[len(rest) % 2 : -1 : 2]
        free_in_page = sum((len(region) + 1) // 2 for region in in_page)
        script.free(list(reversed(ordered(free, shape.order, free_in_page))))
        script.free(pair)
        script.free([script.malloc(pair_bytes)])
    kept = set(free)
    fast = [slot for region in merged for slot in region if slot not in kept]
    fast_in_page = sum(len(region) // (2 if shape.alternates else 1) for region in in_page)
    # Fast bins are last in, first out: what is to be merged first is freed last.
    script.free([slot for _, slot in reversed(marks)])
    script.free(list(reversed(ordered(fast, shape.order, fast_in_page))))
    pair_is_fast = largest_fast(request.allocator.values) >= pair_bytes
    return _Deferred(
        script=script,
        fast=len(fast) + len(marks) + (shape.alternates and pair_is_fast),
        unsorted=len(free) + (shape.alternates and not pair_is_fast),
        regions=len(sizes) + 1,
        fewest_at_place=min(filter(None, places.values()), default=0),
        passed=nodes_passed_with_rest(counts, rest_bytes, is_last=shape.alternates and pair_is_fast),
    )


def _shapes(request: HeapRequest, *, is_refused: bool) -> Iterator[_Shape]:
    """Which states are tried. What is dearest in instructions is not what misses most in a cache."""
    if request.heap_bytes < MINIMUM_HEAP_BYTES:
        raise too_small(request.heap_bytes)
    lines = (0, request.data_line_bytes) if request.data_line_bytes else (0,)
    requests = (False,) if is_refused else (True, False)
    for is_sorted, order, line, alternates in product((False, True), orders(request), lines, requests):
        if order is Order.BY_PAGES and not line:
            continue
        least_bytes = MINIMUM_HEAP_BYTES + 2 * line + (0 if alternates or is_refused else _SERVER_BYTES)
        if is_sorted:
            least_bytes = _LEAST_SORTED_HEAP_BYTES
        # Where sorting is most of the cost: the dearest of these in instructions, and in cycles behind a cache.
        is_extreme = is_sorted and (is_refused or alternates == (line == 0))
        if request.heap_bytes >= least_bytes and (is_extreme or tries_all(request)):
            yield _Shape(order, is_sorted, line, alternates, is_refused)


def worst_alloc(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    """The states that are tried for an allocation that succeeds."""
    return tuple(_alloc_plan(request, "worst-alloc", shape) for shape in _shapes(request, is_refused=False))


def worst_failing_alloc(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    """The same for one that is refused in the end."""
    return tuple(_alloc_plan(request, "worst-failing-alloc", shape) for shape in _shapes(request, is_refused=True))


def _alloc_plan(request: HeapRequest, scenario: str, shape: _Shape) -> ScenarioPlan:
    state = _deferred(request, shape)
    if shape.is_refused:
        size = request.heap_bytes - MINIMUM_BYTES
    else:
        size = (_SMALL_BYTES if shape.alternates else _LARGE_BYTES) - OVERHEAD_BYTES
    what = f"{state.regions} regions" if shape.is_sorted else "one region"
    merged = state.fast + state.unsorted
    passed = _PASSED_STRADDLED if shape.straddled_bytes else _PASSED
    return ScenarioPlan(
        scenario=scenario,
        variant=", ".join(
            (
                f"malloc({size})",
                f"{what} merged {shape.order.value}",
                *(("across lines",) if shape.straddled_bytes else ()),
                *(("each page as every other",) if shape.is_paged else ()),
            )
        ),
        trace=state.script.trace(),
        measured=Operation(OperationKind.MALLOC, 0, size),
        initial_cache=InitialCache.DIRTY,
        state=(
            f"{state.fast} chunks in fast bins and {state.unsorted} unsorted ones, which merge into {what}; "
            f"malloc({size}) merges and sorts them all" + (" and is refused" if shape.is_refused else "")
        ),
        why=(
            _WHY_CONSOLIDATE,
            *((_WHY_ALTERNATE,) if state.unsorted else ()),
            *(_WHY_SORT if shape.is_sorted else (_WHY_NO_SORT,)),
            *((_WHY_STRADDLED,) if shape.straddled_bytes else ()),
            *((WHY_BY_PAGES,) if shape.order is Order.BY_PAGES else ()),
            *((_WHY_PAGED,) if shape.is_paged else ()),
            "C06 table 1 claims O(H/M); that is the state of paper-alloc.",
        ),
        prediction={
            "nodes passed while sorting": state.passed,
            "regions to merge": state.regions,
            "chunks in fast bins": state.fast,
            "unsorted chunks": state.unsorted,
            "bytes of top": state.script.heap_bytes - state.script.used_bytes,
            **({"fewest regions at a place in a page": state.fewest_at_place} if shape.is_paged else {}),
        },
        driver=passed if shape.is_sorted else _MERGED,
        driver_value=state.passed if shape.is_sorted else merged,
        refused=shape.is_refused,
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
                "A large request consolidates the fast bins: the last chunk merges with top, then the one before it.",
                "C06 calls this the worst case; it is linear in the heap. worst-alloc is not.",
            ),
            prediction={"chunks in fast bins": chunks, "used blocks": 0, "nodes passed while sorting": 0},
            driver="chunks merged = floor((H - 16) / 16)",
            driver_value=chunks,
        ),
    )
