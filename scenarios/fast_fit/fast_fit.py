"""Worst, best and random states of fast-fit, and that of the paper.

All worst ones walk one path of the Cartesian tree. With blocks of equal size the tie rule alone gives the tree its
shape, and a path can hold every free block: H / 2M nodes. With sizes that differ, as P02 has them, it holds about
sqrt(2H / a); that state is kept as ``paper-alloc`` and ``paper-free``.

The set-up takes constant time an operation, although the tree is a chain: a freed block that is as large as the root
becomes the root, and so the chain grows at its upper end.

Sources: P02 §2.3.2, §3.1.1, §3.1.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType

from wcet_probe.model.scenario import InitialCache, Operation, OperationKind, ScenarioPlan
from wcet_probe.scenarios.families import Family, HeapRequest
from wcet_probe.scenarios.fast_fit.free import worst_free
from wcet_probe.scenarios.fast_fit.heap import HEADER_BYTES, Sizes, layout_trace, require, state, walk
from wcet_probe.scenarios.fast_fit.malloc import worst_alloc
from wcet_probe.scenarios.random_workload import random_plans

_WHY_PAPER = (
    "The free blocks have different sizes that grow with the address: the tree is a chain (P02 §3.1.1).",
    "It is not the worst state: equal sizes make a longer chain.",
)
_WHY_REFUSED = ("The root is the largest free block: one comparison refuses a request, whatever the heap.",)


def _paper_layout(request: HeapRequest) -> tuple[list[int], range]:
    """Free blocks whose sizes grow with the address, and fences; the numbers of the free ones."""
    size = Sizes.of(request)
    count = size.different_blocks
    require(request, count >= 4)
    sizes = [size.least] * (2 * count - 1)
    sizes[::2] = [size.least + size.granule * i for i in range(count)]
    return sizes, range(0, 2 * count, 2)


def _paper_alloc(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    size = Sizes.of(request)
    sizes, numbers = _paper_layout(request)
    count = len(numbers)
    plan = ScenarioPlan(
        scenario="paper-alloc",
        variant="different sizes",
        trace=layout_trace(request, sizes, numbers, stretch=-2),
        measured=Operation(OperationKind.MALLOC, 0, size.least - HEADER_BYTES),
        initial_cache=InitialCache.DIRTY,
        state=f"{count} free blocks of different sizes in a chain; malloc({size.least - HEADER_BYTES}) takes the last",
        why=_WHY_PAPER,
        prediction={
            "nodes searched": count,
            "free blocks": count,
            "height of the tree": count,
            "bytes of the largest": sizes[-1],
        },
        driver="nodes visited = n; n different sizes and their fences fill H (n ~ sqrt(2H / a))",
        driver_value=count,
    )
    return (plan,)


def _paper_free(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    sizes, numbers = _paper_layout(request)
    count = len(numbers)
    plan = ScenarioPlan(
        scenario="paper-free",
        variant="different sizes",
        trace=layout_trace(request, sizes, numbers, stretch=-2),
        measured=Operation(OperationKind.FREE, 2 * count - 3),
        initial_cache=InitialCache.DIRTY,
        state=f"{count} free blocks of different sizes in one chain; free merges a block with the two at its far end",
        why=_WHY_PAPER,
        prediction={
            "nodes searched": count,
            "nodes merged": 0,
            "nodes passed to insert": count - 2,
            "free neighbours": 2,
            "free blocks": count,
            "height of the tree": count,
        },
        driver="nodes visited = 2n - 2; n different sizes and their fences fill H (n ~ sqrt(2H / a))",
        driver_value=2 * count - 2,
    )
    return (plan,)


def _small_plan(
    request: HeapRequest, scenario: str, variant: str, *, free: Sequence[int], measured: Operation, why: Sequence[str]
) -> ScenarioPlan:
    """A plan of constant cost: six least blocks, the fifth of which takes the rest of the heap."""
    size = Sizes.of(request)
    trace = layout_trace(request, [size.least] * 6, free, stretch=4)
    call = f"malloc({measured.size_bytes})" if measured.kind is OperationKind.MALLOC else "free"
    return ScenarioPlan(
        scenario=scenario,
        variant=variant,
        trace=trace,
        measured=measured,
        initial_cache=InitialCache.DIRTY if scenario.startswith("worst") else InitialCache.WARM,
        state=f"{len(free)} free block(s) of {size.least} bytes; {call}",
        why=tuple(why),
        prediction={"free blocks": len(free), "height of the tree": len(free)},
        refused=scenario == "worst-failing-alloc",
    )


def _best_alloc(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    size = Sizes.of(request)
    why = ("The tree is one node, and it fits exactly: nothing to search, to merge or to move.",)
    measured = Operation(OperationKind.MALLOC, 0, size.least - HEADER_BYTES)
    return (_small_plan(request, "best-alloc", "the only free block", free=(0,), measured=measured, why=why),)


def _best_free(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    why = ("The tree is as small as can be: nothing to search, to merge or to cut apart.",)
    measured = Operation(OperationKind.FREE, 2)
    return (
        _small_plan(request, "best-free", "no free block", free=(), measured=measured, why=why),
        _small_plan(request, "best-free", "one free block, no neighbour", free=(0,), measured=measured, why=why),
    )


def _worst_failing_alloc(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    measured = Operation(OperationKind.MALLOC, 0, 2 * Sizes.of(request).least)
    name = "worst-failing-alloc"
    return (
        _small_plan(request, name, "no free block", free=(), measured=measured, why=_WHY_REFUSED),
        _small_plan(request, name, "too small a root", free=(0,), measured=measured, why=_WHY_REFUSED),
    )


FAMILY = Family(
    builders=MappingProxyType(
        {
            "worst-alloc": worst_alloc,
            "worst-free": worst_free,
            "best-alloc": _best_alloc,
            "best-free": _best_free,
            "worst-failing-alloc": _worst_failing_alloc,
            "paper-alloc": _paper_alloc,
            "paper-free": _paper_free,
            "random": random_plans,
        }
    ),
    walk=walk,
    state=state,
)
