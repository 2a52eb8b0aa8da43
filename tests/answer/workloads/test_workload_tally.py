"""Columns of operations against their definition, one operation at a time."""

import random
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from wcet_probe.answer.workloads.workload_tally import MOST_SAMPLES, Tally
from wcet_probe.emu.operations import OperationColumns
from wcet_probe.scenarios.workloads.named import papers_batches, papers_rows
from wcet_probe.scenarios.workloads.periodic import masmano_tasks
from wcet_probe.scenarios.workloads.periodic_batches import Length, PeriodicTask, periodic_batches, periodic_rows
from wcet_probe.traces.batches import OperationBatch
from wcet_probe.traces.operations import heap_operations

HEAP, BASE = 1 << 20, 0x2000_0000


def operations(count, seed):
    """Kinds, slots, sizes and what was counted; some requests are refused, some calls take very long."""
    draw, held, rows = random.Random(seed), [], []
    for _ in range(count):
        instructions = draw.choice((draw.randrange(40, 90), draw.randrange(1 << 20), draw.randrange(1 << 33)))
        if held and draw.random() < 0.5:
            rows.append((True, held.pop(draw.randrange(len(held))), 0, instructions, 0))
        else:
            slot = next(n for n in range(len(held) + 1) if n not in held)
            held.append(slot)
            place = 0 if draw.random() < 0.1 else BASE + draw.randrange(HEAP)
            rows.append((False, slot, draw.randrange(1, 5000), instructions, place))
    return rows


@pytest.mark.parametrize(("count", "part", "dedicated"), [(1, 1, 0), (700, 97, 4096), (5000, 1024, 0), (5000, 5000, 0)])
def test_a_tally_is_what_one_operation_after_the_other_adds_up_to(count, part, dedicated):
    rows = operations(count, count + part)
    tally = Tally(HEAP, dedicated)
    for first in range(0, count, part):
        part_rows = rows[first : first + part]
        frees, slots, sizes, instructions, places = (np.array(column) for column in zip(*part_rows, strict=True))
        counted = OperationColumns(*[instructions.astype(np.int64)] * 5, places.astype(np.int64))
        tally.add(OperationBatch(frees.astype(bool), slots, sizes), counted, BASE)

    live = most = refused = 0
    reached = dedicated
    at_most = ({}, dedicated)
    sizes_held, memory, calls = {}, [], {"malloc": Counter(), "free": Counter()}
    for is_free, slot, size, instructions, place in rows:
        calls["free" if is_free else "malloc"][instructions] += 1
        if is_free:
            live -= sizes_held.pop(slot)
        else:
            refused += not place
            sizes_held[slot] = size if place else 0
            live += sizes_held[slot]
            if place and place - BASE < HEAP - dedicated:
                reached = max(reached, place - BASE + size + dedicated)
        if live > most:
            at_most = (Counter(each for each in sizes_held.values() if each), reached)
        most = max(most, live)
        memory.append((live, reached))
    assert (tally.operations, tally.refused, tally.peak_live_bytes) == (count, refused, most)
    assert tally.peak_reached_bytes == reached
    assert sum(size * blocks for size, blocks in tally.most_live.items()) == most
    assert (tally.most_live, tally.reached_at_most_live_bytes) == at_most or not most
    for role, found in calls.items():
        assert dict(tally.distributions[role, "instructions"].calls) == dict(found)

    assert 0 < len(tally.samples) < MOST_SAMPLES
    assert len(tally.windows) == len(tally.samples)
    for sample in tally.samples:
        assert (sample.live_bytes, sample.reached_bytes) == memory[sample.operation - 1]
    ends = [0, *(window.operation for window in tally.windows)]
    assert ends[1:] == [sample.operation for sample in tally.samples]
    for window, (first, last) in zip(tally.windows, pairwise(ends), strict=True):
        costs = [row[3] for row in rows[first:last] if not row[0]]
        assert (window.calls, window.instructions) == (len(costs), sum(costs))
        assert window.squares == sum(each * each for each in costs)
        assert (window.least, window.most) == (min(costs, default=0), max(costs, default=0))


TASKS = (
    PeriodicTask(10, 3, 100, 12.5, (30, 55)),
    PeriodicTask(7, 1, 40, 0, (7, 7)),
    PeriodicTask(64, 5, 9, 9, (1, 640)),
)


@pytest.mark.parametrize("collection", [None, 1, 50])
@pytest.mark.parametrize("length", [Length(steps=900), Length(allocations=333), Length(steps=0), Length(allocations=1)])
def test_periodic_columns_are_the_rows_and_a_slot_is_given_out_once(length, collection):
    rows = list(heap_operations(periodic_rows(TASKS, 5, length, collection)))
    frees = [row.is_free for row in rows]
    held, found = {}, []
    for batch in periodic_batches(TASKS, 5, length, collection):
        for is_free, slot, size in zip(
            batch.frees.tolist(), batch.slots.tolist(), batch.sizes_bytes.tolist(), strict=True
        ):
            assert (slot in held) == is_free
            if is_free:
                held.pop(slot)
            else:
                held[slot] = size
            found.append((is_free, size))
    assert not held
    assert found == [(row.is_free, row.size_bytes) for row in rows]
    assert frees.count(True) == frees.count(False)


def test_blocks_are_held_for_as_long_as_is_drawn_and_freed_at_the_start_of_a_step():
    task = PeriodicTask(10, 2, 100, 0, (25, 25))
    rows = list(periodic_rows((task,), 0, Length(steps=60)))
    kinds = "".join(row.kind[0] for row in rows)
    assert kinds == "mm" * 3 + "ffmm" * 3 + "ff" * 3  # steps 0, 10, 20, then 30 behind the frees of 25, and so on
    assert [row.block for row in rows if row.kind == "free"] == list(range(1, 13))


def test_a_longer_run_begins_like_a_shorter_one():
    """Stretches are of another length, and each task draws what it draws."""
    few = [row for row in papers_rows("m06-test3", (4, 300)) if row.kind == "malloc"]
    many = [row for row in papers_rows("m06-test3", (4, 30_000)) if row.kind == "malloc"]
    assert few == many[: len(few)]


def test_both_readings_of_the_hold_ask_for_the_same_and_differ_in_its_unit():
    def mallocs(name):
        rows = [row for row in papers_rows(name, (0, 500)) if row.kind == "malloc"]
        return [(row.block, row.size_bytes) for row in rows]

    assert mallocs("m06-test3") == mallocs("m06-test3-hold-steps")
    of_steps, of_periods = masmano_tasks(3, 0, "steps"), masmano_tasks(3, 0)
    assert {task.hold_steps for task in of_steps} == {(30, 50)}
    assert all(task.hold_steps == (30 * task.period_steps, 50 * task.period_steps) for task in of_periods)


def test_normal_sizes_have_the_mean_and_the_deviation_that_are_asked_for():
    task = PeriodicTask(1, 4, 1000, 100, (1, 1))
    sizes = np.concatenate([b.sizes_bytes[~b.frees] for b in periodic_batches((task,), 1, Length(allocations=40_000))])
    assert abs(sizes.mean() - 1000) < 3
    assert abs(sizes.std() - 100) < 2
    assert sizes.min() < 700
    assert sizes.max() > 1300


def test_memory_of_a_long_workload_follows_what_is_held_and_not_its_length():
    most = [
        max(int(batch.slots.max()) for batch in papers_batches("m06-test1", (0, n)) if len(batch))
        for n in (20_000, 80_000)
    ]
    assert most[0] == most[1]
