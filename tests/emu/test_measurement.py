"""What a core waits for memory, by hand: line fills, write-backs, single accesses, regions with costs of their own."""

from dataclasses import replace
from types import SimpleNamespace

from tests.support import cache_config
from wcet_probe.catalog.lookup import load_target
from wcet_probe.emu.measurement import stall_cycles
from wcet_probe.model.measurement import CacheCounts

TARGET = load_target("mpc603e")
LINE = TARGET.memory.line_cycles(16)
SINGLE = TARGET.memory.single_cycles


def counts(**numbers):
    return replace(CacheCounts(True, 0, 0, 0, 0, 0, 0), **numbers)


def stalls(fetched, data, /, **numbers):
    none = {"loads": 0, "stores": 0, "region_accesses": 0, "region_cycles": 0, "icache": counts(), "dcache": counts()}
    observation = SimpleNamespace(**(none | numbers))
    return stall_cycles(observation, replace(TARGET, icache=fetched, dcache=data, unified_cache=False))


def test_without_a_data_cache_each_access_waits_but_those_to_regions_which_have_their_own_cost():
    assert stalls(None, None, loads=5, stores=3, region_accesses=2, region_cycles=7) == 6 * SINGLE + 7


def test_fetches_fill_lines_and_may_write_data_back():
    assert stalls(cache_config(), None, icache=counts(read_misses=4, writebacks=1)) == 5 * LINE


def test_stores_fill_lines_where_they_allocate():
    for allocates, fills in ((True, 5), (False, 3)):
        cache = cache_config(write_allocate=allocates)
        counted = counts(read_misses=3, write_misses=2, writebacks=1, memory_writes=2)
        assert stalls(None, cache, dcache=counted, loads=9, stores=9) == (fills + 1) * LINE + 2 * SINGLE
