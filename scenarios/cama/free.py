"""The worst deallocations of CAMA: two neighbours merge, or the break falls."""

from __future__ import annotations

from wcet_probe.model.scenario import InitialCache, Operation, OperationKind, ScenarioPlan
from wcet_probe.scenarios.cama.heap import Geometry
from wcet_probe.scenarios.cama.site import Site, free_blocks, second_word, that_fit
from wcet_probe.scenarios.families import HeapRequest

_WHY_FREE = (
    "Both neighbours are free: two blocks leave their lists, two merges are made, two descriptors become spare.",
    "Each neighbour is alone in its list: its bit is cleared.",
    "The merged block goes into an empty list: its bit is set.",
    "All blocks differ in class, so that each list has its own words.",
)


def worst_free(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    """The candidates for the dearest deallocation."""
    geometry = Geometry.of_values(request.allocator.values)
    # The merged block is then found by the second word of the bit vector.
    return that_fit(
        request,
        lambda: _merge(request, second_word(geometry)),
        lambda: _merge(request, geometry.threshold),
        lambda: _lower_the_break(request),
    )


def _merge(request: HeapRequest, own_bytes: int) -> ScenarioPlan:
    site = Site(request)
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
            "free blocks": free_blocks(site.layout),
            "bytes of the left neighbour": 2 * site.threshold,
            "bytes of the right neighbour": 3 * site.threshold,
            "in the left one's list": len(heap.lists[sets[0], classes[0]]),
            "in the right one's list": len(heap.lists[sets[1], classes[1]]),
            "in the merged one's list": len(heap.lists.get((sets[0], classes[2]), ())),
            "descriptors left": heap.available,
        },
    )


def _lower_the_break(request: HeapRequest) -> ScenarioPlan:
    site = Site(request)
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
            "free blocks": free_blocks(site.layout),
            "bytes of the left neighbour": 2 * site.threshold,
            "in the left one's list": len(heap.lists[at]),
            "break": heap.top,
            "descriptors left": heap.available,
        },
    )
