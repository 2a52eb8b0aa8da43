"""A workload run on an allocator: what each operation costs as a distribution, and how much memory it takes over time.

The operations come as a stream and are counted in parts, so that memory follows the live blocks and not the length.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from math import isqrt
from pathlib import Path
from typing import Literal

import numpy as np

from wcet_probe.answer.contradiction import check_most
from wcet_probe.answer.proving import prove_operation
from wcet_probe.build.program import Program, load_program
from wcet_probe.compiled.supply import translations
from wcet_probe.emu.machine import Machine
from wcet_probe.emu.operations import OperationColumns
from wcet_probe.errors import AnalysisError, StateError, UsageError
from wcet_probe.model.allocator import Allocator
from wcet_probe.model.image import Image
from wcet_probe.model.proof import Bound
from wcet_probe.model.scenario import InitialCache, OperationKind, Trace
from wcet_probe.model.target import Target
from wcet_probe.scenarios.budgeted import dedicated_bytes
from wcet_probe.traces.operations import HeapOperation

Placement = Literal["first", "consecutive", "in-turn"]
UNITS = ("instructions", "cycles", "fetch_misses", "data_misses")
PERCENTS = (50, 90, 99)
_OPERATIONS_AT_ONCE = 1 << 16
_MOST_SLOTS = 12_000_000
_MOST_SAMPLES = 1 << 9


@dataclass(frozen=True, slots=True)
class Distribution:
    """How often each value was counted; ``calls`` by value, in order of the values."""

    calls: Mapping[int, int]

    @property
    def count(self) -> int:
        """How many operations were counted."""
        return sum(self.calls.values())

    @property
    def mean(self) -> Fraction:
        """The mean; 0 where nothing was counted."""
        return Fraction(sum(value * calls for value, calls in self.calls.items()), max(1, self.count))

    @property
    def deviation(self) -> Fraction:
        """The standard deviation over all operations, cut to thousandths."""
        squares = Fraction(sum(value * value * calls for value, calls in self.calls.items()), max(1, self.count))
        return Fraction(isqrt(int((squares - self.mean**2) * 1_000_000)), 1000)

    @property
    def least(self) -> int:
        """The least value; 0 where nothing was counted."""
        return min(self.calls, default=0)

    @property
    def most(self) -> int:
        """The greatest value; 0 where nothing was counted."""
        return max(self.calls, default=0)

    def percentile(self, percent: int) -> int:
        """The least value that ``percent`` per cent of the operations do not exceed."""
        needed, seen = -(-self.count * percent // 100), 0
        for value, calls in self.calls.items():
            seen += calls
            if seen >= needed:
                return value
        return 0


@dataclass(frozen=True, slots=True)
class MemorySample:
    """Behind one operation: bytes that the program holds as it asked for them, and the end of the highest block so far.

    The end is counted from the start of the heap, and never falls.
    """

    operation: int
    live_bytes: int
    reached_bytes: int


@dataclass(frozen=True, slots=True)
class MallocWindow:
    """The mallocs of a stretch of a run.

    Attributes:
        operation: the last operation of the stretch.
        calls: mallocs in it.
        instructions, squares: the sum of their instructions, and that of the squares.
        least, most: of their instructions; 0 where there are none.
    """

    operation: int
    calls: int
    instructions: int
    squares: int
    least: int
    most: int

    def joined(self, later: MallocWindow) -> MallocWindow:
        """This stretch and the one behind it as one."""
        full = [window for window in (self, later) if window.calls]
        return MallocWindow(
            later.operation,
            self.calls + later.calls,
            self.instructions + later.instructions,
            self.squares + later.squares,
            min((window.least for window in full), default=0),
            max(self.most, later.most),
        )


@dataclass(frozen=True, slots=True)
class WorkloadRequest:
    """Which allocator runs the workload, on which core, in a heap of how many bytes, and whether bounds are proved.

    ``placement``: which set an allocator that takes a cache set is asked for, by the two ways of H11 §V.A:
    ``consecutive`` the one that the block would be in if blocks were put one behind the other; ``in-turn`` one set for
    as many blocks as fit into a line, then the next. Else set 0.
    """

    allocator: Allocator
    target: Target
    heap_bytes: int
    compiler: str
    cache_dir: Path
    prove: bool = True
    placement: Placement = "first"


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
        bounds: proved bounds by role, where they were asked for and are established.
    """

    image: Image
    operations: int
    refused: int
    distributions: Mapping[tuple[str, str], Distribution]
    peak_live_bytes: int
    peak_reached_bytes: int
    samples: tuple[MemorySample, ...]
    windows: tuple[MallocWindow, ...]
    bounds: Mapping[str, Bound]

    @property
    def fragmentation(self) -> Fraction:
        """Factor F of C06 §5 and M06 §4: the most memory used over the most memory live, less one."""
        return Fraction(self.peak_reached_bytes, max(1, self.peak_live_bytes)) - 1


def run_workload(
    request: WorkloadRequest, operations: Iterable[HeapOperation], progress: Callable[[str], None] = lambda _: None
) -> WorkloadRun:
    """Run ``operations`` on ``request``'s allocator; its caches are cold at the first and warm from then on.

    Raises:
        UsageError: the allocator refuses the heap, or more blocks are live at once than a replay has slots.
        BuildError: no image.
        EmulationError: the guest went astray.
        StateError: a heap invariant is broken afterwards.
        ContradictionError: an operation took more than is proved.
    """
    allocator, target = request.allocator, request.target
    progress(f"building {allocator.name} for {target.name}")
    program = load_program(allocator, target, request.compiler, request.cache_dir, request.heap_bytes)
    bounds = _bounds(request, program, progress) if request.prove else {}
    tally = _Tally(request.heap_bytes, dedicated_bytes(allocator.values))
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
        stream = iter(operations)
        while part := list(islice(stream, _OPERATIONS_AT_ONCE)):
            tally.add(part, machine.replay_operations(_trace(part, places), initial), machine.heap.base_address)
            initial = InitialCache.WARM
            progress(f"{tally.operations:,} operations")
        violated = machine.call(allocator.entry_points["check"])
    if violated:
        raise StateError(
            f"{allocator.name} broke heap invariant {violated} in the workload; its numbers are worthless: "
            "report this with the command line."
        )
    found = tally.result(program.image, bounds)
    for role, bound in bounds.items():
        for unit in ("instructions", "cycles"):
            check_most(bound, unit, found.distributions[role, unit].most, "the workload")
    return found


def _bounds(request: WorkloadRequest, program: Program, progress: Callable[[str], None]) -> dict[str, Bound]:
    bounds: dict[str, Bound] = {}
    for role in (OperationKind.MALLOC.value, OperationKind.FREE.value):
        try:
            bounds[role] = prove_operation(program, role, request.heap_bytes, progress)
        except AnalysisError as error:
            progress(f"no bound of {role}: {error}")
    return bounds


class _Places:
    """The cache sets that blocks are asked for, one after the other."""

    def __init__(self, request: WorkloadRequest) -> None:
        values = request.allocator.values
        self._kind = request.placement if request.allocator.takes_cache_set else "first"
        self._sets, self._line_bytes = values.get("cache-sets", 1), values.get("line-bytes", 1)
        self._address = self._set = self._filled = 0

    def of(self, operation: HeapOperation) -> int:
        """The set of the next block; 0 for what is freed."""
        if self._kind == "first" or operation.is_free:
            return 0
        if self._kind == "consecutive":
            place = self._address // self._line_bytes % self._sets
            self._address += operation.size_bytes
            return place
        self._filled += operation.size_bytes
        if self._filled > self._line_bytes:
            self._set, self._filled = (self._set + 1) % self._sets, operation.size_bytes
        return self._set


def _trace(part: list[HeapOperation], places: _Places) -> Trace:
    slots = 1 + max(operation.slot for operation in part)
    if slots > _MOST_SLOTS:
        raise UsageError(f"more than {_MOST_SLOTS:,} blocks are live at once; give a shorter trace.")
    return Trace(
        kinds=tuple(int(operation.is_free) for operation in part),
        slots=tuple(operation.slot for operation in part),
        sizes_bytes=tuple(operation.size_bytes for operation in part),
        cache_sets=tuple(map(places.of, part)),
        slot_count=slots,
    )


class _Tally:
    """What the parts of a workload add up to."""

    def __init__(self, heap_bytes: int, dedicated: int) -> None:
        self.operations = 0
        self._dedicated = self._reached = dedicated
        self._shared_bytes = heap_bytes - dedicated
        self._refused = 0
        self._counts: dict[tuple[str, str], Counter[int]] = {
            (role, unit): Counter() for role in ("malloc", "free") for unit in UNITS
        }
        self._held: dict[int, int] = {}
        self._live = self._peak_live = 0
        self._samples: list[MemorySample] = []
        self._windows: list[MallocWindow] = []
        self._costs: list[int] = []
        self._stride = 1

    def add(self, part: list[HeapOperation], columns: OperationColumns, heap_address: int) -> None:
        """Add the operations ``part`` and what they counted."""
        frees = np.fromiter((operation.is_free for operation in part), bool, len(part))
        for unit in UNITS:
            column = getattr(columns, unit)
            for role, chosen in (("malloc", ~frees), ("free", frees)):
                values, calls = np.unique(column[chosen], return_counts=True)
                self._counts[role, unit].update(dict(zip(values.tolist(), calls.tolist(), strict=True)))
        counts = zip(part, columns.results.tolist(), columns.instructions.tolist(), strict=True)
        for operation, result, instructions in counts:
            if operation.is_free:
                self._live -= self._held.pop(operation.slot, 0)
            elif result:
                self._held[operation.slot] = operation.size_bytes
                self._live += operation.size_bytes
                self._peak_live = max(self._peak_live, self._live)
                if result - heap_address < self._shared_bytes:
                    self._reached = max(self._reached, result + operation.size_bytes - heap_address + self._dedicated)
            else:
                self._refused += 1
            if not operation.is_free:
                self._costs.append(instructions)
            self.operations += 1
            if self.operations % self._stride == 0:
                self._sample()

    def _sample(self) -> None:
        self._samples.append(MemorySample(self.operations, self._live, self._reached))
        found = self._costs
        squares = sum(each * each for each in found)
        self._windows.append(
            MallocWindow(self.operations, len(found), sum(found), squares, min(found, default=0), max(found, default=0))
        )
        self._costs = []
        if len(self._samples) == 2 * _MOST_SAMPLES:
            self._samples = self._samples[1::2]
            self._windows = [a.joined(b) for a, b in zip(self._windows[::2], self._windows[1::2], strict=True)]
            self._stride *= 2

    def result(self, image: Image, bounds: Mapping[str, Bound]) -> WorkloadRun:
        """All of it."""
        return WorkloadRun(
            image=image,
            operations=self.operations,
            refused=self._refused,
            distributions={key: Distribution(dict(sorted(calls.items()))) for key, calls in self._counts.items()},
            peak_live_bytes=self._peak_live,
            peak_reached_bytes=self._reached,
            samples=tuple(self._samples),
            windows=tuple(self._windows),
            bounds=bounds,
        )
