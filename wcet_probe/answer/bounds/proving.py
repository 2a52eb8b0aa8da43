"""Bounds of an allocator's operations: the analyzer on its image, with the flow facts that stand beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType

from wcet_probe.analyzer.bound import prove
from wcet_probe.analyzer.facts.file import parse_facts
from wcet_probe.analyzer.facts.language import Facts, merged_facts
from wcet_probe.analyzer.parametric import parametric_bound
from wcet_probe.analyzer.request import BoundRequest
from wcet_probe.build.linked_program import built_for
from wcet_probe.build.program import Program
from wcet_probe.identity import Same
from wcet_probe.model.allocator import Allocator
from wcet_probe.model.proof import Assumption, Bound, Formula
from wcet_probe.model.target import Target

_SAMPLES = 8
"""Heap sizes that a formula is made from and checked on."""


def allocator_facts(allocator: Allocator) -> Facts:
    """The flow facts of ``allocator``.

    Raises:
        UsageError: a file of them is not valid.
    """
    return merged_facts([parse_facts(file, text) for file, text in allocator.facts])


def fact_parameters(allocator: Allocator, target: Target, heap_bytes: int) -> Mapping[str, int]:
    """What flow facts may speak of: ``H``, the size of the heap in bytes, and the allocator's build parameters.

    Besides ``cache_line_bytes`` and ``cache_way_bytes``, of a line and of a way of the data cache; 1 without one.
    """
    cache, values = target.dcache, {name.replace("-", "_"): value for name, value in allocator.values.items()}
    line_bytes = cache.line_bytes if cache else 1
    geometry = {"cache_line_bytes": line_bytes, "cache_way_bytes": cache.sets * line_bytes if cache else 1}
    return MappingProxyType({"H": heap_bytes, "alignment_bytes": allocator.alignment_bytes, **geometry, **values})


def prove_operation(
    program: Program, role: str, heap_bytes: int, progress: Callable[[str], None] = lambda _: None
) -> Bound:
    """A bound of the operation ``role`` (``malloc``, ``free``) of ``program``, for every state of a heap.

    Raises:
        AnalysisError: no bound can be proved.
        UsageError: a flow fact is wrong.
    """
    bound = prove(operation_request(program, role, heap_bytes), progress)
    return replace(bound, assumptions=(*bound.assumptions, *assumptions_of_build(program)))


def assumptions_of_build(program: Program) -> Iterator[Assumption]:
    """What a bound of an allocator of one's own takes as given of its functions that do nothing, and of its objects.

    Raises:
        UsageError: it is linked for another core, which executes what ``program.target`` does not.
    """
    own = program.allocator.own
    if own and (called := [name for name in own.stubs if name in program.image.symbols]):
        said = f"what {', '.join(called)} cost{'s' if len(called) == 1 else ''} is left out: they do nothing here"
        yield Assumption("stubs", said, "no run can check it")
    if own and own.object_sources:
        what = own.elf[0] if own.elf else "the objects"
        said = f"{what} {'was' if own.elf else 'were'} compiled from {', '.join(own.object_sources)}, whose lines "
        said += "facts and pragmas name"
        yield Assumption("object-sources", said, "every emulated run counts the loops that they name")
    if own and own.elf and (other := built_for(*own.elf, program.target)):
        yield Assumption("built-for-another-core", other, "not checked: the integrator's")


def remembering() -> Callable[[Program, str, int], Bound]:
    """A `prove_operation` that proves a bound once, while allocator, image and target are the same objects.

    *Soundness:* a bound is a function of what it is remembered by.
    """
    proved: dict[object, Bound] = {}

    def prove_once(program: Program, role: str, heap_bytes: int) -> Bound:
        key = Same(program.allocator), Same(program.image), Same(program.target), str(role), heap_bytes
        if key not in proved:
            proved[key] = prove_operation(program, role, heap_bytes)
        return proved[key]

    return prove_once


def operation_formula(
    program: Program, role: str, heap_bytes: int, progress: Callable[[str], None] = lambda _: None
) -> Formula | None:
    """The bound of the operation ``role`` as a formula in the heap's size ``H``, checked at heaps up to ``heap_bytes``.

    Raises:
        AnalysisError: no bound can be proved.
        UsageError: a flow fact is wrong.
    """
    alignment = program.allocator.alignment_bytes
    step = max(alignment, heap_bytes // _SAMPLES // alignment * alignment)
    samples = tuple(dict.fromkeys(max(step, heap_bytes - number * step) for number in range(_SAMPLES)))
    return parametric_bound(operation_request(program, role, heap_bytes), "H", samples[::-1], progress)


def operation_request(program: Program, role: str, heap_bytes: int) -> BoundRequest:
    """The question after a bound of the operation ``role`` of ``program``, with the facts beside it.

    Raises:
        UsageError: a file of facts is not valid.
    """
    allocator = program.allocator
    return BoundRequest(
        image=program.image,
        target=program.target,
        instructions=program.instructions,
        costs=program.costs,
        entry=allocator.entry_points[role],
        facts=allocator_facts(allocator),
        sources=dict(allocator.sources),
        parameters=fact_parameters(allocator, program.target, heap_bytes),
    )
