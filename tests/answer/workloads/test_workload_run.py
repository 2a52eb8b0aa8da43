"""A workload run held against a replay operation by operation, and against a model of what is live."""

from dataclasses import replace
from fractions import Fraction

import pytest

from tests.support import images_dir
from wcet_probe.answer.workloads import bounded_run
from wcet_probe.answer.workloads.bounded_run import run_bounded
from wcet_probe.answer.workloads.workload_run import WorkloadRequest, run_workload
from wcet_probe.answer.workloads.workload_tally import Distribution
from wcet_probe.build.program import load_program
from wcet_probe.catalog.lookup import load_allocator, load_target
from wcet_probe.emu.machine import Machine
from wcet_probe.errors import AnalysisError, ContradictionError, UsageError
from wcet_probe.model.scenario import InitialCache, Operation, OperationKind
from wcet_probe.reports.formats.workload import workload_document
from wcet_probe.reports.screens.workload import workload_lines
from wcet_probe.scenarios.traces import trace_of
from wcet_probe.scenarios.workloads.named import WORKLOADS, papers_rows, workload
from wcet_probe.traces.operations import HeapOperation, TraceRow, heap_operations


def request(name="tlsf", target="cortex-m4", heap_bytes=1 << 20, **more):
    return WorkloadRequest(load_allocator(name, {}, None), load_target(target), heap_bytes, "zig", images_dir(), **more)


def test_what_a_distribution_tells():
    found = Distribution({1: 50, 2: 40, 10: 9, 100: 1})
    assert (found.count, found.least, found.most) == (100, 1, 100)
    assert [found.percentile(percent) for percent in (50, 51, 90, 99, 100)] == [1, 2, 2, 10, 100]
    assert found.mean == Fraction(50 + 80 + 90 + 100, 100)
    assert abs(float(found.deviation) - 10.0429) < 0.001
    assert Distribution({}).mean == Distribution({}).most == Distribution({}).percentile(50) == 0


@pytest.mark.parametrize("target", ["cortex-m4", "arm926ej-s", "mpc603e", "e200z6"])
def test_the_first_operation_counts_what_a_measured_call_counts(target):
    """But for the stack of the harness, which shares lines with the call's."""
    wanted = request(target=target)
    program = load_program(wanted.allocator, wanted.target, "zig", images_dir())
    init, malloc = (wanted.allocator.entry_points[role] for role in ("init", "malloc"))

    def machine():
        return Machine(program.image, program.target, program.instructions, program.costs, 1 << 20)

    with machine() as one, machine() as other:
        one.call(init, one.heap.base_address, 1 << 20)
        other.call(init, other.heap.base_address, 1 << 20)
        first = one.replay_operations(trace_of([Operation(OperationKind.MALLOC, 0, 100)], 1), InitialCache.COLD)
        call = other.measure(malloc, (100,), InitialCache.COLD)
    assert first.instructions.tolist() == [call.instructions]
    assert first.results.tolist() == [call.result]
    assert 0 <= call.dcache.misses - int(first.data_misses[0]) <= 2
    assert abs(call.icache.misses - int(first.fetch_misses[0])) <= 2
    if wanted.target.icache is None:
        assert first.cycles.tolist() == [call.cycles]


def test_instructions_are_those_of_a_replay_of_the_same_operations():
    wanted = request("first-fit")
    rows = list(heap_operations(workload("mean").rows(3, 500)))
    found = run_bounded(wanted, rows)
    program = load_program(wanted.allocator, wanted.target, "zig", images_dir())
    with Machine(program.image, program.target, program.instructions, program.costs, wanted.heap_bytes) as machine:
        machine.call(wanted.allocator.entry_points["init"], machine.heap.base_address, wanted.heap_bytes)
        kinds = (OperationKind.MALLOC, OperationKind.FREE)
        steps = [Operation(kinds[row.is_free], row.slot, row.size_bytes) for row in rows]
        counts = machine.replay_counted(trace_of(steps, 1 + max(row.slot for row in rows)))
    for kind, role in enumerate(("malloc", "free")):
        mine = [count for count, row in zip(counts, rows, strict=True) if row.is_free == bool(kind)]
        assert found.distributions[role, "instructions"].count == len(mine)
        assert found.distributions[role, "instructions"].mean == Fraction(sum(mine), len(mine))
        assert found.distributions[role, "instructions"].most == max(mine) <= found.bounds[role].instructions


def test_memory_is_what_is_live_and_where_the_highest_block_ends():
    rows = [HeapOperation(False, 0, 1000, 1), HeapOperation(False, 1, 500, 2), HeapOperation(True, 0, 0, 3)]
    found = run_workload(request(), [*rows, HeapOperation(False, 0, 100, 4)])
    assert [(s.operation, s.live_bytes) for s in found.samples] == [(1, 1000), (2, 1500), (3, 500), (4, 600)]
    assert found.peak_live_bytes == 1500
    assert 1500 < found.peak_reached_bytes < 1600
    assert found.fragmentation == Fraction(found.peak_reached_bytes, 1500) - 1
    assert found.refused == 0


def test_what_is_refused_is_counted_and_frees_nothing():
    rows = [TraceRow("malloc", 1, 2 << 20), TraceRow("malloc", 2, 8), TraceRow("free", 1), TraceRow("free", 2)]
    found = run_workload(request(), heap_operations(rows))
    assert (found.refused, found.operations, found.peak_live_bytes) == (1, 4, 8)


def test_a_heap_that_is_refused():
    with pytest.raises(UsageError, match="refused a heap"):
        run_workload(request(heap_bytes=8), [])


def test_nothing_to_run_and_a_request_beyond_a_word_of_the_core():
    with pytest.raises(UsageError, match="no operation"):
        run_workload(request(), [])
    with pytest.raises(UsageError, match="4,294,967,296 bytes is beyond a word"):
        run_workload(request(), [HeapOperation(False, 0, 1 << 32, 1)])


LONG = ("patricia-large", "susan-large", "dijkstra-large")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name in LONG else []) for name in WORKLOADS]
)
def test_workloads_are_the_same_every_time_and_free_what_they_take(name):
    rows = list(workload(name).rows(5, 400))
    assert rows == list(workload(name).rows(5, 400))
    operations = list(heap_operations(rows))
    assert all(one.is_free or one.size_bytes >= 1 for one in operations)
    frees = sum(one.is_free for one in operations)
    if name.startswith("recorded-"):
        assert 0 < 2 * frees <= len(operations)
    else:
        assert 2 * frees == len(operations)
    if not workload(name).own_length:
        assert sum(row.kind == "malloc" for row in rows) >= 400


def test_delayed_deallocation_is_of_one_set_of_tasks_and_holds_more_the_rarer_it_is():
    names = [name for name in WORKLOADS if name.startswith("m06-test4-")]
    held = []
    for name in names:
        period_steps = int(name.rpartition("-")[2]) if "every" in name else 0
        rows = list(workload(name).rows(2, 2_000))
        assert rows == list(papers_rows("m06-test4", (2, 2_000, period_steps)))
        live, most = 0, 0
        for row in rows:
            live += 1 if row.kind == "malloc" else -1
            most = max(most, live)
        held.append(most)
    assert len(held) == 5
    assert held == sorted(set(held))


def test_the_mean_model_has_the_means_of_the_paper():
    rows = list(workload("mean").rows(0, 20_000))
    sizes = [row.size_bytes for row in rows if row.kind == "malloc"]
    live, most = 0, []
    for row in rows[: len(rows) // 2]:
        live += 1 if row.kind == "malloc" else -1
        most.append(live)
    assert abs(sum(sizes) / len(sizes) - 150) < 3
    assert abs(sum(most[2000:]) / len(most[2000:]) - 150) < 5


def test_frames_of_the_player_have_the_means_of_the_paper():
    rows = [row for row in workload("mpg123").rows(0, 2_008) if row.kind == "malloc"][8:]
    assert sum(row.size_bytes for row in rows) / len(rows) == 143


def test_where_no_bound_is_established_the_screen_says_so_and_where_none_was_asked_for_not(monkeypatch):
    def unknown(*_):
        raise AnalysisError("a loop has no bound")

    monkeypatch.setattr(bounded_run, "prove_operation", unknown)
    rows = [HeapOperation(False, 0, 100, 1), HeapOperation(True, 0, 0, 2)]
    asked, plain = run_bounded(request(), rows), run_workload(request(), rows)
    assert (asked.bounds, plain.bounds) == ({}, None)
    said = ["none is established" in "\n".join(workload_lines(request(), "two", one, 80)) for one in (asked, plain)]
    assert said == [True, False]
    assert workload_document(request(), "two", plain)["operations"] == 2


def test_the_screen_has_histograms_and_memory_over_time():
    rows = [
        *(HeapOperation(False, slot, 100, slot + 1) for slot in range(10)),
        *(HeapOperation(True, slot, 0, slot + 11) for slot in range(10)),
    ]
    found = run_workload(request(), rows)
    lines = [line.split() for line in workload_lines(request(), "twenty", found, 80)]
    at = lines.index(["instructions", "calls"])
    bins = [line for line in lines[at:] if line[:1] == ["malloc"]]
    assert sum(int(line[-2]) for line in bins) == 10
    assert len(bins) <= 8
    assert max(len(line[-1]) for line in bins) == 40
    over = lines[[line[:1] for line in lines].index(["operation"]) + 1 :][:5]
    assert [line[:2] for line in over] == [["4", "400"], ["8", "800"], ["12", "800"], ["16", "400"], ["20", "0"]]
    reached = found.peak_reached_bytes
    assert over[2][2:] == [f"{reached:,}", f"{reached / 8 - 100:.2f}", "%"]
    assert over[-1][2:] == [f"{reached:,}", "-"]


def test_an_operation_above_a_bound_is_a_contradiction(monkeypatch):
    proved = bounded_run.prove_operation
    monkeypatch.setattr(bounded_run, "prove_operation", lambda *given: replace(proved(*given), instructions=10))
    with pytest.raises(ContradictionError, match="at most 10 were proved"):
        run_bounded(request(), [HeapOperation(False, 0, 100, 1)])
