"""Worst, best and random states of CAMA.

The cost of CAMA depends on a dozen decisions and not on the heap's size, once the heap is large enough for all of them
to go the dear way. Which way is dear (is a push onto an empty list dearer than onto one with a block? a descriptor
that is used again or a fresh one?) was found by measuring every combination; what depends on the target is left to
the candidates here.

Source: H11 §IV, figures 5 and 6. The paper names no worst state.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from types import MappingProxyType

from wcet_probe.model.scenario import InitialCache, Operation, OperationKind, ScenarioPlan
from wcet_probe.scenarios.cama.free import worst_free
from wcet_probe.scenarios.cama.heap import Guest, Layout, walk
from wcet_probe.scenarios.cama.malloc import worst_alloc, worst_failing_alloc
from wcet_probe.scenarios.cama.site import Site, TooSmallError, free_blocks, require, that_fit
from wcet_probe.scenarios.families import Family, GuestHeap, HeapRequest

_RANDOM_OPERATIONS = 2000
_RANDOM_LIVE_BLOCKS = 200
_RANDOM_SHARE_OF_FREES = 0.4


def _best_alloc(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    return that_fit(request, *(lambda n=n: _pop(request, n) for n in (1, 2)))


def _pop(request: HeapRequest, blocks: int) -> ScenarioPlan:
    site = Site(request)
    size = site.geometry.minimum_block
    cache_set = site.geometry.set_of(site.top)
    slots = [site.used(size, cache_set) for _ in range(blocks)]
    for slot in slots:
        site.layout.free(slot)
    require(not site.layout.heap.small.keys() - {site.layout.start(slot) for slot in slots})
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
            "free blocks": free_blocks(site.layout),
            "descriptors left": site.available,
        },
    )


def _best_free(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    return that_fit(request, *(lambda n=n: _push(request, n) for n in (0, 1)))


def _push(request: HeapRequest, others: int) -> ScenarioPlan:
    site = Site(request)
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
        prediction={"smallest free of the set": others, "free blocks": free_blocks(site.layout)},
    )


def _random(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    return that_fit(request, lambda: _random_plan(request))


def _random_plan(request: HeapRequest) -> ScenarioPlan:
    """Log-uniform sizes, random deallocations, sets by the paper's first heuristic; the last allocation is measured.

    The heuristic (H11 §V.A): the set that the block would start in if nothing were ever given back. What the heap
    cannot serve is left out.
    """
    draw = random.Random(request.seed)  # noqa: S311  (a workload, no secret)
    site = Site(request)
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
        raise TooSmallError
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
        "free blocks": free_blocks(layout),
        "break": heap.top,
        "descriptors left": heap.available,
    }


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
            "worst-alloc": worst_alloc,
            "worst-free": worst_free,
            "worst-failing-alloc": worst_failing_alloc,
            "best-alloc": _best_alloc,
            "best-free": _best_free,
            "random": _random,
        }
    ),
    walk=walk,
    state=_state,
)
