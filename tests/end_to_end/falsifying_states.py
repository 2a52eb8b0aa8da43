"""States in which a fact's number is attained that no worst state attains: they are not dear, and show it false."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType

from tests.end_to_end import falsifying_dlmalloc27, falsifying_fast_fit
from wcet_probe.errors import UsageError
from wcet_probe.model.scenario import InitialCache, Operation, OperationKind, ScenarioPlan, Trace
from wcet_probe.scenarios.families import Family, HeapRequest
from wcet_probe.scenarios.tree_heap import trace_of_layout

State = tuple[str, Trace, Operation]
"""What a plan of a falsifying state is made of: its name, how the heap gets there, and the call."""

SCENARIOS: Mapping[str, OperationKind] = {
    "worst-falsifying-alloc": OperationKind.MALLOC,
    "worst-falsifying-free": OperationKind.FREE,
}
"""Under these names they are run with the worst states, by what is measured."""

_LEAST_BYTES, _STEP_BYTES, _OVERHEAD_BYTES = 16, 8, 8
"""Of btree-best-fit, by default: the least block, the step from one size to the next, and the two tags of a block."""


def _plan(state: State) -> ScenarioPlan:
    variant, trace, measured = state
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
        set_up_may_refuse=True,
    )


def _sizes(request: HeapRequest) -> list[int]:
    """Sizes of the most free blocks that all differ, a least block between any two, from the least size on."""
    count = 1
    while (2 * count + 1) * _LEAST_BYTES + _STEP_BYTES * count * (count + 1) // 2 <= request.heap_bytes - 8:
        count += 1
    return [_LEAST_BYTES + _STEP_BYTES * number for number in range(count)]


def _one_path(request: HeapRequest) -> Iterable[State]:
    """btree-best-fit: all nodes on a path to the right, and the last one as large as the heap allows.

    A search for a size between the last two nodes ends below the last one; that for a freed neighbour, at it.
    """
    sizes = _sizes(request)
    count, wanted = len(sizes), sizes[-1] + _STEP_BYTES
    sizes[-1] = request.heap_bytes - 8 - sum(sizes[:-1]) - (count - 1) * _LEAST_BYTES
    blocks = [size for free in sizes for size in (free, _LEAST_BYTES)][:-1]
    trace = trace_of_layout([size - _OVERHEAD_BYTES for size in blocks], range(0, 2 * count, 2))
    if wanted < sizes[-1]:
        size = wanted - _OVERHEAD_BYTES
        yield "malloc at the end of a path of all nodes", trace, Operation(OperationKind.MALLOC, 2, size)
    yield "free beside the end of a path of all nodes", trace, Operation(OperationKind.FREE, 2 * count - 3, 0)


def _far_successor(request: HeapRequest) -> Iterable[State]:
    """btree-best-fit: the node that leaves has a lesser child, and all greater ones on a path down from the greatest.

    Its successor is at the end of that path. The node leaves as the one that fits, or as the neighbour of a freed one.
    """
    sizes = _sizes(request)
    count = len(sizes)
    left = request.heap_bytes - 8 - sum(sizes) - (count - 1) * _LEAST_BYTES
    blocks = [size for free in sizes for size in (free, _LEAST_BYTES)][:-1]
    if left >= _LEAST_BYTES:
        blocks.append(left)
    trace = trace_of_layout([size - _OVERHEAD_BYTES for size in blocks], [2, 0, *range(2 * count - 2, 2, -2)])
    yield "malloc of a node far from its successor", trace, Operation(OperationKind.MALLOC, 2, sizes[1] - 8)
    yield "free beside a node far from its successor", trace, Operation(OperationKind.FREE, 3, 0)


STATES: Mapping[str, tuple[Callable[[HeapRequest], Iterable[State]], ...]] = {
    "btree-best-fit": (_far_successor, _one_path),
    "dlmalloc27": falsifying_dlmalloc27.STATES,
    "fast-fit": falsifying_fast_fit.STATES,
}


def with_falsifying_states(name: str, family: Family) -> Family:
    """``family`` of the allocator ``name``, and the states of it that are here."""
    if name not in STATES:
        return family

    def plans(kind: OperationKind, request: HeapRequest) -> tuple[ScenarioPlan, ...]:
        found = (state for states in STATES[name] for state in states(request))
        chosen = tuple(_plan(state) for state in found if state[2].kind is kind)
        if not chosen:
            raise UsageError(f"{name} has no falsifying state for {kind.value}; leave it out.")
        return chosen

    own = {scenario: partial(plans, kind) for scenario, kind in SCENARIOS.items()}
    return replace(family, builders=MappingProxyType({**family.builders, **own}))
