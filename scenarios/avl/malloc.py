"""The worst allocation of best fit over an AVL tree: a removal that rotates every node, and an insertion there."""

from __future__ import annotations

from collections.abc import Iterator

from wcet_probe.errors import HeapTooSmallError
from wcet_probe.model.scenario import InitialCache, Operation, OperationKind, ScenarioPlan
from wcet_probe.scenarios.avl.candidates import (
    ANYWHERE,
    DRIVER,
    DRIVER_APART,
    LEVELS_FOR_ROOM,
    Spacing,
    other_kinds,
    spacings,
    wider_spacings,
)
from wcet_probe.scenarios.avl.heap import HEADER_BYTES, free_blocks_apart, highest, set_up, sizes_of
from wcet_probe.scenarios.avl.shapes import behind, level_order, nodes_down, rotated_positions, size_of, spine
from wcet_probe.scenarios.families import HeapRequest

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


def worst_alloc(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    """The candidates for the dearest successful allocation."""
    return (
        *(_alloc_plan(request, kind) for kind in ("double", *other_kinds(request))),
        *_alloc_plans_in_a_set(request),
    )


def _alloc_plans_in_a_set(request: HeapRequest) -> Iterator[ScenarioPlan]:
    """The same with nodes that evict each other: the highest tree that the heap has room for."""
    for kind, spacing in (*spacings(request), *(("double", wider) for wider in wider_spacings(request))):
        for lower in range(LEVELS_FOR_ROOM):
            try:
                yield _alloc_plan(request, kind, lower=lower, spacing=spacing)
            except HeapTooSmallError:
                continue
            break


def _alloc_plan(request: HeapRequest, kind: str, *, lower: int = 0, spacing: Spacing = ANYWHERE) -> ScenarioPlan:
    """``lower`` levels lower than the highest tree; with a ``spacing`` the nodes touched are moved, see `set_up`."""
    sizes = sizes_of(request)
    cut = sizes.larger(sizes.minimum)
    found = cut + sizes.rest
    height = highest(sizes, lambda h: (1 + behind(h, kind)) * (found - sizes.minimum), 4 + lower) - lower
    moved = set(rotated_positions(height, kind)) if spacing != ANYWHERE else set[int]()
    shape = spine(height, kind)
    count, large = size_of(shape), 1 + behind(height, kind)
    down = nodes_down(height, kind)
    rotated = 0 if kind == "long" else (height - 1) // 2
    free_sizes = [sizes.minimum] * (count - large) + [found] * large
    trace = set_up(sizes, free_sizes, level_order(shape), moved, spacing)
    return ScenarioPlan(
        scenario="worst-alloc",
        variant=(f"{kind} rotations" if rotated else "long way, no rotation") + spacing.variant,
        trace=trace,
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
            f"nodes on the way down{spacing.text}": down,
            "nodes to be rotated": rotated,
            "bytes of the block found": found,
            **free_blocks_apart(sizes, trace, spacing),
        },
        driver=DRIVER_APART if moved else DRIVER,
        driver_value=height,
    )
