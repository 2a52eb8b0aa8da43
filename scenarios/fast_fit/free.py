"""States in which free of fast-fit is dearest."""

from __future__ import annotations

from collections.abc import Collection

from wcet_probe.model.scenario import InitialCache, Operation, OperationKind, ScenarioPlan
from wcet_probe.scenarios.cache_sets import left_out_of_walks
from wcet_probe.scenarios.families import HeapRequest
from wcet_probe.scenarios.fast_fit.heap import WHY_GAPS, Sizes, layout_trace, require, usable_text

_WHY_MERGE = (
    "All free blocks have the least size and all but one form a chain, with the upper neighbour as the root.",
    "The walk by address passes the chain and finds the lower neighbour at its far end.",
    "The upper neighbour leaves the tree: the chain and the one block on its other side are merged, left ones first.",
    "The merged block is the largest: it becomes the root, and all blocks below are cut apart around its address.",
)
_WHY_TURN = (
    "All free blocks have the least size and form a chain that lies in turn below and above the block.",
    "The walk by address turns at each node, and meets the neighbours at the end of the chain: they leave at once.",
    "The merged block is the largest: it becomes the root, and cutting writes to each node, for it turns there too.",
)


def worst_free(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    """Chains of all free blocks: on one side of the block, so that they are merged too, and on both in turn."""
    gapped = left_out_of_walks(Sizes.of(request).equal_blocks - 3, request)
    return (_merge_plan(request), _turn_plan(request), *(_merge_plan(request, left_out) for left_out in gapped))


def _merge_plan(request: HeapRequest, left_out: Collection[int] = ()) -> ScenarioPlan:
    """``left_out``: numbers of the blocks that stay in use, not those at the ends of the chain."""
    size = Sizes.of(request)
    all_nodes = size.equal_blocks
    require(request, all_nodes >= 4)
    numbers = [2 * node for node in range(all_nodes) if node not in left_out]
    count = len(numbers)
    gaps = f" - {3 * len(left_out)}" if left_out else ""
    freed = [numbers[-1], *numbers[-3::-1], numbers[-2]]
    own = 2 * all_nodes - 5  # between the last of the chain and its upper neighbour, behind which is one more free
    return ScenarioPlan(
        scenario="worst-free",
        variant=f"both neighbours free, at the ends of a chain{f', {len(left_out)} left out' if left_out else ''}",
        trace=layout_trace(request, [size.least] * (2 * all_nodes - 1), freed, stretch=1),
        measured=Operation(OperationKind.FREE, 2 * all_nodes - 2 - own),
        initial_cache=InitialCache.DIRTY,
        state=(
            f"{count} free blocks of {size.least} bytes: the upper neighbour is the root, the lower one "
            f"the end of a chain of {count - 2}; free merges three blocks"
        ),
        why=(*_WHY_MERGE, *([WHY_GAPS] if left_out else [])),
        prediction={
            "nodes searched": count - 1,
            "nodes merged": count - 3,
            "nodes passed to insert": count - 2,
            "free neighbours": 2,
            "free blocks": count,
            "height of the tree": count - 1,
            "bytes of the largest": size.least,
        },
        driver=f"nodes visited = 3 floor({usable_text(request)} + M) / 2M) - 6{gaps}, M = {size.least}",
        driver_value=3 * count - 6,
    )


def _turn_plan(request: HeapRequest) -> ScenarioPlan:
    size = Sizes.of(request)
    count = size.equal_blocks
    require(request, count >= 4)
    own = 2 * (count // 2) - 1
    freed = sorted(range(0, 2 * count, 2), key=lambda number: abs(number - own))
    return ScenarioPlan(
        scenario="worst-free",
        variant="both neighbours free, at the end of a chain that turns",
        trace=layout_trace(request, [size.least] * (2 * count - 1), freed, stretch=1),
        measured=Operation(OperationKind.FREE, 2 * count - 2 - own),
        initial_cache=InitialCache.DIRTY,
        state=(
            f"{count} free blocks of {size.least} bytes, a chain that lies in turn below and above the block and ends "
            "with its neighbours; free merges three blocks"
        ),
        why=_WHY_TURN,
        prediction={
            "nodes searched": count,
            "nodes merged": 0,
            "nodes passed to insert": count - 2,
            "free neighbours": 2,
            "free blocks": count,
            "height of the tree": count,
            "bytes of the largest": size.least,
        },
        driver=f"nodes visited = 2 floor({usable_text(request)} + M) / 2M) - 2, M = {size.least}",
        driver_value=2 * count - 2,
    )
