"""dlmalloc28 in its worst states: chains in tries, logarithmic in the heap, and nothing known is worse."""

from __future__ import annotations

from itertools import accumulate, pairwise

import pytest

from tests.scenarios.tagged_scenarios import dearest_of_random_replay, instructions, report
from tests.support import TARGETS
from wcet_probe.catalog.lookup import load_allocator
from wcet_probe.errors import UsageError
from wcet_probe.model.scenario import ScenarioPlan
from wcet_probe.scenarios.families import HeapRequest
from wcet_probe.scenarios.lookup import family, scenario_names

NAME = "dlmalloc28"
HEAPS = (4 << 10, 64 << 10, 4 << 20)


def longest_search(heap_bytes: int) -> int:
    """Nodes on a request's path: d of them have sizes above 2^(d + 4)."""
    return max(d for d in range(1, 24) if d << (d + 4) < heap_bytes)


@pytest.mark.covering(0)
@pytest.mark.parametrize("heap_bytes", HEAPS[:2])
@pytest.mark.parametrize("target_name", TARGETS)
def test_every_scenario_reaches_its_state(target_name, heap_bytes):
    for scenario in scenario_names(NAME):
        assert all(c.predicted == c.found for c in report(NAME, scenario, target_name, heap_bytes).checks)
    for operation in ("alloc", "free"):
        worst = instructions(NAME, f"worst-{operation}", target_name, heap_bytes)
        assert instructions(NAME, f"best-{operation}", target_name, heap_bytes) < worst
    failing = instructions(NAME, "worst-failing-alloc", target_name, heap_bytes)
    assert failing < instructions(NAME, "worst-alloc", target_name, heap_bytes)


@pytest.mark.parametrize("heap_bytes", [*HEAPS[:2], pytest.param(HEAPS[2], marks=pytest.mark.slow)])
def test_the_depth_is_the_closed_form(heap_bytes):
    depth = longest_search(heap_bytes)
    failing = report(NAME, "worst-failing-alloc", heap_bytes=heap_bytes).plan
    assert failing.driver_value == failing.prediction["nodes searched"] == depth
    alloc = report(NAME, "worst-alloc", heap_bytes=heap_bytes).plan
    assert depth - 3 <= alloc.prediction["nodes searched"] <= depth
    walks = ("nodes searched", "nodes on the leftmost path", "nodes down to the leaf", "nodes above the rest")
    assert alloc.driver_value == sum(alloc.prediction[fact] for fact in walks)


@pytest.mark.slow
@pytest.mark.parametrize("target_name", [TARGETS[1], pytest.param(TARGETS[2], marks=pytest.mark.slow)])
@pytest.mark.parametrize("heap_bytes", [100_000, pytest.param(4 << 20, marks=pytest.mark.slow)])
def test_large_heaps_with_a_cache(target_name, heap_bytes):
    for scenario in ("worst-alloc", "worst-free"):
        assert report(NAME, scenario, target_name, heap_bytes).checks


@pytest.mark.covering(0)
@pytest.mark.parametrize("heap_bytes", [1024, 5000, 64 << 10])
def test_every_shape_of_neighbours_is_as_predicted(heap_bytes: int) -> None:
    """Not of the dearest alone: what two removals from one trie leave is known of each state."""
    found = report(NAME, "worst-free", "arm926ej-s", heap_bytes)
    assert all(check.predicted == check.found for check in found.checks)
    variants = " ".join(candidate.variant for candidate in found.candidates)
    assert "on one path" in variants
    assert "two tries" in variants


def test_both_neighbours_in_one_trie_are_dearest_in_a_small_heap() -> None:
    """Two paths of one trie cost less memory than two tries do: 237 instructions and 2,989 cycles before."""
    assert instructions(NAME, "worst-free", "cortex-m4", 5000) >= 263
    assert report(NAME, "worst-free", "arm926ej-s", 5000).measurement.cycles >= 3187


def test_most_instructions_across_lines_are_dearest_where_a_line_is_not_waited_for_long() -> None:
    assert report(NAME, "worst-alloc", "e200z6", 5000).measurement.cycles >= 3858  # 3,732 of those dearest by lines


def test_nodes_below_a_root_are_dearest_where_the_code_is_in_a_cache() -> None:
    assert report(NAME, "worst-free", "arm926ej-s", 64 << 10).measurement.cycles >= 4529  # 4,342 before
    assert report(NAME, "worst-alloc", "arm926ej-s", 64 << 10).measurement.cycles >= 5587  # 5,419 before


def _line_offsets(plan: ScenarioPlan, line: int) -> dict[int, int]:
    """Where in a cache line each slot's chunk starts: all are cut from a virgin heap, one behind the other."""
    trace = plan.trace
    sizes = {
        slot: (size + 4 + 7) // 8 * 8
        for kind, slot, size in zip(trace.kinds, trace.slots, trace.sizes_bytes, strict=True)
        if kind == 0
    }
    return {slot: start % line for slot, start in zip(sizes, accumulate(sizes.values(), initial=0), strict=False)}


def test_nodes_are_split_between_the_words_that_are_used():
    """Header and children of both neighbours, children and parent of what is cut off, header and ring at the end."""
    request = HeapRequest(load_allocator(NAME), 4 << 20, 32, 1)
    split = [p for p in family(NAME).builders["worst-free"](request) if p.variant.endswith("two lines")]
    assert split
    for plan in split:
        starts = _line_offsets(plan, 32)
        freed = [slot for kind, slot in zip(plan.trace.kinds, plan.trace.slots, strict=True) if kind]
        roots = 2 if "not roots" in plan.variant else 0
        neighbours, rest = freed[roots : roots + 2], freed[roots + 2 :]
        passed = plan.prediction["nodes above the merged"]
        assert [starts[slot] for slot in neighbours] == [16] * 2
        assert {starts[slot] for slot in rest[:-passed]} >= {8}
        assert {starts[slot] for slot in rest[-passed:]} <= {16, 24}


@pytest.mark.parametrize("scenario", ["worst-alloc", "worst-free", "worst-failing-alloc"])
def test_logarithmic_in_the_heap(scenario):
    """Sixteen times the heap, three or four more levels in each of the walks, and never less."""
    costs = [instructions(NAME, scenario, heap_bytes=4096 << (4 * i)) for i in range(3)]
    steps = [after - before for before, after in pairwise(costs)]
    assert all(step > 0 for step in steps)
    assert max(steps) < 300
    assert costs[-1] < 3 * costs[0]


def test_with_a_bit_table():
    for scenario in scenario_names(NAME):
        assert report(NAME, scenario, "cortex-m4", 8192, (("bit-search", 1),)).checks


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("heap_bytes", HEAPS[:1])
def test_no_operation_of_a_random_workload_is_dearer(heap_bytes, seed):
    dearest = dearest_of_random_replay(NAME, "cortex-m4", heap_bytes, seed)
    assert dearest[0] <= instructions(NAME, "worst-alloc", heap_bytes=heap_bytes)
    assert dearest[1] <= instructions(NAME, "worst-free", heap_bytes=heap_bytes)


@pytest.mark.parametrize("heap_bytes", [1024, pytest.param(16 << 20, marks=pytest.mark.slow)])
def test_any_heap_that_can_hold_a_state(heap_bytes):
    for scenario in ("worst-alloc", "worst-free", "worst-failing-alloc"):
        assert report(NAME, scenario, heap_bytes=heap_bytes).checks


def test_a_heap_without_room_is_refused():
    with pytest.raises(UsageError, match="give at least 672 with"):
        report(NAME, "worst-alloc", heap_bytes=256)
