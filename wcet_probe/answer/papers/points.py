"""One measurement of a campaign as a value that can be sent anywhere: what is measured, and what was found.

A point is plain data, and so is its result: another process, or another machine that has this package, measures it and
finds the same. Nothing of a result depends on where it was measured, or on when.
"""

from __future__ import annotations

import copyreg
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from wcet_probe.answer.workloads.workload_tally import Distribution, MallocWindow, MemorySample
from wcet_probe.catalog.lookup import load_allocator
from wcet_probe.model.allocator import Allocator
from wcet_probe.model.target import Target

if TYPE_CHECKING:  # who measures no workload does not depend on it
    from wcet_probe.answer.workloads.workload_run import Placement

Kind = Literal["worst", "dearest", "in-state-of", "run", "bound", "code", "per-size", "scheduler"]
Document = Mapping[str, Any]


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


def text_of(point: Point) -> str:
    """``point`` as one line of JSON, the same for the same point."""
    return json.dumps(asdict(point), sort_keys=True)
