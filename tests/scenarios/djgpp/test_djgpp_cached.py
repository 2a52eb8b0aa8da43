"""djgpp-cached: every state is reached, malloc and free are linear, no random workload is worse."""

from __future__ import annotations

import re

import pytest

from tests.scenarios.tagged_scenarios import dearest_of_random_replay, instructions, report
from tests.support import TARGETS
from wcet_probe.catalog.lookup import load_allocator
from wcet_probe.errors import HeapTooSmallError
from wcet_probe.scenarios.families import HeapRequest
from wcet_probe.scenarios.lookup import family, scenario_names

NAME = "djgpp-cached"
VALUES = (
    (("small-block", 256),),
    (("minimum-block", 24), ("small-block", 128)),
    (("minimum-block", 32), ("chunk", 4096)),
    (("alignment", 4), ("minimum-block", 24), ("chunk", 16384)),
)


@pytest.mark.covering(0)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("heap_bytes", [4 << 10, 64 << 10])
def test_every_state_is_reached(target, heap_bytes):
    for scenario in scenario_names(NAME):
        assert report(NAME, scenario, target, heap_bytes).checks
    for kind in ("alloc", "free"):
        worst, best = (instructions(NAME, f"{which}-{kind}", target, heap_bytes) for which in ("worst", "best"))
        assert worst > 30 * best


@pytest.mark.covering
@pytest.mark.parametrize("values", VALUES, ids=str)
@pytest.mark.parametrize("heap_bytes", [4 << 10, 64 << 10])
def test_every_build_reaches_its_states(values, heap_bytes):
    for scenario in scenario_names(NAME):
        assert report(NAME, scenario, "mpc603e", heap_bytes, values).checks


@pytest.mark.covering(0)
@pytest.mark.parametrize("target", TARGETS)
def test_no_random_workload_is_worse(target):
    dearest = dearest_of_random_replay(NAME, target, 4 << 10, 1)
    assert dearest[0] <= instructions(NAME, "worst-alloc", target)
    assert dearest[1] <= instructions(NAME, "worst-free", target)


@pytest.mark.parametrize("heap_bytes", [512, 1000, 4 << 10, 4104, 1 << 20])
def test_nodes_are_as_many_as_fit(heap_bytes):
    """Least blocks in turn, but for a lowest one of 64 bytes, whose upper end is the rest, and one to be freed."""
    request = HeapRequest(load_allocator(NAME), heap_bytes, None, 1)
    names = ("failing-alloc", "free", "alloc")
    (failing,), (free,), (_, served, *_) = (family(NAME).builders[f"worst-{what}"](request) for what in names)
    fences = 8
    assert failing.driver_value == 2 * ((heap_bytes - fences - 64) // 32)
    assert served.driver_value == 2 * ((heap_bytes - fences - 64 - 32) // 32) + 1
    assert free.driver_value == 2 * ((heap_bytes - fences - 64 - 64 + 16) // 32) - 1


def test_a_walk_more_where_the_break_moves():
    for target in ("cortex-m4", "mpc603e"):
        found = report(NAME, "worst-alloc", target, 256 << 10)
        assert found.plan.driver_value == 3 * found.plan.prediction["blocks in the list"]
        assert found.plan.variant.startswith("the break moves")


def test_neighbours_that_are_apart_cost_two_lines_a_visit():
    """Where the heap is larger than the cache."""
    candidates = {
        candidate.variant: candidate for candidate in report(NAME, "worst-alloc", "mpc603e", 64 << 10).candidates
    }
    near, apart = (candidates[f"a larger block serves{how}"].cycles for how in ("", ", two lines a visit"))
    assert apart > 1.5 * near


def test_a_region_within_lines_keeps_no_node_in_the_cache():
    """Where one counter serves the whole cache, rounds of an even number of lines leave half of it alone."""
    cycles = {c.variant: c.cycles for c in report(NAME, "worst-alloc", "arm926ej-s", 16400).candidates}
    even, odd = (cycles[f"a larger block serves, two lines a visit{how}"] for how in ("", ", one in the last region"))
    assert odd > 1.3 * even


@pytest.mark.parametrize("name", [NAME, "djgpp-tags"])
def test_a_refused_call_is_the_dearest_where_the_break_cannot_move(name):
    found = report(name, "worst-alloc", "mpc603e")
    failing = report(name, "worst-failing-alloc", "mpc603e")
    assert found.plan.refused
    assert found.measurement.result == 0
    assert found.measurement.instructions == failing.measurement.instructions
    assert found.measurement.cycles == failing.measurement.cycles


def test_walks_are_linear_in_the_heap():
    for scenario in ("worst-alloc", "worst-free"):
        few, many = (report(NAME, scenario, "cortex-m4", kib << 10).plan.driver_value for kib in (256, 1024))
        assert 3.9 < many / few < 4.1


def test_a_heap_without_room_is_refused():
    with pytest.raises(HeapTooSmallError):
        family(NAME).builders["worst-alloc"](HeapRequest(load_allocator(NAME), 128, None, 1))


@pytest.mark.parametrize("name", [NAME, "djgpp-tags"])
@pytest.mark.parametrize("heap_bytes", [4096, 4104, 200_000])
def test_the_closed_form_is_that_of_the_nodes(name, heap_bytes):
    request, told = HeapRequest(load_allocator(name), heap_bytes, 32, 1), 0
    for scenario in ("worst-alloc", "worst-free", "worst-failing-alloc"):
        for plan in family(name).builders[scenario](request):
            form = (
                r"nodes visited = (\d?) ?(?:n ?([+-] 1)?, )?n = floor\(\(H ([+-] \d+)\) / (\d+)\)( \+ 1)? (free|nodes)"
            )
            if found := re.fullmatch(form, plan.driver.removesuffix(" blocks in the list").removesuffix(" blocks")):
                factor, more, spent, pair, first = (
                    int((group or "0").replace(" ", "")) for group in found.groups()[:5]
                )
                nodes = (heap_bytes + spent) // pair + first
                assert plan.driver_value == (factor or 1) * nodes + more
                told += 1
    assert told >= 3
