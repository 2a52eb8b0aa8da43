"""Scenarios of both buddy systems: states reached, growth as it should be, no worse state met by random workloads."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from tests.allocators import buddy_models
from tests.scenarios.reports import most_instructions, reached, report
from tests.support import TARGETS, guest_on, images_dir, trace_of
from wcet_probe.build.compilation import build_image
from wcet_probe.build.toolchain import PACKAGED
from wcet_probe.catalog.lookup import load_allocator, load_target
from wcet_probe.errors import UsageError
from wcet_probe.scenarios.buddy import states as buddy_scenarios
from wcet_probe.scenarios.buddy.buddy_binary import Binary
from wcet_probe.scenarios.buddy.buddy_fibonacci import Fibonacci
from wcet_probe.scenarios.buddy.heap import Carving
from wcet_probe.scenarios.families import HeapRequest
from wcet_probe.scenarios.lookup import family

NAMES = ("buddy-binary", "buddy-fibonacci")
BUILDS = (("buddy-binary", ()), ("buddy-fibonacci", ()), ("buddy-fibonacci", (("follow", 1),)))
KIB, MIB = 1 << 10, 1 << 20
FIBONACCI = [1, 1]
while len(FIBONACCI) < 33:
    FIBONACCI.append(FIBONACCI[-1] + FIBONACCI[-2])


def largest_class(name: str, heap_bytes: int) -> int:
    units = heap_bytes // 16
    if name == "buddy-binary":
        return units.bit_length() - 1
    return max(k for k, number in enumerate(FIBONACCI) if number <= units)


@pytest.mark.covering(1)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("heap_bytes", [4 * KIB, 64 * KIB])
def test_every_state_is_reached_and_the_worst_is_worst(name, heap_bytes, target):
    found = {scenario: report(name, target, scenario, heap_bytes) for scenario in family(name).builders}
    cycles = reached(found)
    assert cycles["worst-alloc"] > max(cycles["worst-failing-alloc"], cycles["random"], cycles["best-alloc"])
    assert cycles["worst-free"] >= cycles["paper-free"] > cycles["best-free"]


@pytest.mark.covering(1)
@pytest.mark.parametrize("heap_bytes", [4 * KIB + 8, 100_000, 6 * MIB])
@pytest.mark.parametrize(("name", "values"), BUILDS)
def test_any_heap_can_hold_the_states(name, values, heap_bytes):
    for scenario in ("worst-alloc", "worst-free", "paper-free", "worst-failing-alloc"):
        assert report(name, "cortex-m4", scenario, heap_bytes, values).checks


def test_the_largest_heap():
    assert report("buddy-fibonacci", "mpc603e", "worst-free", 16 * 3524578).checks  # F(33) blocks, one root


@pytest.mark.parametrize("heap_bytes", [4 * KIB, 64 * KIB, 4 * MIB])
@pytest.mark.parametrize(("name", "values"), BUILDS)
def test_splits_and_merges_have_closed_forms(name, values, heap_bytes):
    top = largest_class(name, heap_bytes)
    deepest = top if name == "buddy-binary" else top - 1
    handed_out = top // 2 if name == "buddy-fibonacci" and not values else deepest
    assert report(name, "cortex-m4", "worst-alloc", heap_bytes, values).plan.driver_value == handed_out
    assert report(name, "cortex-m4", "worst-free", heap_bytes, values).plan.driver_value == deepest
    assert report(name, "cortex-m4", "paper-free", heap_bytes, values).plan.driver_value == handed_out


def test_4_mib_as_the_literature_counts():
    """26 sizes of blocks; 25 merges from the deepest leaf, 13 from the one that malloc hands out."""
    assert largest_class("buddy-fibonacci", 4 * MIB) == 26
    assert report("buddy-fibonacci", "cortex-m4", "worst-free", 4 * MIB).plan.prediction["merges"] == 25
    assert report("buddy-fibonacci", "cortex-m4", "paper-free", 4 * MIB).plan.prediction["merges"] == 13
    assert report("buddy-binary", "cortex-m4", "worst-free", 4 * MIB).plan.prediction["merges"] == 18


@pytest.mark.covering
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", NAMES)
def test_time_is_linear_in_levels(name, target):
    """On heaps that are a single block; steps of 4, as a compiler may unroll loops."""
    units = [1 << k for k in (8, 12, 16)] if name == "buddy-binary" else FIBONACCI[12:21:4]
    for scenario in ("worst-alloc", "paper-free"):
        counts = [report(name, target, scenario, 16 * unit).candidates[0].instructions for unit in units]
        steps = [after - before for before, after in pairwise(counts)]
        assert 0 < max(steps) <= min(steps) + 8, (scenario, counts)


def test_buddies_amid_their_lists_cost_more_than_one_merge_more():
    """With caches: one merge fewer, but two more blocks written to in nearly every removal."""
    found = report("buddy-binary", "mpc603e", "worst-free", 4 * MIB)
    assert found.plan.prediction["merges"] == 17
    assert found.plan.prediction["buddies mid-list"] == 16
    assert found.measurement.cycles > 1.5 * report("buddy-binary", "mpc603e", "paper-free", 4 * MIB).measurement.cycles


@pytest.mark.covering(1)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("name", "values"), BUILDS)
def test_no_random_workload_meets_a_worse_state(name, values, target):
    allocator, machine_target = load_allocator(name, dict(values)), load_target(target)
    guest = guest_on(build_image(allocator, machine_target, PACKAGED, images_dir()), machine_target)
    alloc, free = (
        most_instructions(report(name, target, f"worst-{what}", 4 * KIB, values)) for what in ("alloc", "free")
    )
    for seed in range(12):
        draw, live, steps = random.Random(seed), [], []
        for slot in range(150):
            steps.append((0, slot, 1 + int(2 ** draw.uniform(0, draw.choice((3, 6, 11))))))
            live.append(slot)
            while live and draw.random() < 0.4:
                steps.append((1, live.pop(draw.randrange(len(live))), 0))
        draw.shuffle(live)
        steps += [(1, slot, 0) for slot in live] + [(0, 0, 1), (1, 0, 0)]
        with guest.machine(4 * KIB) as machine:
            assert machine.call(allocator.entry_points["init"], machine.heap.base_address, 4 * KIB) == 0
            counts = machine.replay_counted(trace_of(steps))
        for (kind, _, _), count in zip(steps, counts, strict=True):
            assert count <= (free if kind else alloc)


def test_what_the_call_comes_back_to_is_evicted(monkeypatch):
    """Two lines of the stack and the freed block are fetched a second time; heads in other places may save a word."""
    crowded = report("buddy-fibonacci", "mpc603e", "worst-free", 4 * MIB)
    monkeypatch.setattr(buddy_scenarios, "_CROWDED", ())
    plain = report.__wrapped__("buddy-fibonacci", "mpc603e", "worst-free", 4 * MIB)
    assert crowded.measurement.cycles > plain.measurement.cycles
    assert crowded.measurement.dcache.misses >= plain.measurement.dcache.misses + 3


@pytest.mark.parametrize("name", NAMES)
def test_blocks_are_placed_where_they_shall_be_and_stay_apart(name):
    make, model = (Binary, buddy_models.binary) if name == "buddy-binary" else (Fibonacci, buddy_models.fibonacci)
    buddies, heap = make(load_allocator(name).values), model(6 * MIB, 4)
    carving = Carving(buddies, 6 * MIB)
    regions, classes = carving.roots[1:], (0, 1, 1, 2, 3, 5, 6)[buddies.step - 1 :]
    slots = [carving.place(regions, class_, 0xFC0, 0x1000) for class_ in classes]
    assert carving.place(regions, buddies.largest(6 * MIB), 0, 1) is None
    placed = [(slot, class_) for slot, class_ in zip(slots, classes, strict=True) if slot is not None]
    carving.free(*(slot for slot, _ in placed))
    offsets, trace = {}, carving.trace()
    for kind, slot, size in zip(trace.kinds, trace.slots, trace.sizes_bytes, strict=True):
        if kind:
            heap.free(offsets[slot])
        else:
            offsets[slot] = heap.malloc(size)
    free = sorted(node.class_ for nodes in heap.lists.values() for node in nodes)
    assert free == sorted(class_ for _, class_ in placed)
    assert len(placed) == (4 if name == "buddy-binary" else 6)  # binary blocks are at multiples of their size
    assert all(offsets[slot] % 0x1000 == 0xFC0 + buddies.header_bytes for slot, _ in placed)


def test_a_heap_that_is_too_small_is_told_what_would_do():
    allocator = load_allocator("buddy-binary")
    with pytest.raises(UsageError, match="at least 1024"):
        family("buddy-binary").builders["worst-alloc"](HeapRequest(allocator, 512, None, 0))
