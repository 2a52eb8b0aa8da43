"""The worst allocations of CAMA: the heap grows, a block that was found is cut, or nothing serves the request."""

from __future__ import annotations

from wcet_probe.model.scenario import InitialCache, Operation, ScenarioPlan
from wcet_probe.scenarios.cama.heap import Geometry
from wcet_probe.scenarios.cama.site import Site, free_blocks, require, second_word, that_fit
from wcet_probe.scenarios.families import HeapRequest

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


def worst_alloc(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    """The candidates for the dearest successful allocation."""
    geometry = Geometry.of_values(request.allocator.values)
    # The rest is then found by the second word of the bit vector.
    large = second_word(geometry) + 2 * geometry.threshold
    return that_fit(
        request,
        lambda: _grow_with_area(request, 1, rounded=True),
        lambda: _grow_with_area(request, 1, rounded=False),
        lambda: _grow_with_area(request, 0, rounded=False),
        lambda: _cut(request, own=True, follower=True, found_bytes=large),
        lambda: _cut(request, own=False, follower=False, found_bytes=4 * geometry.threshold),
        lambda: _grow(request),
    )


def worst_failing_alloc(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    """The candidates for the dearest refused allocation."""
    return that_fit(request, lambda: _refused_rounded(request), lambda: _refused_after_own(request))


def _grow_with_area(request: HeapRequest, left: int, *, rounded: bool) -> ScenarioPlan:
    """The heap grows, and needs a new descriptor area for it; ``left`` descriptors are left before.

    ``rounded``: the request becomes large by rounding up; else the first block of its own class is too small for it.
    """
    site = Site(request)
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
    require(start + site.request <= request.heap_bytes and min(start - behind, area - site.top) >= site.threshold)
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
    site = Site(request)
    site.used(site.threshold)
    distance = 2 * site.threshold // site.geometry.line_bytes
    cache_set = (site.geometry.set_of(site.top) + distance) % site.geometry.sets
    start = site.geometry.start_in_set(site.top, cache_set)
    require(start + site.request <= request.heap_bytes)
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
    site = Site(request)
    site.used(3 * site.threshold)
    start, cache_set = site.top, site.geometry.set_of(site.top)
    to_free = []
    for size in [found_bytes] * (1 + follower) + [site.threshold] * own:
        site.used_until(start)
        to_free.append(site.used(size))
        site.used(site.threshold)
    site.use_descriptors_up(0, site.next_area() - site.threshold)
    area = site.geometry.area_from(site.top)
    require(area > site.top and site.geometry.top_behind(area) <= request.heap_bytes)
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
    site: Site, measured: Operation, variant: str, state: str, why: tuple[str, ...], *, refused: bool = False
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
            "free blocks": free_blocks(site.layout),
        },
        refused=refused,
    )


def _refused_rounded(request: HeapRequest) -> ScenarioPlan:
    site = Site(request)
    site.used(2 * site.threshold)
    end = request.heap_bytes - site.threshold
    # A start in this set is found before the arena's end; the block's end is behind it.
    cache_set = (site.geometry.set_of(end) + 1) % site.geometry.sets
    site.used_until(end)
    require(site.top == end)
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
    site = Site(request)
    site.used(2 * site.threshold)
    end = request.heap_bytes - site.threshold
    cache_set = site.geometry.set_of(site.top)
    own = site.used(site.threshold)
    site.used(site.threshold)
    site.used_until(end)
    site.layout.free(own)
    require(site.top == end and site.geometry.start_in_set(end, cache_set) + site.request > request.heap_bytes)
    return _alloc_plan(
        site,
        site.measured(site.request, cache_set),
        variant="own-class block too small",
        state=f"{site.threshold} bytes up to the arena's end, the only free block of set {cache_set} too small",
        why=(_WHY_OWN, _WHY_GROW[0], "No place in the set is left before the arena's end."),
        refused=True,
    )
