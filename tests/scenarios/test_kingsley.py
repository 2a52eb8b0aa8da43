"""Kingsley's scenarios: carving a page costs most, and the same in every heap; free is constant."""

from __future__ import annotations

import random
from functools import partial

import pytest

from tests.scenarios import reports
from tests.support import TARGETS, guest_on, images_dir, trace_of
from wcet_probe.build.compilation import build_image
from wcet_probe.build.toolchain import PACKAGED
from wcet_probe.catalog.lookup import load_allocator, load_target
from wcet_probe.errors import BuildError
from wcet_probe.scenarios.lookup import family

KIB, MIB = 1 << 10, 1 << 20
SCENARIOS = tuple(family("kingsley").builders)
L11 = tuple(load_allocator("kingsley").presets["l11"].items())
ORIGINAL = (("minimum-block", 8), ("alignment", 4))


report = partial(reports.report, "kingsley")


@pytest.mark.covering(1)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("values", [(), L11])
@pytest.mark.parametrize("heap_bytes", [4 * KIB, 64 * KIB])
def test_every_state_is_reached_and_the_worst_is_worst(values, heap_bytes, target):
    found = {scenario: report(target, scenario, heap_bytes, values) for scenario in SCENARIOS}
    cycles = reports.reached(found)
    assert cycles["worst-alloc"] > 3 * max(cycles["worst-failing-alloc"], cycles["random"], cycles["best-alloc"])
    assert cycles["worst-free"] >= cycles["best-free"]


@pytest.mark.parametrize(
    "heaps", [(4 * KIB, 100_000, MIB), pytest.param((4 * KIB, 4 * MIB, 64 * MIB), marks=pytest.mark.slow)], ids=max
)
@pytest.mark.parametrize("target", TARGETS)
def test_the_heap_does_not_matter(target, heaps):
    for scenario in ("worst-alloc", "worst-free"):
        counts = {report(target, scenario, heap).measurement.cycles for heap in heaps}
        assert len(counts) == 1


@pytest.mark.covering(0)
@pytest.mark.parametrize("target", TARGETS)
def test_time_is_that_of_the_nodes(target):
    """Pages of 128 and 512 nodes of the same size."""
    found = [report(target, "worst-alloc", 64 * KIB, values) for values in (L11, ORIGINAL)]
    assert [each.plan.prediction["nodes carved"] for each in found] == [128, 512]
    few, many = (each.measurement.instructions for each in found)
    assert 3.5 < many / few < 4.1


@pytest.mark.covering(0)
@pytest.mark.parametrize("target", TARGETS)
def test_no_random_workload_meets_a_worse_state(target):
    allocator, machine_target = load_allocator("kingsley", dict(L11)), load_target(target)
    guest = guest_on(build_image(allocator, machine_target, PACKAGED, images_dir()), machine_target)
    alloc, free = (report(target, f"worst-{what}", 4 * KIB, L11).measurement.instructions for what in ("alloc", "free"))
    for seed in range(8):
        draw, live, steps = random.Random(seed), [], []
        for slot in range(150):
            steps.append((0, slot, 1 + int(2 ** draw.uniform(0, 11))))
            live.append(slot)
            while live and draw.random() < 0.45:
                steps.append((1, live.pop(draw.randrange(len(live))), 0))
        with guest.machine(4 * KIB) as machine:
            assert machine.call("kingsley_init", machine.heap.base_address, 4 * KIB) == 0
            counts = machine.replay_counted(trace_of(steps))
        for (kind, _, _), count in zip(steps, counts, strict=True):
            assert count <= (free if kind else alloc)


def test_least_blocks_without_payload_do_not_build():
    with pytest.raises(BuildError, match="needs an alignment of 4"):
        report("cortex-m4", "worst-alloc", 4 * KIB, (("minimum-block", 8),))
