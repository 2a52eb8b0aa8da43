"""What the machine counts of one call, each trap of the engine on its own."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.emu.guests import ALL, FUNCTIONS, HEAP, IDS, Case, arguments_in, guest
from tests.support import TARGETS, assembler, cache_config, guest_of, guest_on, machine_of, tlsf_guest, trace_of
from wcet_probe.catalog.lookup import load_target
from wcet_probe.emu import observer
from wcet_probe.emu.machine import Machine
from wcet_probe.model.measurement import Measurement
from wcet_probe.model.scenario import InitialCache
from wcet_probe.model.target import Replacement

COLD, WARM, DIRTY = InitialCache


def measured(machine: Machine, case: Case, initial: InitialCache = COLD) -> Measurement:
    return machine.measure(case.function, arguments_in(machine, case.arguments), initial)


def assert_counts(measurement: Measurement, case: Case) -> None:
    assert (measurement.instructions, measurement.instruction_cycles, measurement.loads, measurement.stores) == (
        case.instructions,
        case.cycles,
        case.loads,
        case.stores,
    )
    assert case.result in {None, measurement.result}


@pytest.mark.parametrize(("target", "case"), ALL, ids=IDS)
def test_counts_worked_by_hand(target, case):
    with guest(target).machine() as machine:
        assert_counts(measured(machine, case), case)


@pytest.mark.parametrize(("target", "case"), ALL, ids=IDS)
def test_code_that_has_run_uninstrumented_is_counted_right_afterwards(target, case):
    with guest(target).machine() as machine:
        arguments = arguments_in(machine, case.arguments)
        machine.call(case.function, *arguments)
        assert machine.count(case.function, arguments) == case.instructions
        machine.call(case.function, *arguments)
        assert_counts(measured(machine, case), case)
        assert machine.count(case.function, arguments) == case.instructions


@pytest.mark.parametrize(("target", "case"), ALL, ids=IDS)
def test_the_runs_add_up_and_the_path_is_made_of_them(target, case):
    with guest(target).machine() as machine:
        measurement = measured(machine, case)
    assert sum(run.instructions * run.executions for run in measurement.runs) == case.instructions
    assert sum(measurement.runs[i].instructions for i in measurement.path) == case.instructions
    assert [measurement.path.count(i) for i in range(len(measurement.runs))] == [
        run.executions for run in measurement.runs
    ]
    assert measurement.path_complete


@pytest.mark.parametrize("target", ["cortex-m4", "arm926ej-s"])
@pytest.mark.parametrize("flags", range(16))
def test_every_condition_under_all_flags(target, flags):
    """The guest collects which conditions hold, and each that does loads a word."""
    with guest(target).machine() as machine:
        heap = machine.heap.base_address
        measurement = machine.measure("conditions", (flags << 28, heap), COLD)
    n, z, c, v = (bool(flags >> bit & 1) for bit in (3, 2, 1, 0))
    half = (z, c, n, v, c and not z, n == v, n == v and not z)
    expected = sum(1 << (2 * i + (not holds)) for i, holds in enumerate(half))
    assert (measurement.result, measurement.loads) == (expected, 7)
    thumb = target == "cortex-m4"
    assert measurement.instructions == (3 + 14 * 4 if thumb else 4 + 14 * 2)


def test_a_skipped_instruction_may_be_dearer_than_an_executed_one():
    target = load_target("arm926ej-s")
    dear = replace(target, condition_failed=replace(target.condition_failed, cycles=5))
    with guest_on(guest(target.name).image, dear).machine() as machine:
        assert machine.measure("early", (1,), COLD).instruction_cycles == 1 + 5 + 1 + 3
        assert machine.measure("popeq", (0,), COLD).instruction_cycles == 2 + 1 + 6
        assert machine.measure("select", (0, 0, machine.heap.base_address), COLD).instruction_cycles == (
            1 + 5 + 1 + 5 + 5 + 2 + 1 + 3
        )


# ---------------------------------------------------------------------------------------------------------- accesses


@pytest.mark.parametrize("target", TARGETS)
def test_an_access_that_straddles_a_line_is_one_access_and_touches_two_lines(target):
    cached = replace(load_target(target), dcache=cache_config(sets=8, ways=2, line_bytes=16))
    with guest_on(guest(target).image, cached).machine() as machine:
        measurement = machine.measure("unaligned", arguments_in(machine, (HEAP + 14,)), COLD)
    assert (measurement.loads, measurement.stores) == (2, 1)
    # The load at 14 misses two lines; the store at 30 hits one of them and misses the next; the halfword at 15 hits.
    counts = measurement.dcache
    assert (counts.read_misses, counts.write_hits, counts.write_misses, counts.read_hits) == (2, 1, 1, 2)
    assert measurement.touched_data_sets == (0, 1, 2)
    assert measurement.touched_bytes_by_region["heap_blocks"] == 16
    assert measurement.dcache.hits + measurement.dcache.misses == 6


@pytest.mark.parametrize("line_bytes", [16, 32, 64])
def test_a_cache_zero_touches_the_whole_line_of_the_core(line_bytes):
    target = load_target("mpc603e")
    cached = replace(target, dcache=cache_config(sets=8, ways=2, line_bytes=line_bytes))
    with guest_on(guest("mpc603e").image, cached).machine() as machine:
        address = machine.heap.base_address
        machine.memory.write(address, bytes(range(1, 225)))
        measurement = machine.measure("zero", (address + 37, 64), COLD)
        assert machine.memory.read(address, 160) == bytes(
            0 if 32 <= i < 64 or 96 <= i < 128 else i + 1 for i in range(160)
        )
    lines = max(1, 32 // line_bytes)
    assert measurement.stores == 2
    assert measurement.dcache.write_hits + measurement.dcache.write_misses == 2 * lines
    assert measurement.touched_bytes_by_region["heap_blocks"] == 64


def test_multiple_transfers_touch_each_word_of_the_list():
    for target, words in (("cortex-m4", 6), ("arm926ej-s", 6), ("mpc603e", 2)):
        with guest(target).machine() as machine:
            measurement = machine.measure("multiple", arguments_in(machine, (HEAP + 64,)), COLD)
        # cortex-m4: the words at 60 to 80; arm926ej-s: 64 to 84; mpc603e: 64 and 68. On the stack: the pushed ones.
        touched = measurement.touched_bytes_by_region
        assert touched["heap_blocks"] == 4 * words, target
        assert touched["stack"] == (4 * 5 if target == "mpc603e" else 4 * 4), target


def test_metadata_is_told_apart_from_the_rest_of_the_heap():
    with guest("arm926ej-s").machine() as machine:
        heap = machine.heap.base_address
        measurement = machine.measure("load_use", (heap,), COLD, lambda: [heap + 4])
    assert measurement.touched_bytes_by_region["heap_metadata"] == 4
    assert measurement.touched_bytes_by_region["heap_blocks"] == 4


# ------------------------------------------------------------------------------------------------------------- stack

STACK = [
    *((target, "plain", (), 0) for target in TARGETS),
    # A frame that is allocated and never touched.
    *((target, "frame", (), 64) for target in TARGETS),
    ("cortex-m4", "nested", (), 72),
    ("arm926ej-s", "nested", (), 72),
    ("mpc603e", "nested", (), 80),
    # Touched below the stack pointer, without a frame.
    *((target, "below", (1,), 12) for target in TARGETS),
    *((target, "maybe_frame", (0,), 0) for target in TARGETS),
    *((target, "maybe_frame", (1,), 32) for target in TARGETS),
    ("cortex-m4", "it_pop", (0,), 8),
    ("arm926ej-s", "popeq", (0,), 8),
    ("cortex-m4", "multiple", (HEAP + 64,), 16),
    ("arm926ej-s", "multiple", (HEAP + 64,), 16),
    ("mpc603e", "multiple", (HEAP + 64,), 32),
]


@pytest.mark.parametrize(("target", "function", "arguments", "expected"), STACK)
def test_bytes_of_stack(target, function, arguments, expected):
    with guest(target).machine() as machine:
        assert machine.measure(function, arguments_in(machine, arguments), COLD).stack_bytes == expected


# ------------------------------------------------------------------------------------------------------------ caches


@pytest.mark.parametrize("target", TARGETS)
def test_cold_warm_and_dirty_caches(target):
    icache, dcache = cache_config(16, 2, 32), cache_config(8, 2, 16)
    cached = replace(load_target(target), icache=replace(icache, write_back=False), dcache=dcache)
    values = tlsf_guest(target)
    with guest_on(values.image, cached).machine() as machine:
        machine.call("tlsf_init", machine.heap.base_address, 4096)
        trace = trace_of([(0, 0, 40), (0, 1, 40), (1, 0, 0), (0, 2, 24)])
        assert machine.replay_observed(trace) == 0
        snapshot = machine.memory.read(machine.heap.base_address, 4096)
        warm = machine.measure("tlsf_malloc", (40,), WARM)
        machine.memory.write(machine.heap.base_address, snapshot)
    results = {}
    for initial in (COLD, DIRTY):
        with guest_on(values.image, cached).machine() as machine:
            machine.call("tlsf_init", machine.heap.base_address, 4096)
            machine.replay(trace)
            results[initial] = machine.measure("tlsf_malloc", (40,), initial)
    cold, dirty = results[COLD], results[DIRTY]
    assert cold.instructions == dirty.instructions == warm.instructions
    assert cold.dcache.misses == dirty.dcache.misses > warm.dcache.misses
    assert cold.icache.misses == dirty.icache.misses > warm.icache.misses
    # Every line that is filled for the first time throws a dirty one out, and only in the data cache.
    assert cold.dcache.writebacks == 0
    assert dirty.dcache.writebacks == dirty.dcache.misses
    assert dirty.icache.writebacks == 0
    memory = cached.memory
    fills = dirty.icache.misses * memory.line_cycles(32) + 2 * dirty.dcache.misses * memory.line_cycles(16)
    assert dirty.stall_cycles == fills
    assert dirty.cycles == dirty.instruction_cycles + fills


def test_an_instruction_cache_has_nothing_to_write_back():
    cached = replace(load_target("mpc603e"), icache=cache_config(2, 2, 16, write_back=True))
    with guest_on(guest("mpc603e").image, cached).machine() as machine:
        counts = machine.measure("nested", (), DIRTY).icache
    assert (counts.misses > 0, counts.writebacks) == (True, 0)


@pytest.mark.parametrize("target", TARGETS)
def test_without_caches_each_access_goes_to_memory(target):
    bare = replace(load_target(target), icache=None, dcache=None)
    with guest_on(guest(target).image, bare).machine() as machine:
        measurement = machine.measure("unaligned", arguments_in(machine, (HEAP + 16,)), COLD)
    for counts in (measurement.icache, measurement.dcache):
        assert (counts.present, counts.hits, counts.misses, counts.writebacks) == (False, 0, 0, 0)
    assert measurement.touched_instruction_sets == measurement.touched_data_sets == ()
    assert measurement.stall_cycles == 3 * bare.memory.single_cycles


@pytest.mark.parametrize("line_bytes", [4, 8, 16, 32, 64])
def test_each_instruction_is_fetched_once_from_each_line_it_lies_in(line_bytes):
    """A wide Thumb instruction can straddle a line."""
    nop, wide = "nop", "movw r1, #1234"
    body = "\n".join([*[nop] * 3, *[wide] * 2, *[nop] * 3, wide, "bx lr"])
    target = replace(
        load_target("cortex-m4"), icache=replace(cache_config(64, 1, line_bytes), write_back=False), dcache=None
    )
    with guest_of(".balign 64\n" + assembler({"f": body}, target), target).machine() as machine:
        measurement = machine.measure("f", (), COLD)
    sizes = [2, 2, 2, 4, 4, 2, 2, 2, 4, 2]
    starts = [sum(sizes[:i]) for i in range(len(sizes))]
    fetches = sum((at + size - 1) // line_bytes - at // line_bytes + 1 for at, size in zip(starts, sizes, strict=True))
    assert measurement.instructions == 10
    assert measurement.icache.hits + measurement.icache.misses == fetches
    assert measurement.icache.misses == -(-sum(sizes) // line_bytes)


def test_write_through_and_no_allocation():
    with_cache = replace(
        load_target("arm926ej-s"),
        dcache=cache_config(8, 2, 16, Replacement.LRU, write_back=False, write_allocate=False),
    )
    with guest_on(guest("arm926ej-s").image, with_cache).machine() as machine:
        heap = machine.heap.base_address
        counts = machine.measure("store_pair", (heap, heap), COLD).dcache
        assert (counts.write_misses, counts.write_hits, counts.writebacks, counts.memory_writes) == (2, 0, 0, 2)
        counts = machine.measure("unaligned", (heap,), COLD).dcache
        assert (counts.read_misses, counts.read_hits, counts.write_misses, counts.memory_writes) == (1, 1, 1, 1)


# -------------------------------------------------------------------------------------------------- replays and paths


@pytest.mark.parametrize("target", TARGETS)
def test_a_replay_counts_each_operation_as_measuring_it_alone_does(target):
    allocate = [(0, 0, 100), (0, 1, 1), (0, 2, 0), (1, 0, 0), (0, 0, 1 << 30)]
    operations = [*allocate, (1, 2, 0), (0, 3, 700), (1, 1, 0), (1, 3, 0)]
    counted = tlsf_guest(target)
    with counted.machine() as machine:
        machine.call("tlsf_init", machine.heap.base_address, 4096)
        counts = machine.replay_counted(trace_of(operations))
        slots = [machine.slot(i) for i in range(4)]
    singly = []
    with counted.machine() as machine:
        machine.call("tlsf_init", machine.heap.base_address, 4096)
        blocks = dict.fromkeys(range(4), 0)
        for kind, slot, size in operations:
            function, argument = ("tlsf_free", blocks[slot]) if kind else ("tlsf_malloc", size)
            measurement = machine.measure(function, (argument,), COLD)
            singly.append(measurement.instructions)
            blocks[slot] = 0 if kind else measurement.result
    assert counts == tuple(singly)
    assert slots == list(blocks.values())


@pytest.mark.parametrize("target", TARGETS)
def test_all_replays_leave_the_same_heap(target):
    trace = trace_of([(0, i, 24 + 40 * i) for i in range(12)] + [(1, i, 0) for i in range(0, 12, 2)] + [(0, 0, 9999)])
    heaps = []
    for how in ("replay", "replay_observed", "replay_counted"):
        with tlsf_guest(target).machine() as machine:
            machine.call("tlsf_init", machine.heap.base_address, 4096)
            result = getattr(machine, how)(trace)
            assert len(result) == len(trace) if how == "replay_counted" else result == 1
            heaps.append(machine.memory.snapshot())
    assert heaps[0] == heaps[1] == heaps[2]


def test_an_empty_replay_does_nothing():
    with tlsf_guest("cortex-m4").machine() as machine:
        assert machine.replay(trace_of([])) == 0
        assert machine.replay_counted(trace_of([])) == ()


def test_a_long_replay_is_cut_into_parts(monkeypatch):
    monkeypatch.setattr("wcet_probe.emu.operation_table.OPERATIONS_AT_ONCE", 5)
    trace = trace_of([(0, i, 8) for i in range(12)] + [(0, 12, 1 << 27)])
    with tlsf_guest("mpc603e").machine() as machine:
        machine.call("tlsf_init", machine.heap.base_address, 4096)
        counts = machine.replay_counted(trace)
        machine.call("tlsf_init", machine.heap.base_address, 4096)
        assert machine.replay(trace) == 1
    assert len(counts) == 13
    assert len(set(counts[1:12])) == 1


@pytest.mark.parametrize("target", TARGETS)
def test_a_path_that_is_too_long_is_cut_and_the_counts_are_not(target, monkeypatch):
    with guest(target).machine() as machine:
        whole = machine.measure("loop", (1000,), COLD)
    monkeypatch.setattr(observer, "PATH_CAPACITY", 10)
    with guest(target).machine() as machine:
        cut = machine.measure("loop", (1000,), COLD)
        assert machine.count("loop", (1000,)) == whole.instructions
    assert (whole.path_complete, cut.path_complete) == (True, False)
    assert (cut.instructions, cut.cycles) == (whole.instructions, whole.cycles)
    assert sorted(cut.runs, key=lambda run: run.address) == sorted(whole.runs, key=lambda run: run.address)
    assert len(whole.path) > len(cut.path)


def test_a_path_of_many_loops_is_recounted_run_by_run():
    source = """
        unsigned f(unsigned n) {
            unsigned s = 0;
            for (unsigned i = 0; i < n; i++) {
                for (unsigned j = 0; j < i; j++) s += j & 1 ? i : j;
                if (i % 3 == 0) continue;
                s ^= i;
            }
            return s;
        }"""
    expected = 0
    for i in range(40):
        for j in range(i):
            expected += i if j & 1 else j
        expected ^= i if i % 3 else 0
    for target in TARGETS:
        with machine_of(source, load_target(target), ".c") as machine:
            measurement = machine.measure("f", (40,), COLD)
            assert measurement.result == expected
            assert sum(run.instructions * run.executions for run in measurement.runs) == measurement.instructions
            assert sum(measurement.runs[i].instructions for i in measurement.path) == measurement.instructions


@pytest.mark.parametrize("target", ["arm926ej-s", "mpc603e"])
def test_equal_calls_are_measured_equal(target):
    with guest(target).machine() as one, guest(target).machine() as other:
        other.call("plain")
        other.count("loop", (7,))
        first, second = one.measure("early", (1,), COLD), other.measure("early", (1,), COLD)
        assert first == second == one.measure("early", (1,), COLD)


def test_the_functions_of_all_targets_have_cases():
    for target, functions in FUNCTIONS.items():
        assert {case.function for name, case in ALL if name == target} <= set(functions)
