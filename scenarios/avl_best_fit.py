"""Worst, best and random states of best fit over an AVL tree.

An allocation is a search, a removal and, where the block found is larger, an insertion of what is left; a deallocation
is two removals and an insertion at most. Each goes the same way through the tree twice. The way is longest in the
sparsest tree of a height: one subtree of every node is a level lower than the other, a Fibonacci tree. In it a removal
on the lower side unbalances every node above: each is rotated, and what the rotations leave behind along the way is
balanced, so that the insertion that follows goes down twice as many nodes and changes every one of them. A removal on
the taller side goes down as many nodes and balances each without a rotation: that takes more instructions and touches
fewer blocks.

The state is built level by level: free blocks enter the tree in breadth-first order, with used ones (fences) between
them, and no rotation ever happens while it is set up.

On a core with a cache the fences also bring the nodes that are visited and rotated into the same two sets, where they
evict each other: the second way misses again on what the first has read. A small heap has no room for that: there they
are brought into some sets more, where the highest tree that holds them costs most, and at least into two lines each.

Sources: C06 table 1 (1.44 log2 is the height of such a tree); the state itself is not in the papers.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from wcet_probe.errors import HeapTooSmallError
from wcet_probe.model.scenario import InitialCache, Operation, OperationKind, ScenarioPlan, Trace
from wcet_probe.model.target import MemoryRange
from wcet_probe.scenarios.avl_shapes import (
    behind,
    joined,
    level_order,
    rotated_positions,
    size_of,
    sparse,
    sparsest_nodes,
    spine,
)
from wcet_probe.scenarios.cache_sets import fences, way_bytes
from wcet_probe.scenarios.families import Blocks, Family, GuestHeap, HeapRequest, chained_blocks
from wcet_probe.scenarios.random_workload import random_plans

HEADER_BYTES = 8
_USED, _BALANCED, _TALLER = 0, 1, 2
_STATE_MASK = 3

_DRIVER = "tree height = largest h with 2M(F(h + 2) - 1) + c <= H, F Fibonacci's numbers, c what the larger blocks add"
_DRIVER_APART = f"{_DRIVER}, and the fences that keep nodes apart"
_MODULI = tuple(1 << bits for bits in range(4, 14))
"""Distances of nodes in bytes that states are looked at for."""
_STACK_BYTES = 192
"""From what a call notes of its way down the tree to the end of the stack, which is a multiple of each of `_MODULI`."""
_LEVELS_FOR_ROOM = 6
"""How much lower a tree is tried whose nodes are moved apart."""
_LEAST_APART = 6
"""Height from which on free touches no block at the start of the heap, where none can be moved."""
_MOST_BYTES_FOR_ALL_KINDS = 1 << 20
"""Up to this heap single rotations are tried too: from 1 to 256 KiB they are never dearer."""

_WHY_SPARSEST = (
    "The tree is the sparsest of its height: no heap of this size holds a higher one in blocks of the least size."
)
_WHY_WORST_ALLOC = (
    _WHY_SPARSEST,
    (
        "The smallest block that fits is at the end of the path that goes to the lower side at every node: removing it "
        "unbalances every node on the way, and each is rotated, at best twice."
    ),
    (
        "The block is larger than the request: what is left is inserted where the rotations have left every node "
        "balanced, so that all of them change."
    ),
)
_WHY_LONG_ALLOC = (
    _WHY_SPARSEST,
    (
        "The smallest block that fits is at the end of a longest path: removing it lowers each subtree on the way, and "
        "leaves every node balanced without a rotation."
    ),
    "The block is larger than the request: what is left is inserted there, so that all of them change once more.",
)
_WHY_WORST_FREE = (
    "Both neighbours are free: two blocks leave the tree, one enters it.",
    (
        "The neighbours are in different subtrees of the root, each at the end of a path to the lower sides: both "
        "removals rotate each node on their way, and neither mends the other's."
    ),
    "The merged block is the largest: it goes down the way that the first removal balanced, and changes every node.",
)
_WHY_LONG_FREE = (
    _WHY_WORST_FREE[0],
    (
        "The neighbours are in different subtrees of the root, each at the end of a longest path: both removals lower "
        "each subtree on their way, and leave every node balanced without a rotation."
    ),
    _WHY_WORST_FREE[2],
)
_WHY_FAILING = ("Every free block is too small: the way goes right to the end of the longest path, and finds nothing.",)


# ---------------------------------------------------------------------------------------------------------------- heaps


@dataclass(frozen=True, slots=True)
class _Sizes:
    """Sizes of blocks, headers included."""

    heap: int
    minimum: int
    rest: int
    unit: int

    def larger(self, size: int) -> int:
        """The next size above ``size``."""
        return size + self.unit


def _sizes(request: HeapRequest) -> _Sizes:
    values = request.allocator.values
    minimum = values["minimum-block"]
    return _Sizes(request.heap_bytes, minimum, max(minimum, values["split-threshold"]), values["alignment"])


def _highest(sizes: _Sizes, extra: Callable[[int], int], least: int) -> int:
    """Height of the highest sparsest tree of least blocks that the heap holds, with fences and a last used block.

    ``extra`` tells how many bytes the blocks that must be larger add to a tree of a height.

    Raises:
        HeapTooSmallError: it is below ``least``.
    """

    def needed(height: int) -> int:
        return 2 * sizes.minimum * sparsest_nodes(height) + extra(height) + sizes.rest + HEADER_BYTES

    if needed(least) > sizes.heap:
        message = (
            f"a heap of {sizes.heap} bytes cannot hold the scenario's state; give at least {needed(least)} with --heap."
        )
        raise HeapTooSmallError(message)
    height = least
    while needed(height + 1) <= sizes.heap:
        height += 1
    return height


def _trace(
    sizes: _Sizes, free_sizes: list[int], order: Iterator[int], moved: Collection[int] = (), modulus: int = 1
) -> Trace:
    """Free blocks of ``free_sizes`` in address order, freed in ``order``, each with a fence behind it; no more is free.

    Block i is in slot 2i, the fence behind it in slot 2i + 1. The headers of the blocks ``moved`` end where a line
    does, at addresses that are congruent modulo ``modulus`` bytes, to those of the call's stack too: they evict each
    other.

    Raises:
        HeapTooSmallError: the heap has no room to move them.
    """
    between = list(
        fences(free_sizes, sizes.minimum, moved, residue=(-_STACK_BYTES - HEADER_BYTES) % modulus, modulus=modulus)
    )
    rest = sizes.heap - HEADER_BYTES - sum(free_sizes) - sum(between)
    if rest < sizes.rest:
        message = f"a heap of {sizes.heap} bytes cannot hold the scenario's state; give a larger --heap."
        raise HeapTooSmallError(message)
    bodies = [b - HEADER_BYTES for pair in zip(free_sizes, between, strict=True) for b in pair]
    bodies.append(rest - HEADER_BYTES)
    freed = [2 * at for at in order]
    count = len(bodies)
    return Trace(
        kinds=(0,) * count + (1,) * len(freed),
        slots=(*range(count), *freed),
        sizes_bytes=(*bodies, *((0,) * len(freed))),
        cache_sets=(0,) * (count + len(freed)),
        slot_count=count,
    )


def _apart(modulus: int) -> str:
    return f", nodes {modulus} bytes apart" if modulus > 1 else ""


# ---------------------------------------------------------------------------------------------------------------- worst


def _worst_alloc(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    return (
        *(_alloc_plan(request, kind) for kind in ("double", *_other_kinds(request))),
        *_alloc_plans_in_a_set(request),
    )


def _alloc_plans_in_a_set(request: HeapRequest) -> Iterator[ScenarioPlan]:
    """The same with nodes that evict each other: the highest tree that the heap has room for."""
    for modulus in _moduli(request):
        for lower in range(_LEVELS_FOR_ROOM):
            try:
                yield _alloc_plan(request, "double", lower=lower, modulus=modulus)
            except HeapTooSmallError:
                continue
            break


def _moduli(request: HeapRequest) -> tuple[int, ...]:
    """Distances of nodes in bytes: of one set and, where the heap is small and room is dear, of ever more sets.

    A line is the least: it brings each node into two lines, for 24 bytes in all.
    """
    way = way_bytes(request)
    if way is None:
        return ()
    return tuple(way >> halvings for halvings in range(8 if request.heap_bytes <= _MOST_BYTES_FOR_ALL_KINDS else 1))


def _other_kinds(request: HeapRequest) -> tuple[str, ...]:
    return ("long", "single") if request.heap_bytes <= _MOST_BYTES_FOR_ALL_KINDS else ("long",)


def _alloc_plan(request: HeapRequest, kind: str, *, lower: int = 0, modulus: int = 1) -> ScenarioPlan:
    """``lower`` levels lower than the highest tree; with a ``modulus`` the nodes touched are moved, see `_trace`."""
    sizes = _sizes(request)
    cut = sizes.larger(sizes.minimum)
    found = cut + sizes.rest
    height = _highest(sizes, lambda h: (1 + behind(h, kind)) * (found - sizes.minimum), 4 + lower) - lower
    moved = set(rotated_positions(height, kind)) if modulus > 1 else set[int]()
    shape = spine(height, kind)
    count, large = size_of(shape), 1 + behind(height, kind)
    down = height if kind == "long" else (height + 2) // 2
    rotated = 0 if kind == "long" else (height - 1) // 2
    return ScenarioPlan(
        scenario="worst-alloc",
        variant=(f"{kind} rotations" if rotated else "long way, no rotation") + _apart(modulus),
        trace=_trace(sizes, [sizes.minimum] * (count - large) + [found] * large, level_order(shape), moved, modulus),
        measured=Operation(OperationKind.MALLOC, 0, cut - HEADER_BYTES),
        initial_cache=InitialCache.DIRTY,
        state=(
            f"{count} free blocks, all but {large} of {sizes.minimum} bytes, in a tree of height {height}; "
            f"malloc({cut - HEADER_BYTES}) removes one of {found} bytes, rotates {rotated} nodes and inserts "
            f"{sizes.rest} bytes"
        ),
        why=_WHY_LONG_ALLOC if kind == "long" else _WHY_WORST_ALLOC,
        prediction={
            "tree height": height,
            "free blocks": count,
            "nodes on the way down": down,
            "nodes to be rotated": rotated,
            "bytes of the block found": found,
            **({f"nodes on the way down, {modulus} bytes apart": down} if moved else {}),
        },
        driver=_DRIVER_APART if moved else _DRIVER,
        driver_value=height,
    )


def _worst_free(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    sizes = _sizes(request)
    larger = sizes.larger(sizes.minimum)
    height = _highest(sizes, lambda _: 3 * (larger - sizes.minimum), 4)
    room = (sizes.heap - HEADER_BYTES - sizes.rest - 3 * (larger - sizes.minimum)) // (2 * sizes.minimum)
    subtrees = [(height - 2, height - 1), (height - 1, height - 2), (height - 1, height - 1)]
    if 2 * sparsest_nodes(height - 1) + 1 > room:
        subtrees.pop()
    return (
        *(_free_plan(sizes, "double", heights) for heights in subtrees),
        *(_free_plan(sizes, kind, subtrees[0]) for kind in _other_kinds(request)),
        *(plan for modulus in _moduli(request) for plan in _free_plans_in_a_set(sizes, modulus, height)),
    )


def _free_plans_in_a_set(sizes: _Sizes, modulus: int, height: int) -> Iterator[ScenarioPlan]:
    """The same with nodes that evict each other, in the highest trees that the heap has room for."""
    for top in range(height, max(_LEAST_APART - 1, height - _LEVELS_FOR_ROOM), -1):
        found = 0
        for heights in ((top - 1, top - 1), (top - 2, top - 1), (top - 1, top - 2)):
            try:
                yield _free_plan(sizes, "double", heights, modulus)
                found += 1
            except HeapTooSmallError:
                continue
        if found:
            return


def _free_plan(sizes: _Sizes, kind: str, heights: tuple[int, int], modulus: int = 1) -> ScenarioPlan:
    """The neighbours are at the ends of the paths in the two subtrees of the root, which are of ``heights``.

    With a ``modulus`` the nodes that are touched are moved, see `_trace`.
    """
    left, right = (spine(h, kind) for h in heights)
    shape = joined(left, right)
    count, height = shape.size, 1 + max(heights)
    before = size_of(left) - 1 - behind(heights[0], kind)
    after = count - 1 - behind(heights[1], kind)
    # In address order the right neighbour follows the left one; in the tree it stands far behind, because it is larger.
    place = [*range(before + 1), *range(before + 2, after + 1), before + 1, *range(after + 1, count)]
    larger = sizes.larger(sizes.minimum)
    free_sizes = [sizes.minimum] * after + [larger] * (count - after)
    free_sizes[before + 1], free_sizes[after] = larger, free_sizes[before + 1]
    rotated = [0 if kind == "long" else (h - 1) // 2 for h in heights]
    moved = set[int]()
    if modulus > 1:
        behind_root = size_of(left) + 1
        moved = {place[at] for at in rotated_positions(heights[0], kind)} | {place[size_of(left)]}
        moved |= {place[behind_root + at] for at in rotated_positions(heights[1], kind)}
    return ScenarioPlan(
        scenario="worst-free",
        variant=f"{kind} {'ways' if kind == 'long' else 'rotations'}, subtrees of height {heights[0]} and {heights[1]}"
        + _apart(modulus),
        trace=_trace(sizes, free_sizes, (place[at] for at in level_order(shape)), moved, modulus),
        measured=Operation(OperationKind.FREE, 2 * before + 1),
        initial_cache=InitialCache.DIRTY,
        state=(
            f"a used block between free ones of {sizes.minimum} and {larger} bytes, far apart in a tree of height "
            f"{height} with {count} nodes; free removes both, rotates about {sum(rotated)} nodes and inserts the "
            "merged block"
        ),
        why=_WHY_LONG_FREE if kind == "long" else _WHY_WORST_FREE,
        prediction={
            "tree height": height,
            "free blocks": count,
            "rotated, left neighbour": rotated[0],
            "rotated, right neighbour": rotated[1],
            "bytes of the left neighbour": sizes.minimum,
            "bytes of the right neighbour": larger,
            **({f"nodes on the ways down, {modulus} bytes apart": sum((h + 2) // 2 for h in heights)} if moved else {}),
        },
        driver=_DRIVER_APART if moved else _DRIVER,
        driver_value=height,
    )


def _worst_failing_alloc(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    sizes = _sizes(request)
    height = _highest(sizes, lambda _: 0, 1)
    shape = sparse(height)
    count = size_of(shape)
    size = sizes.larger(sizes.minimum) - HEADER_BYTES
    return (
        ScenarioPlan(
            scenario="worst-failing-alloc",
            variant="long way",
            trace=_trace(sizes, [sizes.minimum] * count, level_order(shape)),
            measured=Operation(OperationKind.MALLOC, 0, size),
            initial_cache=InitialCache.DIRTY,
            state=(f"{count} free blocks of {sizes.minimum} bytes in a tree of height {height}; malloc({size}) fails"),
            why=_WHY_FAILING,
            prediction={"tree height": height, "free blocks": count, "nodes on the way down": height},
            driver=_DRIVER,
            driver_value=height,
            refused=True,
        ),
    )


# ----------------------------------------------------------------------------------------------------------------- best


def _best_alloc(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    sizes = _sizes(request)
    _highest(sizes, lambda _: 0, 1)
    size = sizes.minimum - HEADER_BYTES
    return (
        ScenarioPlan(
            scenario="best-alloc",
            variant="the only free block",
            trace=_trace(sizes, [sizes.minimum], iter((0,))),
            measured=Operation(OperationKind.MALLOC, 0, size),
            initial_cache=InitialCache.WARM,
            state=f"one free block of {sizes.minimum} bytes; malloc({size}) takes it whole",
            why=("The tree is a single node, which fits exactly: one step down, none up, nothing is inserted.",),
            prediction={"tree height": 1, "free blocks": 1, "nodes on the way down": 1},
        ),
    )


def _best_free(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    sizes = _sizes(request)
    _highest(sizes, lambda _: 0, 1)
    return (
        ScenarioPlan(
            scenario="best-free",
            variant="no free block",
            trace=_trace(sizes, [sizes.minimum], iter(())),
            measured=Operation(OperationKind.FREE, 0),
            initial_cache=InitialCache.WARM,
            state="a used block between used ones, and no free block; free makes it the root of the tree",
            why=("No neighbour is free and the tree is empty: one insertion, without a step.",),
            prediction={"tree height": 0, "free blocks": 0, "used blocks": 3},
        ),
    )


# ------------------------------------------------------------------------------------------------ the guest's own state


@dataclass(frozen=True, slots=True)
class _Words:
    """The guest's heap as words, and the root of its tree."""

    words: array[int]
    base: int
    root: int

    def at(self, address: int) -> int:
        return self.words[(address - self.base) >> 2]

    def size(self, block: int) -> int:
        return self.at(block + 4) & ~_STATE_MASK

    def state(self, block: int) -> int:
        return self.at(block + 4) & _STATE_MASK

    def child(self, block: int, side: int) -> int:
        return self.at(block + 8 + 4 * side)


def _words(guest: GuestHeap) -> _Words:
    control, heap = guest.symbols["avl_best_fit_control"], guest.heap
    words = array("I", guest.read(heap.base_address, heap.size_bytes // 4 * 4))
    # control.first is the heap's base: read in the guest's byte order and in the host's, it tells both apart.
    if int.from_bytes(guest.read(control + 16, 4), sys.byteorder) != heap.base_address:
        words.byteswap()
    return _Words(words, heap.base_address, guest.read_word(control + 8))


def walk(guest: GuestHeap) -> Blocks:
    """The blocks of the guest's heap in address order, the sentinel left out."""
    return _blocks(guest, _words(guest))


def _blocks(guest: GuestHeap, heap: _Words) -> Blocks:
    extent = MemoryRange(heap.base, guest.heap.size_bytes - HEADER_BYTES)
    states = {*range(_STATE_MASK + 1)} - {_USED}
    return chained_blocks(
        heap.words, heap.base, extent, header_bytes=HEADER_BYTES, flags=_STATE_MASK, free=states, tag_word=1
    )


def _tree_height(heap: _Words) -> int:
    """Length of a longest path: along the taller sides."""
    height, node = 0, heap.root
    while node:
        height += 1
        node = heap.child(node, int(heap.state(node) == _TALLER + 1))
    return height


def _way(heap: _Words, key: tuple[int, int]) -> tuple[list[tuple[int, int]], int]:
    """Nodes and sides on the way down to ``key``, and how many of them lead to the least node not below it."""
    way, found, node = [], 0, heap.root
    while node:
        side = int((heap.size(node), node) < key)
        way.append((node, side))
        if not side:
            found = len(way)
        node = heap.child(node, side)
    return way, found


def _rotated(heap: _Words, way: list[tuple[int, int]], *, above: int = 0) -> int:
    """Nodes that a removal at the end of ``way`` rotates, those below its first ``above`` nodes only.

    The last node of the way leaves its place: it is the one removed, or it takes the place of that one.
    """
    rotated = 0
    for node, side in reversed(way[above : len(way) - 1]):
        match heap.state(node):
            case state if state == _TALLER + side:
                pass
            case state if state == _BALANCED:
                return rotated
            case _:
                rotated += 1
                if heap.state(heap.child(node, 1 - side)) == _BALANCED:
                    return rotated
    return rotated


def _state(guest: GuestHeap, plan: ScenarioPlan) -> Mapping[str, int | str]:
    heap = _words(guest)
    blocks = _blocks(guest, heap)
    facts: dict[str, int | str] = {
        "tree height": _tree_height(heap),
        "free blocks": blocks.free_blocks,
        "used blocks": blocks.used_blocks,
    }
    if plan.measured.kind is OperationKind.MALLOC:
        return facts | _alloc_facts(guest, heap, plan)
    return facts | (_free_facts(guest, heap, blocks, plan) if plan.scenario == "worst-free" else {})


def _alloc_facts(guest: GuestHeap, heap: _Words, plan: ScenarioPlan) -> dict[str, int | str]:
    unit = guest.values["alignment"]
    size = max(guest.values["minimum-block"], -(-(plan.measured.size_bytes + HEADER_BYTES) // unit) * unit)
    way, found = _way(heap, (size, 0))
    facts: dict[str, int | str] = {"nodes on the way down": len(way)}
    facts |= {f"nodes on the way down, {m} bytes apart": _apart_on(guest, way, m) for m in _MODULI}
    if found:
        facts |= {
            "nodes to be rotated": _rotated(heap, way),
            "bytes of the block found": heap.size(way[found - 1][0]),
        }
    return facts


def _free_facts(guest: GuestHeap, heap: _Words, blocks: Blocks, plan: ScenarioPlan) -> dict[str, int | str]:
    own = blocks.addresses.index(guest.slot(plan.measured.slot) - HEADER_BYTES)
    facts: dict[str, int | str] = {}
    ways = list[tuple[int, int]]()
    for which, at in (("left", own - 1), ("right", own + 1)):
        size, free = blocks.sizes_bytes[at], blocks.free[at]
        facts[f"bytes of the {which} neighbour"] = size if free else 0
        way, _ = _way(heap, (size, blocks.addresses[at]))
        facts[f"rotated, {which} neighbour"] = _rotated(heap, way, above=1) if free else 0
        ways += way[1:]
    return facts | {f"nodes on the ways down, {m} bytes apart": _apart_on(guest, ways, m) for m in _MODULI}


def _apart_on(guest: GuestHeap, way: list[tuple[int, int]], modulus: int) -> int:
    """Nodes of ``way`` whose headers end in the sets of the stack, ``modulus`` bytes apart."""
    return sum((node + HEADER_BYTES + _STACK_BYTES - guest.heap.base_address) % modulus == 0 for node, _ in way)


FAMILY = Family(
    builders=MappingProxyType(
        {
            "worst-alloc": _worst_alloc,
            "worst-free": _worst_free,
            "best-alloc": _best_alloc,
            "best-free": _best_free,
            "random": random_plans,
            "worst-failing-alloc": _worst_failing_alloc,
        }
    ),
    walk=walk,
    state=_state,
)
