"""The worst deallocation of best fit over an AVL tree: two removals that rotate every node, and an insertion."""

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
from wcet_probe.scenarios.avl.heap import HEADER_BYTES, Sizes, free_blocks_apart, highest, set_up, sizes_of
from wcet_probe.scenarios.avl.shapes import (
    behind,
    joined,
    level_order,
    nodes_down,
    rotated_positions,
    size_of,
    sparsest_nodes,
    spine,
)
from wcet_probe.scenarios.families import HeapRequest

_LEAST_APART = 6
"""Height from which on free touches no block at the start of the heap, where none can be moved."""
_LOWER = ((1, 1), (2, 1), (1, 2))
"""How much lower than the tree the subtrees of its root are. Those of the second are dearest, or nearly."""
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


def worst_free(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    """The candidates for the dearest deallocation."""
    sizes = sizes_of(request)
    larger = sizes.larger(sizes.minimum)
    height = highest(sizes, lambda _: 3 * (larger - sizes.minimum), 4)
    room = (sizes.heap - HEADER_BYTES - sizes.rest - 3 * (larger - sizes.minimum)) // (2 * sizes.minimum)
    subtrees = [(height - 2, height - 1), (height - 1, height - 2), (height - 1, height - 1)]
    if 2 * sparsest_nodes(height - 1) + 1 > room:
        subtrees.pop()
    return (
        *(_free_plan(sizes, "double", heights) for heights in subtrees),
        *(
            _free_plan(sizes, kind, heights)
            for kind in other_kinds(request)
            for heights in (subtrees if kind == "long" else subtrees[:1])
        ),
        *(plan for kind, spacing in spacings(request) for plan in _free_plans_in_a_set(sizes, kind, spacing, height)),
        *(
            plan
            for spacing in wider_spacings(request)
            for plan in _free_plans_in_a_set(sizes, "double", spacing, height)
        ),
    )


def _free_plans_in_a_set(sizes: Sizes, kind: str, spacing: Spacing, height: int) -> Iterator[ScenarioPlan]:
    """The same with nodes that evict each other, in the highest trees that the heap has room for."""
    lower = _LOWER[1:2] if spacing.first else _LOWER
    for top in range(height, max(_LEAST_APART - 1, height - LEVELS_FOR_ROOM), -1):
        found = 0
        for left, right in lower:
            try:
                yield _free_plan(sizes, kind, (top - left, top - right), spacing)
                found += 1
            except HeapTooSmallError:
                continue
        if found:
            return


def _free_plan(sizes: Sizes, kind: str, heights: tuple[int, int], spacing: Spacing = ANYWHERE) -> ScenarioPlan:
    """The neighbours are at the ends of the paths in the two subtrees of the root, which are of ``heights``.

    With a ``spacing`` the nodes that are touched are moved, see `set_up`.
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
    if spacing != ANYWHERE:
        behind_root = size_of(left) + 1
        moved = {place[at] for at in rotated_positions(heights[0], kind)} | {place[size_of(left)]}
        moved |= {place[behind_root + at] for at in rotated_positions(heights[1], kind)}
    trace = set_up(sizes, free_sizes, (place[at] for at in level_order(shape)), moved, spacing)
    return ScenarioPlan(
        scenario="worst-free",
        variant=f"{kind} {'ways' if kind == 'long' else 'rotations'}, subtrees of height {heights[0]} and {heights[1]}"
        + spacing.variant,
        trace=trace,
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
            **({f"nodes on the ways down{spacing.text}": sum(nodes_down(h, kind) for h in heights)} if moved else {}),
            **free_blocks_apart(sizes, trace, spacing),
        },
        driver=DRIVER_APART if moved else DRIVER,
        driver_value=height,
    )
