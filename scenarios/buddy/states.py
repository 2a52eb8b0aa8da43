"""Worst, best and refused states of a buddy system, binary or Fibonacci.

malloc is slowest where it searches all lists and splits the largest root down to the least block. free is slowest where
it merges up to the largest root, or a little less far: what it gives up in merges it may gain in every single one, if
the buddies stand in the middle of their lists and each removal touches two more blocks. To have those, some memory must
be left for blocks that do not merge. How much is best depends on the target's caches: every choice is a candidate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import product
from types import MappingProxyType

from wcet_probe.model.scenario import Block, InitialCache, Operation, OperationKind, ScenarioPlan
from wcet_probe.scenarios.buddy.heap import Buddies, Carving, Region, Snapshot, Spine, walk
from wcet_probe.scenarios.cache_sets import way_bytes
from wcet_probe.scenarios.families import Family, GuestHeap, HeapRequest
from wcet_probe.scenarios.random_workload import random_plans
from wcet_probe.scenarios.traces import TraceBuilder

_CHOICES = ((0, False), (0, True), (1, True), (2, True))
"""Levels below the largest root at which merging ends; whether the lists get other blocks beside the buddies."""

_TURNS = 5
"""On how many levels, from the least on, the way to the freed leaf is tried to turn."""

_HEAD_BYTES = 4

_CROWDED = (-1, -2, 0)
"""Lines of a way that the call comes back to: the stack ends with one, the control structure and the heap begin one."""

_CROWD = 4
"""Lines that evict what was in their set before, of four ways."""

Make = Callable[[Mapping[str, int]], Buddies]


def buddy_family(make: Make) -> Family:
    """The scenarios of the buddy system that ``make`` makes of build parameters."""

    def of(guest: GuestHeap) -> Buddies:
        return make(guest.values)

    def walk_(guest: GuestHeap) -> tuple[Block, ...]:
        return walk(of(guest), guest)

    def state(guest: GuestHeap, plan: ScenarioPlan) -> Mapping[str, int | str]:
        return _state(of(guest), guest, plan)

    return Family(
        builders=MappingProxyType(
            {
                "worst-alloc": lambda request: _worst_alloc(make(request.allocator.values), request),
                "worst-free": lambda request: _worst_free(make(request.allocator.values), request),
                "best-alloc": lambda request: _best_alloc(make(request.allocator.values), request),
                "best-free": lambda request: _best_free(make(request.allocator.values), request),
                "worst-failing-alloc": lambda request: _worst_failing(make(request.allocator.values), request),
                "paper-free": lambda request: _paper_free(make(request.allocator.values), request),
                "random": random_plans,
            }
        ),
        walk=walk_,
        state=state,
    )


# --------------------------------------------------------------------------------------------------------- allocation


def _worst_alloc(buddies: Buddies, request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    return tuple(_split_plan(buddies, request, wanted) for wanted in buddies.least_requests)


def _split_plan(buddies: Buddies, request: HeapRequest, wanted: int) -> ScenarioPlan:
    """The largest root is free; so are blocks below the request's class elsewhere: the last push meets one."""
    carving = Carving(buddies, request.heap_bytes)
    root, *others = carving.roots
    chains = carving.two_chains(others)[0] if wanted else []
    below = [part for chain in chains for part in chain.parts[:wanted]]
    carving.free(*below, root.slot)
    count, size = buddies.splits(root.class_, wanted), buddies.payload(wanted)
    return ScenarioPlan(
        scenario="worst-alloc",
        variant=f"request of class {wanted}, {len(below)} smaller blocks free",
        trace=carving.trace(),
        measured=Operation(OperationKind.MALLOC, 0, size),
        initial_cache=InitialCache.DIRTY,
        state=(
            f"the largest root, {buddies.size(root.class_)} bytes, is free and all else from the request's class on in "
            f"use; malloc({size}) splits it {count} times"
        ),
        why=(
            "The request is of one of the least classes: all lists up to the largest root's are looked at, and empty.",
            "The largest root is split down to the request; every split files a new free block.",
            "P02's wholly free heap is this state only if it is a single block: a smaller root is taken first.",
        ),
        prediction={
            "splits": count,
            "lists searched": root.class_ - wanted + 1,
            "free blocks": 1 + len(below),
        },
        driver=buddies.splits_form(wanted),
        driver_value=count,
    )


def _best_alloc(buddies: Buddies, request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    carving = Carving(buddies, request.heap_bytes)
    region = next(r for r in reversed(carving.roots) if r.class_ >= buddies.step)
    carving.free(carving.spine(region).parts[0])
    size = buddies.payload(0)
    return (
        ScenarioPlan(
            scenario="best-alloc",
            variant="the block found is its list's only one",
            trace=carving.trace(),
            measured=Operation(OperationKind.MALLOC, 0, size),
            initial_cache=InitialCache.WARM,
            state=f"the list of the least class holds one block; malloc({size}) takes it",
            why=("The request is of the least class, whose list holds a block: no search, no split.",),
            prediction={"splits": 0, "lists searched": 1, "free blocks": 1},
        ),
    )


def _worst_failing(buddies: Buddies, request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    plans = []
    top = buddies.roots(request.heap_bytes)[0]
    for wanted in (0, top // 2, top):
        carving = Carving(buddies, request.heap_bytes)
        size = buddies.payload(wanted)
        plans.append(
            ScenarioPlan(
                scenario="worst-failing-alloc",
                variant=f"request of class {wanted}",
                trace=carving.trace(),
                measured=Operation(OperationKind.MALLOC, 0, size),
                initial_cache=InitialCache.DIRTY,
                state=f"all memory is in use; malloc({size}) is refused after {top - wanted + 1} empty lists",
                why=("Every class is either passed by in rounding the request or has an empty list to be looked at.",),
                prediction={"free blocks": 0, "lists searched": top - wanted + 1},
                driver="lists searched = class of the largest root - class of the request + 1",
                driver_value=top - wanted + 1,
                refused=True,
            )
        )
    return tuple(plans)


# ------------------------------------------------------------------------------------------------------- deallocation


def _worst_free(buddies: Buddies, request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    plans: dict[str, ScenarioPlan] = {}
    for (drop, chained), other_leaf, apart, swapped in product(_CHOICES, (False, True), (None, *_Apart), (False, True)):
        ways = [_Way(drop, other_leaf=other_leaf)]
        line = request.data_line_bytes
        if chained and drop < 2 and line and not apart and not swapped:
            turns = () if drop or buddies.step > 1 else range(1, _TURNS)
            top = buddies.roots(request.heap_bytes)[0] - drop
            heads = [(0,)] if buddies.step == 1 else _heads(top, line)
            each = product((None, *turns), ((), *heads))
            ways = [_Way(drop, other_leaf=other_leaf, turn=turn, at_head=classes) for turn, classes in each]
        for way in ways:
            plan = _merge_plan(buddies, request, way, chained=chained, apart=apart, swapped=swapped)
            plans.setdefault(plan.variant, plan)
    return tuple(plans.values())


class _Apart(Enum):
    """What the least roots are for, which are blocks in lines of their own."""

    CHAINS = "least ones apart"
    """They take the places of blocks of chains that are in the lines of others."""
    BETWEEN = "one between the first two"
    """One stands between the first two buddies, where they are in one list."""
    LEAF = "one between the first two, a leaf before them"
    """Likewise, and the chain before them has its leaf in that list, in a line without another of its blocks."""


@dataclass(frozen=True, slots=True)
class _Way:
    """Which block is freed.

    Attributes:
        drop: levels below the largest root at which merging ends.
        other_leaf: whether it is the last leaf of its region, or the deepest one's buddy.
        turn: the class of the one buddy that lies on the other side of the way than all others; None for no such one.
            The lines of the leaf and of its first buddies are then neither the region's first nor its last.
        at_head: classes of buddies that are the first of their lists, with both others behind them: their removal
            writes to the list's head. Where one counter serves the whole cache, that is in a line that was evicted;
            and of each line of heads one is not in the cache yet, so that it costs as much as a block does and the
            longer way through the code on top.
    """

    drop: int
    other_leaf: bool
    turn: int | None = None
    at_head: tuple[int, ...] = ()


def _heads(top: int, line: int) -> Iterator[tuple[int, ...]]:
    """Classes whose heads are words of different lines, none of them that of the head of ``top``: two choices."""
    heads = line // _HEAD_BYTES
    for first in (1, 1 + heads // 2):
        yield tuple(range(first, top - heads + 1, heads))


def _merge_plan(
    buddies: Buddies, request: HeapRequest, way: _Way, *, chained: bool, apart: _Apart | None, swapped: bool
) -> ScenarioPlan:
    """Merges up to the left descendant of the largest root that lies ``way.drop`` levels below it.

    ``swapped``: the longer chain stands before the buddies and the shorter one behind them.
    """
    drop, other_leaf = way.drop, way.other_leaf
    carving = Carving(buddies, request.heap_bytes)
    host, *regions = carving.roots
    for _ in range(drop):
        host, sibling = carving.split(host)
        regions.append(sibling)
    chains, rest = carving.two_chains(regions) if chained else ([], [])
    together = chains = chains[:: -1 if swapped else 1]
    if apart is _Apart.CHAINS:
        chains = _apart(carving, chains, list(carving.roots[1:]), request.data_line_bytes)
    moved = chains != together
    chains = _crowd(carving, chains, rest, way_bytes(request), request.data_line_bytes)
    spine = _host_spine(carving, host, way)
    behind, before = (*chains, None, None)[:2]
    own = tuple(enumerate(spine.parts))
    if other_leaf and buddies.step > 1:
        own = ((1, spine.parts[0]), *own[1:])  # the leaf's buddy is of the larger of the two least classes
    roots = [(root.class_, root.slot) for root in carving.roots[1:] if root.class_ == own[0][0] == own[1][0]]
    between = roots[:1] if apart in (_Apart.BETWEEN, _Apart.LEAF) else []
    with_leaf = bool(between) and apart is _Apart.LEAF
    first = _parts(before, with_leaf=with_leaf)
    passed = [part for part in first if part[0] in way.at_head]
    left = [part for part in first if part not in passed]
    freed = [*_parts(behind), *passed, own[0], *between, *own[1:], *left]
    carving.free(*(slot for _, slot in freed))
    neighbours = _neighbours(freed, own)
    count, middle = len(neighbours), neighbours.count(2)
    how = [
        "the other of the two leaves" if other_leaf else "the deepest leaf",
        f"{count} merges",
        f"{sum(neighbours)} neighbours in lists",
        *([apart.value] if apart and (moved or between) else []),
        *(["the longer chain before"] if swapped and chains else []),
        *([f"the buddy of class {way.turn} across"] if way.turn is not None else []),
        *([_at_head(passed)] if passed else []),
    ]
    return ScenarioPlan(
        scenario="worst-free",
        variant=", ".join(how),
        trace=carving.trace(),
        measured=Operation(OperationKind.FREE, spine.leaf),
        initial_cache=InitialCache.DIRTY,
        state=(
            f"a block of {buddies.minimum_bytes} bytes with a free buddy on every level up to "
            f"{buddies.size(host.class_)} bytes; {middle} of {count} buddies stand between two others in their lists"
        ),
        why=(
            "The block is a least one, and all buddies on its way up are free: each leaves its list and is merged.",
            "Blocks elsewhere, kept apart by used ones, stand beside buddies in the lists: a removal writes to them.",
            "P02's heap, in which only the freed block is in use, has every buddy alone in its list: see paper-free.",
        ),
        prediction={
            "merges": count,
            "buddies mid-list": middle,
            "buddies' neighbours": sum(neighbours),
            "free blocks": len(freed),
        },
        driver=buddies.merges_form.format(drop=f" - {drop}" if drop else ""),
        driver_value=count,
    )


def _at_head(parts: Sequence[tuple[int, int]]) -> str:
    """In words, which buddies are the first of their lists."""
    classes = [class_ for class_, _ in parts]
    return "the least at its list's head" if classes == [0] else f"those of classes {classes} at their lists' heads"


def _apart(carving: Carving, chains: list[Spine], roots: list[Region], line: int | None) -> list[Spine]:
    """The chains with blocks that share a line with others replaced by ``roots`` as small, as far as there are any.

    The first block of a chain's region may be in the line of the buddy that is tested last, and not merged.
    """
    if line is None:
        return chains
    parts = [list(chain.parts) for chain in chains]
    for class_ in range(max(map(len, parts), default=0)):
        if carving.buddies.size(class_) >= line:
            break
        for own in parts:
            whole = next((root for root in roots if root.class_ == class_), None)
            if class_ < len(own) and whole:
                roots.remove(whole)
                own[class_] = whole.slot
    return [Spine(chain.leaf, tuple(own)) for chain, own in zip(chains, parts, strict=True)]


def _crowd(
    carving: Carving, chains: list[Spine], regions: list[Region], way: int | None, line: int | None
) -> list[Spine]:
    """The chains with small blocks replaced by others in ``regions``, each in a line of its own.

    They are in the sets of what the call touches at its beginning and again at its end, and evict it.
    """
    if way is None or line is None:
        return chains
    wanted = [number * line % way for number in _CROWDED for _ in range(_CROWD)]
    parts = [list(chain.parts) for chain in chains]
    for class_ in range(1, max(map(len, parts), default=0)):
        for own in parts:
            if wanted and class_ < len(own):
                slot = carving.place(regions, class_, wanted[0], way)
                if slot is not None:
                    own[class_] = slot
                    del wanted[0]
    return [Spine(chain.leaf, tuple(own)) for chain, own in zip(chains, parts, strict=True)]


def _host_spine(carving: Carving, host: Region, way: _Way) -> Spine:
    """The spine whose leaf is to be freed.

    In the binary system the other leaf is the last block of the region instead of the first: every merge then moves the
    block to its buddy's address. In the Fibonacci system it is the deepest leaf's own buddy, a right child.
    """
    if carving.buddies.step == 1:
        return carving.spine(host, leaf_first=not way.other_leaf, turn=way.turn)
    spine = carving.spine(host)
    return Spine(spine.parts[0], (spine.leaf, *spine.parts[1:])) if way.other_leaf else spine


def _parts(chain: Spine | None, *, with_leaf: bool = False) -> Sequence[tuple[int, int]]:
    """Class and slot of the blocks of a chain; its leaf, in the Fibonacci system, instead of its two least ones."""
    parts = tuple(enumerate(chain.parts)) if chain else ()
    return ((1, chain.leaf), *parts[2:]) if chain and with_leaf else parts


def _neighbours(freed: Sequence[tuple[int, int]], own: Sequence[tuple[int, int]]) -> list[int]:
    """Blocks beside each of ``own`` in its list when it leaves it, in this order; each is a class and a slot."""
    left, counts = list(freed), []
    for class_, slot in own:
        in_list = [other for of, other in left if of == class_]
        counts.append((in_list[0] != slot) + (in_list[-1] != slot))
        left.remove((class_, slot))
    return counts


def _paper_free(buddies: Buddies, request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    carving = Carving(buddies, request.heap_bytes)
    root = carving.roots[0]
    carving.free(root.slot)
    slot = carving.builder.malloc(buddies.payload(0))
    count = buddies.splits(root.class_, 0)
    return (
        ScenarioPlan(
            scenario="paper-free",
            variant="the only block of the largest root",
            trace=carving.trace(),
            measured=Operation(OperationKind.FREE, slot),
            initial_cache=InitialCache.DIRTY,
            state=(
                f"in the largest root, {buddies.size(root.class_)} bytes, one block of {buddies.minimum_bytes} bytes "
                f"is in use, where malloc put it; free merges it {count} times"
            ),
            why=(
                "P02 §3.1.2: a block of the smallest possible size is freed where only this block is allocated.",
                "Every buddy is alone in its list. Smaller roots are in use: else malloc would cut one of them.",
            ),
            prediction={"merges": count, "buddies mid-list": 0, "free blocks": count},
            driver="merges = splits of malloc for the same block",
            driver_value=count,
        ),
    )


def _best_free(buddies: Buddies, request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    last_root = buddies.payload(buddies.roots(request.heap_bytes)[-1])
    return (_unmerged_plan("the last root", [last_root]), _unmerged_plan("the first of two blocks", [1, 1]))


def _unmerged_plan(variant: str, sizes: list[int]) -> ScenarioPlan:
    builder = TraceBuilder()
    slots = [builder.malloc(size) for size in sizes]
    return ScenarioPlan(
        scenario="best-free",
        variant=variant,
        trace=builder.trace(),
        measured=Operation(OperationKind.FREE, slots[0]),
        initial_cache=InitialCache.WARM,
        state=f"{len(sizes)} block(s) in use in a fresh heap; free files {variant}",
        why=("The buddy is in use or does not exist: nothing is merged.",),
        prediction={"merges": 0, "used blocks": len(sizes)},
    )


# -------------------------------------------------------------------------------------------------------------- facts


def _state(buddies: Buddies, guest: GuestHeap, plan: ScenarioPlan) -> Mapping[str, int | str]:
    snapshot = Snapshot.of(buddies, guest)
    free = [is_free for _, _, is_free in snapshot.blocks()]
    facts: dict[str, int | str] = {"free blocks": sum(free), "used blocks": len(free) - sum(free)}
    if plan.measured.kind is OperationKind.MALLOC:
        wanted = buddies.class_of(plan.measured.size_bytes)
        searched, found = snapshot.search(wanted)
        facts["lists searched"] = searched
        facts["splits"] = 0 if found is None else buddies.splits(found, wanted)
    else:
        offset = guest.slot(plan.measured.slot) - buddies.header_bytes - snapshot.base_address
        neighbours = snapshot.merges(offset)
        facts["merges"] = len(neighbours)
        facts["buddies mid-list"] = neighbours.count(2)
        facts["buddies' neighbours"] = sum(neighbours)
    return facts
