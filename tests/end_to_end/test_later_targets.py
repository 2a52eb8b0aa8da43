"""The targets that the large matrices leave out: every allocator is observed on each, and both engines agree."""

from __future__ import annotations

from functools import cache
from io import StringIO

import pytest
from rich.console import Console

from tests.support import TARGETS, images_dir
from wcet_probe.answer.witness.probe import ProbeRequest, observe
from wcet_probe.build.toolchain import PACKAGED
from wcet_probe.catalog.lookup import allocator_names, load_allocator, load_target, target_names
from wcet_probe.errors import HeapTooSmallError
from wcet_probe.model.report import Report
from wcet_probe.reports.screens.terminal import render

LATER = tuple(name for name in target_names() if name not in TARGETS)
HEAP_BYTES = 4096


@cache
def observed(name: str, target: str) -> Report:
    def request(heap_bytes: int) -> ProbeRequest:
        chosen = load_allocator(name), load_target(target)
        return ProbeRequest(*chosen, "worst-alloc", heap_bytes, 0, None, PACKAGED, True, images_dir())

    try:
        return observe(request(HEAP_BYTES))
    except HeapTooSmallError:
        return observe(request(2 * HEAP_BYTES))


NAMES = allocator_names()
PAIRS = [(name, target) for name in NAMES for target in LATER]
ALWAYS = {(name, LATER[row % len(LATER)]) for row, name in enumerate(NAMES[::2])}
"""Each target with one or two allocators; the others are a long campaign."""


@pytest.mark.parametrize(
    ("name", "target"), [pair if pair in ALWAYS else pytest.param(*pair, marks=pytest.mark.slow) for pair in PAIRS]
)
def test_every_allocator_is_observed_and_both_engines_agree(name, target):
    report = observed(name, target)
    measurement = report.measurement
    assert report.cross_check is not None
    core = load_target(target)
    assert report.cross_check.dcache_misses == (measurement.dcache.misses if core.dcache else None)
    assert report.cross_check.icache_misses == (measurement.icache.misses if core.icache else None)
    assert measurement.instructions < measurement.instruction_cycles
    assert (measurement.instruction_cycles < measurement.cycles) is bool(core.icache or core.dcache)


def test_there_are_later_targets():
    assert {"cortex-m7", "cortex-r5", "e200z6", "mpc755"} <= set(LATER)


def test_accesses_to_a_scratchpad_go_past_the_data_cache():
    for target in ("cortex-m7", "cortex-r5"):
        measurement = observed("tlsf", target).measurement
        cached = measurement.dcache.hits + measurement.dcache.misses
        assert measurement.touched_bytes_by_region["stack"] > 0
        assert measurement.touched_sets_by_region["stack"] == ()
        assert 0 < cached < measurement.loads + measurement.stores


def test_fetches_and_data_fight_for_a_unified_cache():
    assert observed("tlsf", "e200z6").measurement.icache.writebacks > 0
    assert observed("tlsf", "mpc755").measurement.icache.writebacks == 0


def test_a_unified_cache_is_one_on_the_screen():
    report, stream = observed("half-fit", "e200z6"), StringIO()
    render(report, Console(file=stream, width=100, no_color=True))
    counts = report.measurement.icache
    assert "Touched cache sets (one cache, 128 sets)" in stream.getvalue()
    assert f"{counts.hits} hits, {counts.misses} misses, {counts.writebacks} write-backs\n" in stream.getvalue()
    assert "I-cache" not in stream.getvalue()
