"""States in which malloc of fast-fit is dearest. Sizes are those of blocks, in bytes; a request is 4 bytes less."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from wcet_probe.model.scenario import InitialCache, Operation, OperationKind, ScenarioPlan
from wcet_probe.scenarios.cache_sets import gapped_walks
from wcet_probe.scenarios.families import HeapRequest
from wcet_probe.scenarios.fast_fit.heap import HEADER_BYTES, WHY_GAPS, Sizes, layout_trace, require, usable_text

_WHY_SEARCH = (
    "All free blocks have the least size, and each was freed when the one below it was the root: the last lies on top.",
    "So the tree is one chain of all free blocks; every child is large enough, and the search ends at its far end.",
    "Blocks of different sizes cannot make so long a chain: n of them need a multiple of n * n bytes.",
)
_WHY_MERGE = (
    "The root fits exactly and leaves the tree: its subtrees, one block and a chain of all others, are merged.",
    "All these blocks have the same size: the left one is preferred, so the whole chain is passed.",
)
_WHY_DEMOTE = (
    "The root is split, and the rest is smaller than all other free blocks: it moves down past each of them.",
    "They must be larger than the rest, hence fewer than blocks of the least size.",
)


def worst_alloc(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    """Chains that are searched, merged below the root, or that its rest moves down."""
    gapped = gapped_walks(Sizes.of(request).equal_blocks, request)
    return (
        _search_plan(request, to_left=True),
        _search_plan(request, to_left=False),
        *(_search_plan(request, to_left=to_left, walk=walk) for to_left, walk in product((True, False), gapped)),
        _merge_plan(request),
        _demote_plan(request, to_left=True),
        _demote_plan(request, to_left=False),
    )


def _search_plan(request: HeapRequest, *, to_left: bool, walk: Sequence[int] | None = None) -> ScenarioPlan:
    """``walk``: which of the blocks are in the chain; None for all."""
    size = Sizes.of(request)
    all_nodes = size.equal_blocks
    require(request, all_nodes >= 4)
    numbers = [2 * node for node in (range(all_nodes) if walk is None else walk)]
    count = len(numbers)
    gaps = f" - {all_nodes - count}" if count < all_nodes else ""
    left_out = f", {all_nodes - count} left out" if gaps else ""
    return ScenarioPlan(
        scenario="worst-alloc",
        variant=f"search along a chain to the {'left' if to_left else 'right'}{left_out}",
        trace=layout_trace(
            request, [size.least] * (2 * all_nodes - 1), numbers if to_left else numbers[::-1], stretch=1
        ),
        measured=Operation(OperationKind.MALLOC, 0, size.least - HEADER_BYTES),
        initial_cache=InitialCache.DIRTY,
        state=f"{count} free blocks of {size.least} bytes, a chain; malloc({size.least - HEADER_BYTES}) takes its end",
        why=(*_WHY_SEARCH, *([WHY_GAPS] if gaps else [])),
        prediction={
            "nodes searched": count,
            "nodes merged": 0,
            "free blocks": count,
            "height of the tree": count,
            "bytes of the largest": size.least,
        },
        driver=f"nodes visited = floor({usable_text(request)} + M) / 2M){gaps}, M = {size.least}",
        driver_value=count,
    )


def _merge_plan(request: HeapRequest) -> ScenarioPlan:
    size = Sizes.of(request)
    root = size.least + size.granule
    count = (size.usable - size.granule + size.least) // (2 * size.least)
    require(request, count >= 4)
    sizes = [size.least] * (2 * count - 1)
    sizes[-3] = root
    numbers = range(0, 2 * count, 2)
    return ScenarioPlan(
        scenario="worst-alloc",
        variant="the root leaves, its subtrees are merged",
        trace=layout_trace(request, sizes, [numbers[-1], *numbers[-3::-1], numbers[-2]], stretch=1),
        measured=Operation(OperationKind.MALLOC, 0, root - HEADER_BYTES),
        initial_cache=InitialCache.DIRTY,
        state=(
            f"a root of {root} bytes above {count - 1} free blocks of {size.least}, a chain and one more; "
            f"malloc({root - HEADER_BYTES}) takes the root"
        ),
        why=_WHY_MERGE,
        prediction={
            "nodes searched": 1,
            "nodes merged": count - 2,
            "free blocks": count,
            "height of the tree": count - 1,
            "bytes of the largest": root,
        },
        driver=f"nodes = floor({usable_text(request)} - {size.granule} + M) / 2M) - 1, M = {size.least}",
        driver_value=count - 1,
    )


def _demote_plan(request: HeapRequest, *, to_left: bool) -> ScenarioPlan:
    size = Sizes.of(request)
    below = size.least_rest + size.granule
    cut = below + size.granule
    root = cut + size.least_rest
    count = (size.usable - root) // (below + size.least)
    require(request, count >= 2)
    sizes, numbers = [below, size.least] * count + [root], range(0, 2 * count, 2)
    freed = [*numbers[::-1], 2 * count]
    if not to_left:
        sizes.reverse()
        freed = [2 * count - number for number in freed]
    return ScenarioPlan(
        scenario="worst-alloc",
        variant=f"the rest of the root moves down a chain on its {'left' if to_left else 'right'}",
        trace=layout_trace(request, sizes, freed, stretch=1),
        measured=Operation(OperationKind.MALLOC, 0, cut - HEADER_BYTES),
        initial_cache=InitialCache.DIRTY,
        state=(
            f"a root of {root} bytes above a chain of {count} free blocks of {below}; "
            f"malloc({cut - HEADER_BYTES}) leaves {size.least_rest} bytes of the root"
        ),
        why=_WHY_DEMOTE,
        prediction={
            "nodes searched": 1,
            "nodes merged": count,
            "free blocks": count + 1,
            "height of the tree": count + 1,
            "bytes of the largest": root,
        },
        driver=f"nodes visited = floor({usable_text(request)} - {root}) / {below + size.least}) + 1",
        driver_value=count + 1,
    )
