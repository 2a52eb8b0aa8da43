"""First-fit and best-fit in their worst states: linear in the free blocks, and nothing known is worse."""

from __future__ import annotations

import pytest

from tests.scenarios.tagged_scenarios import dearest_of_random_replay, instructions, report
from tests.support import TARGETS
from wcet_probe.errors import UsageError
from wcet_probe.scenarios.lookup import scenario_names

NAMES = ("first-fit", "best-fit")
P02 = (("alignment", 4), ("minimum-block", 16), ("split-threshold", 16))
COARSE = (("alignment", 8), ("minimum-block", 32), ("split-threshold", 64))


@pytest.mark.covering(0)
@pytest.mark.parametrize("heap_bytes", [4 << 10, 64 << 10])
@pytest.mark.parametrize("target_name", TARGETS)
@pytest.mark.parametrize("name", NAMES)
def test_every_scenario_reaches_its_state(name, target_name, heap_bytes):
    for scenario in scenario_names(name):
        answer = report(name, scenario, target_name, heap_bytes)
        assert all(check.predicted == check.found for check in answer.checks)
    worst, best = (instructions(name, f"{kind}-alloc", target_name, heap_bytes) for kind in ("worst", "best"))
    paper = instructions(name, "paper-alloc", target_name, heap_bytes)
    assert best <= paper < worst
    assert instructions(name, "best-free", target_name, heap_bytes) < instructions(
        name, "worst-free", target_name, heap_bytes
    )


@pytest.mark.covering
@pytest.mark.parametrize("values", [P02, COARSE], ids=["p02", "coarse"])
@pytest.mark.parametrize("name", NAMES)
def test_every_scenario_under_other_parameters(name, values):
    for scenario in scenario_names(name):
        for heap_bytes in (4096, 4096 + 8 * 3):
            assert report(name, scenario, "mpc603e", heap_bytes, values).checks


@pytest.mark.covering
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("heap_bytes", [4096, 4104, 4112, 4120, 8192])
def test_nodes_visited_by_the_closed_form(name, heap_bytes):
    """M = 16, fences 8, and the last block M + 8 + 16 bytes at least."""
    worst = report(name, "worst-alloc", "cortex-m4", heap_bytes)
    assert worst.plan.driver_value == next(c.found for c in worst.checks if c.fact == "nodes visited")
    if "less well" not in worst.plan.variant:
        assert worst.plan.driver_value == (heap_bytes - 48) // 32 + 1
    failing = report(name, "worst-failing-alloc", "cortex-m4", heap_bytes)
    assert failing.plan.driver_value == (heap_bytes - 24) // 32 + 1


@pytest.mark.parametrize("target_name", ["cortex-m4", "mpc603e"])
@pytest.mark.parametrize("name", NAMES)
def test_instructions_grow_linearly_with_the_nodes(name, target_name):
    points = [
        (c.plan.driver_value, c.measurement.instructions)
        for c in (report(name, "worst-failing-alloc", target_name, kib << 10) for kib in (4, 16, 64))
    ]
    (n0, i0), (n1, i1), (n2, i2) = points
    slope, rest = divmod(i1 - i0, n1 - n0)
    assert rest == 0
    assert i2 - i1 == slope * (n2 - n1)
    assert 5 <= slope <= 9


@pytest.mark.parametrize("name", NAMES)
def test_free_is_independent_of_the_heap(name):
    assert instructions(name, "worst-free", "mpc603e", 4096) == instructions(name, "worst-free", "mpc603e", 65536)


@pytest.mark.parametrize("name", NAMES)
def test_two_lines_a_visit_beat_one_where_the_heap_exceeds_the_cache(name):
    answer = report(name, "worst-alloc", "mpc603e", 256 << 10)
    assert "two cache lines" in answer.plan.variant
    misses = answer.measurement.dcache.read_misses
    assert answer.plan.driver_value is not None
    assert misses >= 2 * answer.plan.driver_value - 8


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("name", NAMES)
def test_no_operation_of_a_random_workload_is_dearer(name, seed):
    dearest = dearest_of_random_replay(name, "cortex-m4", 4096, seed)
    assert dearest[0] <= instructions(name, "worst-alloc")
    assert dearest[1] <= instructions(name, "worst-free")


@pytest.mark.slow
def test_a_heap_of_4_mib_has_131071_nodes_and_best_fit_pays_more_for_each():
    first, best = (report(name, "worst-alloc", "cortex-m4", 4 << 20) for name in NAMES)
    assert first.plan.driver_value == best.plan.driver_value == (4 << 20) // 32 - 1
    assert first.measurement.instructions < best.measurement.instructions


@pytest.mark.parametrize("name", NAMES)
def test_a_heap_without_room_is_refused(name):
    with pytest.raises(UsageError, match="too small"):
        report(name, "worst-alloc", "cortex-m4", 64)


def test_turns_on_the_way_evict_all_that_others_modified():
    """Nearly all of 512 lines, where one counter serves the whole cache."""
    found = report("first-fit", "worst-alloc", "arm926ej-s", 16 << 10)
    others = max(c.cycles for c in found.candidates if ", turned behind " not in c.variant)
    dearest = found.witnesses["cycles"]
    assert ", turned behind " in dearest.plan.variant
    assert dearest.measurement.dcache.writebacks > 500
    assert dearest.measurement.dcache.misses > 2 * dearest.plan.driver_value - 10
    assert dearest.measurement.cycles > 1.2 * others


@pytest.mark.parametrize("name", NAMES)
def test_a_walk_without_its_second_node_is_dearer_where_two_ways_hold_it(name):
    found = report(name, "worst-alloc", "arm926ej-s", 6_000)
    others = max(c.cycles for c in found.candidates if ", without 1" not in c.variant)
    dearest = found.witnesses["cycles"]
    assert dearest.plan.variant.endswith(", without 1")
    assert dearest.measurement.cycles > others
