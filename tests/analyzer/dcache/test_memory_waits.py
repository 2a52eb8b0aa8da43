"""What an access waits for memory where no cache serves it, by where it may go."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.end_to_end.test_cache_soundness import analysed
from tests.support import assembler, cache_config, guest_of
from wcet_probe.analyzer.dcache.memory_waits import region_cycles, uncached_cycles, waiting_cycles
from wcet_probe.catalog.lookup import load_target
from wcet_probe.model.target import Basis, MemoryRange, Sourced, UncachedRegion

BASE = 0x2000_0000


@pytest.mark.parametrize(
    ("body", "region", "memory"),
    [
        (f"ldr r1, ={BASE + 64}\nldr r0, [r1]", 0, 4),
        (f"ldr r1, ={BASE + 4}\nldr r0, [r1]", 30, 30),
        (f"ldr r1, ={BASE + 4}\nstr r0, [r1]", 2, 4),
        (f"ldr r1, ={BASE - 4}\nldr r0, [r1]", 0, 4),
        (f"ldr r1, ={BASE - 2}\nldr r0, [r1]", 30, 30),
        (f"ldr r1, ={BASE + 30}\nldr r0, [r1]", 30, 30),
        ("ldr r0, [r0]", 30, 30),
        ("ldr r0, [sp]", 30, 30),
    ],
)
def test_the_dearest_place_that_it_may_go_to(body, region, memory):
    read, write, single = (Sourced(cycles, Basis.ASSUMED, "a test") for cycles in (30, 2, 4))
    target = load_target("cortex-m4")
    regions = (UncachedRegion("near", MemoryRange(BASE, 32), read, write),)
    target = replace(target, memory=replace(target.memory, first_beat_cycles=single, regions=regions))
    code = assembler({"f": f"{body}\nbx lr\n.ltorg"}, target)
    prepared = analysed(guest_of(code, target), "f").prepared
    access = prepared.values.accesses[0][-1]
    assert region_cycles(access, target.memory) == region
    assert uncached_cycles(access, target.memory) == waiting_cycles(access, target) == memory
    assert waiting_cycles(access, replace(target, dcache=cache_config(4, 2, 16))) == region
