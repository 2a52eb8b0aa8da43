"""Worst deallocations of dlmalloc27: one that consolidates all fast bins, and what the literature calls worst.

Sources: C06 §2 and table 1; the worst states are derived in the README of the allocator.
"""

from __future__ import annotations

from typing import NamedTuple

from wcet_probe.model.scenario import InitialCache, Operation, OperationKind, ScenarioPlan, Trace
from wcet_probe.scenarios.dlmalloc27.heap import MINIMUM_BYTES
from wcet_probe.scenarios.dlmalloc27.script import Order, ordered, orders, script_for
from wcet_probe.scenarios.families import HeapRequest

_NO_FAST = 112
"""More than any fast bin takes."""


class _Freed(NamedTuple):
    """A used chunk between two free ones, and chunks in a fast bin."""

    trace: Trace
    slot: int
    fast: int
    merged_bytes: int
    after_bytes: int


def _between_free(request: HeapRequest, threshold: int, order: Order = Order.BY_ADDRESS) -> _Freed:
    """All but the chunks that merge into ``threshold`` bytes goes to a fast bin; nothing does if that is 0."""
    script = script_for(request)
    after = max(threshold - 2 * _NO_FAST, _NO_FAST + 16)
    end = 2 * _NO_FAST + after + MINIMUM_BYTES
    fast: list[int] = []
    helper = after + 16
    helpers: list[int] = []
    if threshold:
        fast = [script.cut(MINIMUM_BYTES) for _ in range((script.room_bytes - end) // MINIMUM_BYTES)]
    else:
        helpers = [script.cut(helper)]
        script.cut(MINIMUM_BYTES)
    before_slot, slot, after_slot = (script.cut(size) for size in (_NO_FAST, _NO_FAST, after))
    script.cut(MINIMUM_BYTES)
    script.free([before_slot, after_slot, *helpers, *reversed(ordered(fast, order))])
    if helpers:
        # The helper fits exactly: the neighbours, which are older, are sorted before it is reached.
        script.malloc(helper)
    return _Freed(script.trace(), slot, len(fast), 2 * _NO_FAST + after, after)


def _constant_free(request: HeapRequest, scenario: str, remark: str) -> ScenarioPlan:
    state = _between_free(request, 0)
    return ScenarioPlan(
        scenario=scenario,
        variant="both neighbours free, no consolidation",
        trace=state.trace,
        measured=Operation(OperationKind.FREE, state.slot),
        initial_cache=InitialCache.DIRTY,
        state=(
            f"a used chunk of {_NO_FAST} bytes between free ones of {_NO_FAST} and {state.after_bytes} bytes, each "
            f"alone in its bin; free merges them into {state.merged_bytes} bytes"
        ),
        why=(
            "Too large for a fast bin, and both neighbours are free: two chunks leave their bins, two merges are made.",
            "Each neighbour is alone in its bin: two bits are cleared.",
            remark,
        ),
        prediction={
            "chunks in fast bins": 0,
            "bytes before": _NO_FAST,
            "bytes behind": state.after_bytes,
            "others in the bin before": 0,
            "others in the bin behind": 0,
        },
        driver="",
        driver_value=None,
    )


def paper_free(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    """Both neighbours free, and nothing that consolidates."""
    remark = (
        "C06 table 1 claims O(1) for every free. So it is while less than the consolidation threshold is free there."
    )
    return (_constant_free(request, "paper-free", remark),)


def worst_free(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    """Consolidation of a heap full of fast chunks; where the heap is too small for that, the state of paper-free."""
    threshold = request.allocator.values["consolidation-threshold"]
    if request.heap_bytes < threshold + 4 * MINIMUM_BYTES:
        remark = (
            f"The heap is too small for a free that consolidates: that needs {threshold} free bytes and a fast bin."
        )
        return (_constant_free(request, "worst-free", remark),)
    return tuple(_consolidating_free(request, threshold, order) for order in orders(request))


def _consolidating_free(request: HeapRequest, threshold: int, order: Order) -> ScenarioPlan:
    state = _between_free(request, threshold, order)
    return ScenarioPlan(
        scenario="worst-free",
        variant=f"consolidation {order.value}",
        trace=state.trace,
        measured=Operation(OperationKind.FREE, state.slot),
        initial_cache=InitialCache.DIRTY,
        state=(
            f"{state.fast} chunks of {MINIMUM_BYTES} bytes in a fast bin, and a used one of {_NO_FAST} between free "
            f"ones; free makes a chunk of {state.merged_bytes} bytes and then merges the whole fast bin"
        ),
        why=(
            f"The freed chunk and its free neighbours are {threshold} bytes together: free consolidates all fast bins.",
            "All else of the heap is in a fast bin, in least chunks: each is merged with its neighbours.",
            "C06 table 1 claims O(1) for free. It is O(H/M).",
        ),
        prediction={
            "chunks in fast bins": state.fast,
            "bytes that merge at the block": threshold,
            "bytes before": _NO_FAST,
            "bytes behind": state.after_bytes,
        },
        driver=f"chunks merged = floor((H - {threshold + 2 * MINIMUM_BYTES}) / 16)",
        driver_value=state.fast,
    )
