"""Worst, best and random states of half-fit.

Its cost depends on a few two-way decisions and not on the heap's size: whether the block taken is alone in its list,
whether it is split, and which neighbours of a freed block are free. What instructions leave open is decided by
measuring: a block that is alone in its list has a bit to clear, one between others has links in their lines to mend.

Sources: C06 §2 and §4, M06 §2 and §4.2 (the two bands of half-fit in figure 3).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from wcet_probe.model.scenario import InitialCache, Operation, OperationKind, ScenarioPlan
from wcet_probe.scenarios.families import Blocks, Family, GuestHeap, HeapRequest
from wcet_probe.scenarios.random_workload import random_plans
from wcet_probe.scenarios.tagged_heap import (
    OVERHEAD_BYTES,
    WORD_BYTES,
    Layout,
    Sizes,
    TaggedHeap,
    freed_into_empty_list,
    too_small,
)

_CONTROL = "half_fit_control"
_LISTS_BYTES = 2 * WORD_BYTES
_BITMAP_BYTES = _LISTS_BYTES + 28 * 2 * WORD_BYTES
"""Offsets in the control structure."""

_WHY_ALLOC = (
    "The request is mapped to a class, and the bitmap is searched for the first list from there on that holds a block.",
    "The block found is larger: it is split, and its rest is mapped to its class and filed.",
)
_WHY_FREE = (
    "Both neighbours are free: two blocks leave their lists, two merges are made, and the merged block is filed.",
    "The three classes differ, so no list is touched twice.",
)
_WHY_ALONE = (
    "A block that is alone in its list takes the list's bit with it: its size is mapped to its class to find that bit."
)
_WHY_JOINED = "A block that is not alone has a neighbour in its list, with links to mend in another cache line."


def _class_of(size: int) -> int:
    """The list that holds blocks of ``size``, tags included."""
    return (size - OVERHEAD_BYTES).bit_length() - 1


def _class_for(size: int) -> int:
    """The first list all of whose blocks are as large as ``size``."""
    return (size - OVERHEAD_BYTES - 1).bit_length()


def _largest_cut(size: int) -> int:
    """The largest block that a single free one of ``size`` serves: the lower end of its class."""
    return (1 << _class_of(size)) + OVERHEAD_BYTES


# ---------------------------------------------------------------------------------------------------------- allocation


def _worst_alloc(request: HeapRequest) -> Iterator[ScenarioPlan]:
    for others in (0, 1):
        for rest_joins in (False, True):
            yield _alloc_plan(request, others=others, rest_joins=rest_joins)
    yield _alloc_plan_of_whole(request)


def _alloc_plan(request: HeapRequest, *, others: int, rest_joins: bool) -> ScenarioPlan:
    """A block that is the first before ``others`` of its list; the rest's list is empty or holds a block."""
    layout, line = Layout(request, _largest_cut), max(request.data_line_bytes or 0, 32)
    # The block spans whole cache lines in front of its rest: both headers lie alike across lines.
    found, cut = 9 * line, 6 * line
    joined = layout.block(found - cut) if rest_joins else []
    layout.align(apart=layout.sizes.minimum)
    twin = layout.block(found) if others else []
    layout.align(apart=layout.sizes.minimum)
    at = layout.position_bytes
    taken = layout.block(found)
    layout.fill()
    for slots in (joined, twin, taken):
        layout.free(slots)
    variant = f"alone in its list: {'no' if others else 'yes'}, the rest's list empty: {'no' if rest_joins else 'yes'}"
    return _as_alloc_plan(layout, variant, at=at, found=found, cut=cut, others=others, joined=int(rest_joins))


def _alloc_plan_of_whole(request: HeapRequest) -> ScenarioPlan:
    """All that the heap has left is one free block: the bit searches have the largest words."""
    layout = Layout(request, _largest_cut)
    layout.align(apart=layout.sizes.minimum)
    found = layout.room_bytes
    line = max(request.data_line_bytes or 0, 32)
    cut = (1 << (found.bit_length() - 3)) + line  # Whole cache lines again.
    return _as_alloc_plan(layout, "the whole heap is one free block", at=layout.position_bytes, found=found, cut=cut)


def _as_alloc_plan(
    layout: Layout, variant: str, *, at: int, found: int, cut: int, others: int = 0, joined: int = 0
) -> ScenarioPlan:
    bytes_ = cut - OVERHEAD_BYTES
    return ScenarioPlan(
        scenario="worst-alloc",
        variant=variant,
        trace=layout.trace(),
        measured=Operation(OperationKind.MALLOC, 0, bytes_),
        initial_cache=InitialCache.DIRTY,
        state=(
            f"a block of {found} bytes is free in list {_class_of(found)}, before {others} other(s); malloc({bytes_}) "
            f"searches from list {_class_for(cut)}, takes {cut} bytes and files {found - cut} in list "
            f"{_class_of(found - cut)}"
        ),
        why=(*_WHY_ALLOC, _WHY_JOINED if others else _WHY_ALONE),
        prediction={
            "free blocks": 1 + others + joined,
            "address of block taken": at,
            "bytes of block taken": found,
            "others in its list": others,
            "others in list of rest": joined,
        },
    )


def _worst_failing(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    layout = Layout(request, _largest_cut)
    size = 3 * layout.sizes.minimum + OVERHEAD_BYTES
    free = layout.block(size)
    layout.fill()
    layout.free(free)
    return (
        ScenarioPlan(
            scenario="worst-failing-alloc",
            variant="a block that would fit",
            trace=layout.trace(),
            measured=Operation(OperationKind.MALLOC, 0, size - OVERHEAD_BYTES),
            initial_cache=InitialCache.DIRTY,
            state=(
                f"one block of {size} bytes is free, in list {_class_of(size)}; malloc({size - OVERHEAD_BYTES}) needs "
                f"just that, searches from list {_class_for(size)} and fails"
            ),
            why=(
                "The request is mapped to a class before the bitmap tells that no list from there on holds a block.",
                "C06 calls it incomplete memory use: the list below may hold large enough blocks and is not searched.",
            ),
            prediction={"free blocks": 1, "largest free block": size},
            refused=True,
        ),
    )


def _best_alloc(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    return tuple(_best_alloc_plan(request, others=others) for others in (0, 1))


def _best_alloc_plan(request: HeapRequest, *, others: int) -> ScenarioPlan:
    layout = Layout(request, _largest_cut)
    size = (1 << _class_for(layout.sizes.minimum)) + OVERHEAD_BYTES  # Only the least of its class is taken whole.
    blocks = [slot for _ in range(1 + others) for slot in layout.cut([size, size])[:1]]
    layout.fill()
    layout.free(blocks)
    return ScenarioPlan(
        scenario="best-alloc",
        variant="the block found is followed by another" if others else "the block found is alone in its list",
        trace=layout.trace(),
        measured=Operation(OperationKind.MALLOC, 0, size - OVERHEAD_BYTES),
        initial_cache=InitialCache.WARM,
        state=f"list {_class_of(size)} holds {1 + others} block(s) of {size} bytes; one is taken whole",
        why=("The block found fits exactly: it is not split, and nothing is filed.",),
        prediction={"free blocks": 1 + others, "bytes of block taken": size, "others in its list": others},
    )


# -------------------------------------------------------------------------------------------------------- deallocation


def _worst_free(request: HeapRequest) -> Iterator[ScenarioPlan]:
    for left_others in (0, 2):
        for right_others in (0, 2):
            yield _free_plan(request, left_others, right_others, merged_joins=True)
    yield _free_plan(request, 0, 0, merged_joins=False)
    large = 1 << 11  # All sizes are then above 2^16.
    if 32 * large * max(request.data_line_bytes or 0, 32) < request.heap_bytes:
        yield _free_plan(request, 0, 0, merged_joins=True, lines=large)


def _free_plan(
    request: HeapRequest, left_others: int, right_others: int, *, merged_joins: bool, lines: int = 1
) -> ScenarioPlan:
    """Both neighbours free, each alone in its list or in the middle between two others."""
    layout, line = Layout(request, _largest_cut), lines * max(request.data_line_bytes or 0, 32)
    sizes = {"left": 3 * line, "right": 6 * line}
    own, merged = 2 * line, 11 * line
    frees: list[list[int]] = []
    if merged_joins:
        frees.append(layout.block(merged))
        layout.block(layout.sizes.minimum)
    pairs = []
    for size, others in ((sizes["left"], left_others), (sizes["right"], right_others)):
        blocks = []
        for _ in range(others):
            blocks.append(layout.block(size))
            layout.block(layout.sizes.minimum)
        pairs.append(blocks)
    layout.align()
    before = layout.block(sizes["left"])
    slot, *pieces = layout.block(own)
    if pieces:
        raise too_small(request)
    after = layout.block(sizes["right"])
    layout.fill()
    for blocks, neighbour in zip(pairs, (before, after), strict=True):
        frees += [*blocks[:1], neighbour, *blocks[1:]]
    for slots in frees:
        layout.free(slots)

    def where(others: int) -> str:
        return "between two others" if others else "alone in its list"

    return ScenarioPlan(
        scenario="worst-free",
        variant=(
            f"left neighbour {where(left_others)}, right {where(right_others)}, merged block into "
            f"{'a list with another' if merged_joins else 'an empty list'}" + (", large" if lines > 1 else "")
        ),
        trace=layout.trace(),
        measured=Operation(OperationKind.FREE, slot),
        initial_cache=InitialCache.DIRTY,
        state=(
            f"a used block of {own} bytes between free ones of {sizes['left']} and {sizes['right']}, in lists "
            f"{_class_of(sizes['left'])} and {_class_of(sizes['right'])}; free files {merged} bytes in list "
            f"{_class_of(merged)}"
        ),
        why=(
            *_WHY_FREE,
            *([] if left_others and right_others else [_WHY_ALONE]),
            *([_WHY_JOINED] if left_others or right_others else []),
        ),
        prediction={
            "bytes of left neighbour": sizes["left"],
            "bytes of right neighbour": sizes["right"],
            "others in list of left": left_others,
            "others in list of right": right_others,
            "others in list of merged": int(merged_joins),
        },
    )


def _best_free(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    return (freed_into_empty_list(Layout(request, _largest_cut), "free files it in its list, which is empty"),)


# ---------------------------------------------------------------------------------------------------- the guest's heap


def _walk(guest: GuestHeap) -> Blocks:
    return TaggedHeap.read(guest, _CONTROL).blocks()


def _lists(guest: GuestHeap, heap: TaggedHeap) -> dict[int, list[int]]:
    """The blocks of every list that the bitmap says is not empty."""
    control = guest.symbols[_CONTROL]
    bitmap = guest.read_word(control + _BITMAP_BYTES)
    return {
        index: heap.free_list(guest, control + _LISTS_BYTES + 2 * WORD_BYTES * index)
        for index in range(bitmap.bit_length())
        if bitmap >> index & 1
    }


def _state(guest: GuestHeap, plan: ScenarioPlan) -> Mapping[str, int | str]:
    """Facts of the heap: of its lists, as the bitmap and the heads of the control structure lead to them."""
    heap = TaggedHeap.read(guest, _CONTROL)
    lists = _lists(guest, heap)
    blocks = heap.blocks()
    sizes = [size for members in lists.values() for size in heap.sizes_of(members)]
    facts = {
        "free blocks": blocks.free_blocks,
        "used blocks": blocks.used_blocks,
        "largest free block": max(sizes, default=0),
    }
    if plan.measured.kind is OperationKind.MALLOC:
        return facts | _alloc_facts(guest, heap, lists, plan.measured.size_bytes)
    own = guest.slot(plan.measured.slot) - WORD_BYTES
    left, right = (
        heap.size_before(own),
        heap.size(own + heap.size(own)) if own + heap.size(own) < heap.end_address else 0,
    )
    return facts | {
        "bytes of left neighbour": left,
        "bytes of right neighbour": right,
        "others in list of left": _others(lists, _class_of(left), own - left),
        "others in list of right": _others(lists, _class_of(right), own + heap.size(own)),
        "others in list of merged": _others(lists, _class_of(left + heap.size(own) + right), 0),
    }


def _alloc_facts(
    guest: GuestHeap, heap: TaggedHeap, lists: Mapping[int, list[int]], request_bytes: int
) -> dict[str, int]:
    cut = Sizes.of(guest.values).block(request_bytes)
    index = min((i for i in lists if i >= _class_for(cut)), default=None)
    if index is None:
        return {}
    taken = lists[index][0]
    rest = heap.size(taken) - cut
    return {
        "address of block taken": taken - heap.base_address,
        "bytes of block taken": heap.size(taken),
        "others in its list": _others(lists, index, taken),
        "others in list of rest": _others(lists, _class_of(rest), taken) if rest > OVERHEAD_BYTES else 0,
    }


def _others(lists: Mapping[int, list[int]], index: int, block: int) -> int:
    return sum(other != block for other in lists.get(index, ()))


FAMILY = Family(
    builders=MappingProxyType(
        {
            "worst-alloc": lambda request: tuple(_worst_alloc(request)),
            "worst-free": lambda request: tuple(_worst_free(request)),
            "best-alloc": _best_alloc,
            "best-free": _best_free,
            "random": random_plans,
            "worst-failing-alloc": _worst_failing,
        }
    ),
    walk=_walk,
    state=_state,
)
