"""Worst, best and random states of dlmalloc27, and those that the literature calls worst.

Sizes here and in the modules of the builders are those of chunks, in bytes; a request is 4 bytes less.
"""

from __future__ import annotations

from types import MappingProxyType

from wcet_probe.model.scenario import InitialCache, Operation, OperationKind, ScenarioPlan
from wcet_probe.scenarios.dlmalloc27.free import paper_free, worst_free
from wcet_probe.scenarios.dlmalloc27.heap import MINIMUM_BYTES, OVERHEAD_BYTES, state, walk
from wcet_probe.scenarios.dlmalloc27.malloc import paper_alloc, worst_alloc, worst_failing_alloc
from wcet_probe.scenarios.dlmalloc27.script import script_for
from wcet_probe.scenarios.families import Family, HeapRequest
from wcet_probe.scenarios.random_workload import random_plans


def _best_alloc(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    script = script_for(request)
    script.free([script.cut(MINIMUM_BYTES)])
    wanted = MINIMUM_BYTES - OVERHEAD_BYTES
    return (
        ScenarioPlan(
            scenario="best-alloc",
            variant="the fast bin of the request holds a chunk",
            trace=script.trace(),
            measured=Operation(OperationKind.MALLOC, 0, wanted),
            initial_cache=InitialCache.WARM,
            state=f"one chunk of {MINIMUM_BYTES} bytes in its fast bin; malloc({wanted}) takes it",
            why=("The first chunk of a fast bin is taken as it is: no other chunk is looked at.",),
            prediction={"chunks in fast bins": 1, "used blocks": 0},
        ),
    )


def _best_free(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    script = script_for(request)
    slot = script.cut(MINIMUM_BYTES)
    return (
        ScenarioPlan(
            scenario="best-free",
            variant="into a fast bin",
            trace=script.trace(),
            measured=Operation(OperationKind.FREE, slot),
            initial_cache=InitialCache.WARM,
            state=f"a used chunk of {MINIMUM_BYTES} bytes; free puts it into its fast bin",
            why=("A chunk of a fast bin's size is linked there: its neighbours are not looked at.",),
            prediction={"chunks in fast bins": 0, "used blocks": 1},
        ),
    )


FAMILY = Family(
    builders=MappingProxyType(
        {
            "worst-alloc": worst_alloc,
            "worst-free": worst_free,
            "best-alloc": _best_alloc,
            "best-free": _best_free,
            "random": random_plans,
            "worst-failing-alloc": worst_failing_alloc,
            "paper-alloc": paper_alloc,
            "paper-free": paper_free,
        }
    ),
    walk=walk,
    state=state,
)
