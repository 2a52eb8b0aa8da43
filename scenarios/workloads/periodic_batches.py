"""What periodic tasks ask for, as columns: a stretch of steps at once, so that memory follows what is held.

Each task draws from a stream of its own, so that what it asks for depends on the seed and its place among the tasks
alone. Draws are whole numbers made of the generator's raw words, the same wherever they are made. A normal size is a
sum of twelve uniform numbers, which stays within six deviations of its mean.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wcet_probe.traces.batches import OPERATIONS_AT_ONCE, OperationBatch
from wcet_probe.traces.operations import TraceRow

_TERMS_A_WORD, _NORMAL_WORDS = 4, 3
_TERM_MEAN_TIMES_12, _DEVIATION = 393_210, 65_536
"""Of the sum of twelve numbers that are uniform from 0 to 65,535."""

Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class PeriodicTask:
    """A task: ``requests`` blocks a period, sizes of about ``size_bytes``, held for a uniform number of steps.

    ``deviation_bytes`` is of a normal distribution of sizes; 0: all are alike.
    """

    period_steps: int
    requests: int
    size_bytes: int
    deviation_bytes: float
    hold_steps: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Length:
    """How long tasks run: up to ``steps``, and up to the end of the step in which ``allocations`` is reached."""

    steps: int | None = None
    allocations: int | None = None


@dataclass(frozen=True, slots=True)
class _Held:
    """Blocks in the order in which they are due, of one time in that of their allocation."""

    freed_at: Numbers
    until: Numbers
    blocks: Numbers

    def where(self, chosen: NDArray[np.bool_]) -> _Held:
        return _Held(self.freed_at[chosen], self.until[chosen], self.blocks[chosen])


def periodic_rows(
    tasks: Sequence[PeriodicTask], seed: int, length: Length, collection_period_steps: int | None = None
) -> Iterator[TraceRow]:
    """The operations of `periodic_batches` as rows of a trace."""
    for frees, blocks, sizes in _events(tasks, seed, length, collection_period_steps):
        for is_free, block, size in zip(frees.tolist(), blocks.tolist(), sizes.tolist(), strict=True):
            yield TraceRow("free", block) if is_free else TraceRow("malloc", block, size)


def periodic_batches(
    tasks: Sequence[PeriodicTask], seed: int, length: Length, collection_period_steps: int | None = None
) -> Iterator[OperationBatch]:
    """What ``tasks`` ask for, from step 0 on; a task is released at each multiple of its period.

    Blocks are freed at the beginning of the step at which they are held no longer. With ``collection_period_steps`` a
    task of that period frees them (delayed deallocation, M06 §3). What is held at the end is freed there.
    """
    ring = _most_held(tasks, collection_period_steps or 1)
    for frees, blocks, sizes in _events(tasks, seed, length, collection_period_steps):
        for first in range(0, len(frees), OPERATIONS_AT_ONCE):
            part = slice(first, first + OPERATIONS_AT_ONCE)
            yield OperationBatch(frees[part], (blocks[part] - 1) % ring, sizes[part])


def _most_held(tasks: Sequence[PeriodicTask], collection_period_steps: int) -> int:
    """More blocks than are allocated while one is held: numbers of live blocks differ by less."""
    longest = max((task.hold_steps[1] for task in tasks), default=0) + collection_period_steps
    return 1 + sum(task.requests * (longest // task.period_steps + 1) for task in tasks)


def _events(
    tasks: Sequence[PeriodicTask], seed: int, length: Length, collection_period_steps: int | None
) -> Iterator[tuple[NDArray[np.bool_], Numbers, Numbers]]:
    """Stretches of operations: which are frees, their blocks from 1 on, and sizes."""
    streams = [np.random.PCG64([seed, number]) for number in range(len(tasks))]
    rate = sum(2 * task.requests / task.period_steps for task in tasks)
    stretch = max(1, int(OPERATIONS_AT_ONCE / (rate or 1)))
    none = np.empty(0, np.int64)
    held, blocks, start, goes_on = _Held(none, none, none), 0, 0, bool(tasks)
    while goes_on and not _reached(length, start, blocks):
        end = start + stretch if length.steps is None else min(start + stretch, length.steps)
        steps, sizes, until = _requests(tasks, streams, start, end)
        if length.allocations is not None and blocks + len(steps) >= length.allocations:
            end, goes_on = int(steps[length.allocations - blocks - 1]) + 1, False
        kept = int(np.searchsorted(steps, end))
        steps, sizes, until = steps[:kept], sizes[:kept], until[:kept]
        numbers = np.arange(blocks + 1, blocks + kept + 1)
        period = collection_period_steps or 1
        held = _joined(held, _Held(-(-until // period) * period, until, numbers))
        due = held.freed_at < end
        yield _merged(held.where(due), steps, numbers, sizes)
        held, blocks, start = held.where(~due), blocks + kept, end
    yield np.ones(len(held.blocks), bool), held.blocks, np.zeros(len(held.blocks), np.int64)


def _reached(length: Length, step: int, blocks: int) -> bool:
    return (length.steps is not None and step >= length.steps) or (
        length.allocations is not None and blocks >= length.allocations
    )


def _requests(
    tasks: Sequence[PeriodicTask], streams: Sequence[np.random.PCG64], start: int, end: int
) -> tuple[Numbers, Numbers, Numbers]:
    """What is asked for from ``start`` to before ``end``: steps, sizes, and when each is held no longer."""
    steps, sizes, until = [], [], []
    for task, stream in zip(tasks, streams, strict=True):
        first = -(-start // task.period_steps) * task.period_steps
        own = np.repeat(np.arange(first, end, task.period_steps), task.requests)
        least, most = task.hold_steps
        words = stream.random_raw(len(own)) >> np.uint64(32)
        steps.append(own)
        until.append(own + least + (words * np.uint64(most - least + 1) >> np.uint64(32)).astype(np.int64))
        sizes.append(_sizes(task, stream, len(own)))
    all_steps = np.concatenate(steps)
    order = np.argsort(all_steps, kind="stable")
    return all_steps[order], np.concatenate(sizes)[order], np.concatenate(until)[order]


def _sizes(task: PeriodicTask, stream: np.random.PCG64, count: int) -> Numbers:
    if not task.deviation_bytes:
        return np.full(count, max(1, task.size_bytes), np.int64)
    words = stream.random_raw(_NORMAL_WORDS * count).astype("<u8")
    terms = words.view("<u2").reshape(count, _TERMS_A_WORD * _NORMAL_WORDS).sum(axis=1, dtype=np.int64)
    normal = (terms - _TERM_MEAN_TIMES_12) / _DEVIATION
    sizes: Numbers = np.rint(task.size_bytes + task.deviation_bytes * normal).astype(np.int64)
    return np.maximum(np.int64(1), sizes)


def _joined(held: _Held, new: _Held) -> _Held:
    """Both, in the order in which they are due; ``new`` ones are of higher numbers."""
    until = np.concatenate((held.until, new.until))
    order = np.argsort(until, kind="stable")
    return _Held(
        np.concatenate((held.freed_at, new.freed_at))[order],
        until[order],
        np.concatenate((held.blocks, new.blocks))[order],
    )


def _merged(due: _Held, steps: Numbers, numbers: Numbers, sizes: Numbers) -> tuple[NDArray[np.bool_], Numbers, Numbers]:
    """Frees and allocations in the order of their steps; of one step frees come first."""
    order = np.argsort(np.concatenate((2 * due.freed_at, 2 * steps + 1)), kind="stable")
    is_free = np.arange(len(order)) < len(due.blocks)
    return (
        is_free[order],
        np.concatenate((due.blocks, numbers))[order],
        np.concatenate((np.zeros(len(due.blocks), np.int64), sizes))[order],
    )
