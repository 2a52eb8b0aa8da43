"""One cache for instructions and data, and data memory that no cache serves: the native core against its plain twin.

Tests: emu.cache, emu.memory.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.emu.guests import arguments_in, guest
from tests.emu.second_engine import assert_agree
from tests.emu.test_cache import configs
from tests.emu.test_oracle import CONTENT, KNOWN
from tests.examples import examples
from tests.support import TARGETS, Guest, assembler, cache_config, guest_of, guest_on, tlsf_guest
from wcet_probe.catalog.lookup import load_target
from wcet_probe.emu import native
from wcet_probe.errors import EmulationError, UsageError
from wcet_probe.model.scenario import InitialCache
from wcet_probe.model.target import (
    Basis,
    CacheConfig,
    MemoryRange,
    Replacement,
    Sourced,
    Target,
    UncachedRegion,
    without_caches,
)

COLD, DIRTY = InitialCache.COLD, InitialCache.DIRTY
HEAP_BYTES = 4096
ONE_LINE = cache_config(sets=1, ways=1, line_bytes=16)
POWERPC = load_target("mpc603e")
UNIFIED = {
    "lru": cache_config(8, 2, 16),
    "fifo, write-through": cache_config(4, 3, 32, Replacement.FIFO, write_back=False, write_allocate=False),
    "plru": cache_config(4, 4, 16, Replacement.PLRU),
    "random": cache_config(4, 3, 8, Replacement.RANDOM, seed=3),
}

POWERPC_WALK = f"""
    1: mr 7, 3
    lwz 3, 0(3)
    andi. 6, 3, 1
    beq 2f
    stw 3, 1024(7)
    2: andi. 6, 3, 2
    beq 3f
    {"nop;" * 12}
    3: clrrwi. 3, 3, 2
    bne 1b
    blr"""
ARM_WALK = f"""
    1: mov r2, r0
    ldr r0, [r0]
    tst r0, #1
    it ne
    strne r0, [r2, #1024]
    tst r0, #2
    beq 3f
    {"nop;" * 12}
    3: bics r0, r0, #3
    bne 1b
    bx lr"""
WALK = {"mpc603e": POWERPC_WALK, "arm926ej-s": ARM_WALK, "cortex-m4": ARM_WALK}
"""A walk along a list of words, each the next one's address; bit 0 of it stores, bit 1 takes a detour."""


def unified(target: Target, cache: CacheConfig) -> Target:
    return replace(target, icache=cache, dcache=cache, unified_cache=True)


def with_region(target: Target, extent: MemoryRange, read_cycles: int, write_cycles: int) -> Target:
    cycles = (Sourced(number, Basis.ASSUMED, "a test") for number in (read_cycles, write_cycles))
    return replace(target, memory=replace(target.memory, regions=(UncachedRegion("pad", extent, *cycles),)))


def measured(body: str, target: Target, initial: InitialCache = COLD):
    """The measurement of a function ``f`` with the heap's address in r4."""
    with guest_of(assembler({"f": body}, target), target).machine() as machine:
        return machine.measure("f", (0, machine.heap.base_address), initial)


def test_an_instruction_is_fetched_before_it_accesses_data():
    """One line for all: each load evicts the code, which the next instruction fetches again."""
    counts = measured("lwz 5, 0(4)\nlwz 6, 0(4)\nblr", unified(POWERPC, ONE_LINE))
    assert (counts.icache.read_hits, counts.icache.read_misses) == (0, 3)
    assert (counts.dcache.read_hits, counts.dcache.read_misses) == (0, 2)
    assert counts.stall_cycles == 5 * POWERPC.memory.line_cycles(16)


def test_a_fetch_writes_modified_data_back():
    counts = measured("stw 5, 0(4)\nblr", unified(POWERPC, ONE_LINE))
    assert (counts.icache.writebacks, counts.dcache.writebacks) == (1, 0)
    assert counts.stall_cycles == 4 * POWERPC.memory.line_cycles(16)
    counts = measured("stw 5, 0(4)\nblr", unified(POWERPC, ONE_LINE), DIRTY)
    assert (counts.icache.writebacks, counts.dcache.writebacks) == (2, 0)


def test_code_and_data_of_different_sets_do_not_meet():
    counts = measured("lwz 5, 64(4)\nlwz 6, 64(4)\nblr", unified(POWERPC, cache_config(64, 1, 16)))
    assert (counts.icache.read_hits, counts.icache.read_misses) == (2, 1)
    assert (counts.dcache.read_hits, counts.dcache.read_misses) == (1, 1)


def test_a_fault_in_a_block_fetches_no_further():
    target = unified(POWERPC, cache_config(4, 1, 8))
    with guest_of(assembler({"f": "nop\nnop\nlwz 5, 0(3)\nnop\nnop\nblr"}, target), target).machine() as machine:
        with pytest.raises(EmulationError):
            machine.measure("f", (16,), COLD)
        counts = machine.observation()
    assert counts.instructions == 2
    assert counts.icache.read_hits + counts.icache.read_misses == 2


@pytest.mark.parametrize(("read_cycles", "write_cycles"), [(0, 0), (3, 5)])
def test_an_uncached_region_has_cycles_of_its_own(read_cycles, write_cycles):
    body = "lwz 5, 0(4)\nstw 5, 4(4)\nstw 5, 4(4)\nlwz 5, 256(4)\nblr"
    extent = MemoryRange(POWERPC.memory_map.heap_address, 256)
    counts = measured(body, with_region(POWERPC, extent, read_cycles, write_cycles))
    assert (counts.loads, counts.stores, counts.dcache.misses, counts.dcache.hits) == (2, 2, 1, 0)
    assert counts.touched_data_sets == (8,)
    fills = counts.icache.misses + 1
    assert counts.stall_cycles == read_cycles + 2 * write_cycles + fills * POWERPC.memory.line_cycles(32)


def test_an_uncached_region_of_a_core_without_caches():
    bare = replace(POWERPC, icache=None, dcache=None)
    extent = MemoryRange(bare.memory_map.heap_address, 256)
    counts = measured("lwz 5, 0(4)\nlwz 5, 256(4)\nblr", with_region(bare, extent, 2, 2))
    assert counts.stall_cycles == 2 + bare.memory.single_cycles


REGION_CYCLES, DEARER_CYCLES = 7, 50


@pytest.mark.parametrize(
    ("offset", "cycles", "filled", "without_cache"),
    [
        (28, 0, (0,), 20),
        (30, REGION_CYCLES, (0,), 20),
        (32, REGION_CYCLES, (), REGION_CYCLES),
        (62, DEARER_CYCLES, (), DEARER_CYCLES),
        (94, DEARER_CYCLES, (3,), DEARER_CYCLES),
        (96, 0, (3,), 20),
    ],
)
def test_an_access_waits_for_the_dearest_region_that_holds_a_byte_of_it(offset, cycles, filled, without_cache):
    """It counted as one of the region with its first byte; the cache never heard of the other line."""
    heap = POWERPC.memory_map.heap_address
    beat, near, far = (Sourced(n, Basis.ASSUMED, "a test") for n in (20, REGION_CYCLES, DEARER_CYCLES))
    regions = (
        UncachedRegion("near", MemoryRange(heap + 32, 32), near, near),
        UncachedRegion("far", MemoryRange(heap + 64, 32), far, far),
    )
    target = replace(POWERPC, icache=None, memory=replace(POWERPC.memory, first_beat_cycles=beat, regions=regions))
    used = guest_of(assembler({"f": "lwzx 5, 3, 4\nblr"}, target), target)
    with used.machine(HEAP_BYTES) as machine:
        counts, _ = assert_agree(used, machine, "f", (offset, heap), COLD)
    assert counts.dcache.misses == len(filled)
    assert counts.touched_data_sets == filled
    assert counts.stall_cycles == cycles + len(filled) * target.memory.line_cycles(32)
    bare = guest_on(used.image, replace(target, dcache=None))
    with bare.machine(HEAP_BYTES) as machine:
        counts, _ = assert_agree(bare, machine, "f", (offset, heap), COLD)
    assert counts.stall_cycles == without_cache


@pytest.mark.parametrize(
    ("cache", "unit"), [(cache_config(4, 2, 32), "line of the data cache"), (None, "word")], ids=["cache", "none"]
)
def test_a_region_that_shares_a_line_with_cached_memory_is_refused(cache, unit):
    """A bound takes an access to the region for one that fills the line."""
    target = replace(POWERPC, icache=None, dcache=cache)
    size = cache.line_bytes if cache else 4
    with_region(target, MemoryRange(2 * size, size), 0, 0)
    for wrong in (MemoryRange(2 * size + size // 2, size), MemoryRange(2 * size, size // 2)):
        with pytest.raises(UsageError, match=f"pad of mpc603e begins or ends inside of a {unit}; .* of {size}"):
            with_region(target, wrong, 0, 0)


def test_a_unified_cache_that_is_none_is_refused():
    """Of a core with one cache for both, fetches used to go to a cache that was never opened."""
    core = load_target("e200z6")
    assert core.unified_cache
    for changed in ({"icache": None, "dcache": None}, {"icache": None}, {"dcache": ONE_LINE}):
        with pytest.raises(UsageError, match="one cache for instructions and data"):
            replace(core, **changed)


def test_a_core_whose_unified_cache_is_taken_away_has_none():
    counts = measured("lwz 5, 0(4)\nblr", without_caches(unified(POWERPC, ONE_LINE)))
    assert counts.stall_cycles == POWERPC.memory.single_cycles
    assert not counts.icache.present
    assert not counts.dcache.present


def test_the_native_core_has_no_fetch_for_a_cache_that_was_not_opened():
    bare = without_caches(POWERPC)
    object.__setattr__(bare, "unified_cache", True)
    counts = measured("lwz 5, 0(4)\nblr", bare)
    assert counts.instructions == 2
    assert (counts.icache.misses, counts.dcache.misses) == (0, 0)


def test_the_native_core_closes_what_was_not_opened():
    native.load().wp_observer_close(None)


@pytest.mark.covering
@pytest.mark.parametrize("name", UNIFIED)
@pytest.mark.parametrize(("target", "case"), [pair for pair, _ in KNOWN], ids=[name for _, name in KNOWN])
def test_hand_written_functions(target, case, name):
    used = guest_on(guest(target).image, unified(load_target(target), UNIFIED[name]))
    with used.machine() as machine:
        machine.memory.write(machine.heap.base_address, CONTENT)
        assert_agree(used, machine, case.function, arguments_in(machine, case.arguments), COLD)


@cache
def walk(target: str) -> Guest:
    return guest_of(assembler({"f": WALK[target]}, load_target(target)), load_target(target))


@pytest.mark.parametrize("target", TARGETS)
@given(
    configs(),
    st.sampled_from((COLD, DIRTY)),
    st.lists(st.integers(1, 255), min_size=1, max_size=60, unique=True),
    st.lists(st.integers(0, 3), min_size=60, max_size=60),
)
@settings(max_examples=30)
def test_native_and_plain_caches_agree_on_random_walks(target, cache, initial, places, marks):
    """One load, repeated: fetches come between its executions."""
    used = guest_on(walk(target).image, unified(load_target(target), cache))
    with used.machine(HEAP_BYTES) as machine:
        base = machine.heap.base_address
        addresses = [base + 4 * place for place in places]
        for address, following, mark in zip(addresses, [*addresses[1:], 0], marks, strict=False):
            word = following | mark
            machine.memory.write(address, word.to_bytes(4, "big" if used.image.big_endian else "little"))
        counts, _ = assert_agree(used, machine, "f", (base + 4 * places[0],), initial)
        assert (counts.loads, counts.stores) == (len(places), sum(mark & 1 for mark in marks[: len(places)]))


@pytest.mark.parametrize("target", TARGETS)
@given(configs(), st.sampled_from((COLD, DIRTY)), st.booleans(), st.data())
@settings(max_examples=examples(6, 60))
def test_native_and_plain_caches_agree_on_random_operations(target, cache, initial, stack_is_uncached, data):
    built = tlsf_guest(target)
    chosen = unified(built.target, cache)
    if stack_is_uncached:
        chosen = with_region(chosen, chosen.memory_map.stack, 1, 2)
    used = guest_on(built.image, chosen)
    operations = data.draw(st.lists(st.one_of(st.integers(1, 600), st.integers(-8, -1)), min_size=1, max_size=8))
    with used.machine(HEAP_BYTES) as machine:
        assert machine.call("tlsf_init", machine.heap.base_address, HEAP_BYTES) == 0
        live: list[int] = []
        for operation in operations:
            function, argument = ("tlsf_malloc", operation)
            if operation < 0:
                function, argument = "tlsf_free", live.pop(operation % len(live)) if live else 0
            counts, second = assert_agree(used, machine, function, (argument,), initial)
            pad = [access for access in second.accesses if chosen.memory.region_at(access.address)]
            line = chosen.memory.line_cycles(cache.line_bytes)
            data_fills = counts.dcache.read_misses + (counts.dcache.write_misses if cache.write_allocate else 0)
            assert counts.stall_cycles == (
                sum(2 if access.is_store else 1 for access in pad)
                + (counts.icache.misses + counts.icache.writebacks + data_fills + counts.dcache.writebacks) * line
                + counts.dcache.memory_writes * chosen.memory.single_cycles
            )
            if operation >= 0 and counts.result:
                live.append(counts.result)
