"""A seeded random workload, the same for every allocator: an arbitrary state, for contrast."""

from __future__ import annotations

import random

from wcet_probe.model.scenario import InitialCache, Operation, OperationKind, ScenarioPlan
from wcet_probe.scenarios.families import HeapRequest
from wcet_probe.scenarios.traces import TraceBuilder

_OPERATIONS = 2000
_LIVE_BLOCKS = 200
_LEAST_BYTES_PER_BLOCK = 64
_SHARE_OF_FREES = 0.4


def random_plans(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    """Allocations of log-uniform sizes and deallocations of random blocks, then one more allocation.

    Half of the heap is live at most, so that fragmentation refuses nothing that the workload asks for.
    """
    draw = random.Random(request.seed)  # noqa: S311  (a workload, no secret)
    builder, live = TraceBuilder(), list[int]()
    blocks = min(_LIVE_BLOCKS, request.heap_bytes // (4 * _LEAST_BYTES_PER_BLOCK))
    largest = max(16, request.heap_bytes // (4 * max(1, blocks)))
    for _ in range(_OPERATIONS):
        if live and (len(live) >= blocks or draw.random() < _SHARE_OF_FREES):
            builder.free(live.pop(draw.randrange(len(live))))
        else:
            live.append(builder.malloc(log_uniform(draw, largest)))
    size = log_uniform(draw, largest)
    return (random_plan(request, builder, len(live), largest, size),)


def random_plan(request: HeapRequest, builder: TraceBuilder, live_blocks: int, largest: int, size: int) -> ScenarioPlan:
    """The plan of a random workload: ``builder``'s operations leave ``live_blocks`` blocks, then ``malloc(size)``."""
    trace = builder.trace()
    return ScenarioPlan(
        scenario="random",
        variant=f"seed {request.seed}",
        trace=trace,
        measured=Operation(OperationKind.MALLOC, 0, size),
        initial_cache=InitialCache.WARM,
        state=f"{live_blocks} blocks live after {len(trace)} operations of up to {largest} bytes; malloc({size})",
        why=("Nothing: this is an arbitrary state, for contrast.",),
        prediction={"used blocks": live_blocks},
    )


def log_uniform(draw: random.Random, largest: int) -> int:
    """A size whose magnitude is uniform, up to about ``largest`` bytes."""
    return draw.randrange(1, 1 + (1 << draw.randrange(1, largest.bit_length())))
