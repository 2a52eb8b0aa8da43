"""What the parts of a workload add up to: costs as distributions, memory over time, and both in stretches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import isqrt

import numpy as np
from numpy.typing import NDArray

from wcet_probe.emu.operations import OperationColumns
from wcet_probe.traces.batches import OperationBatch

UNITS = ("instructions", "cycles", "fetch_misses", "data_misses")
MOST_SAMPLES = 1 << 10
_COUNTED_DIRECTLY = 1 << 16
_HALF_BITS = 16
_Numbers = NDArray[np.int64]


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


@dataclass(slots=True)
class Tally:
    """Adds up the parts of a workload in order.

    Attributes:
        heap_bytes: of the heap.
        dedicated_bytes: of it, those of buckets at its end, which count as reached from the start.
        operations, refused: how many; allocations without a block.
        peak_live_bytes, peak_reached_bytes: see `MemorySample`.
        samples, windows: over the run, evenly, fewer than ``MOST_SAMPLES``.
        most_live: how many blocks of a size were live when most bytes were, by the size that was asked for.
        reached_at_most_live_bytes: the end of the highest block until then.
    """

    heap_bytes: int
    dedicated_bytes: int
    operations: int = 0
    refused: int = 0
    peak_live_bytes: int = 0
    peak_reached_bytes: int = 0
    samples: list[MemorySample] = field(default_factory=list)
    windows: list[MallocWindow] = field(default_factory=list)
    most_live: Mapping[int, int] = field(default_factory=dict)
    reached_at_most_live_bytes: int = 0
    _counts: dict[tuple[str, str], Counter[int]] = field(
        default_factory=lambda: {(role, unit): Counter() for role in ("malloc", "free") for unit in UNITS}
    )
    _held: _Numbers = field(default_factory=lambda: np.zeros(0, np.int64))
    _live: int = 0
    _rest: MallocWindow | None = None
    _stride: int = 1

    def __post_init__(self) -> None:
        self.peak_reached_bytes = self.dedicated_bytes

    @property
    def distributions(self) -> dict[tuple[str, str], Distribution]:
        """By role (``malloc``, ``free``) and unit of ``UNITS``."""
        return {key: Distribution(dict(sorted(calls.items()))) for key, calls in self._counts.items()}

    def add(self, batch: OperationBatch, columns: OperationColumns, heap_address: int) -> None:
        """Add the operations of ``batch`` and what they counted."""
        mallocs = ~batch.frees
        for unit in UNITS:
            column = getattr(columns, unit)
            for role, chosen in (("malloc", mallocs), ("free", batch.frees)):
                self._counts[role, unit].update(_counted(column[chosen]))
        given = mallocs & (columns.results != 0)
        self.refused += int(mallocs.sum() - given.sum())
        held = self._held.copy()
        live = self._live + np.cumsum(self._changes(batch, given))
        reached = self._reached(batch, given, columns.results - heap_address)
        if int(live.max()) > self.peak_live_bytes:
            at = int(live.argmax())
            self.most_live = _held_behind(held, batch, given, at, len(self._held))
            self.reached_at_most_live_bytes = int(reached[at])
        self._live = int(live[-1])
        self.peak_live_bytes = max(self.peak_live_bytes, int(live.max()))
        self.peak_reached_bytes = int(reached[-1])
        self._sample(live, reached, mallocs, columns.instructions)

    def _changes(self, batch: OperationBatch, given: NDArray[np.bool_]) -> _Numbers:
        """What each operation adds to what is live: a free takes what the operation before gave to its slot."""
        granted = np.where(given, batch.sizes_bytes, 0)
        order = np.argsort(batch.slots, kind="stable")
        slots, sizes = batch.slots[order], granted[order]
        if slots[-1] >= len(self._held):
            self._held = np.concatenate((self._held, np.zeros(int(slots[-1]) + 1, np.int64)))
        follows = np.concatenate((slots[1:] == slots[:-1], [False]))
        before = self._held[slots]
        before[1:][follows[:-1]] = sizes[:-1][follows[:-1]]
        self._held[slots[~follows]] = sizes[~follows]
        changes = np.empty(len(batch), np.int64)
        changes[order] = np.where(batch.frees[order], -before, sizes)
        return changes

    def _reached(self, batch: OperationBatch, given: NDArray[np.bool_], places: _Numbers) -> _Numbers:
        """The end of the highest block so far, behind each operation; bucket blocks lie in what counts anyway."""
        shared = given & (places < self.heap_bytes - self.dedicated_bytes)
        ends = np.where(shared, places + batch.sizes_bytes + self.dedicated_bytes, 0)
        return np.maximum.accumulate(np.maximum(ends, self.peak_reached_bytes))

    def _sample(self, live: _Numbers, reached: _Numbers, mallocs: NDArray[np.bool_], instructions: _Numbers) -> None:
        """Take samples at each multiple of the stride, which doubles where there would be too many."""
        done, count = 0, len(live)
        while done < count:
            first = self._stride - self.operations % self._stride
            ends = np.arange(done + first, count + 1, self._stride)[: MOST_SAMPLES - len(self.samples)]
            stop = count if len(ends) < MOST_SAMPLES - len(self.samples) else int(ends[-1])
            for end in ends.tolist():
                self.samples.append(
                    MemorySample(self.operations + end - done, int(live[end - 1]), int(reached[end - 1]))
                )
            borders = [done, *ends.tolist(), *([stop] if not len(ends) or ends[-1] < stop else [])]
            for window in _windows(borders, mallocs, instructions, self.operations - done):
                whole = self._rest.joined(window) if self._rest else window
                closed = window.operation % self._stride == 0
                self._rest = None if closed else whole
                self.windows += [whole] if closed else []
            self.operations += stop - done
            done = stop
            if len(self.samples) == MOST_SAMPLES:
                self.samples = self.samples[1::2]
                self.windows = [a.joined(b) for a, b in zip(self.windows[::2], self.windows[1::2], strict=True)]
                self._stride *= 2


def _held_behind(
    held: _Numbers, batch: OperationBatch, given: NDArray[np.bool_], operation: int, slots: int
) -> dict[int, int]:
    """How many blocks of a size are held behind ``operation`` of a batch that began with ``held``."""
    now = np.zeros(slots, np.int64)
    now[: len(held)] = held
    until = slice(operation + 1)
    now[batch.slots[until]] = np.where(given[until], batch.sizes_bytes[until], 0)
    return _counted(now[now > 0])


def _counted(values: _Numbers) -> dict[int, int]:
    """How often each value is there."""
    if not len(values):
        return {}
    if int(values.max()) < _COUNTED_DIRECTLY:
        calls = np.bincount(values)
        found = np.flatnonzero(calls)
        return dict(zip(found.tolist(), calls[found].tolist(), strict=True))
    found, calls = np.unique(values, return_counts=True)
    return dict(zip(found.tolist(), calls.tolist(), strict=True))


def _windows(
    borders: list[int], mallocs: NDArray[np.bool_], instructions: _Numbers, operations: int
) -> list[MallocWindow]:
    """The stretches between ``borders``; ``operations`` is the number of the first operation, less one.

    Squares are added in halves, as those of long calls are beyond a word.
    """
    first, last = borders[0], borders[-1]
    starts = np.array(borders[:-1]) - first
    chosen, values = mallocs[first:last], instructions[first:last]
    costs = np.where(chosen, values, 0)
    high, low = costs >> _HALF_BITS, costs & ((1 << _HALF_BITS) - 1)
    columns = [np.add.reduceat(column, starts).tolist() for column in (chosen.astype(np.int64), costs)]
    squares = [np.add.reduceat(column, starts).tolist() for column in (high * high, high * low, low * low)]
    least = np.minimum.reduceat(np.where(chosen, values, np.iinfo(np.int64).max), starts).tolist()
    most = np.maximum.reduceat(costs, starts).tolist()
    return [
        MallocWindow(
            operations + end,
            calls,
            total,
            (hh << 2 * _HALF_BITS) + (hl << _HALF_BITS + 1) + ll,
            smallest if calls else 0,
            largest,
        )
        for end, calls, total, hh, hl, ll, smallest, largest in zip(
            borders[1:], *columns, *squares, least, most, strict=True
        )
    ]
