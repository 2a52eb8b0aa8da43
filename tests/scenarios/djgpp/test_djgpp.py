"""djgpp-sbrk, -carve, -quarters: carving a chunk costs most, everything else is constant, whatever the heap."""

from __future__ import annotations

import random

import pytest

from tests.scenarios.reports import reached, report
from tests.support import TARGETS, guest_on, images_dir, trace_of
from wcet_probe.build.compilation import build_image
from wcet_probe.build.toolchain import PACKAGED
from wcet_probe.catalog.lookup import load_allocator, load_target
from wcet_probe.errors import HeapTooSmallError, StateError
from wcet_probe.scenarios.lookup import family

KIB, MIB = 1 << 10, 1 << 20
NAMES = ("djgpp-sbrk", "djgpp-carve", "djgpp-quarters")


@pytest.mark.covering(1)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("heap_bytes", [4 * KIB, 64 * KIB])
def test_every_state_is_reached_and_the_worst_is_worst(name, heap_bytes, target):
    found = {scenario: report(name, target, scenario, heap_bytes) for scenario in family(name).builders}
    cycles = reached(found)
    assert cycles["worst-alloc"] >= max(cycles["worst-failing-alloc"], cycles["random"], cycles["best-alloc"])
    assert cycles["worst-free"] >= cycles["best-free"]


@pytest.mark.covering
@pytest.mark.parametrize("target", ["cortex-m4", "mpc603e"])
@pytest.mark.parametrize("name", ["djgpp-sbrk", "djgpp-quarters"])
def test_every_state_is_reached_with_headers_apart(name, target):
    values = (("header-apart", 1), ("minimum-block", 8))
    found = {scenario: report(name, target, scenario, 4 * KIB, values) for scenario in family(name).builders}
    cycles = reached(found)
    assert cycles["worst-alloc"] >= max(cycles["worst-failing-alloc"], cycles["random"], cycles["best-alloc"])
    assert cycles["worst-free"] >= cycles["best-free"]


@pytest.mark.covering(1)
@pytest.mark.parametrize("heap_bytes", [24, 32, 40, 48])
@pytest.mark.parametrize("scenario", ["best-alloc", "best-free", "random"])
@pytest.mark.parametrize("name", [*NAMES, "djgpp-tags", "djgpp-cached"])
def test_a_tiny_heap_holds_the_state_or_is_refused(name, scenario, heap_bytes):
    """A random workload is built without a look at the heap: there the refused allocations are the refusal."""
    try:
        assert report(name, "cortex-m4", scenario, heap_bytes).checks
    except HeapTooSmallError as error:
        named = int(str(error).split("give at least ")[1].split()[0])
        assert named > heap_bytes
        assert report(name, "cortex-m4", scenario, named).checks
    except StateError:
        assert scenario == "random"
    else:
        assert heap_bytes >= 40 or scenario == "random" or (name, scenario) == ("djgpp-quarters", "best-free")


@pytest.mark.parametrize("name", NAMES)
def test_the_heap_does_not_matter(name):
    """But for the larger buckets that larger heaps have, whose search may take another way."""
    for scenario in ("worst-alloc", "worst-free"):
        counts = {report(name, "mpc603e", scenario, heap).measurement.instructions for heap in (64 * KIB, MIB)}
        assert max(counts) - min(counts) <= 5


@pytest.mark.covering(0)
@pytest.mark.parametrize("target", TARGETS)
def test_time_is_that_of_the_carved_blocks(target):
    found = [report("djgpp-carve", target, "worst-alloc", 64 * KIB, (("chunk", chunk),)) for chunk in (1024, 4096)]
    assert [each.plan.driver_value for each in found] == [64, 256]
    few, many = (each.measurement.instructions for each in found)
    per_block = (many - few) / 192
    assert 4 <= per_block <= 10
    assert report("djgpp-carve", target, "worst-alloc", 4 * KIB).plan.driver_value == 255


@pytest.mark.covering
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", NAMES)
def test_no_random_workload_meets_a_worse_state(name, target):
    allocator, machine_target = load_allocator(name), load_target(target)
    guest = guest_on(build_image(allocator, machine_target, PACKAGED, images_dir()), machine_target)
    alloc, free = (
        max(c.instructions for c in report(name, target, f"worst-{what}", 4 * KIB).candidates)
        for what in ("alloc", "free")
    )
    for seed in range(2):
        draw, live, steps = random.Random(seed), [], []
        for slot in range(150):
            steps.append((0, slot, 1 + int(2 ** draw.uniform(0, 11))))
            live.append(slot)
            while live and draw.random() < 0.45:
                steps.append((1, live.pop(draw.randrange(len(live))), 0))
        with guest.machine(4 * KIB) as machine:
            assert machine.call(allocator.entry_points["init"], machine.heap.base_address, 4 * KIB) == 0
            counts = machine.replay_counted(trace_of(steps))
        for (kind, _, _), count in zip(steps, counts, strict=True):
            assert count <= (free if kind else alloc)
