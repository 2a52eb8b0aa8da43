"""How many buckets of each size to set apart for a program: L11 §IV, from a profile of its trace.

J. Lee, J. Yi, Improving memory efficiency of dynamic memory allocators for real-time embedded systems, ETRI Journal
33(2), 2011. S_i are sizes, P_i(t) the blocks of size S_i that are live at time t, U(t) = Σ S_i P_i(t). N_i buckets are
chosen so that D = Σ S_i N_i is large, N_i ≤ P_i,max, and U^B(t) = Σ S_i max(N_i, P_i(t)) never exceeds U_max. Sizes
that get no buckets count in U as well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wcet_probe.answer.workloads.workload_run import WorkloadRequest, WorkloadRun, run_workload
from wcet_probe.catalog.lookup import load_allocator
from wcet_probe.errors import UsageError
from wcet_probe.model.target import Target
from wcet_probe.traces.operations import HeapOperation, TraceRow, heap_operations

MOST_SIZES = 8
"""Sizes that `budgeted` has stacks for."""
_OWN_CONFIGURATION = 5
_MOST_BUCKETS = 65_535
_MOST_CHOICES = 50_000_000
_ROWS_AT_ONCE = 1 << 16
Column = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Profile:
    """What a trace holds at its peaks; any other time holds less of everything than one of them.

    Attributes:
        sizes: S_i in bytes, falling.
        live: P_i(t), a row for each different peak, a column for each size.
        other_bytes: of all other sizes, for each peak.
    """

    sizes: tuple[int, ...]
    live: Column
    other_bytes: Column

    @property
    def most_live(self) -> tuple[int, ...]:
        """P_i,max."""
        return tuple(int(each) for each in self.live.max(axis=0))

    @property
    def most_used_bytes(self) -> int:
        """U_max."""
        return int(self.used((0,) * len(self.sizes)).max())

    def used(self, buckets: Iterable[int]) -> Column:
        """U^B(t) in bytes with N_i = ``buckets``; of zeros, U(t)."""
        reserved = np.maximum(self.live, np.array(tuple(buckets), np.int64))
        return reserved @ np.array(self.sizes, np.int64) + self.other_bytes


@dataclass(frozen=True, slots=True)
class Budget:
    """Buckets for sizes.

    Attributes:
        sizes, buckets: S_i in bytes, falling, and N_i.
        most_used_bytes: U_max.
        most_used_with_buckets_bytes: U^B_max.
        examined: choices of all N_i that were looked at; of the greedy algorithm, one.
        choices: all that there are.
    """

    sizes: tuple[int, ...]
    buckets: tuple[int, ...]
    most_used_bytes: int
    most_used_with_buckets_bytes: int
    examined: int
    choices: int

    @property
    def dedicated_bytes(self) -> int:
        """D."""
        return sum(size * buckets for size, buckets in zip(self.sizes, self.buckets, strict=True))

    @property
    def parameters(self) -> Mapping[str, int]:
        """The build parameters of ``budgeted:X``; sizes without buckets are left out: they only lengthen searches."""
        chosen = [pair for pair in zip(self.sizes, self.buckets, strict=True) if pair[1]]
        found = sorted(chosen) or [(self.sizes[-1], 0)]
        parameters = {"budget-objects": len(found), "budget-configuration": _OWN_CONFIGURATION}
        for number, (size, buckets) in enumerate(found, 1):
            parameters |= {f"budget-size-{number}": size, f"budget-buckets-{number}": buckets}
        return parameters


def profile(rows: Callable[[], Iterable[TraceRow]], sizes: Iterable[int] = (), most_sizes: int = MOST_SIZES) -> Profile:
    """Profile a trace.

    Parameters:
        rows: gives the rows of the trace, each time anew.
        sizes: S_i in bytes; none for those of which most bytes are live at once.
        most_sizes: how many of them.

    Raises:
        UsageError: the trace is wrong or empty, or too many sizes.
    """
    chosen = tuple(sorted(set(sizes), reverse=True)) or _heaviest(heap_operations(rows()), most_sizes)
    if not 0 < len(chosen) <= most_sizes:
        message = f"{len(chosen)} sizes are to have buckets; give 1 to {most_sizes} that the trace asks for."
        raise UsageError(message)
    column = {size: index for index, size in enumerate(chosen)}
    now, held = [0] * (len(chosen) + 1), dict[int, int]()
    peaks: list[list[int]] = []
    found = np.zeros((0, len(now)), np.int64)
    rising = False
    for operation in heap_operations(rows()):
        if operation.is_free:
            if rising:
                peaks.append(now.copy())
            size, by = held.pop(operation.slot), -1
        else:
            size, by = operation.size_bytes, 1
            held[operation.slot] = size
        rising = not operation.is_free
        index = column.get(size)
        now[-1 if index is None else index] += by * (size if index is None else 1)
        if len(peaks) == _ROWS_AT_ONCE:
            found = np.unique(np.concatenate((found, np.array(peaks, np.int64))), axis=0)
            peaks.clear()
    peaks.append(now)
    found = np.unique(np.concatenate((found, np.array(peaks, np.int64))), axis=0)
    return Profile(chosen, found[:, :-1], found[:, -1])


def _heaviest(operations: Iterable[HeapOperation], count: int) -> tuple[int, ...]:
    """The ``count`` sizes of which most bytes are live at once, falling."""
    now, most, held = Counter[int](), Counter[int](), dict[int, int]()
    for operation in operations:
        if operation.is_free:
            now[held.pop(operation.slot)] -= 1
        else:
            size = held[operation.slot] = operation.size_bytes
            now[size] += 1
            most[size] = max(most[size], now[size])
    dearest = sorted(most, key=lambda size: (-size * most[size], size))[:count]
    return tuple(sorted(dearest, reverse=True))


def greedy(found: Profile) -> Budget:
    """N_i by figure 4: size by size from the largest, each as many as the sizes before it leave room for."""
    buckets = [0] * len(found.sizes)
    limit, most = found.most_used_bytes, found.most_live
    for index, size in enumerate(found.sizes):
        room = limit - (found.used(buckets) - size * found.live[:, index])
        buckets[index] = min(most[index], int(room.min()) // size, _MOST_BUCKETS)
    return _budget(found, tuple(buckets), 1)


def exhaustive(found: Profile) -> Budget:
    """The N_i of the largest D, by all of their choices; those that cannot be better than the best so far are left out.

    Raises:
        UsageError: there are too many choices.
    """
    if _choices(found) > _MOST_CHOICES:
        message = (
            f"{_choices(found):,} choices of buckets are too many to look at; leave --exhaustive out, or give fewer "
            "sizes with --size."
        )
        raise UsageError(message)
    search = _Search(found)
    search.below(0, found.used((0,) * len(found.sizes)), 0)
    return _budget(found, tuple(search.best), search.examined)


class _Search:
    """Depth first, size by size, the most buckets first."""

    def __init__(self, found: Profile) -> None:
        self._found, self._limit = found, found.most_used_bytes
        self._most = found.most_live
        self._now = [0] * len(found.sizes)
        self._best_bytes = -1
        self.best = list(self._now)
        self.examined = 0

    def below(self, index: int, used: Column, dedicated: int) -> None:
        """All choices for the sizes from ``index`` on; ``used`` is U^B(t) of those before, ``dedicated`` their D."""
        if index == len(self._now):
            self.examined += 1
            if dedicated > self._best_bytes:
                self._best_bytes, self.best = dedicated, list(self._now)
            return
        sizes = self._found.sizes
        rest = sum(size * most for size, most in zip(sizes[index + 1 :], self._most[index + 1 :], strict=True))
        size, live = sizes[index], self._found.live[:, index]
        without = used - size * live
        first = min(self._most[index], int((self._limit - without).min()) // size, _MOST_BUCKETS)
        for buckets in range(first, -1, -1):
            if dedicated + size * buckets + rest <= self._best_bytes:
                break
            self._now[index] = buckets
            self.below(index + 1, without + size * np.maximum(live, buckets), dedicated + size * buckets)
        self._now[index] = 0


def _choices(found: Profile) -> int:
    return prod(most + 1 for most in found.most_live)


def _budget(found: Profile, buckets: tuple[int, ...], examined: int) -> Budget:
    most = int(found.used(buckets).max())
    return Budget(found.sizes, buckets, found.most_used_bytes, most, examined, _choices(found))


@dataclass(frozen=True, slots=True)
class EffectRequest:
    """Which allocator is X, with which preset, on which core, in a heap of how many bytes."""

    allocator: str
    preset: str | None
    target: Target
    heap_bytes: int
    compiler: str
    cache_dir: Path


@dataclass(frozen=True, slots=True)
class Effect:
    """What buckets change: memory reached (R_max), instructions of the whole trace, bytes of code and constants."""

    allocator: str
    reached_bytes: int
    reached_with_buckets_bytes: int
    instructions: int
    instructions_with_buckets: int
    code_bytes: int
    code_with_buckets_bytes: int
    refused: int
    refused_with_buckets: int


def measure_effect(
    request: EffectRequest,
    budget: Budget,
    rows: Callable[[], Iterable[TraceRow]],
    progress: Callable[[str], None] = lambda _: None,
) -> Effect:
    """Run the trace on X and on ``budgeted:X`` with the buckets of ``budget``.

    Raises:
        UsageError: no such allocator or preset, or a heap that is too small.
        BuildError: no image.
        StateError: a heap invariant is broken afterwards.
    """
    values = dict(load_allocator(request.allocator, preset=request.preset).values)
    allocators = (
        load_allocator(request.allocator, values),
        load_allocator(f"budgeted:{request.allocator}", {**values, **budget.parameters}),
    )
    plain, budgeted = (
        run_workload(
            WorkloadRequest(one, request.target, request.heap_bytes, request.compiler, request.cache_dir),
            heap_operations(rows()),
            progress,
        )
        for one in allocators
    )
    return Effect(
        allocator=request.allocator,
        reached_bytes=plain.peak_reached_bytes,
        reached_with_buckets_bytes=budgeted.peak_reached_bytes,
        instructions=_instructions(plain),
        instructions_with_buckets=_instructions(budgeted),
        code_bytes=_code_bytes(plain),
        code_with_buckets_bytes=_code_bytes(budgeted),
        refused=plain.refused,
        refused_with_buckets=budgeted.refused,
    )


def _instructions(run: WorkloadRun) -> int:
    found = (run.distributions[role, "instructions"].calls for role in ("malloc", "free"))
    return sum(value * calls for one in found for value, calls in one.items())


def _code_bytes(run: WorkloadRun) -> int:
    return sum(len(segment.data) for segment in run.image.segments if segment.executable)
