"""The page of a target: nothing that its file says is left out."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console

from wcet_probe.catalog.lookup import load_target, target_names
from wcet_probe.reports.screens.target_page import render_target


def page(name: str) -> str:
    stream = StringIO()
    render_target(load_target(name), Console(file=stream, width=100, no_color=True))
    return stream.getvalue()


def words(text: str) -> str:
    """``text`` without line breaks and indentation."""
    return " ".join(text.split())


@pytest.mark.parametrize("name", target_names())
def test_every_number_is_there_with_basis_and_source(name):
    target, text = load_target(name), page(name)
    told = words(text)
    memory = target.memory
    regions = [number for region in memory.regions for number in (region.read_cycles, region.write_cycles)]
    caches = [cache for cache in (target.icache, target.dcache) if cache]
    numbers = [*target.timing.values(), target.condition_failed, *caches, *regions]
    numbers += [*target.stalls, *target.unaligned]
    numbers += [memory.beat_bytes, memory.first_beat_cycles, memory.next_beat_cycles]
    for number in numbers:
        assert words(number.source) in told
    for timing_class, timing in target.timing.items():
        row = next(line.split() for line in text.splitlines() if line.split()[:1] == [timing_class])
        added = (timing.literal_cycles, timing.load_use_cycles, timing.taken_cycles)
        counts = (timing.cycles, timing.per_register_cycles, *added)
        assert row[1:7] == [*map(str, counts), timing.basis.value]
        assert words(timing.note) in told
    for stall in target.stalls:
        assert words(f"{stall.name} {stall.result.value}") in told
        assert words(stall.note) in told
    for row in target.unaligned:
        assert words(f"{row.size_bytes} {row.alignment_bytes} {row.cycles} {row.basis.value}") in told
        assert words(row.note) in told
    assert sum(target.bases.values()) == len(numbers) - (len(caches) == 2 and target.unified_cache)
    assert words(target.translation) in told
    assert words(target.aligned_accesses) in told
    for choice in target.modelling_choices:
        assert words(choice) in told
    for region in memory.regions:
        assert region.name in told
        assert f"{region.extent.base_address:#010x}" in told


def test_a_unified_cache_is_one_row():
    rows = [line.split()[0] for line in page("e200z6").splitlines() if " ways " not in line and "round-robin" in line]
    assert rows.count("unified") == 1
    assert "instruction  " not in page("e200z6").split("Caches")[1].split("Memory")[0]
