"""Scenarios of the budgeted allocator: X's worst states behind the longest way to X."""

from __future__ import annotations

import random

import pytest

from tests.scenarios.reports import report
from tests.support import TARGETS, guest_on, images_dir, trace_of
from wcet_probe.build.compilation import build_image
from wcet_probe.build.toolchain import PACKAGED
from wcet_probe.catalog.lookup import load_allocator, load_target
from wcet_probe.errors import UsageError
from wcet_probe.scenarios.lookup import family

KIB, MIB = 1 << 10, 1 << 20
TLSF = "budgeted:tlsf"
DEDICATED = 240


@pytest.mark.covering(0)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("heap_bytes", [4 * KIB, 64 * KIB])
def test_every_state_is_reached_and_the_worst_is_worst(heap_bytes, target):
    found = {scenario: report(TLSF, target, scenario, heap_bytes) for scenario in family(TLSF).builders}
    cycles = {scenario: each.measurement.cycles for scenario, each in found.items()}
    assert all(each.checks for each in found.values())
    assert cycles["worst-alloc"] > max(cycles["random"], cycles["best-alloc"])
    assert cycles["worst-free"] > cycles["best-free"]


@pytest.mark.covering(0)
@pytest.mark.parametrize("target", TARGETS)
def test_the_worst_is_that_of_the_shared_allocator_and_a_search(target):
    """On the heap that the buckets leave; what is added is linear in the objects, and to a free constant."""
    for what in ("alloc", "free"):
        alone = report("tlsf", target, f"worst-{what}", 64 * KIB - DEDICATED).measurement.instructions
        few, many = (
            report(TLSF, target, f"worst-{what}", 64 * KIB, values).measurement.instructions
            for values in ((), (("budget-objects", 8), ("budget-buckets", 1)))
        )
        assert alone < few < alone + 40
        assert (many > few) is (what == "alloc")


@pytest.mark.covering
@pytest.mark.parametrize(
    "name", ["budgeted:first-fit", "budgeted:kingsley", "budgeted:quick-fit", "budgeted:djgpp-carve"]
)
@pytest.mark.parametrize("scenario", ["worst-alloc", "worst-free", "random"])
def test_over_others(name, scenario):
    assert report(name, "cortex-m4", scenario, 64 * KIB).checks


def test_a_large_heap():
    small, large = (
        report(TLSF, "cortex-m4", "worst-alloc", heap).measurement.instructions for heap in (4 * KIB, 4 * MIB)
    )
    assert abs(large - small) < 10


def test_a_heap_too_small_for_the_buckets():
    with pytest.raises(UsageError, match="give at least"):
        report(TLSF, "cortex-m4", "worst-alloc", 4 * KIB, tuple(load_allocator(TLSF).presets["l11"].items()))
    with pytest.raises(UsageError, match=r"on budgeted:quick-fit; give at least 4384 with"):
        report("budgeted:quick-fit", "cortex-m4", "worst-alloc", 4 * KIB)


@pytest.mark.covering(0)
@pytest.mark.parametrize("target", TARGETS)
def test_no_random_workload_meets_a_worse_state(target):
    allocator, machine_target = load_allocator(TLSF), load_target(target)
    guest = guest_on(build_image(allocator, machine_target, PACKAGED, images_dir()), machine_target)
    alloc, free = (
        max(c.instructions for c in report(TLSF, target, f"worst-{what}", 4 * KIB).candidates)
        for what in ("alloc", "free")
    )
    for seed in range(2):
        draw, live, steps = random.Random(seed), [], []
        for slot in range(150):
            steps.append((0, slot, draw.choice((8, 16, 32, 64, 1 + int(2 ** draw.uniform(0, 11))))))
            live.append(slot)
            while live and draw.random() < 0.45:
                steps.append((1, live.pop(draw.randrange(len(live))), 0))
        with guest.machine(4 * KIB) as machine:
            assert machine.call(allocator.entry_points["init"], machine.heap.base_address, 4 * KIB) == 0
            counts = machine.replay_counted(trace_of(steps))
        for (kind, _, _), count in zip(steps, counts, strict=True):
            assert count <= (free if kind else alloc)
