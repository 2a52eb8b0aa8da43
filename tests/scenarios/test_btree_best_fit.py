"""Scenarios of best-fit in an ordered binary tree: reached, growing as claimed, and nothing met is worse."""

from __future__ import annotations

import random
from functools import cache

import pytest

from tests.support import TARGETS, guest_on, images_dir, trace_of
from wcet_probe.answer.probe import ProbeRequest, observe
from wcet_probe.build.compilation import build_image
from wcet_probe.catalog.lookup import load_allocator, load_target
from wcet_probe.errors import UsageError
from wcet_probe.model.report import Report
from wcet_probe.scenarios import scenario_names

NAME = "btree-best-fit"
KIB, MIB = 1 << 10, 1 << 20
P02 = (("alignment", 4), ("minimum-block", 16), ("split-threshold", 16))


@cache
def report(target: str, scenario: str, heap_bytes: int, values: tuple[tuple[str, int], ...] = ()) -> Report:
    allocator = load_allocator(NAME, dict(values))
    return observe(
        ProbeRequest(allocator, load_target(target), scenario, heap_bytes, 1, None, "zig", False, images_dir())
    )


@pytest.mark.covering
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("scenario", scenario_names(NAME))
@pytest.mark.parametrize("heap_bytes", [4 * KIB, 64 * KIB])
def test_the_state_is_reached_and_proved(target: str, scenario: str, heap_bytes: int) -> None:
    found = report(target, scenario, heap_bytes)
    assert all(check.predicted == check.found for check in found.checks)
    assert {check.fact for check in found.checks} == set(found.plan.prediction)
    assert len({candidate.variant for candidate in found.candidates}) == len(found.candidates)


@pytest.mark.covering
@pytest.mark.parametrize("scenario", ["worst-alloc", "worst-free", "worst-failing-alloc", "paper-alloc"])
@pytest.mark.parametrize("heap_bytes", [KIB, 5000])
@pytest.mark.parametrize("values", [P02, (("minimum-block", 32),), (("split-threshold", 64),)])
def test_every_build_reaches_every_state(scenario: str, heap_bytes: int, values: tuple[tuple[str, int], ...]) -> None:
    assert report("cortex-m4", scenario, heap_bytes, values).checks


@pytest.mark.parametrize("heap_bytes", [4 * KIB, 64 * KIB, 4 * MIB])
def test_the_driver_is_the_closed_form(heap_bytes: int) -> None:
    """16 + 24 + 32 ... with fences of 16 between them; the left path begins at 32."""
    n = max(n for n in range(2000) if 4 * n * n + 44 * n - 8 <= heap_bytes)
    alloc = report("cortex-m4", "worst-alloc", heap_bytes)
    assert (alloc.candidates[2].variant, alloc.plan.variant) == ("path to the left",) * 2
    assert alloc.plan.driver_value == 2 * n - 1
    n = max(n for n in range(2000) if 4 * n * n + 28 * n - 8 <= heap_bytes)
    free = report("cortex-m4", "worst-free", heap_bytes)
    assert free.plan.driver_value == 3 * n - 3
    assert dict(free.plan.prediction)["free blocks"] == n
    if heap_bytes < MIB:
        assert report("cortex-m4", "paper-alloc", heap_bytes).plan.driver_value == n
        assert report("cortex-m4", "worst-failing-alloc", heap_bytes).plan.driver_value == n


@pytest.mark.parametrize("target", TARGETS)
def test_instructions_are_linear_in_the_nodes_visited(target: str) -> None:
    """Hence they grow with the square root of the heap."""
    for scenario, variant in (("worst-alloc", 2), ("worst-free", 0)):
        heaps = (4 * KIB, 16 * KIB, 64 * KIB)
        found = [report(target, scenario, heap) for heap in heaps]
        counts = [each.candidates[variant].instructions for each in found]
        roots = [int(heap**0.5) for heap in heaps]
        first, second = counts[1] - counts[0], counts[2] - counts[1]
        assert abs(second / first - (roots[2] - roots[1]) / (roots[1] - roots[0])) < 0.15


@pytest.mark.parametrize("target", TARGETS)
def test_worst_is_worst(target: str) -> None:
    for operation in ("alloc", "free"):
        worst, best = (report(target, f"{kind}-{operation}", 4 * KIB).measurement for kind in ("worst", "best"))
        assert worst.cycles > 4 * best.cycles
    paper = report(target, "paper-alloc", 4 * KIB).measurement
    assert report(target, "worst-alloc", 4 * KIB).measurement.cycles > paper.cycles


@pytest.mark.parametrize("target", TARGETS)
def test_no_random_operation_costs_more(target: str) -> None:
    draw, rows, live = random.Random(7), list[tuple[int, int, int]](), list[int]()
    for slot in range(1500):
        if live and draw.random() < 0.45:
            rows.append((1, live.pop(draw.randrange(len(live))), 0))
        elif len(live) < 60:
            rows.append((0, slot, draw.randrange(1, 60)))
            live.append(slot)
    allocator = load_allocator(NAME)
    guest = guest_on(build_image(allocator, load_target(target), "zig", images_dir()), load_target(target))
    with guest.machine(4 * KIB) as machine:
        machine.call(allocator.entry_points["init"], machine.heap.base_address, 4 * KIB)
        counts = machine.replay_counted(trace_of(rows))
    for kind, scenario in ((0, "worst-alloc"), (1, "worst-free")):
        dearest = max(count for count, row in zip(counts, rows, strict=True) if row[0] == kind)
        assert dearest < max(c.instructions for c in report(target, scenario, 4 * KIB).candidates)


def test_a_heap_that_is_too_small_is_refused() -> None:
    with pytest.raises(UsageError, match="too small"):
        report("cortex-m4", "worst-alloc", 96)
