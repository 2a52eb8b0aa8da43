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

On a core with a cache the fences also bring the nodes that are visited and rotated into one set, where they evict
each other: the second way misses again on what the first has read. It is the set of what a call notes of its way, or
that of the registers that it saves, which misses again as well. A small heap has no room for that: there they
are brought into some sets more, where the highest tree that holds them costs most; and what room is left then brings
as many of them as it can into half of those sets.

Sources: C06 table 1 (1.44 log2 is the height of such a tree); the state itself is not in the papers.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from wcet_probe.model.scenario import InitialCache, Operation, OperationKind, ScenarioPlan
from wcet_probe.scenarios.avl.candidates import DRIVER, SPACINGS, Spacing
from wcet_probe.scenarios.avl.free import worst_free
from wcet_probe.scenarios.avl.heap import (
    BALANCED,
    HEADER_BYTES,
    TALLER,
    Words,
    blocks_of,
    evicting,
    highest,
    rounded_up,
    set_up,
    sizes_of,
    unit_of,
    walk,
    words_of,
)
from wcet_probe.scenarios.avl.malloc import worst_alloc
from wcet_probe.scenarios.avl.shapes import level_order, size_of, sparse
from wcet_probe.scenarios.families import Blocks, Family, GuestHeap, HeapRequest
from wcet_probe.scenarios.random_workload import random_plans

_WHY_FAILING = ("Every free block is too small: the way goes right to the end of the longest path, and finds nothing.",)


def _worst_failing_alloc(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    sizes = sizes_of(request)
    height = highest(sizes, lambda _: 0, 1)
    shape = sparse(height)
    count = size_of(shape)
    size = sizes.larger(sizes.minimum) - HEADER_BYTES
    return (
        ScenarioPlan(
            scenario="worst-failing-alloc",
            variant="long way",
            trace=set_up(sizes, [sizes.minimum] * count, level_order(shape)),
            measured=Operation(OperationKind.MALLOC, 0, size),
            initial_cache=InitialCache.DIRTY,
            state=(f"{count} free blocks of {sizes.minimum} bytes in a tree of height {height}; malloc({size}) fails"),
            why=_WHY_FAILING,
            prediction={"tree height": height, "free blocks": count, "nodes on the way down": height},
            driver=DRIVER,
            driver_value=height,
            refused=True,
        ),
    )


def _best_alloc(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    sizes = sizes_of(request)
    highest(sizes, lambda _: 0, 1)
    size = sizes.minimum - HEADER_BYTES
    return (
        ScenarioPlan(
            scenario="best-alloc",
            variant="the only free block",
            trace=set_up(sizes, [sizes.minimum], iter((0,))),
            measured=Operation(OperationKind.MALLOC, 0, size),
            initial_cache=InitialCache.WARM,
            state=f"one free block of {sizes.minimum} bytes; malloc({size}) takes it whole",
            why=("The tree is a single node, which fits exactly: one step down, none up, nothing is inserted.",),
            prediction={"tree height": 1, "free blocks": 1, "nodes on the way down": 1},
        ),
    )


def _best_free(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    sizes = sizes_of(request)
    highest(sizes, lambda _: 0, 1)
    return (
        ScenarioPlan(
            scenario="best-free",
            variant="no free block",
            trace=set_up(sizes, [sizes.minimum], iter(())),
            measured=Operation(OperationKind.FREE, 0),
            initial_cache=InitialCache.WARM,
            state="a used block between used ones, and no free block; free makes it the root of the tree",
            why=("No neighbour is free and the tree is empty: one insertion, without a step.",),
            prediction={"tree height": 0, "free blocks": 0, "used blocks": 3},
        ),
    )


def _tree_height(heap: Words) -> int:
    """Length of a longest path: along the taller sides."""
    height, node = 0, heap.root
    while node:
        height += 1
        node = heap.child(node, int(heap.state(node) == TALLER + 1))
    return height


def _way(heap: Words, key: tuple[int, int]) -> tuple[list[tuple[int, int]], int]:
    """Nodes and sides on the way down to ``key``, and how many of them lead to the least node not below it."""
    way, found, node = [], 0, heap.root
    while node:
        side = int((heap.size(node), node) < key)
        way.append((node, side))
        if not side:
            found = len(way)
        node = heap.child(node, side)
    return way, found


def _rotated(heap: Words, way: list[tuple[int, int]], *, above: int = 0) -> int:
    """Nodes that a removal at the end of ``way`` rotates, those below its first ``above`` nodes only.

    The last node of the way leaves its place: it is the one removed, or it takes the place of that one.
    """
    rotated = 0
    for node, side in reversed(way[above : len(way) - 1]):
        match heap.state(node):
            case state if state == TALLER + side:
                pass
            case state if state == BALANCED:
                return rotated
            case _:
                rotated += 1
                if heap.state(heap.child(node, 1 - side)) == BALANCED:
                    return rotated
    return rotated


def _state(guest: GuestHeap, plan: ScenarioPlan) -> Mapping[str, int | str]:
    heap = words_of(guest)
    blocks = blocks_of(guest, heap)
    facts: dict[str, int | str] = {
        "tree height": _tree_height(heap),
        "free blocks": blocks.free_blocks,
        "used blocks": blocks.used_blocks,
    }
    for spacing in SPACINGS:
        if (name := f"free blocks{spacing.text}") in plan.prediction:
            free = [at for at, is_free in zip(blocks.addresses, blocks.free, strict=True) if is_free]
            facts[name] = _spaced(guest, free, spacing)
    if plan.measured.kind is OperationKind.MALLOC:
        return facts | _alloc_facts(guest, heap, plan)
    return facts | (_free_facts(guest, heap, blocks, plan) if plan.scenario == "worst-free" else {})


def _alloc_facts(guest: GuestHeap, heap: Words, plan: ScenarioPlan) -> dict[str, int | str]:
    unit, needed = unit_of(guest.values), plan.measured.size_bytes + HEADER_BYTES
    size = rounded_up(max(guest.values["minimum-block"], needed), unit)
    way, found = _way(heap, (size, 0))
    facts: dict[str, int | str] = {"nodes on the way down": len(way)}
    facts |= {
        f"nodes on the way down{spacing.text}": _spaced(guest, [node for node, _ in way], spacing)
        for spacing in SPACINGS
    }
    if found:
        facts |= {
            "nodes to be rotated": _rotated(heap, way),
            "bytes of the block found": heap.size(way[found - 1][0]),
        }
    return facts


def _free_facts(guest: GuestHeap, heap: Words, blocks: Blocks, plan: ScenarioPlan) -> dict[str, int | str]:
    own = blocks.addresses.index(guest.slot(plan.measured.slot) - HEADER_BYTES)
    facts: dict[str, int | str] = {}
    ways = list[tuple[int, int]]()
    for which, at in (("left", own - 1), ("right", own + 1)):
        size, free = blocks.sizes_bytes[at], blocks.free[at]
        facts[f"bytes of the {which} neighbour"] = size if free else 0
        way, _ = _way(heap, (size, blocks.addresses[at]))
        facts[f"rotated, {which} neighbour"] = _rotated(heap, way, above=1) if free else 0
        ways += way[1:]
    return facts | {
        f"nodes on the ways down{spacing.text}": _spaced(guest, [node for node, _ in ways], spacing)
        for spacing in SPACINGS
    }


def _spaced(guest: GuestHeap, nodes: list[int], spacing: Spacing) -> int:
    """How many of ``nodes`` lie at the addresses of ``spacing``, in as many lines as they can."""
    offset = evicting(unit_of(guest.values)) + spacing.stack_bytes - guest.heap.base_address
    return sum((node + offset) % spacing.modulus == 0 for node in nodes)


FAMILY = Family(
    builders=MappingProxyType(
        {
            "worst-alloc": worst_alloc,
            "worst-free": worst_free,
            "best-alloc": _best_alloc,
            "best-free": _best_free,
            "random": random_plans,
            "worst-failing-alloc": _worst_failing_alloc,
        }
    ),
    walk=walk,
    state=_state,
)
