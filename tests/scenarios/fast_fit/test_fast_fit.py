"""Scenarios of fast-fit: the states are reached, grow as claimed, and nothing met is worse."""

from __future__ import annotations

from functools import partial

import pytest

from tests.scenarios import reports
from tests.support import TARGETS
from wcet_probe.errors import UsageError
from wcet_probe.scenarios.lookup import scenario_names

NAME = "fast-fit"
KIB, MIB = 1 << 10, 1 << 20
P02 = (("alignment", 4), ("granule", 4), ("minimum-block", 12), ("split-threshold", 12))


report = partial(reports.report, NAME)


@pytest.mark.covering(1)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("scenario", scenario_names(NAME))
@pytest.mark.parametrize("heap_bytes", [4 * KIB, 64 * KIB])
def test_the_state_is_reached_and_proved(target: str, scenario: str, heap_bytes: int) -> None:
    found = report(target, scenario, heap_bytes)
    reports.check_state(found)


@pytest.mark.covering(1)
@pytest.mark.parametrize("scenario", ["worst-alloc", "worst-free", "worst-failing-alloc", "paper-alloc", "paper-free"])
@pytest.mark.parametrize("heap_bytes", [KIB, 5000])
@pytest.mark.parametrize(
    "values",
    [
        P02,
        (("minimum-block", 32),),
        (("split-threshold", 64),),
        (("granule", 4), ("split-threshold", 24)),
        (("granule", 16),),
        (("granule", 32),),
    ],
)
def test_every_build_reaches_every_state(scenario: str, heap_bytes: int, values: tuple[tuple[str, int], ...]) -> None:
    assert report("cortex-m4", scenario, heap_bytes, values).checks


@pytest.mark.parametrize("heap_bytes", [4 * KIB, 64 * KIB, pytest.param(4 * MIB, marks=pytest.mark.slow)])
def test_the_driver_is_the_closed_form(heap_bytes: int) -> None:
    n = heap_bytes // 32
    free = report("cortex-m4", "worst-free", heap_bytes)
    assert free.plan.driver_value == 2 * n - 2
    assert dict(free.plan.prediction)["free blocks"] == n
    if heap_bytes < MIB:  # five candidates of as many blocks
        assert report("cortex-m4", "worst-alloc", heap_bytes).plan.driver_value == n
    n = max(n for n in range(2000) if 4 * n * n + 28 * n - 8 <= heap_bytes)
    assert report("cortex-m4", "paper-alloc", heap_bytes).plan.driver_value == n
    assert report("cortex-m4", "paper-free", heap_bytes).plan.driver_value == 2 * n - 2


def test_free_is_dearest_where_walks_turn_or_where_they_merge() -> None:
    """Turning takes more instructions, merging is one more walk that misses."""
    turned, merged = report("cortex-m4", "worst-free", 64 * KIB), report("mpc603e", "worst-free", 64 * KIB)
    assert (turned.plan.prediction["nodes merged"], merged.plan.prediction["nodes merged"]) == (0, 2048 - 3)
    assert merged.plan.driver_value == 3 * 2048 - 6
    for found in (turned, merged):
        merging, turning = found.candidates[:2]
        assert turning.instructions > merging.instructions


@pytest.mark.covering(0)
@pytest.mark.parametrize("target", TARGETS)
def test_instructions_are_linear_in_the_heap(target: str) -> None:
    """Exactly: the same instructions for every further pair of least blocks."""
    for scenario in ("worst-alloc", "worst-free"):
        found = [report(target, scenario, heap) for heap in (4 * KIB, 5 * KIB, 8 * KIB)]
        for candidate in range(len(found[0].candidates)):
            counts = [each.candidates[candidate].instructions for each in found]
            if "moves down" in found[0].candidates[candidate].variant:
                continue  # of floor(H / 40) blocks
            if "left out" in found[0].candidates[candidate].variant:
                continue  # how many blocks a chain leaves out depends on the ways of the cache
            step = counts[1] - counts[0]
            assert counts[2] - counts[1] == 3 * step


@pytest.mark.covering(0)
@pytest.mark.parametrize("target", TARGETS)
def test_a_refusal_costs_the_same_in_every_heap(target: str) -> None:
    refusals = [report(target, "worst-failing-alloc", heap).measurement for heap in (4 * KIB, 64 * KIB)]
    assert refusals[0].instructions == refusals[1].instructions
    assert refusals[0].instructions < report(target, "best-alloc", 4 * KIB).measurement.instructions


@pytest.mark.covering(0)
@pytest.mark.parametrize("target", TARGETS)
def test_worst_is_worst(target: str) -> None:
    for operation in ("alloc", "free"):
        worst, best = (report(target, f"{kind}-{operation}", 4 * KIB).measurement for kind in ("worst", "best"))
        assert worst.cycles > 4 * best.cycles
        paper = report(target, f"paper-{operation}", 4 * KIB).measurement
        assert worst.cycles > 2 * paper.cycles


@pytest.mark.covering(0)
@pytest.mark.parametrize("target", TARGETS)
def test_no_random_operation_costs_more(target: str) -> None:
    reports.no_random_operation_costs_more(NAME, target, report)


def test_a_heap_that_is_too_small_is_refused() -> None:
    with pytest.raises(UsageError, match="too small"):
        report("cortex-m4", "worst-alloc", 96)
