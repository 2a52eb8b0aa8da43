"""Every worst state is reached on heaps of any size, or the heap is refused with one that works.

Tests: scenarios.lookup, scenarios.families.
"""

from __future__ import annotations

from functools import cache

import pytest

from tests.support import images_dir
from wcet_probe.answer.witness.probe import ProbeRequest, observe
from wcet_probe.catalog.lookup import allocator_names, load_allocator, load_target
from wcet_probe.errors import HeapTooSmallError
from wcet_probe.model.report import Report
from wcet_probe.scenarios.dlmalloc27.malloc import nodes_passed, region_counts
from wcet_probe.scenarios.families import HeapRequest
from wcet_probe.scenarios.lookup import family

NAMES = (*allocator_names(), "budgeted:dlmalloc27")
SCENARIOS = ("worst-alloc", "worst-free")
LATER = (1, 515)
"""Heaps above the least, in units of the alignment: all that divide by a block size leave another rest."""
LINE_BYTES = 32


@cache
def allocator(name: str):
    return load_allocator(name)


def report(name: str, scenario: str, heap_bytes: int) -> Report:
    target = load_target("cortex-m4")
    return observe(
        ProbeRequest(
            allocator(name), target, scenario, heap_bytes, 0, None, "zig", cross_check=False, cache_dir=images_dir()
        )
    )


def heaps(name: str) -> list[int]:
    unit = allocator(name).alignment_bytes
    least = -(-allocator(name).minimum_heap_bytes // unit) * unit
    return [least, *(least + unit * more for more in LATER)]


@pytest.mark.covering
@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("name", NAMES)
def test_the_state_is_reached_or_a_heap_that_works_is_named(name, scenario):
    refused = ""
    for heap_bytes in heaps(name):
        try:
            assert report(name, scenario, heap_bytes).checks
        except HeapTooSmallError as error:
            refused = str(error)
    if refused:
        named = int(refused.split("give at least ")[1].split()[0])
        assert report(name, scenario, named).checks


@pytest.mark.parametrize("scenario", [*SCENARIOS, "best-alloc", "best-free"])
@pytest.mark.parametrize("name", [name for name in NAMES if not name.startswith("budgeted")])
def test_the_least_heaps_of_a_core_with_cache_lines_have_a_state_or_are_refused(name, scenario):
    unit = allocator(name).alignment_bytes
    least = heaps(name)[0]
    for heap_bytes in range(least, least + 4 * unit, unit):
        try:
            plans = family(name).builders[scenario](HeapRequest(allocator(name), heap_bytes, LINE_BYTES, 0))
            assert all(size >= 0 for plan in plans for size in plan.trace.sizes_bytes)
        except HeapTooSmallError:
            continue


@pytest.mark.covering
@pytest.mark.parametrize("heap_bytes", [2384, 2720, 3000, 3584, 4200])
@pytest.mark.parametrize("scenario", ["worst-alloc", "worst-failing-alloc"])
def test_what_is_left_of_dlmalloc27s_heap_may_be_sorted_among_the_regions(scenario, heap_bytes):
    """Beside the least region and its fence, two chunks at the end, the last fence and top."""
    found = report("dlmalloc27", scenario, heap_bytes)
    assert found.witnesses["instructions"].plan.driver_value > nodes_passed(
        region_counts(heap_bytes - (256 + 16) - 2 * 16 - 16 - 16).values()
    )
    assert found.checks
