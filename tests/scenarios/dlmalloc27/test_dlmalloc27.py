"""The scenarios of dlmalloc27: states reached, closed forms that the guest shows, nothing dearer, shapes of growth."""

from __future__ import annotations

from itertools import pairwise, product

import pytest

from tests.scenarios import reports
from tests.support import TARGETS, guest_on, images_dir
from wcet_probe.answer.witness.probe import ProbeRequest, observe
from wcet_probe.build.compilation import build_image
from wcet_probe.build.toolchain import PACKAGED
from wcet_probe.catalog.lookup import load_allocator, load_target
from wcet_probe.errors import UsageError
from wcet_probe.model.report import Report
from wcet_probe.scenarios.dlmalloc27.dlmalloc27 import FAMILY
from wcet_probe.scenarios.dlmalloc27.heap import bin_of
from wcet_probe.scenarios.dlmalloc27.malloc import SORTED_BYTES, fence_bytes, nodes_passed, region_counts
from wcet_probe.scenarios.dlmalloc27.script import Order, ordered
from wcet_probe.scenarios.families import HeapRequest

KIB = 1 << 10
LINES = (0, 16, 32, 64)


def observed(scenario: str, target: str, heap_bytes: int, threshold: int = 131072) -> Report:
    return reports.report("dlmalloc27", target, scenario, heap_bytes, (("consolidation-threshold", threshold),), seed=0)


def instructions(scenario: str, target: str, heap_bytes: int) -> int:
    return observed(scenario, target, heap_bytes).measurement.instructions


@pytest.mark.covering(0)
@pytest.mark.parametrize(("scenario", "target", "heap"), [*product(FAMILY.builders, TARGETS, (4 * KIB, 64 * KIB))])
def test_every_state_is_reached(scenario: str, target: str, heap: int) -> None:
    report = observed(scenario, target, heap)
    assert report.checks
    assert all(check.predicted == check.found for check in report.checks)
    kind = scenario.rsplit("-", maxsplit=1)[-1]
    if kind in ("alloc", "free") and "failing" not in scenario:
        best = observed(f"best-{kind}", target, heap).measurement
        worst = observed(f"worst-{kind}", target, heap).measurement
        paper = observed(f"paper-{kind}", target, heap).measurement
        assert best.instructions < paper.instructions <= worst.instructions
        assert best.cycles < paper.cycles <= worst.cycles


@pytest.mark.covering(0)
@pytest.mark.parametrize("target", TARGETS)
def test_no_operation_of_a_random_workload_costs_as_much(target: str) -> None:
    heap = 4 * KIB
    allocator = load_allocator("dlmalloc27")
    guest = guest_on(build_image(allocator, load_target(target), PACKAGED, images_dir()), load_target(target))
    (plan,) = FAMILY.builders["random"](HeapRequest(allocator, heap, None, 1))
    with guest.machine(heap) as machine:
        machine.call("dlmalloc27_init", machine.heap.base_address, heap)
        counts = machine.replay_counted(plan.trace)
    for code, scenario in enumerate(("worst-alloc", "worst-free")):
        most = max(count for count, kind in zip(counts, plan.trace.kinds, strict=True) if kind == code)
        assert most <= instructions(scenario, target, heap)


def test_sorting_is_as_predicted_and_the_rest_linear() -> None:
    """Four instructions pass a node, two of them loads."""
    passed = {}
    for heap in (256 * KIB, 1024 * KIB):
        report = observed("worst-alloc", "cortex-m4", heap)
        assert report.plan.driver_value is not None
        passed[heap] = report.plan.driver_value
        assert passed[heap] == pytest.approx((heap / 460) ** 2, rel=0.03)
        assert report.measurement.loads - 2 * passed[heap] == pytest.approx(7.25 * heap / 16, rel=0.02)
        assert report.measurement.instructions - 4 * passed[heap] == pytest.approx(33.8 * heap / 16, rel=0.02)
    assert passed[1024 * KIB] / passed[256 * KIB] == pytest.approx(16, rel=0.04)


def test_paper_alloc_is_linear() -> None:
    """As 2.7.2 itself: 17 instructions for each chunk that merges with top."""
    costs = {heap: instructions("paper-alloc", "cortex-m4", heap) for heap in (4 * KIB, 64 * KIB, 128 * KIB)}
    for low, high in pairwise(costs):
        assert costs[high] - costs[low] == pytest.approx(17 * (high - low) // 16, abs=20)


def test_chunks_across_lines_miss_twice() -> None:
    """Of a large heap behind a cache the state is another one than that which executes most."""
    report = observed("worst-alloc", "mpc603e", 256 * KIB)
    assert "across lines" in report.plan.variant
    most = max(report.candidates, key=lambda candidate: candidate.instructions)
    assert "across lines" not in most.variant
    assert report.measurement.instructions < most.instructions
    assert report.measurement.cycles > 1.5 * most.cycles


def test_regions_that_share_sets_miss_where_all_of_them_fit_into_the_cache() -> None:
    """Their words are 416 lines, the cache has 512: at places that repeat each way they are evicted all the same."""
    report = observed("worst-alloc", "mpc603e", 64 * KIB)
    assert report.plan.variant.endswith("each page as every other")
    assert report.plan.prediction["fewest regions at a place in a page"] > 4
    others = [one for one in report.candidates if "page" not in one.variant]
    assert report.measurement.cycles > 2.6 * max(one.cycles for one in others)


def test_a_free_in_constant_time_misses_most_where_its_chunks_share_a_set() -> None:
    report = observed("worst-free", "mpc603e", 64 * KIB)
    assert report.plan.prediction["places in a page of chunks beside the neighbours"] == 1
    others = [one for one in report.candidates if "page" not in one.variant]
    assert report.measurement.cycles > 1.09 * max(one.cycles for one in others)


@pytest.mark.covering(0)
@pytest.mark.parametrize(("target", "factor"), [("mpc603e", 1.6), ("arm926ej-s", 1.2)])
def test_free_misses_most_where_pages_merge_in_turn(target: str, factor: float) -> None:
    report = observed("worst-free", target, 256 * KIB)
    assert "page by page in turn" in report.plan.variant
    others = [one for one in report.candidates if "page" not in one.variant]
    assert report.measurement.cycles > factor * max(one.cycles for one in others)


@pytest.mark.covering(0)
@pytest.mark.parametrize("target", TARGETS)
def test_free_is_not_constant(target: str) -> None:
    """C06 table 1 says O(1)."""
    reports = [observed("worst-free", target, heap) for heap in (64 * KIB, 160 * KIB, 256 * KIB)]
    costs = [report.measurement.instructions for report in reports]
    chunks = [report.plan.driver_value for report in reports]
    unused = 24 if load_target(target).dcache else 0
    assert chunks == [None, (160 * KIB - 131104 - unused) // 16, (256 * KIB - 131104 - unused) // 16]
    assert costs[0] < 70
    assert costs[2] - costs[1] > 30 * (96 * KIB // 16)
    assert instructions("paper-free", target, 64 * KIB) == instructions("paper-free", target, 4 * KIB) < 70


def test_a_small_threshold_shows_it_in_a_small_heap() -> None:
    report = observed("worst-free", "cortex-m4", 8 * KIB, 4096)
    assert report.plan.driver_value == (8 * KIB - 4096 - 32) // 16


@pytest.mark.parametrize("line", LINES)
def test_no_other_division_of_the_heap_passes_more(line: int) -> None:
    """Against all neighbouring divisions, and the two sizes of the usual example."""
    budget = 32 * KIB
    counts = region_counts(budget, line)
    costs = {size: size + fence_bytes(size, line) for size in SORTED_BYTES}
    most = nodes_passed(counts.values())
    for taken, given in product(SORTED_BYTES, repeat=2):
        other = dict(counts)
        other[taken] -= 1
        other[given] += 1
        if min(other.values()) >= 0 and sum(costs[size] * count for size, count in other.items()) <= budget:
            assert nodes_passed(other.values()) <= most
    half = budget // (costs[264] + costs[272])
    assert most > (1.05 if line == 64 else 1.3) * half * half


@pytest.mark.parametrize("line", LINES)
def test_fences_keep_the_place_in_a_line(line: int) -> None:
    for size in SORTED_BYTES:
        fence = fence_bytes(size, line)
        assert fence >= 16
        assert fence % 8 == 0
        assert (size + fence) % (line or 8) == 0
        assert fence == 16 or fence < 16 + line


def test_the_states_of_other_builds_are_reached() -> None:
    allocator = load_allocator("dlmalloc27", {"fast-request": 16, "consolidation-threshold": 4096})
    for scenario in ("worst-alloc", "worst-free", "worst-failing-alloc"):
        report = observe(
            ProbeRequest(allocator, load_target("mpc603e"), scenario, 16 * KIB, 0, None, PACKAGED, False, images_dir())
        )
        assert all(check.predicted == check.found for check in report.checks)


@pytest.mark.parametrize("order", Order)
@pytest.mark.parametrize("count", [0, 1, 15, 16, 17, 1000])
def test_an_order_has_each_slot_once(order: Order, count: int) -> None:
    assert sorted(ordered(range(count), order)) == list(range(count))


def test_in_sweeps_a_chunk_grows_whose_neighbours_in_the_list_were_not_near() -> None:
    """Between two turns of a run many others have theirs, and so have those that stand beside it in the list."""
    slots = range(64 * 1024)
    order, length = ordered(slots, Order.IN_SWEEPS), 16
    listed: list[int] = []
    touched: dict[int, int] = {}
    near = 0
    for time, run in enumerate(slot // length for slot in order[: 4 * len(slots) // length]):
        at = listed.index(run) if run in touched else None
        if at is not None:
            beside = [listed[other] for other in (at - 1, at + 1) if 0 <= other < len(listed)]
            near += sum(time - touched[other] < 100 for other in (run, *beside))
            touched.update(dict.fromkeys(beside, time))
            del listed[at]
        listed.insert(0, run)
        touched[run] = time
    assert near < 0.05 * 3 * len(slots) / length * 3


def test_bins() -> None:
    starts = {16: 2, 248: 31, 256: 32, 312: 32, 320: 33, 512: 36, 1 << 20: 80, 8 << 20: 92, 14 << 20: 95, 1 << 27: 95}
    assert {size: bin_of(size) for size in starts} == starts
    assert [bin_of(start - 8) for start in (256, 320, 512, 1 << 20, 14 << 20)] == [31, 32, 35, 79, 94]


@pytest.mark.parametrize("scenario", ["worst-alloc", "worst-failing-alloc"])
def test_a_heap_that_cannot_hold_the_state_is_refused(scenario: str) -> None:
    with pytest.raises(UsageError, match="give at least 80 "):
        observed(scenario, "cortex-m4", 72)
