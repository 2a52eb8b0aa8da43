"""Scenarios of best-fit in an ordered binary tree: reached, growing as claimed, and nothing met is worse."""

from __future__ import annotations

from functools import partial

import pytest

from tests.scenarios import reports
from tests.support import TARGETS
from wcet_probe.errors import UsageError
from wcet_probe.scenarios.lookup import scenario_names

NAME = "btree-best-fit"
KIB, MIB = 1 << 10, 1 << 20
P02 = (("alignment", 4), ("minimum-block", 16), ("split-threshold", 16))


report = partial(reports.report, NAME)


@pytest.mark.covering(1)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("scenario", scenario_names(NAME))
@pytest.mark.parametrize("heap_bytes", [4 * KIB, 64 * KIB])
def test_the_state_is_reached_and_proved(target: str, scenario: str, heap_bytes: int) -> None:
    found = report(target, scenario, heap_bytes)
    reports.check_state(found)


@pytest.mark.covering(1)
@pytest.mark.parametrize("scenario", ["worst-alloc", "worst-free", "worst-failing-alloc", "paper-alloc"])
@pytest.mark.parametrize("heap_bytes", [KIB, 5000])
@pytest.mark.parametrize("values", [P02, (("minimum-block", 32),), (("split-threshold", 64),)])
def test_every_build_reaches_every_state(scenario: str, heap_bytes: int, values: tuple[tuple[str, int], ...]) -> None:
    assert report("cortex-m4", scenario, heap_bytes, values).checks


@pytest.mark.parametrize("heap_bytes", [4 * KIB, 64 * KIB, pytest.param(4 * MIB, marks=pytest.mark.slow)])
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


@pytest.mark.covering(0)
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


@pytest.mark.covering(0)
@pytest.mark.parametrize("target", TARGETS)
def test_worst_is_worst(target: str) -> None:
    for operation in ("alloc", "free"):
        worst, best = (report(target, f"{kind}-{operation}", 4 * KIB).measurement for kind in ("worst", "best"))
        assert worst.cycles > 4 * best.cycles
    paper = report(target, "paper-alloc", 4 * KIB).measurement
    assert report(target, "worst-alloc", 4 * KIB).measurement.cycles > paper.cycles


@pytest.mark.covering(0)
@pytest.mark.parametrize("target", TARGETS)
def test_no_random_operation_costs_more(target: str) -> None:
    reports.no_random_operation_costs_more(NAME, target, report)


def test_a_heap_that_is_too_small_is_refused() -> None:
    with pytest.raises(UsageError, match="too small"):
        report("cortex-m4", "worst-alloc", 96)


@pytest.mark.parametrize(("scenario", "more"), [("worst-alloc", 1.05), ("worst-free", 1.1)])
def test_nodes_that_are_in_all_sets_in_turn_are_read_anew_by_each_walk(scenario: str, more: float) -> None:
    """Of some 356 nodes in 712 lines of 128 sets of four ways: in order of size, some sets have four lines or fewer."""
    found = report("mpc603e", scenario, 512 * KIB)
    turns = ", in all sets in turn"
    assert found.plan.variant.endswith(turns)
    of = {one.variant: one for one in found.candidates}
    turned, straight = of[found.plan.variant], of[found.plan.variant.removesuffix(turns)]
    assert turned.instructions == straight.instructions
    assert turned.cycles >= more * straight.cycles


def test_nodes_are_gathered_in_sets_that_cannot_hold_them() -> None:
    """A search had found 22,608 cycles for malloc; before, free took 27,323."""
    assert report("mpc603e", "worst-alloc", 64 * KIB).measurement.cycles >= 24654
    assert report("mpc603e", "worst-free", 64 * KIB).measurement.cycles >= 32578
