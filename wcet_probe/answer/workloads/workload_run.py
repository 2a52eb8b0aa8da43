"""A workload run on an allocator: what each operation costs as a distribution, and how much memory it takes over time.

The operations come as a stream and are counted in parts, so that memory follows the live blocks and not the length.
Nothing is proved here, and nothing imported that proves; `bounded_run` holds a run against bounds.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from wcet_probe.answer.workloads.fragmentation_parts import (
    BLOCKS_OF_A_SIZE,
    FragmentationParts,
    block_bytes,
    fragmentation_parts,
)
from wcet_probe.answer.workloads.workload_tally import Distribution, MallocWindow, MemorySample, Tally
from wcet_probe.build.program import Program, load_program
from wcet_probe.compiled.supply import translations
from wcet_probe.emu.machine import Machine
from wcet_probe.errors import StateError, UsageError
from wcet_probe.model.allocator import Allocator
from wcet_probe.model.image import Image
from wcet_probe.model.proof import Bound
from wcet_probe.model.scenario import InitialCache, Trace
from wcet_probe.model.target import Target
from wcet_probe.scenarios.budgeted import dedicated_bytes
from wcet_probe.traces.batches import OperationBatch, batches
from wcet_probe.traces.operations import HeapOperation

Placement = Literal["first", "consecutive", "in-turn"]
PERCENTS = (50, 90, 99)
_MOST_SLOTS = 6_000_000
_MOST_BYTES = (1 << 32) - 1


@dataclass(frozen=True, slots=True)
class WorkloadRequest:
    """Which allocator runs the workload, on which core, in a heap of how many bytes.

    ``placement``: which set an allocator that takes a cache set is asked for, by the two ways of H11 §V.A:
    ``consecutive`` the one that the block would be in if blocks were put one behind the other; ``in-turn`` one set for
    as many blocks as fit into a line, then the next. Else set 0. ``parts``: whether fragmentation is told in parts,
    for which what a block of each live size takes is measured.
    """

    allocator: Allocator
    target: Target
    heap_bytes: int
    compiler: str
    cache_dir: Path
    placement: Placement = "first"
    parts: bool = False


@dataclass(frozen=True, slots=True)
class WorkloadRun:
    """What was counted.

    Attributes:
        image: the binary that ran.
        operations: how many.
        refused: allocations that the allocator refused; their later frees free nothing.
        distributions: by role (``malloc``, ``free``) and unit of ``UNITS``.
        peak_live_bytes: the most that the program held at once, as it asked for it.
        peak_reached_bytes: the end of the highest block ever given out, from the start of the heap; of ``budgeted``
            that of the shared region, and all buckets (R_max of L11).
        samples: over the run, evenly, at most 1,024.
        windows: what mallocs cost between two samples.
        parts: internal and external fragmentation, where they were asked for.
        bounds: proved bounds by role, as far as they are established; None where they were not asked for.
    """

    image: Image
    operations: int
    refused: int
    distributions: Mapping[tuple[str, str], Distribution]
    peak_live_bytes: int
    peak_reached_bytes: int
    samples: tuple[MemorySample, ...]
    windows: tuple[MallocWindow, ...]
    parts: FragmentationParts | None = None
    bounds: Mapping[str, Bound] | None = None

    @property
    def fragmentation(self) -> Fraction:
        """Factor F of C06 §5 and M06 §4: the most memory used over the most memory live, less one."""
        return Fraction(self.peak_reached_bytes, max(1, self.peak_live_bytes)) - 1


def run_workload(
    request: WorkloadRequest, operations: Iterable[HeapOperation], progress: Callable[[str], None] = lambda _: None
) -> WorkloadRun:
    """As `run_batches`, of ``operations`` one by one; raises what it raises."""
    return run_batches(request, batches(operations), progress)


def run_batches(
    request: WorkloadRequest, parts: Iterable[OperationBatch], progress: Callable[[str], None] = lambda _: None
) -> WorkloadRun:
    """Run ``parts`` on ``request``'s allocator; its caches are cold at the first and warm from then on.

    Raises:
        UsageError: the allocator refuses the heap, more blocks are live at once than a replay has slots, a request is
            beyond a word of the core, or there is no operation.
        BuildError: no image.
        EmulationError: the guest went astray.
        StateError: a heap invariant is broken afterwards.
    """
    allocator, target = request.allocator, request.target
    progress(f"building {allocator.name} for {target.name}")
    program = load_program(allocator, target, request.compiler, request.cache_dir, request.heap_bytes)
    tally = Tally(request.heap_bytes, dedicated_bytes(allocator.values))
    with Machine(
        program.image,
        target,
        program.instructions,
        program.costs,
        request.heap_bytes,
        translations=translations(program, request.cache_dir),
    ) as machine:
        if machine.call(allocator.entry_points["init"], machine.heap.base_address, request.heap_bytes):
            raise UsageError(f"{allocator.name} refused a heap of {request.heap_bytes} bytes; choose another --heap.")
        initial = InitialCache.COLD
        places = _Places(request)
        for batch in parts:
            tally.add(batch, machine.replay_operations(_trace(batch, places), initial), machine.heap.base_address)
            initial = InitialCache.WARM
            progress(f"{tally.operations:,} operations")
        violated = machine.call(allocator.entry_points["check"])
    if not tally.operations:
        raise UsageError("there is no operation to run; give a trace or a workload that has some.")
    if violated:
        raise StateError(
            f"{allocator.name} broke heap invariant {violated} in the workload; its numbers are worthless: "
            "report this with the command line."
        )
    return WorkloadRun(
        image=program.image,
        operations=tally.operations,
        refused=tally.refused,
        distributions=tally.distributions,
        peak_live_bytes=tally.peak_live_bytes,
        peak_reached_bytes=tally.peak_reached_bytes,
        samples=tuple(tally.samples),
        windows=tuple(tally.windows),
        parts=_parts(request, program, tally) if request.parts else None,
    )


def _parts(request: WorkloadRequest, program: Program, tally: Tally) -> FragmentationParts:
    sizes = {size: _sets_of(request, size) for size in tally.most_live}
    taken = block_bytes(program, request.heap_bytes, sizes)
    return fragmentation_parts(taken, tally.most_live, tally.reached_at_most_live_bytes)


def _sets_of(request: WorkloadRequest, size_bytes: int) -> tuple[int, ...]:
    """The cache sets of blocks of one size, one behind the other."""
    count = BLOCKS_OF_A_SIZE
    batch = OperationBatch(np.zeros(count, bool), np.arange(count), np.full(count, size_bytes, np.int64))
    return tuple(_Places(request).of(batch))


class _Places:
    """The cache sets that blocks are asked for, one after the other."""

    def __init__(self, request: WorkloadRequest) -> None:
        self._kind = request.placement if request.allocator.takes_cache_set else "first"
        self._sets, self._line_bytes = request.allocator.cache
        self._address = self._set = self._filled = 0

    def of(self, batch: OperationBatch) -> array[int]:
        """The set of each next block; 0 for what is freed."""
        if self._kind == "first":
            return array("I", bytes(4 * len(batch)))
        rows = zip(batch.frees.tolist(), batch.sizes_bytes.tolist(), strict=True)
        return array("I", [0 if is_free else self._next(size_bytes) for is_free, size_bytes in rows])

    def _next(self, size_bytes: int) -> int:
        if self._kind == "consecutive":
            place = self._address // self._line_bytes % self._sets
            self._address += size_bytes
            return place
        self._filled += size_bytes
        if self._filled > self._line_bytes:
            self._set, self._filled = (self._set + 1) % self._sets, size_bytes
        return self._set


def _trace(batch: OperationBatch, places: _Places) -> Trace:
    slots = 1 + int(batch.slots.max())
    if slots > _MOST_SLOTS:
        raise UsageError(f"more than {_MOST_SLOTS:,} blocks are live at once; give a shorter trace.")
    if int(batch.sizes_bytes.max()) > _MOST_BYTES:
        raise UsageError(
            f"a block of {int(batch.sizes_bytes.max()):,} bytes is beyond a word of the core; leave it out."
        )
    return Trace(
        kinds=_words(batch.frees),
        slots=_words(batch.slots),
        sizes_bytes=_words(batch.sizes_bytes),
        cache_sets=places.of(batch),
        slot_count=slots,
    )


def _words(column: NDArray[np.int64] | NDArray[np.bool_]) -> array[int]:
    return array("I", column.astype(np.uint32).tobytes())
