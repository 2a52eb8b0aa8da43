"""Bounds of an allocator's operations: the analyzer on its image, with the flow facts that stand beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from wcet_probe.analyzer.bound import BoundRequest, prove
from wcet_probe.analyzer.facts import Facts, merged_facts, parse_facts
from wcet_probe.model import Allocator
from wcet_probe.program import Program
from wcet_probe.proof import Bound


def allocator_facts(allocator: Allocator) -> Facts:
    """The flow facts of ``allocator``.

    Raises:
        UsageError: a file of them is not valid.
    """
    return merged_facts([parse_facts(file, text) for file, text in allocator.facts])


def fact_parameters(allocator: Allocator, heap_bytes: int) -> Mapping[str, int]:
    """What flow facts may speak of: ``H``, the size of the heap in bytes, and the allocator's build parameters."""
    values = {name.replace("-", "_"): value for name, value in allocator.values.items()}
    return MappingProxyType({"H": heap_bytes, "alignment_bytes": allocator.alignment_bytes, **values})


def prove_operation(
    program: Program, role: str, heap_bytes: int, progress: Callable[[str], None] = lambda _: None
) -> Bound:
    """A bound of the operation ``role`` (``malloc``, ``free``) of ``program``, for every state of a heap.

    Raises:
        AnalysisError: no bound can be proved.
        UsageError: a flow fact is wrong.
    """
    allocator = program.allocator
    request = BoundRequest(
        image=program.image,
        target=program.target,
        instructions=program.instructions,
        costs=program.costs,
        entry=allocator.entry_points[role],
        facts=allocator_facts(allocator),
        sources=dict(allocator.sources),
        parameters=fact_parameters(allocator, heap_bytes),
    )
    return prove(request, progress)
