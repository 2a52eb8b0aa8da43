"""Worst, best and random states of CAMA.

The cost of CAMA depends on a dozen decisions and not on the heap's size, once the heap is large enough for all of them
to go the dear way. Which way is dear (is a push onto an empty list dearer than onto one with a block? a descriptor
that is used again or a fresh one?) was found by measuring every combination; what depends on the target is left to
the candidates here.

Source: H11 §IV, figures 5 and 6. The paper names no worst state.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

from wcet_probe.errors import HeapTooSmallError
from wcet_probe.model.scenario import InitialCache, Operation, OperationKind, ScenarioPlan
from wcet_probe.scenarios.cama_heap import Geometry, Guest, Layout, walk
from wcet_probe.scenarios.families import Family, GuestHeap, HeapRequest

_WHY_ROUNDED = "The request is rounded up like a small block and becomes a large one by that."
_WHY_OWN = "The request is a large block. The first block of its own class is looked at and is too small."
_WHY_GROW = (
    "No larger class of its set has a block: all words of the bit vector are searched in vain.",
    "Fewer than two descriptors are left: a new area is laid out, and what the break skips becomes a free block.",
    "The break skips more to reach the set: a second free block, and the new block is the third to be described.",
    "Both free blocks go into lists that are empty: their bits are set.",
)
_WHY_GROW_WITHOUT_AREA = (
    _WHY_GROW[0],
    "The break skips memory to reach the set: that becomes a free block, in a list that was empty.",
)
_WHY_CUT = (
    "The request is a large block, for which the bit vector is searched; what is found is cut.",
    "It is the only one of its list: its bit is cleared.",
    "No descriptor is left for the rest: a new area is laid out, and what the break skips becomes a free block.",
    "The skipped block and the rest go into lists that are empty, whose words lie in cache lines of their own.",
)
_WHY_CUT_FOLLOWED = (
    _WHY_CUT[0],
    "It is the first of two in its list: the second one's descriptor is one cache line more.",
    *_WHY_CUT[2:],
)
_WHY_FREE = (
    "Both neighbours are free: two blocks leave their lists, two merges are made, two descriptors become spare.",
    "Each neighbour is alone in its list: its bit is cleared.",
    "The merged block goes into an empty list: its bit is set.",
    "All blocks differ in class, so that each list has its own words.",
)
_RANDOM_OPERATIONS = 2000
_RANDOM_LIVE_BLOCKS = 200
_RANDOM_SHARE_OF_FREES = 0.4


class _TooSmallError(Exception):
    """The heap cannot hold a candidate."""


class _Site:
    """A layout with the steps that the states are made of. Sizes are those of blocks, with the word before them."""

    def __init__(self, request: HeapRequest) -> None:
        self.geometry = Geometry.of_values(request.allocator.values)
        if self.geometry.top_behind(self.geometry.area_from(0)) + self.geometry.minimum_block > request.heap_bytes:
            raise _TooSmallError
        self.layout = Layout(self.geometry, request.heap_bytes)
        self.threshold = self.geometry.threshold
        # The largest size of the least class of large blocks: a block of the threshold's size is of the same class.
        width = self.threshold // self.geometry.columns
        self.request = self.threshold + width - self.geometry.alignment
        # A size that is rounded up to the threshold.
        self.rounded_request = self.threshold - self.geometry.alignment

    @property
    def top(self) -> int:
        return self.layout.heap.top

    @property
    def available(self) -> int:
        return self.layout.heap.available

    def used(self, size: int, cache_set: int | None = None) -> int:
        """A used block, at the break unless a set is named; its slot."""
        slot = self.layout.malloc(size, cache_set)
        if slot is None:
            raise _TooSmallError
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
        return Operation(OperationKind.MALLOC, 0, size - self.geometry.word_bytes, cache_set)


# ---------------------------------------------------------------------------------------------------------- worst alloc


def _grow_with_area(request: HeapRequest, left: int, *, rounded: bool) -> ScenarioPlan:
    """The heap grows, and needs a new descriptor area for it; ``left`` descriptors are left before.

    ``rounded``: the request becomes large by rounding up; else the first block of its own class is too small for it.
    """
    site = _Site(request)
    site.used(2 * site.threshold)
    cache_set = site.geometry.set_of(site.top)
    own = site.used(site.threshold)
    site.used(site.threshold)
    site.use_descriptors_up(left, site.next_area() - site.threshold)
    if not rounded:
        site.layout.free(own)
    size = site.rounded_request if rounded else site.request
    geometry = site.geometry
    area = geometry.area_from(site.top)
    behind = geometry.top_behind(area)
    start = geometry.start_in_set(behind, cache_set)
    _require(start + site.request <= request.heap_bytes and min(start - behind, area - site.top) >= site.threshold)
    how = "request rounded up" if rounded else "own-class block too small"
    return _alloc_plan(
        site,
        site.measured(size, cache_set),
        variant=f"growth and new area, {left} descriptor(s) left, {how}",
        state=(
            f"{left} descriptor(s) left, no block of set {cache_set} large enough; malloc lays out an area, skips to "
            f"the set, and files {area - site.top} and {start - behind} skipped bytes"
        ),
        why=(_WHY_ROUNDED if rounded else _WHY_OWN, *_WHY_GROW),
    )


def _grow(request: HeapRequest) -> ScenarioPlan:
    """The heap grows, and descriptors are left: what the smallest heaps can hold."""
    site = _Site(request)
    site.used(site.threshold)
    distance = 2 * site.threshold // site.geometry.line_bytes
    cache_set = (site.geometry.set_of(site.top) + distance) % site.geometry.sets
    start = site.geometry.start_in_set(site.top, cache_set)
    _require(start + site.request <= request.heap_bytes)
    return _alloc_plan(
        site,
        site.measured(site.rounded_request, cache_set),
        variant="growth with descriptors left",
        state=f"set {cache_set} has no free block; malloc skips {start - site.top} bytes to reach it, and files them",
        why=(_WHY_ROUNDED, *_WHY_GROW_WITHOUT_AREA),
    )


def _cut(request: HeapRequest, *, own: bool, follower: bool, found_bytes: int) -> ScenarioPlan:
    """A free block is found and cut, and its rest needs a new descriptor area.

    ``own``: a block of the request's own class is looked at before. ``follower``: the block found is not alone.
    """
    site = _Site(request)
    site.used(3 * site.threshold)
    start, cache_set = site.top, site.geometry.set_of(site.top)
    to_free = []
    for size in [found_bytes] * (1 + follower) + [site.threshold] * own:
        site.used_until(start)
        to_free.append(site.used(size))
        site.used(site.threshold)
    site.use_descriptors_up(0, site.next_area() - site.threshold)
    area = site.geometry.area_from(site.top)
    _require(area > site.top and site.geometry.top_behind(area) <= request.heap_bytes)
    for slot in to_free:
        site.layout.free(slot)
    found = "the first of two" if follower else "alone in its list"
    return _alloc_plan(
        site,
        site.measured(site.request, cache_set),
        variant=f"cut and new area, {'no ' * (not own)}own-class block, found block {found}",
        state=(
            f"no descriptor left; set {cache_set} has a free block of {found_bytes} bytes, {found}; "
            f"malloc takes {site.request} bytes of it and lays out an area for the descriptor of the rest"
        ),
        why=_WHY_CUT if not follower else _WHY_CUT_FOLLOWED,
    )


def _alloc_plan(
    site: _Site, measured: Operation, variant: str, state: str, why: tuple[str, ...], *, refused: bool = False
) -> ScenarioPlan:
    heap, geometry = site.layout.heap, site.geometry
    number = geometry.class_of(geometry.block_size(measured.size_bytes))
    own = heap.lists.get((measured.cache_set, number), ())
    return ScenarioPlan(
        scenario="worst-failing-alloc" if refused else "worst-alloc",
        variant=variant,
        trace=site.layout.trace(),
        measured=measured,
        initial_cache=InitialCache.DIRTY,
        state=state,
        why=why,
        prediction={
            "descriptors left": heap.available,
            "descriptor areas": len(heap.areas),
            "blocks of the own class": len(own),
            "lists of larger classes": sum(s == measured.cache_set and c > number for s, c in heap.lists),
            "break": heap.top,
            "free blocks": _free_blocks(site.layout),
        },
        refused=refused,
    )


def _worst_alloc(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    geometry = Geometry.of_values(request.allocator.values)
    # The rest is then found by the second word of the bit vector.
    large = _second_word(geometry) + 2 * geometry.threshold
    return _that_fit(
        request,
        lambda: _grow_with_area(request, 1, rounded=True),
        lambda: _grow_with_area(request, 1, rounded=False),
        lambda: _grow_with_area(request, 0, rounded=False),
        lambda: _cut(request, own=True, follower=True, found_bytes=large),
        lambda: _cut(request, own=False, follower=False, found_bytes=4 * geometry.threshold),
        lambda: _grow(request),
    )


def _worst_failing_alloc(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    return _that_fit(request, lambda: _refused_rounded(request), lambda: _refused_after_own(request))


def _refused_rounded(request: HeapRequest) -> ScenarioPlan:
    site = _Site(request)
    site.used(2 * site.threshold)
    end = request.heap_bytes - site.threshold
    # A start in this set is found before the arena's end; the block's end is behind it.
    cache_set = (site.geometry.set_of(end) + 1) % site.geometry.sets
    site.used_until(end)
    _require(site.top == end)
    return _alloc_plan(
        site,
        site.measured(site.rounded_request, cache_set),
        variant="request rounded up",
        state=f"{site.threshold} bytes up to the arena's end, no free block in set {cache_set}",
        why=(
            _WHY_ROUNDED,
            _WHY_GROW[0],
            "There is a place in the set before the arena's end, but too little behind it.",
        ),
        refused=True,
    )


def _refused_after_own(request: HeapRequest) -> ScenarioPlan:
    site = _Site(request)
    site.used(2 * site.threshold)
    end = request.heap_bytes - site.threshold
    cache_set = site.geometry.set_of(site.top)
    own = site.used(site.threshold)
    site.used(site.threshold)
    site.used_until(end)
    site.layout.free(own)
    _require(site.top == end and site.geometry.start_in_set(end, cache_set) + site.request > request.heap_bytes)
    return _alloc_plan(
        site,
        site.measured(site.request, cache_set),
        variant="own-class block too small",
        state=f"{site.threshold} bytes up to the arena's end, the only free block of set {cache_set} too small",
        why=(_WHY_OWN, _WHY_GROW[0], "No place in the set is left before the arena's end."),
        refused=True,
    )


# ----------------------------------------------------------------------------------------------------------- worst free


def _merge(request: HeapRequest, own_bytes: int) -> ScenarioPlan:
    site = _Site(request)
    geometry, heap = site.geometry, site.layout.heap
    site.used(site.threshold)
    left = site.used(2 * site.threshold)
    slot = site.used(own_bytes)
    right = site.used(3 * site.threshold)
    site.used(site.threshold)
    site.layout.free(left)
    site.layout.free(right)
    merged = 5 * site.threshold + own_bytes
    classes = [geometry.class_of(size) for size in (2 * site.threshold, 3 * site.threshold, merged)]
    words = len({number // 32 for number in (classes[0], classes[2])})
    sets = [geometry.set_of(site.layout.start(slot)) for slot in (left, right)]
    return ScenarioPlan(
        scenario="worst-free",
        variant=f"left and merged block in {words} word(s) of the bit vector",
        trace=site.layout.trace(),
        measured=Operation(OperationKind.FREE, slot),
        initial_cache=InitialCache.DIRTY,
        state=(
            f"a used block of {own_bytes} bytes between free ones of {2 * site.threshold} and "
            f"{3 * site.threshold} bytes, each alone in its list; free merges all into {merged} bytes"
        ),
        why=_WHY_FREE,
        prediction={
            "free blocks": _free_blocks(site.layout),
            "bytes of the left neighbour": 2 * site.threshold,
            "bytes of the right neighbour": 3 * site.threshold,
            "in the left one's list": len(heap.lists[sets[0], classes[0]]),
            "in the right one's list": len(heap.lists[sets[1], classes[1]]),
            "in the merged one's list": len(heap.lists.get((sets[0], classes[2]), ())),
            "descriptors left": heap.available,
        },
    )


def _lower_the_break(request: HeapRequest) -> ScenarioPlan:
    site = _Site(request)
    site.used(site.threshold)
    left = site.used(2 * site.threshold)
    slot = site.used(site.threshold)
    site.layout.free(left)
    geometry, heap = site.geometry, site.layout.heap
    at = geometry.set_of(site.layout.start(left)), geometry.class_of(2 * site.threshold)
    return ScenarioPlan(
        scenario="worst-free",
        variant="the break falls",
        trace=site.layout.trace(),
        measured=Operation(OperationKind.FREE, slot),
        initial_cache=InitialCache.DIRTY,
        state="the last block, behind a free one that is alone in its list; free lowers the break by both",
        why=("The left neighbour is free and leaves its list.", "Two descriptors become spare, and the break falls."),
        prediction={
            "free blocks": _free_blocks(site.layout),
            "bytes of the left neighbour": 2 * site.threshold,
            "in the left one's list": len(heap.lists[at]),
            "break": heap.top,
            "descriptors left": heap.available,
        },
    )


def _worst_free(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    geometry = Geometry.of_values(request.allocator.values)
    # The merged block is then found by the second word of the bit vector.
    return _that_fit(
        request,
        lambda: _merge(request, _second_word(geometry)),
        lambda: _merge(request, geometry.threshold),
        lambda: _lower_the_break(request),
    )


# ----------------------------------------------------------------------------------------------------------------- best


def _best_alloc(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    return _that_fit(request, *(lambda n=n: _pop(request, n) for n in (1, 2)))


def _pop(request: HeapRequest, blocks: int) -> ScenarioPlan:
    site = _Site(request)
    size = site.geometry.minimum_block
    cache_set = site.geometry.set_of(site.top)
    slots = [site.used(size, cache_set) for _ in range(blocks)]
    for slot in slots:
        site.layout.free(slot)
    _require(not site.layout.heap.small.keys() - {site.layout.start(slot) for slot in slots})
    how = "is its only one" if blocks == 1 else "is followed by another"
    return ScenarioPlan(
        scenario="best-alloc",
        variant=f"the block found {how}",
        trace=site.layout.trace(),
        measured=Operation(OperationKind.MALLOC, 0, 1, cache_set),
        initial_cache=InitialCache.WARM,
        state=f"{blocks} block(s) of the smallest class of set {cache_set} are free; malloc(1) takes the first",
        why=(
            "The request is so small that it needs no rounding to its class, and that list of its set holds a block.",
            "The block is small: no descriptor, no split.",
        ),
        prediction={
            "smallest free of the set": blocks,
            "free blocks": _free_blocks(site.layout),
            "descriptors left": site.available,
        },
    )


def _best_free(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    return _that_fit(request, *(lambda n=n: _push(request, n) for n in (0, 1)))


def _push(request: HeapRequest, others: int) -> ScenarioPlan:
    site = _Site(request)
    size = site.geometry.minimum_block
    cache_set = site.geometry.set_of(site.top)
    slots = [site.used(size, cache_set) for _ in range(1 + others)]
    for slot in slots[1:]:
        site.layout.free(slot)
    how = "an empty list" if not others else "a list that holds one block"
    return ScenarioPlan(
        scenario="best-free",
        variant=f"into {how}",
        trace=site.layout.trace(),
        measured=Operation(OperationKind.FREE, slots[0]),
        initial_cache=InitialCache.WARM,
        state=f"a used block of the smallest class; free puts it into {how}",
        why=("The block is small: no descriptor, no merge.",),
        prediction={"smallest free of the set": others, "free blocks": _free_blocks(site.layout)},
    )


# --------------------------------------------------------------------------------------------------------------- random


def _random(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    return _that_fit(request, lambda: _random_plan(request))


def _random_plan(request: HeapRequest) -> ScenarioPlan:
    """Log-uniform sizes, random deallocations, sets by the paper's first heuristic; the last allocation is measured.

    The heuristic (H11 §V.A): the set that the block would start in if nothing were ever given back. What the heap
    cannot serve is left out.
    """
    draw = random.Random(request.seed)  # noqa: S311  (a workload, no secret)
    site = _Site(request)
    blocks = min(_RANDOM_LIVE_BLOCKS, request.heap_bytes // 256)
    largest = max(16, request.heap_bytes // (4 * max(1, blocks)))
    live, cursor = list[int](), site.top
    before = measured = None
    for _ in range(_RANDOM_OPERATIONS):
        if live and (len(live) >= blocks or draw.random() < _RANDOM_SHARE_OF_FREES):
            site.layout.free(live.pop(draw.randrange(len(live))))
            continue
        request_bytes = draw.randrange(1, 1 + (1 << draw.randrange(1, largest.bit_length())))
        size = site.geometry.word_bytes + request_bytes
        cache_set = site.geometry.set_of(cursor)
        cursor += size
        operations, facts = site.layout.operation_count, _random_facts(site.layout)
        if (slot := site.layout.malloc(size, cache_set)) is not None:
            live.append(slot)
            before, measured = (operations, facts), site.measured(size, cache_set)
    if before is None or measured is None:
        raise _TooSmallError
    trace, facts = site.layout.trace(before[0]), before[1]
    return ScenarioPlan(
        scenario="random",
        variant=f"seed {request.seed}",
        trace=trace,
        measured=measured,
        initial_cache=InitialCache.WARM,
        state=(
            f"{facts['used blocks']} blocks live after {len(trace)} operations on sizes up to {largest} bytes; "
            f"malloc({measured.size_bytes}) in set {measured.cache_set}"
        ),
        why=("Nothing: this is an arbitrary state, for contrast.",),
        prediction=facts,
    )


def _random_facts(layout: Layout) -> Mapping[str, int]:
    heap = layout.heap
    free_small = sum(start in heap.small for starts in heap.lists.values() for start in starts)
    return {
        "used blocks": sum(not d.free for d in heap.described) + len(heap.small) - free_small,
        "free blocks": _free_blocks(layout),
        "break": heap.top,
        "descriptors left": heap.available,
    }


# --------------------------------------------------------------------------------------------------------------- common


def _free_blocks(layout: Layout) -> int:
    """Free blocks and gaps, small ones included."""
    heap = layout.heap
    small = sum(start in heap.small for starts in heap.lists.values() for start in starts)
    return small + sum(d.free for d in heap.described)


def _second_word(geometry: Geometry) -> int:
    """The least size whose class is in the second word of a bit vector; a size like others if there is one word."""
    return geometry.class_floor(32) if geometry.vector_words > 1 else 8 * geometry.threshold


def _require(holds: bool) -> None:  # noqa: FBT001  (an assertion about the layout)
    if not holds:
        raise _TooSmallError


def _that_fit(request: HeapRequest, *candidates: Callable[[], ScenarioPlan]) -> tuple[ScenarioPlan, ...]:
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
        except _TooSmallError:
            continue


def _state(guest: GuestHeap, plan: ScenarioPlan) -> Mapping[str, int | str]:
    """Facts of the guest's heap, from its control structure, tables, descriptors and blocks."""
    heap = Guest(guest)
    blocks = walk(guest)
    chain = list(heap.chain())
    areas = list(heap.areas())
    facts: dict[str, int | str] = {
        "free blocks": sum(block.free for block in blocks),
        "used blocks": sum(not block.free for block in blocks) - len(areas),
        "descriptor areas": len(areas),
        "descriptors left": _places(heap, areas) - len(chain),
        "break": heap.control["top"] - heap.control["arena"],
    }
    if plan.measured.kind is OperationKind.MALLOC:
        return facts | _alloc_facts(heap, plan.measured)
    return facts | _free_facts(guest, heap, plan.measured)


def _places(heap: Guest, areas: list[int]) -> int:
    """How many descriptors the areas have room for; the first place of each is the area's own."""
    return sum((heap.geometry.area_end(area) - area) // heap.geometry.descriptor_bytes - 1 for area in areas)


def _alloc_facts(heap: Guest, measured: Operation) -> dict[str, int | str]:
    geometry = heap.geometry
    size = geometry.block_size(measured.size_bytes)
    number = geometry.class_of(size)
    large = size >= geometry.threshold
    return {
        "blocks of the own class": len(heap.large_list(measured.cache_set, number)) if large else 0,
        "lists of larger classes": (heap.lists_of(measured.cache_set) >> (number + 1)).bit_count(),
        "smallest free of the set": len(heap.small_list(measured.cache_set, 0)),
    }


def _free_facts(guest: GuestHeap, heap: Guest, measured: Operation) -> dict[str, int | str]:
    geometry, start = heap.geometry, guest.slot(measured.slot)
    chain = list(heap.chain())
    at = next((i for i, d in enumerate(chain) if d.start == start), None)
    if at is None:
        return {"smallest free of the set": len(heap.small_list(geometry.set_of(start), 0))}
    left, own = chain[at - 1], chain[at]
    facts: dict[str, int | str] = {
        "bytes of the left neighbour": left.size if left.free and left.start + left.size == start else 0,
        "in the left one's list": _listed(heap, left.start, left.size),
    }
    if at + 1 < len(chain):
        right = chain[at + 1]
        merged = left.size + own.size + right.size
        facts |= {
            "bytes of the right neighbour": right.size if right.free and start + own.size == right.start else 0,
            "in the right one's list": len(
                heap.large_list(geometry.set_of(right.start), geometry.class_of(right.size))
            ),
            "in the merged one's list": len(heap.large_list(geometry.set_of(left.start), geometry.class_of(merged))),
        }
    return facts


def _listed(heap: Guest, start: int, size: int) -> int:
    """How many blocks there are in the list of large blocks of this start and size."""
    return len(heap.large_list(heap.geometry.set_of(start), heap.geometry.class_of(size)))


FAMILY = Family(
    builders=MappingProxyType(
        {
            "worst-alloc": _worst_alloc,
            "worst-free": _worst_free,
            "worst-failing-alloc": _worst_failing_alloc,
            "best-alloc": _best_alloc,
            "best-free": _best_free,
            "random": _random,
        }
    ),
    walk=walk,
    state=_state,
)
