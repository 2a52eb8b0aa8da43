"""Many points measured through one seam, an executor of `concurrent.futures`: local processes, or those of a cluster.

A few points are handed out at a time, so that memory does not follow their number, and each result is stored when it
comes. A point that cannot be measured is a result too: its reason. What the store has is not measured again.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
    wait,
)
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

from wcet_probe.answer.papers.measuring import measure
from wcet_probe.answer.papers.points import Point, Settings
from wcet_probe.answer.papers.store import Result, ResultStore
from wcet_probe.errors import UsageError, WcetProbeError
from wcet_probe.progress import Progress, silent

Executors = Callable[[], AbstractContextManager[Executor]]
_AT_ONCE = 32
_ATTEMPTS = 3
_DIED = f"WorkerDied: its process died {_ATTEMPTS} times"
_LET_GO = f"ConnectionLost: the scheduler let go of it {_ATTEMPTS} times"


def attempt(point: Point, settings: Settings) -> Result:
    """Measure ``point``, here or wherever this is sent to; the reason where that fails."""
    try:
        return Result(measure(point, settings), "")
    except WcetProbeError as error:
        return Result(None, f"{type(error).__name__}: {error}")


def _end_with_parent() -> None:
    """A worker whose campaign was killed would wait for points for ever."""
    parent = multiprocessing.parent_process()

    def watch() -> None:
        if parent:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def local_executors(processes: int | None = None) -> Executors:
    """``processes`` of this machine, or as many as this one may use cores."""

    @contextmanager
    def started() -> Iterator[Executor]:
        count = processes or len(os.sched_getaffinity(0))
        context = multiprocessing.get_context("spawn")
        executor = ProcessPoolExecutor(count, mp_context=context, initializer=_end_with_parent)
        try:
            yield executor
        finally:
            executor.shutdown(cancel_futures=True)

    return started


LOCAL_EXECUTORS = local_executors()


def cluster_executors(address: str) -> Executors:
    """Workers of Dask distributed behind the scheduler at ``address``; they need this package, of the same version.

    Raises:
        UsageError: Dask distributed is not installed.
    """
    try:
        from distributed import Client  # noqa: PLC0415  (an extra: only who asks for a cluster needs it)
    except ImportError as error:
        raise UsageError(
            "--cluster needs Dask distributed, which is not installed; install 'wcet-probe[cluster]'."
        ) from error

    connect: Any = Client  # untyped

    @contextmanager
    def connected() -> Iterator[Executor]:
        try:
            client = connect(address, timeout=10)
        except (OSError, ValueError) as error:
            raise UsageError(f"there is no scheduler at {address}; start one: dask scheduler.") from error
        try:
            yield client.get_executor(pure=False, retries=_ATTEMPTS)
        finally:
            client.close()

    return connected


def measure_all(
    points: Collection[Point], store: ResultStore, executors: Executors = LOCAL_EXECUTORS, progress: Progress = silent
) -> Outcome:
    """Measure those of ``points`` that ``store`` does not have.

    A worker that dies takes no result with it: what it had in hand is measured again, one point at a time where the
    executor itself broke, so that a point that ends its process each time is found and told of.

    Raises:
        WcetProbeError: the store cannot be written.
        UsageError: there is no such cluster.
    """
    waiting = deque((point, 1) for point in sorted(set(points), key=_turn) if store.get(point) is None)
    total = len(waiting)
    told = _Told(progress, total, store)
    at_once = _AT_ONCE
    while waiting:
        with executors() as executor:
            at_once = _AT_ONCE if _drain(waiting, at_once, executor, store.settings, told) else 1
    return Outcome(total, told.failed)


def _turn(point: Point) -> tuple[object, ...]:
    """All of a seed come before the next seed: what was stopped has whole seeds."""
    return (point.kind, point.arguments[:1], point)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How many points there were to measure, and the reasons of those that could not be."""

    measured: int
    failed: Mapping[Point, str]


class _Told:
    """Keeps what is done, and tells of it with the time that the rest will take."""

    def __init__(self, progress: Progress, total: int, store: ResultStore) -> None:
        self._progress, self._total, self._done = progress, total, 0
        self._store = store
        self.failed: dict[Point, str] = {}
        self._begun = time.monotonic()

    def of(self, point: Point, result: Result) -> None:
        """``point`` is done."""
        self._store.put(point, result)
        if result.error:
            self.failed[point] = result.error
        self._done += 1
        left = (time.monotonic() - self._begun) / self._done * (self._total - self._done)
        words = f"{self._done:,} of {self._total:,} measured, about {left / 60:.0f} minutes left: {point.words}"
        self._progress(words, self._done, self._total)


def _drain(
    waiting: deque[tuple[Point, int]], at_once: int, executor: Executor, settings: Settings, told: _Told
) -> bool:
    """Measure what is ``waiting`` until nothing is; False where the executor broke: then what it had waits again.

    So it does where the executor let go of it, as a cluster does when the connection to its scheduler is lost.
    """
    running: dict[Future[Result], tuple[Point, int]] = {}
    while waiting or running:
        try:
            while waiting and len(running) < at_once:
                future = executor.submit(attempt, waiting[0][0], settings)
                running[future] = waiting.popleft()
        except BrokenExecutor:
            _again(waiting, running, told, certain=at_once == 1)
            return False
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            try:
                result = future.result()
            except BrokenExecutor:
                _again(waiting, running, told, certain=at_once == 1)
                return False
            except CancelledError:
                _again(waiting, running, told, certain=True, reason=_LET_GO)
                return True
            except Exception as error:  # noqa: BLE001  (whatever a cluster or a bug says is the reason)
                result = Result(None, f"{type(error).__name__}: {error}")
            point, _ = running.pop(future)
            told.of(point, result)
    return True


def _again(
    waiting: deque[tuple[Point, int]],
    running: dict[Future[Result], tuple[Point, int]],
    told: _Told,
    *,
    certain: bool,
    reason: str = _DIED,
) -> None:
    """Let what was running wait again; if ``certain`` whose process died, but for who has done so too often."""
    for point, number in running.values():
        if certain and number == _ATTEMPTS:
            told.of(point, Result(None, reason))
        else:
            waiting.appendleft((point, number + certain))
