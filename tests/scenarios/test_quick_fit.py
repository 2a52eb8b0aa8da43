"""Quick fit's scenarios: states are reached, cutting is constant, searching is linear, nothing random is worse."""

from __future__ import annotations

import random
from collections.abc import Mapping
from functools import partial

import pytest

from tests.scenarios import reports
from tests.scenarios.reports import most_instructions as instructions
from tests.support import TARGETS, guest_on, images_dir
from wcet_probe.build.compilation import build_image
from wcet_probe.catalog.lookup import load_allocator, load_target
from wcet_probe.model.report import Report
from wcet_probe.model.scenario import OperationKind
from wcet_probe.scenarios.lookup import scenario_names
from wcet_probe.scenarios.traces import TraceBuilder

KIB, MIB = 1 << 10, 1 << 20
SCENARIOS = scenario_names("quick-fit")
BUILDS: Mapping[str, Mapping[str, int]] = {
    "default": {},
    "small pages": {"page-bytes": 256},
    "other": {"page-bytes": 1024, "minimum-block": 32, "bit-search": 1},
}
HEAPS = [("small pages", 4 * KIB), ("default", 64 * KIB)]


def report(target: str, scenario: str, heap_bytes: int, build: str = "default") -> Report:
    return reports.report("quick-fit", target, scenario, heap_bytes, tuple(BUILDS[build].items()))


def searching(found: Report) -> list[int]:
    """Instructions of the candidates that search the runs for two pages."""
    return [c.instructions for c in found.candidates if c.variant == "search all runs, the last has 2 pages"]


@pytest.mark.covering(1)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("build", "heap_bytes"), HEAPS)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_state_is_reached_and_proved(target: str, build: str, heap_bytes: int, scenario: str) -> None:
    found = report(target, scenario, heap_bytes, build)
    assert found.checks
    assert {check.fact for check in found.checks} == set(found.plan.prediction)
    assert len({candidate.variant for candidate in found.candidates}) == len(found.candidates)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_another_build_reaches_every_state(scenario: str) -> None:
    assert report("cortex-m4", scenario, 20_000, "other").checks


@pytest.mark.covering
@pytest.mark.parametrize("pages", range(1, 9))
@pytest.mark.parametrize("scenario", [name for name in SCENARIOS if name != "random"])
def test_any_number_of_pages_reaches_every_state(scenario: str, pages: int) -> None:
    found = report("arm926ej-s", scenario, 32 + pages * (256 + 16), "small pages")
    assert found.plan.prediction.get("pages", pages) == pages


@pytest.mark.covering(0)
@pytest.mark.parametrize("target", TARGETS)
def test_cutting_and_emptying_a_page_cost_the_same_in_any_heap(target: str) -> None:
    for scenario in ("paper-alloc", "paper-free", "worst-free"):
        small, large = (report(target, scenario, heap_bytes) for heap_bytes in (64 * KIB, 256 * KIB))
        assert instructions(small) == instructions(large)
    assert report(target, "paper-alloc", 64 * KIB).plan.driver_value == 511
    assert report(target, "worst-free", 64 * KIB).plan.driver_value == 511


@pytest.mark.covering(0)
@pytest.mark.parametrize("target", TARGETS)
def test_searching_is_exactly_linear_with_the_runs(target: str) -> None:
    counts = []
    for heap_bytes in (64 * KIB, 128 * KIB, 256 * KIB):
        pages = (heap_bytes - 32) // (4096 + 16)
        counts.append((pages // 2, *searching(report(target, "worst-alloc", heap_bytes))))
    (a, at_a), (b, at_b), (c, at_c) = counts
    assert (at_b - at_a) * (c - b) == (at_c - at_b) * (b - a)


def test_at_four_mebibytes_cutting_needs_more_instructions_than_searching() -> None:
    """P02 section 3.1.1 says so; on a core without caches cycles agree."""
    found = report("cortex-m4", "worst-alloc", 4 * MIB)
    assert found.plan.driver_value == 511
    assert instructions(found) > max(searching(found)) > 3000


def test_fragments_of_other_pages_at_both_ends_cost_cycles_where_there_is_a_cache() -> None:
    found, paper = (report("mpc603e", scenario, 64 * KIB) for scenario in ("worst-free", "paper-free"))
    assert found.plan.prediction["links to other pages"] == 2
    assert found.measurement.cycles > paper.measurement.cycles


def test_other_runs_before_and_behind_those_that_leave_their_list_cost_two_lines_more() -> None:
    found = report("mpc603e", "worst-free", 64 * KIB)
    ending = ", other runs before and behind"
    assert found.plan.variant.endswith(ending)
    of = {one.variant: one for one in found.candidates}
    with_runs, without = of[found.plan.variant], of[found.plan.variant.removesuffix(ending)]
    assert with_runs.instructions == without.instructions
    assert with_runs.cycles > without.cycles + 100


def test_the_costs_of_cutting_and_emptying_are_as_far_apart_as_p02_measured() -> None:
    """Without caches, as there: 481,267 cycles to 207,609 (tables 2 and 3), which is what P02 2.4 is read by."""
    cut, empty = (
        report("cortex-m4", scenario, 64 * KIB).measurement.cycles for scenario in ("paper-alloc", "paper-free")
    )
    assert 2 < cut / empty < 3


@pytest.mark.covering(0)
@pytest.mark.parametrize("target_name", TARGETS)
def test_no_random_workload_meets_worse(target_name: str) -> None:
    allocator, target = load_allocator("quick-fit", BUILDS["small pages"]), load_target(target_name)
    guest = guest_on(build_image(allocator, target, "zig", images_dir()), target)
    draw, builder, live = random.Random(5), TraceBuilder(), list[int]()
    for _ in range(3000):
        if live and draw.random() < 0.48:
            builder.free(live.pop(draw.randrange(len(live))))
        else:
            live.append(builder.malloc(draw.choice((8, 8, 16, 256, 300, draw.randrange(1, 200)))))
    with guest.machine(4 * KIB) as machine:
        machine.call("quick_fit_init", machine.heap.base_address, 4 * KIB)
        counts = machine.replay_counted(builder.trace())
    most = {
        kind: max(c for c, o in zip(counts, builder.operations, strict=True) if o.kind is kind)
        for kind in OperationKind
    }
    assert most[OperationKind.MALLOC] <= instructions(report(target_name, "worst-alloc", 4 * KIB, "small pages"))
    assert most[OperationKind.FREE] <= instructions(report(target_name, "worst-free", 4 * KIB, "small pages"))


@pytest.mark.covering(0)
@pytest.mark.parametrize("target", TARGETS)
def test_best_is_below_worst(target: str) -> None:
    for operation in ("alloc", "free"):
        best, worst = (report(target, f"{kind}-{operation}", 64 * KIB) for kind in ("best", "worst"))
        reports.assert_best_is_below_worst(best, worst, 30)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_heap_too_small_for_the_state_is_refused_with_one_that_works(scenario: str) -> None:
    reports.assert_refused_with_a_heap_that_works(partial(report, "cortex-m4", scenario), 4 * KIB)


def test_a_page_is_cut_off_a_run_whose_headers_lie_in_two_lines() -> None:
    """Headers are two to a line: of 15 pages the last two share one, with a page in use above not those that count."""
    cycles = {c.variant: c.cycles for c in report("mpc603e", "worst-alloc", 64 * KIB).candidates}
    assert cycles["cut a page, off a longer run, 1 in use"] > cycles["cut a page, off a longer run"]
