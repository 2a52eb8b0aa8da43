"""djgpp-tags: every state is reached, malloc and free are linear, no random workload is worse."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console

from tests.scenarios.tagged_scenarios import dearest_of_random_replay, instructions, report
from tests.support import TARGETS
from wcet_probe.reports.formats.document import document
from wcet_probe.reports.screens.terminal import render
from wcet_probe.scenarios.lookup import scenario_names

NAME = "djgpp-tags"


@pytest.mark.covering(0)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("heap_bytes", [4 << 10, 64 << 10])
def test_every_state_is_reached(target, heap_bytes):
    for scenario in scenario_names(NAME):
        assert report(NAME, scenario, target, heap_bytes).checks
    for kind in ("alloc", "free"):
        worst, best = (instructions(NAME, f"{which}-{kind}", target, heap_bytes) for which in ("worst", "best"))
        assert worst > 10 * best


@pytest.mark.covering(0)
@pytest.mark.parametrize("target", TARGETS)
def test_no_random_workload_is_worse(target):
    dearest = dearest_of_random_replay(NAME, target, 4 << 10, 1)
    assert dearest[0] <= instructions(NAME, "worst-alloc", target)
    assert dearest[1] <= instructions(NAME, "worst-free", target)


def test_walks_are_linear_in_the_heap():
    for scenario in ("worst-alloc", "worst-free"):
        few, many = (report(NAME, scenario, "cortex-m4", kib << 10).plan.driver_value for kib in (256, 1024))
        assert 3.9 < many / few < 4.1


@pytest.mark.parametrize("heap_bytes", [16 << 10, 64 << 10])
def test_the_second_walk_of_free_finds_nothing_of_the_first(heap_bytes):
    """Where one counter serves the whole cache, of which the heap takes all lines, or four times as many."""
    dearest = report(NAME, "worst-free", "arm926ej-s", heap_bytes).witnesses["cycles"]
    assert dearest.measurement.dcache.misses > 0.99 * dearest.plan.driver_value
    assert dearest.measurement.dcache.writebacks > 500


def test_a_refused_dearest_allocation_is_told_on_the_first_screen_and_in_the_document():
    found = report(NAME, "worst-alloc", "cortex-m4", 600)
    screen = Console(file=StringIO(), width=100)
    render(found, screen)
    assert "The observed allocation is refused: it returns NULL." in screen.file.getvalue().splitlines()[:3]
    assert all(one["refused"] for one in document(found)["witnesses"].values())
    assert not any(one.refused for one in report(NAME, "worst-free", "cortex-m4", 600).witnesses.values())
