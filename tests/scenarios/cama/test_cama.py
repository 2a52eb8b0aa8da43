"""CAMA in its worst states: the same for every heap that can hold them, and nothing known is worse."""

from __future__ import annotations

import pytest

from tests.scenarios.tagged_scenarios import dearest_of_random_replay, instructions, report
from tests.support import TARGETS, images_dir
from wcet_probe.answer.witness.probe import ProbeRequest, observe
from wcet_probe.catalog.lookup import load_allocator, load_target
from wcet_probe.errors import UsageError
from wcet_probe.scenarios.cama.heap import Geometry
from wcet_probe.scenarios.lookup import scenario_names

NAME = "cama"
FULL_HEAP = 32 << 10
"""From here on a heap holds every state."""


@pytest.mark.covering(0)
@pytest.mark.parametrize("heap_bytes", [4 << 10, 64 << 10])
@pytest.mark.parametrize("target_name", TARGETS)
def test_every_scenario_reaches_its_state(target_name, heap_bytes):
    for scenario in scenario_names(NAME):
        checks = report(NAME, scenario, target_name, heap_bytes).checks
        assert checks
        assert all(c.predicted == c.found for c in checks)
    for operation in ("alloc", "free"):
        worst = instructions(NAME, f"worst-{operation}", target_name, heap_bytes)
        assert instructions(NAME, f"best-{operation}", target_name, heap_bytes) < worst
    failing = instructions(NAME, "worst-failing-alloc", target_name, heap_bytes)
    assert failing < instructions(NAME, "worst-alloc", target_name, heap_bytes)


@pytest.mark.covering(0)
@pytest.mark.parametrize(
    "values",
    [
        (("tl", 1), ("sl", 14), ("cache-sets", 64)),
        (("descriptor-first-set", 32), ("descriptor-sets", 64), ("tl", 2)),
        (("line-bytes", 64), ("descriptor-first-set", 16), ("sl", 8)),
    ],
    ids=["one-class-a-row", "reserved-in-the-middle", "long-lines"],
)
def test_every_scenario_under_other_parameters(values):
    for scenario in scenario_names(NAME):
        assert report(NAME, scenario, "mpc603e", 1 << 17, values).checks


@pytest.mark.covering
@pytest.mark.parametrize("target_name", TARGETS)
@pytest.mark.parametrize("scenario", ["worst-alloc", "worst-free", "worst-failing-alloc"])
def test_independent_of_the_heap(scenario, target_name):
    measured = [report(NAME, scenario, target_name, heap_bytes).measurement for heap_bytes in (FULL_HEAP, 1 << 20)]
    assert len({(m.instructions, m.cycles) for m in measured}) == 1


@pytest.mark.slow
def test_the_largest_heap():
    assert instructions(NAME, "worst-alloc", "cortex-m4", 64 << 20) == instructions(
        NAME, "worst-alloc", heap_bytes=8192
    )


@pytest.mark.parametrize("heap_bytes", [4 << 10, 64 << 10])
@pytest.mark.parametrize("seed", [1, 2])
def test_no_operation_of_a_random_workload_is_dearer(seed, heap_bytes):
    for target_name in ("cortex-m4", "mpc603e"):
        dearest = dearest_of_random_replay(NAME, target_name, heap_bytes, seed)
        for kind, scenario in enumerate(("worst-alloc", "worst-free")):
            candidates = report(NAME, scenario, target_name, heap_bytes).candidates
            assert dearest[kind] <= max(candidate.instructions for candidate in candidates)


@pytest.mark.parametrize("scenario", ["worst-alloc", "worst-free", "worst-failing-alloc"])
def test_a_worst_state_touches_reserved_sets_and_the_blocks_own(scenario):
    geometry = Geometry.of_values(load_allocator(NAME).values)
    answer = report(NAME, scenario, "mpc603e", 1 << 20)
    sets = answer.measurement.touched_sets_by_region
    heap = {*sets["heap_blocks"], *sets["heap_metadata"], *sets["static"]}
    assert len([s for s in heap if s >= geometry.reserved_sets]) <= 2
    assert not sets["code"]


def test_a_heap_without_room_is_refused():
    with pytest.raises(UsageError, match="give at least 1544 with"):
        report(NAME, "worst-free", "cortex-m4", 1536)


@pytest.mark.slow
def test_what_the_facts_say_of_sets_holds_in_a_cache_of_another_geometry():
    """The core has 256 sets, and the default build reserves some of 128."""
    found = observe(
        ProbeRequest(
            allocator=load_allocator("cama"),
            target=load_target("cortex-r5"),
            scenario="worst-alloc",
            heap_bytes=5000,
            seed=0,
            initial_cache=None,
            compiler="zig",
            cross_check=False,
            cache_dir=images_dir(),
            prove=True,
        )
    )
    assert found.bound is not None
    assert found.measurement.cycles <= found.bound.cycles
