"""One measurement of a campaign as a value that can be sent anywhere: what is measured, and what was found.

A point is plain data, and so is its result: another process, or another machine that has this package, measures it and
finds the same. Nothing of a result depends on where it was measured, or on when.
"""

from __future__ import annotations

import copyreg
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from wcet_probe.answer.bench import ProbeRequest
from wcet_probe.answer.papers.scheduler import loop_bound
from wcet_probe.answer.per_size import PerSizeRequest, bounds_per_size
from wcet_probe.answer.probe import observe
from wcet_probe.answer.proving import prove_operation
from wcet_probe.answer.workload_run import Placement, WorkloadRequest, WorkloadRun, run_batches
from wcet_probe.answer.workload_tally import Distribution, MallocWindow, MemorySample
from wcet_probe.build.program import load_program
from wcet_probe.catalog.lookup import load_allocator
from wcet_probe.emu.machine import Machine
from wcet_probe.errors import AnalysisError, UsageError
from wcet_probe.model.allocator import Allocator
from wcet_probe.model.image import Image
from wcet_probe.model.scenario import InitialCache, Trace
from wcet_probe.model.target import Target
from wcet_probe.scenarios import scenario_names
from wcet_probe.scenarios.workloads.named import papers_batches

Kind = Literal["worst", "dearest", "in-state-of", "run", "bound", "code", "per-size", "scheduler"]
Document = Mapping[str, Any]
_STATES_OF_PAPERS = ("dlmalloc27", "fast-fit", "quick-fit")
"""The paper's state is of another kind than the dearest known: linear where that is quadratic, or of a root of it."""


def _proxied(values: dict[Any, Any]) -> MappingProxyType[Any, Any]:
    return MappingProxyType(values)


# A target holds such tables, and Python does not know how to send them to another process.
copyreg.pickle(MappingProxyType, lambda proxy: (_proxied, (dict(proxy),)))


@dataclass(frozen=True, slots=True, order=True)
class Point:
    """What is measured.

    Attributes:
        kind: ``worst``: the dearest known state of a role, or the paper's; ``dearest``: never the paper's;
            ``in-state-of``: the malloc, and the operations that lead to it, of another allocator's; ``run``: a
            workload; ``bound``: of a role; ``code``: bytes of the image; ``per-size``: bounds of malloc by size;
            ``scheduler``: the loop of H11 figure 10.
        allocator: by name.
        preset: the paper whose parameters it takes, where it has them.
        values: parameters on top of them.
        heap_bytes: of the heap.
        what: the role, the workload, the other allocator, or the name of a file of facts.
        arguments: of the workload; the sizes where ranges begin.
        placement: of blocks in cache sets, where the allocator takes one.
    """

    kind: Kind
    allocator: str
    preset: str
    values: tuple[tuple[str, int], ...]
    heap_bytes: int
    what: str
    arguments: tuple[int, ...] = ()
    placement: Placement = "first"

    @property
    def words(self) -> str:
        """What it is, for people."""
        numbers = " ".join(map(str, self.arguments))
        return f"{self.allocator}: {self.kind} {self.what} {numbers}".rstrip() + f", {self.heap_bytes:,} bytes"


@dataclass(frozen=True, slots=True)
class Settings:
    """Where points are measured: the core, with its caches as asked for, the compiler, and the folder of images."""

    target: Target
    compiler: str
    cache_dir: Path


@dataclass(frozen=True, slots=True)
class Worst:
    """The dearest known call of a role: which state, and what it counts."""

    scenario: str
    variant: str
    instructions: int
    cycles: int


@dataclass(frozen=True, slots=True)
class Run:
    """What a workload counted, as `WorkloadRun` has it; ``static_bytes`` are the allocator's variables."""

    operations: int
    refused: int
    distributions: Mapping[tuple[str, str], Distribution]
    peak_live_bytes: int
    peak_reached_bytes: int
    samples: tuple[MemorySample, ...]
    windows: tuple[MallocWindow, ...]
    static_bytes: int

    @property
    def fragmentation(self) -> Fraction:
        """Factor F of C06 §5 and M06 §4: the most memory used over the most memory live, less one."""
        return Fraction(self.peak_reached_bytes, max(1, self.peak_live_bytes)) - 1


def allocator_of(point: Point) -> Allocator:
    """The allocator with the paper's parameters, where it has them, and the point's own.

    Of ``budgeted:X`` the paper's parameters are those of X.
    """
    shared = load_allocator(point.allocator.partition(":")[2] or point.allocator)
    values = {**shared.presets.get(point.preset, {}), **dict(point.values)}
    return load_allocator(point.allocator, values)


def measure(point: Point, settings: Settings) -> Document:
    """Measure ``point``.

    Raises:
        WcetProbeError: it cannot be measured; the message says why.
    """
    return _MEASURES[point.kind](point, settings)


def run_of(document: Document) -> Run:
    """The run that ``document`` tells of."""
    return Run(
        operations=document["operations"],
        refused=document["refused"],
        distributions={
            (role, unit): Distribution(dict(zip(values, counts, strict=True)))
            for role, unit, values, counts in document["distributions"]
        },
        peak_live_bytes=document["peak_live_bytes"],
        peak_reached_bytes=document["peak_reached_bytes"],
        samples=tuple(MemorySample(*each) for each in document["samples"]),
        windows=tuple(MallocWindow(*each) for each in document["windows"]),
        static_bytes=document["static_bytes"],
    )


def run_document(found: WorkloadRun) -> Document:
    """``found`` as plain data."""
    return {
        "operations": found.operations,
        "refused": found.refused,
        "distributions": [
            [*key, list(one.calls), list(one.calls.values())] for key, one in sorted(found.distributions.items())
        ],
        "peak_live_bytes": found.peak_live_bytes,
        "peak_reached_bytes": found.peak_reached_bytes,
        "samples": [list(asdict(each).values()) for each in found.samples],
        "windows": [list(asdict(each).values()) for each in found.windows],
        "static_bytes": _static_bytes(found.image),
    }


def _static_bytes(image: Image) -> int:
    """The objects that the linker placed in writable memory, but for those of the harness."""
    places = [segment for segment in image.segments if segment.writable]
    return sum(
        symbol.size_bytes
        for name, symbol in image.symbols.items()
        if not symbol.is_function
        and not name.startswith("wp_")
        and any(place.address <= symbol.address < place.address + place.size_bytes for place in places)
    )


def text_of(point: Point) -> str:
    """``point`` as one line of JSON, the same for the same point."""
    return json.dumps(asdict(point), sort_keys=True)


def _worst(point: Point, settings: Settings) -> Document:
    request = _worst_request(point, settings)
    report = observe(request)
    counts = report.measurement
    return asdict(Worst(request.scenario, report.plan.variant, counts.instructions, counts.cycles))


def _worst_request(point: Point, settings: Settings) -> ProbeRequest:
    name, role = point.allocator, point.what
    own = f"paper-{role}"
    return ProbeRequest(
        allocator=allocator_of(point),
        target=settings.target,
        scenario=own
        if point.kind == "worst" and name in _STATES_OF_PAPERS and own in scenario_names(name)
        else f"worst-{role}",
        heap_bytes=point.heap_bytes,
        seed=0,
        initial_cache=None,
        compiler=settings.compiler,
        cross_check=False,
        cache_dir=settings.cache_dir,
    )


def _in_state_of(point: Point, settings: Settings) -> Document:
    """C06 table 3's matrix: the operations that are another allocator's worst state, and its malloc, on this one."""
    theirs = replace(point, kind="worst", allocator=point.what, what="alloc")
    plan = observe(_worst_request(theirs, settings)).plan
    program = load_program(allocator_of(point), settings.target, settings.compiler, settings.cache_dir)
    trace, slot = plan.trace, plan.measured.slot
    whole = Trace(
        kinds=(*trace.kinds, 0),
        slots=(*trace.slots, slot),
        sizes_bytes=(*trace.sizes_bytes, plan.measured.size_bytes),
        cache_sets=(0,) * (len(trace) + 1),
        slot_count=max(trace.slot_count, slot + 1),
    )
    with Machine(program.image, settings.target, program.instructions, program.costs, point.heap_bytes) as machine:
        init = program.allocator.entry_points["init"]
        if machine.call(init, machine.heap.base_address, point.heap_bytes):
            raise UsageError(f"{point.allocator} refused a heap of {point.heap_bytes} bytes; choose another.")
        columns = machine.replay_operations(whole, InitialCache.COLD)
    return {"instructions": int(columns.instructions[-1]), "cycles": int(columns.cycles[-1])}


def _run(point: Point, settings: Settings) -> Document:
    request = WorkloadRequest(
        allocator=allocator_of(point),
        target=settings.target,
        heap_bytes=point.heap_bytes,
        compiler=settings.compiler,
        cache_dir=settings.cache_dir,
        prove=False,
        placement=point.placement,
    )
    return run_document(run_batches(request, papers_batches(point.what, point.arguments)))


def _bound(point: Point, settings: Settings) -> Document:
    program = load_program(allocator_of(point), settings.target, settings.compiler, settings.cache_dir)
    try:
        bound = prove_operation(program, point.what, point.heap_bytes)
    except AnalysisError as error:
        return {"instructions": None, "cycles": None, "why": str(error)}
    return {"instructions": bound.instructions, "cycles": bound.cycles, "why": ""}


def _code(point: Point, settings: Settings) -> Document:
    program = load_program(allocator_of(point), settings.target, settings.compiler, settings.cache_dir)
    return {"code_bytes": sum(len(s.data) for s in program.image.segments if s.executable)}


def _per_size(point: Point, settings: Settings) -> Document:
    program = load_program(allocator_of(point), settings.target, settings.compiler, settings.cache_dir)
    found = bounds_per_size(PerSizeRequest(program, point.heap_bytes, point.arguments))
    ranges: Iterator[list[int]] = ([one.first_bytes, one.last_bytes, *one.cost] for one in found.malloc)
    return {"malloc": list(ranges), "free": list(found.free)}


def _scheduler(point: Point, settings: Settings) -> Document:
    bound = loop_bound(point.what, allocator_of(point), settings.target, settings.compiler, settings.cache_dir)
    return {"instructions": bound.instructions, "cycles": bound.cycles}


_MEASURES: Mapping[str, Callable[[Point, Settings], Document]] = MappingProxyType(
    {
        "worst": _worst,
        "dearest": _worst,
        "in-state-of": _in_state_of,
        "run": _run,
        "bound": _bound,
        "code": _code,
        "per-size": _per_size,
        "scheduler": _scheduler,
    }
)
