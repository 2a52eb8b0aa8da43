"""Scenarios of any allocator: states that are slow for one mechanism or another, without knowledge of this one.

Nothing is assumed of how the heap is organised but how many bytes a block takes at most (``overhead_bytes`` and
``minimum_block_bytes`` of the manifest). What the allocator refuses on the way to a state is part of that state. So the
dearest of these states is a witness, a lower bound of the worst case, and seldom the worst case itself: ``search`` goes
on from here, and a family of scenarios of its own is better than both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import chain, pairwise, product
from types import MappingProxyType

from wcet_probe.errors import HeapTooSmallError
from wcet_probe.model.scenario import InitialCache, Operation, OperationKind, ScenarioPlan
from wcet_probe.scenarios.families import Family, GuestHeap, HeapRequest
from wcet_probe.scenarios.random_workload import random_plans
from wcet_probe.scenarios.traces import TraceBuilder

_SMALL = (1, 24, 100)
"""Sizes of blocks in bytes that heaps are filled with: the least there is, and two of other classes."""

_HOLE = 4
"""The hole that fits is as large as so many of the small blocks."""

_SPARE_SHARE = 64
"""Where a block must have been served, one in so many bytes of the heap is left for what blocks do not explain."""

_NOTHING_WRONG = MappingProxyType({"blocks not aligned": 0, "blocks outside the heap": 0, "blocks that overlap": 0})
"""What is asked of every allocator, whatever its mechanism."""

_WHY = (
    "Nothing proves that it is the worst: it is the dearest of the generic states, which know nothing of the allocator."
)

_States = Iterable[ScenarioPlan]


def _plan(scenario: str, variant: str, builder: TraceBuilder, measured: Operation, why: str) -> ScenarioPlan:
    call = f"malloc({measured.size_bytes})" if measured.kind is OperationKind.MALLOC else "free"
    best = scenario.startswith("best-")
    return ScenarioPlan(
        scenario=scenario,
        variant=variant,
        trace=builder.trace(),
        measured=measured,
        initial_cache=InitialCache.WARM if best else InitialCache.DIRTY,
        state=f"{variant}; {call}",
        why=(why, _WHY),
        prediction=_NOTHING_WRONG,
        refused=None,
        set_up_may_refuse=True,
    )


def _malloc(size: int) -> Operation:
    return Operation(OperationKind.MALLOC, 0, size)


def _free(slot: int) -> Operation:
    return Operation(OperationKind.FREE, slot)


def _count(request: HeapRequest, size: int, spare_share: int = _SPARE_SHARE) -> int:
    """How many blocks of ``size`` bytes the heap holds, as far as the manifest knows."""
    allocator, grain = request.allocator, request.allocator.alignment_bytes
    overhead, least = 2 * grain, 4 * grain
    if allocator.own:
        overhead, least = allocator.own.overhead_bytes, allocator.own.minimum_block_bytes
    block = max(least, -(-(size + overhead) // grain) * grain)
    room = request.heap_bytes - allocator.minimum_heap_bytes - request.heap_bytes // spare_share
    if room < 8 * block:
        message = f"a heap of {request.heap_bytes} bytes is too small for the generic states; give a larger --heap."
        raise HeapTooSmallError(message)
    # Some states put a few blocks beside as many as this.
    most = allocator.own.most_blocks if allocator.own else 0
    return min(room // block, most - most // 8) if most else room // block


def _sizes(request: HeapRequest) -> tuple[int, ...]:
    """Powers of two up to a quarter of the heap, and one byte more than each."""
    largest = (request.heap_bytes // 4).bit_length() - 1
    powers = chain.from_iterable((1 << bits, (1 << bits) + 1) for bits in range(largest))
    return tuple(dict.fromkeys(_served(request, size) for size in powers))


def _served(request: HeapRequest, size: int) -> int:
    """``size``, or the largest that the allocator serves at all."""
    most = request.allocator.own.largest_request_bytes if request.allocator.own else 0
    return min(size, most) if most else size


def _fitting(request: HeapRequest) -> list[int]:
    """The small sizes that the heap holds some blocks of."""
    found: list[int] = []
    for size in dict.fromkeys(_served(request, size) for size in _SMALL):
        try:
            _count(request, size)
        except HeapTooSmallError:
            if not found:
                raise
            break
        found.append(size)
    return found


# -------------------------------------------------------------------------------------------------- states of malloc


def _size_sweep(request: HeapRequest, scenario: str) -> _States:
    _count(request, 1)
    for size in _sizes(request):
        yield _plan(scenario, f"a fresh heap, {size} bytes", TraceBuilder(), _malloc(size), "Each class once.")


def _checkerboard(request: HeapRequest, scenario: str) -> _States:
    """Holes between blocks in use, none of which fits, and one that does: at the end, at the start, or none."""
    for size in _fitting(request):
        hole = _served(request, _HOLE * size + request.allocator.alignment_bytes * _HOLE)
        count = max(4, _count(request, size, request.heap_bytes) - 2 * _HOLE)
        for where in ("highest, freed last", "lowest, freed last", "lowest, freed first", "left over"):
            builder = TraceBuilder()
            fitting = builder.malloc(hole) if where.startswith("lowest") else None
            slots = [builder.malloc(size) for _ in range(count)]
            if where.startswith("highest"):
                fitting = builder.malloc(hole)
                builder.malloc(1)
            if fitting is not None and where.endswith("first"):
                builder.free(fitting)
            for slot in slots[::2]:
                builder.free(slot)
            if fitting is not None and where.endswith("last"):
                builder.free(fitting)
            variant = f"{len(slots[::2])} holes of {size} bytes, the one that fits is {where}"
            yield _plan(scenario, variant, builder, _malloc(hole), "A search of a list of holes passes all of them.")


def _near_misses(request: HeapRequest, scenario: str) -> _States:
    """Holes that are a little too small: lists of classes of sizes have them where the request is looked for."""
    for size in _fitting(request):
        builder = TraceBuilder()
        slots = [builder.malloc(size) for _ in range(max(4, _count(request, size, request.heap_bytes) - 2 * _HOLE))]
        for slot in slots[::2]:
            builder.free(slot)
        near = _served(request, size + request.allocator.alignment_bytes)
        variant = f"{len(slots[::2])} holes of {size} bytes, each a little too small"
        yield _plan(scenario, variant, builder, _malloc(near), "The holes of a class are looked at in vain.")


def _ladder(request: HeapRequest, scenario: str) -> _States:
    """Holes of as many different sizes as the heap holds, so that what is sorted by size is as deep as can be."""
    step = request.allocator.alignment_bytes
    sizes, room = list[int](), (_count(request, 1) - 8) * step
    while room > sum(sizes[-1:]) + 8 * step:
        sizes.append(step * (len(sizes) + 1))
        room -= sizes[-1] + 6 * step
    for order in ("rising", "falling"):
        builder = TraceBuilder()
        holes = []
        for size in sizes:
            holes.append(builder.malloc(size))
            builder.malloc(1)
        for slot in holes if order == "rising" else holes[::-1]:
            builder.free(slot)
        largest = _served(request, max(sizes, default=step))
        variant = f"{len(holes)} holes of different sizes, freed {order}"
        yield _plan(scenario, variant, builder, _malloc(largest), "A search by size is as deep as the sizes are many.")


def _drained(request: HeapRequest, scenario: str) -> _States:
    """What was freed in a class is all in use again: the next block must come from elsewhere."""
    for size in _fitting(request):
        builder = TraceBuilder()
        count = max(2, _count(request, size) // 4)
        first = [builder.malloc(size) for _ in range(count)]
        for slot in first:
            builder.free(slot)
        for _ in range(count):
            builder.malloc(size)
        variant = f"the class of {size} bytes is drained after {count} blocks"
        yield _plan(scenario, variant, builder, _malloc(size), "The class has no block left, and must be filled again.")
    for size, order in product(_fitting(request), ("all", "all but the last")):
        builder = TraceBuilder()
        slots = [builder.malloc(size) for _ in range(_count(request, size))]
        # The last one keeps blocks before it from being the heap's end, one after the other.
        for slot in slots if order == "all" else slots[-2::-1]:
            builder.free(slot)
        falling = "" if order == "all" else ", from the end on"
        variant = f"{len(slots)} blocks of {size} bytes {order} freed{falling}"
        reason = "What was put off at each free is done by the first request that needs it: merging, sorting."
        yield _plan(scenario, variant, builder, _malloc(_served(request, request.heap_bytes // 2)), reason)


def _exhaustion(request: HeapRequest, scenario: str) -> _States:
    """Nothing is left, in few large blocks or in many small ones; and a request that no heap of this size can serve."""
    whole = request.heap_bytes
    for size in _fitting(request):
        builder = TraceBuilder()
        slots = [builder.malloc(size) for _ in range(_count(request, size))]
        for left in (size * 16, size * 4, size, 1):
            for _ in range(whole // _SPARE_SHARE // (left + 1) + 4):
                builder.malloc(left)
        yield _plan(scenario, f"a heap full of blocks of {size} bytes", builder, _malloc(size), "Nothing is left.")
        for slot in slots[::2]:
            builder.free(slot)
        variant = f"{len(slots[::2])} holes of {size} bytes, none fits"
        yield _plan(scenario, variant, builder, _malloc(whole), "Every hole is looked at in vain.")


# ---------------------------------------------------------------------------------------------------- states of free


def _neighbours(request: HeapRequest, scenario: str) -> _States:
    """A block between two free ones, between two in use, and beside one."""
    grain = request.allocator.alignment_bytes
    for size in _sizes(request)[:-4]:
        builder = TraceBuilder()
        slots = [builder.malloc(bytes_) for bytes_ in (size, size, _served(request, size + 2 * grain), 1)]
        builder.free(slots[0])
        builder.free(slots[2])
        variant = f"a block of {size} bytes between free ones of {size} and {size + 2 * grain} bytes"
        yield _plan(scenario, variant, builder, _free(slots[1]), "What is merged leaves two classes and joins a third.")
    for size in dict.fromkeys((*_fitting(request), _served(request, request.heap_bytes // 16))):
        for freed, words in (
            ((0, 2), "both neighbours free"),
            ((0,), "the one before it free"),
            ((2,), "the one behind"),
        ):
            builder = TraceBuilder()
            slots = [builder.malloc(size) for _ in range(4)]
            for place in freed:
                builder.free(slots[place])
            variant = f"a block of {size} bytes, {words}"
            yield _plan(scenario, variant, builder, _free(slots[1]), "Neighbours are taken off their lists and merged.")


def _holes_before_free(request: HeapRequest, scenario: str) -> _States:
    """Free among many holes: a list that is sorted by address or by size is walked, what is merged has neighbours."""
    for size in _fitting(request):
        count = max(8, _count(request, size))
        for share, words in ((1, "at the end"), (2, "in the middle")):
            builder = TraceBuilder()
            slots = [builder.malloc(size) for _ in range(count)]
            at = (count // share - 2) | 1
            for place, slot in enumerate(slots):
                if place % 2 == 0:
                    builder.free(slot)
            variant = f"{len(slots[::2])} holes of {size} bytes, a block {words} between two"
            yield _plan(scenario, variant, builder, _free(slots[at]), "A list of holes is walked to the block's place.")
        grain = request.allocator.alignment_bytes
        for more, words in (((_HOLE - 1) * size + grain * _HOLE, "a larger block"), (grain, "a slightly larger block")):
            builder = TraceBuilder()
            larger = builder.malloc(_served(request, size + more))
            slots = [builder.malloc(size) for _ in range(max(4, count - 2 * _HOLE))]
            # The first one stays in use, as a hole beside it would be merged with it, and another list be walked.
            for slot in slots[1::2]:
                builder.free(slot)
            variant = f"{len(slots[1::2])} holes of {size} bytes, {words}"
            yield _plan(scenario, variant, builder, _free(larger), "A list of holes by size is walked to its end.")


def _prefix_sizes(request: HeapRequest) -> list[int]:
    """Sizes of one power of two that share ever more leading bits, the one that shares most with all last.

    Blocks of them, freed in this order, are a path of a tree that branches by the bits of a size, or by size.
    """
    allocator, step = request.allocator, request.allocator.alignment_bytes
    overhead = allocator.own.overhead_bytes if allocator.own else 2 * step
    room = request.heap_bytes - allocator.minimum_heap_bytes - request.heap_bytes // _SPARE_SHARE
    for bits in range(request.heap_bytes.bit_length(), step.bit_length() + 1, -1):
        offsets = [step << place for place in range(bits - step.bit_length(), -1, -1)]
        sizes = [_served(request, (1 << bits) + offset - overhead) for offset in (*offsets, 0)]
        if sum(sizes) + len(sizes) * (overhead + 8 * step) <= room and 0 < sizes[-1] < sizes[0]:
            return sizes
    return []


def _prefixes(request: HeapRequest, scenario: str) -> _States:
    """Free of a block that becomes the deepest of a path in a tree of sizes: by itself, and merged with its neighbours.

    Few blocks make such a path deep.
    """
    sizes, step = _prefix_sizes(request), request.allocator.alignment_bytes
    overhead = request.allocator.own.overhead_bytes if request.allocator.own else 2 * step
    third = max(step, ((sizes[-1] + overhead) // 3 if sizes else 0) // step * step - overhead)
    last = sizes[-1] - 2 * (third + overhead) if sizes else 0
    for order, freed in product(("falling", "rising") if sizes else (), ("alone", "between free ones")):
        if freed != "alone" and min(third, last) <= 0:
            continue
        builder = TraceBuilder()
        slots = []
        for size in sizes[:-1]:
            slots.append(builder.malloc(size))
            builder.malloc(1)
        parts = [builder.malloc(size) for size in (sizes[-1:] if freed == "alone" else (third, last, third))]
        builder.malloc(1)
        for slot in (*(slots if order == "falling" else slots[::-1]), *parts[::2][: len(parts) - 1]):
            builder.free(slot)
        variant = (
            f"{len(slots)} holes of {sizes[-2]} to {sizes[0]} bytes that share leading bits, freed {order}, {freed}"
        )
        reason = "What becomes one hole is put in at the end of a path that is as long as a size has bits."
        yield _plan(scenario, variant, builder, _free(parts[len(parts) // 2]), reason)


def _large_free(request: HeapRequest, scenario: str) -> _States:
    """What free does to each byte or unit of a block it does most often to a large one."""
    for size in dict.fromkeys(_served(request, request.heap_bytes // share) for share in (2, 3, 8)):
        builder = TraceBuilder()
        slot = builder.malloc(size)
        variant = f"a block of {size} bytes, the only one"
        yield _plan(scenario, variant, builder, _free(slot), "Free may clear a block, or mark each of its units.")


def _first_and_last_free(request: HeapRequest, scenario: str) -> _States:
    size = _fitting(request)[0]
    count = _count(request, size)
    for order in ("first", "last"):
        builder = TraceBuilder()
        slots = [builder.malloc(size) for _ in range(count)]
        if order == "last":
            for slot in slots[1:]:
                builder.free(slot)
        variant = f"the {order} free of {count} blocks of {size} bytes"
        yield _plan(scenario, variant, builder, _free(slots[0]), "The first and the last find lists empty, or full.")


def _random(request: HeapRequest, scenario: str) -> _States:
    _count(request, 1)
    for plan in random_plans(request):
        builder = TraceBuilder()
        builder.operations = [plan.trace[index] for index in range(len(plan.trace))]
        builder.slot_count = plan.trace.slot_count
        found = _plan(scenario, plan.variant, builder, plan.measured, "An arbitrary state, for contrast.")
        yield found


def _again(request: HeapRequest, scenario: str) -> _States:
    """The block that was freed last is asked for again, or has just been taken."""
    is_free = scenario == "best-free"
    for size in _fitting(request):
        builder = TraceBuilder()
        slot = builder.malloc(size)
        if is_free:
            builder.free(slot)
            slot = builder.malloc(size)
        else:
            builder.malloc(size)
            builder.free(slot)
        variant = f"a block of {size} bytes " + ("that was just taken" if is_free else "was just freed")
        yield _plan(scenario, variant, builder, _free(slot) if is_free else _malloc(size), "Nothing is searched.")


# ---------------------------------------------------------------------------------------------------------- the family

_Part = Callable[[HeapRequest, str], _States]
_OF_MALLOC: tuple[_Part, ...] = (_size_sweep, _checkerboard, _near_misses, _ladder, _drained)
_OF_FREE: tuple[_Part, ...] = (_neighbours, _holes_before_free, _prefixes, _large_free, _first_and_last_free)
_PARTS: Mapping[str, tuple[_Part, ...]] = MappingProxyType(
    {
        "worst-alloc": _OF_MALLOC,
        "worst-free": _OF_FREE,
        "best-alloc": (_again,),
        "best-free": (_again,),
        "worst-failing-alloc": (_exhaustion,),
        "random": (_random,),
        "size-sweep": (_size_sweep,),
        "checkerboard": (_checkerboard, _near_misses, _ladder),
        "drained-classes": (_drained,),
        "exhaustion": (_exhaustion,),
        "neighbours-free": (_neighbours,),
    }
)


def _builder(scenario: str, parts: tuple[_Part, ...]) -> Callable[[HeapRequest], tuple[ScenarioPlan, ...]]:
    def build(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
        return tuple(plan for part in parts for plan in part(request, scenario))

    return build


def _state(guest: GuestHeap, plan: ScenarioPlan) -> Mapping[str, int | str]:
    """Where the blocks in use lie, seen from outside."""
    alignment = guest.alignment_bytes
    live = _live(plan)
    blocks = sorted((guest.slot(slot), size) for slot, size in live.items())
    blocks = [(address, size) for address, size in blocks if address]
    first, end = guest.heap.base_address, guest.heap.end_address
    return {
        "used blocks": len(blocks),
        "blocks not aligned": sum(address % alignment != 0 for address, _ in blocks),
        "blocks outside the heap": sum(address < first or address + size > end for address, size in blocks),
        "blocks that overlap": sum(address + size > other for (address, size), (other, _) in pairwise(blocks)),
    }


def _live(plan: ScenarioPlan) -> dict[int, int]:
    live: dict[int, int] = {}
    for kind, slot, size in zip(plan.trace.kinds, plan.trace.slots, plan.trace.sizes_bytes, strict=True):
        if kind:
            live.pop(slot, None)
        else:
            live[slot] = size
    return live


FAMILY = Family(
    builders=MappingProxyType({scenario: _builder(scenario, parts) for scenario, parts in _PARTS.items()}),
    walk=lambda _: (),
    state=_state,
)
