"""A workload run held against the proved bounds of malloc and free."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType

from wcet_probe.answer.bounds.proving import prove_operation
from wcet_probe.answer.witness.contradiction import check_most
from wcet_probe.answer.workloads.workload_run import WorkloadRequest, WorkloadRun, run_workload
from wcet_probe.build.program import load_program
from wcet_probe.errors import AnalysisError
from wcet_probe.model.proof import Bound
from wcet_probe.model.scenario import OperationKind
from wcet_probe.traces.operations import HeapOperation


def run_bounded(
    request: WorkloadRequest, operations: Iterable[HeapOperation], progress: Callable[[str], None] = lambda _: None
) -> WorkloadRun:
    """As `run_workload`, with the bounds that are established before; raises what it raises.

    Raises:
        ContradictionError: an operation took more than is proved.
    """
    progress(f"building {request.allocator.name} for {request.target.name}")
    bounds = _bounds(request, progress)
    found = run_workload(request, operations, progress)
    for role, bound in bounds.items():
        for unit in ("instructions", "cycles"):
            check_most(bound, unit, found.distributions[role, unit].most, "the workload")
    return replace(found, bounds=bounds)


def _bounds(request: WorkloadRequest, progress: Callable[[str], None]) -> Mapping[str, Bound]:
    program = load_program(request.allocator, request.target, request.compiler, request.cache_dir, request.heap_bytes)
    bounds: dict[str, Bound] = {}
    for role in (OperationKind.MALLOC.value, OperationKind.FREE.value):
        try:
            bounds[role] = prove_operation(program, role, request.heap_bytes, progress)
        except AnalysisError as error:
            progress(f"no bound of {role}: {error}")
    return MappingProxyType(bounds)
