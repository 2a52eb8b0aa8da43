"""States in which a fact's number is attained that no worst state attains: they are not dear, and show it false."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType

from wcet_probe.model.scenario import InitialCache, Operation, OperationKind, ScenarioPlan, Trace
from wcet_probe.scenarios.families import Family, HeapRequest
from wcet_probe.scenarios.tree_heap import trace_of_layout

SCENARIOS: Mapping[str, OperationKind] = {
    "worst-falsifying-alloc": OperationKind.MALLOC,
    "worst-falsifying-free": OperationKind.FREE,
}
"""Under these names they are run with the worst states, by what is measured."""

_LEAST_BYTES, _STEP_BYTES, _OVERHEAD_BYTES = 16, 8, 8
"""Of btree-best-fit, by default: the least block, the step from one size to the next, and the two tags of a block."""


def _plan(variant: str, trace: Trace, measured: Operation) -> ScenarioPlan:
    return ScenarioPlan(
        scenario="random",  # of which no prediction is asked
        variant=variant,
        trace=trace,
        measured=measured,
        initial_cache=InitialCache.DIRTY,
        state=variant,
        why=(),
        prediction={},
        refused=None,
    )


def _far_successor(request: HeapRequest) -> Iterable[ScenarioPlan]:
    """btree-best-fit: the node that leaves has a lesser child, and all greater ones on a path down from the greatest.

    Its successor is at the end of that path. The node leaves as the one that fits, or as the neighbour of a freed one.
    """
    count = 1
    while (2 * count + 1) * _LEAST_BYTES + _STEP_BYTES * count * (count + 1) // 2 <= request.heap_bytes - 8:
        count += 1
    sizes = [_LEAST_BYTES + _STEP_BYTES * number for number in range(count)]
    left = request.heap_bytes - 8 - sum(sizes) - (count - 1) * _LEAST_BYTES
    blocks = [size for free in sizes for size in (free, _LEAST_BYTES)][:-1]
    if left >= _LEAST_BYTES:
        blocks.append(left)
    trace = trace_of_layout([size - _OVERHEAD_BYTES for size in blocks], [2, 0, *range(2 * count - 2, 2, -2)])
    yield _plan("malloc of a node far from its successor", trace, Operation(OperationKind.MALLOC, 2, sizes[1] - 8))
    yield _plan("free beside a node far from its successor", trace, Operation(OperationKind.FREE, 3, 0))


_STATES: Mapping[str, Callable[[HeapRequest], Iterable[ScenarioPlan]]] = {"btree-best-fit": _far_successor}


def with_falsifying_states(name: str, family: Family) -> Family:
    """``family`` of the allocator ``name``, and the states of it that are here."""
    if name not in _STATES:
        return family

    def plans(kind: OperationKind, request: HeapRequest) -> tuple[ScenarioPlan, ...]:
        return tuple(plan for plan in _STATES[name](request) if plan.measured.kind is kind)

    own = {scenario: partial(plans, kind) for scenario, kind in SCENARIOS.items()}
    return replace(family, builders=MappingProxyType({**family.builders, **own}))
