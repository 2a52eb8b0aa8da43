"""Campaigns: no row is lost or doubled, whoever dies; one seam for local processes and a cluster's."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pytest

from tests.support import images_dir
from wcet_probe.answer.papers import campaign
from wcet_probe.answer.papers.campaign import attempt, cluster_executors, local_executors, measure_all
from wcet_probe.answer.papers.points import Point, Settings
from wcet_probe.answer.papers.store import Result, ResultStore
from wcet_probe.catalog.lookup import load_target
from wcet_probe.errors import UsageError

HEAP_BYTES = 64 << 10


def settings(images: Path | None = None) -> Settings:
    return Settings(load_target("cortex-m4"), "zig", images or images_dir())


def point(seed: int, allocations: int = 50, allocator: str = "tlsf") -> Point:
    return Point("run", allocator, "m06", (), HEAP_BYTES, "mean", (seed, allocations))


def bad_point() -> Point:
    return Point("run", "tlsf", "m06", (), 16, "mean", (0, 10))


@contextmanager
def here():
    with ThreadPoolExecutor(1) as executor:
        yield executor


def test_what_is_stored_comes_back_and_can_be_queried(tmp_path):
    store = ResultStore(tmp_path, settings())
    points = [point(seed) for seed in range(3)]
    assert measure_all([*points, *points], store, here).measured == 3
    assert measure_all(points, store, here).measured == 0
    assert all(store.get(one) == attempt(one, store.settings) for one in points)
    query = f"SELECT count(*), count(DISTINCT key), min(operations) FROM '{tmp_path}/*.parquet' WHERE kind = 'run'"  # noqa: S608
    with duckdb.connect() as database:
        assert database.execute(query).fetchall() == [(3, 3, 100)]
    assert [row["arguments"] for row in store.rows()] == ["[0, 50]", "[1, 50]", "[2, 50]"]


def test_a_failure_is_a_row_with_its_reason_and_is_tried_again(tmp_path):
    store = ResultStore(tmp_path, settings())
    assert measure_all([bad_point()], store, here).measured == 1
    (row,) = store.rows()
    assert row["error"].startswith("UsageError: tlsf refused a heap of 16 bytes")
    assert measure_all([bad_point()], store, here).measured == 1
    assert len(list(store.rows())) == 1


class Forgetful(ThreadPoolExecutor):
    """Cancels what it is given, as Dask's executor does when the connection to the scheduler is lost."""

    def submit(self, *_arguments):
        future = Future()
        future.cancel()
        future.set_running_or_notify_cancel()
        return future


def forgetful(times):
    """Executors of which the first ``times`` let go of everything."""
    made = iter(range(1 << 10))

    @contextmanager
    def started():
        with (Forgetful if next(made) < times else ThreadPoolExecutor)(1) as executor:
            yield executor

    return started


def test_what_an_executor_lets_go_of_is_measured_again(tmp_path, monkeypatch):
    monkeypatch.setattr(campaign, "attempt", lambda *_: Result({"operations": 1, **EMPTY}, ""))
    points = [point(seed) for seed in range(4)]
    found, lost = (ResultStore(tmp_path / name, settings()) for name in ("found", "lost"))
    assert not measure_all(points, found, forgetful(2)).failed
    assert [row["error"] for row in found.rows()] == [""] * 4
    assert set(measure_all(points[:2], lost, forgetful(99)).failed.values()) == {
        "ConnectionLost: the scheduler let go of it 3 times"
    }


def test_results_of_another_core_are_others(tmp_path):
    cortex, powerpc = (
        ResultStore(tmp_path, Settings(load_target(name), "zig", images_dir())) for name in ("cortex-m4", "mpc603e")
    )
    cortex.put(point(0), Result({"operations": 1, **EMPTY}, ""))
    assert powerpc.get(point(0)) is None
    assert cortex.get(point(0)) is not None


@pytest.mark.slow
def test_a_process_that_dies_costs_its_own_point_only(tmp_path, monkeypatch):
    """The executor breaks: its other points are measured, and the one that kills is told of."""
    monkeypatch.setattr(campaign, "attempt", kill_at_seed_1)
    store = ResultStore(tmp_path, settings())
    assert measure_all([point(seed) for seed in range(3)], store, local_executors(1)).measured == 3
    assert [row["error"] for row in store.rows()] == ["", "WorkerDied: its process died 3 times", ""]


def kill_at_seed_1(asked: Point, _settings: Settings) -> Result:
    if asked.arguments[0] == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return Result({"operations": 1, **EMPTY}, "")


EMPTY = {
    "refused": 0,
    "distributions": [[role, "instructions", [1], [1]] for role in ("malloc", "free")],
    "peak_live_bytes": 1,
    "peak_reached_bytes": 1,
    "samples": [],
    "windows": [],
    "static_bytes": 0,
}

CAMPAIGN = """
import sys
from pathlib import Path
from tests.answer.papers.test_campaign import here, point, settings
from wcet_probe.answer.papers.campaign import measure_all
from wcet_probe.answer.papers.store import ResultStore
points = [point(seed) for seed in range(int(sys.argv[3]))]
measure_all(points, ResultStore(Path(sys.argv[1]), settings(Path(sys.argv[2]))), here)
"""


POINTS = 20


def test_a_campaign_that_is_killed_goes_on_with_no_row_lost_or_doubled(tmp_path):
    rows_before_the_kill = 3
    root = Path(__file__).parents[3]
    command = [sys.executable, "-c", CAMPAIGN, str(tmp_path), str(images_dir()), str(POINTS)]
    process = subprocess.Popen(command, cwd=root, env={**os.environ, "PYTHONPATH": str(root)})
    try:
        deadline = time.monotonic() + 120
        while len(list(tmp_path.glob("*.parquet"))) < rows_before_the_kill and time.monotonic() < deadline:
            time.sleep(0.002)
    finally:
        process.kill()
    assert process.wait() == -signal.SIGKILL
    store = ResultStore(tmp_path, settings())
    before = list(store.rows())
    assert rows_before_the_kill <= len(before) < POINTS
    points = [point(seed) for seed in range(POINTS)]
    assert measure_all(points, store, here).measured == POINTS - len(before)
    after = list(store.rows())
    assert len(after) == len({row["key"] for row in after}) == POINTS
    assert [row for row in after if row in before] == before
    assert not any(row["error"] for row in after)


WORKER = """
import os, time
from wcet_probe.answer.papers.campaign import local_executors
if __name__ == "__main__":
    with local_executors(1)() as executor:
        print(executor.submit(os.getpid).result(), flush=True)
        time.sleep(60)
"""


def test_the_workers_of_a_campaign_that_is_killed_end(tmp_path):
    script = tmp_path / "worker.py"
    script.write_text(WORKER)
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True) as process:
        worker = int(process.stdout.readline())
        process.kill()
    wait_for(lambda: not runs(worker))


def runs(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def test_a_cluster_that_is_not_there(monkeypatch):
    import distributed

    client = distributed.Client
    monkeypatch.setattr(distributed, "Client", lambda address, timeout: client(address, timeout=timeout / 20))
    with pytest.raises(UsageError, match="there is no scheduler at"), cluster_executors("tcp://127.0.0.1:9")():
        pass


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_cluster_gives_the_same_rows_though_a_worker_is_killed(tmp_path):
    """A real scheduler and two worker processes on loopback; the one that has most in hand is killed."""
    points = [*(point(seed, 2000, name) for seed in range(6) for name in ("tlsf", "best-fit")), bad_point()]
    alone, together = (ResultStore(tmp_path / name, settings()) for name in ("alone", "together"))
    measure_all(points, alone, here)
    root = Path(__file__).parents[3]
    address = tmp_path / "scheduler.json"
    common = {"cwd": root, "env": {**os.environ, "PYTHONPATH": str(root)}, "stderr": subprocess.DEVNULL}
    scheduler = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0"]
    quiet = ["--no-dashboard", "--scheduler-file", str(address)]
    worker = [sys.executable, "-m", "distributed.cli.dask_worker", "--scheduler-file", str(address), "--nthreads", "1"]
    processes = [subprocess.Popen([*scheduler, *quiet], **common)]
    try:
        wait_for(lambda: address.exists() and address.stat().st_size)
        processes += [subprocess.Popen([*worker, "--no-nanny", "--no-dashboard"], **common) for _ in range(2)]
        where = json.loads(address.read_text())["address"]
        killed = []

        def kill_one(_text: str, done: int = 0, _total: int = 0, /) -> None:
            if done >= 3 and not killed:
                processes[1].kill()
                killed.append(processes[1].wait())

        measure_all(points, together, cluster_executors(where), kill_one)
    finally:
        for process in processes:
            process.kill()
            process.wait()
    assert killed == [-signal.SIGKILL]
    assert list(together.rows()) == list(alone.rows())
    assert sum(bool(row["error"]) for row in together.rows()) == 1


def wait_for(condition) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)
