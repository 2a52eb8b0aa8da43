"""The lines that a call may access: no run in any cache misses more often than they say, strays counted in."""

from __future__ import annotations

import random
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import cache_config
from wcet_probe.analyzer.dcache.footprints import (
    ANYWHERE,
    NOTHING,
    DataFootprint,
    crowding,
    data_footprint,
    kept_lines,
    kept_ways,
    moved,
    not_kept,
    of_stack,
    united,
)
from wcet_probe.analyzer.dcache.pointer_extents import Extent
from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.emu.cache import CacheSimulation
from wcet_probe.model.scenario import InitialCache
from wcet_probe.model.target import Replacement

POLICIES = ("lru", "fifo", "plru", "random", "round-robin")
LINE = 16
caches = st.builds(
    lambda sets, ways, policy, seed, allocates: cache_config(
        sets, ways, LINE, Replacement(policy), write_allocate=allocates, seed=seed
    ),
    st.sampled_from((1, 2, 4, 8)),
    st.sampled_from((1, 2, 4, 8)),
    st.sampled_from(POLICIES),
    st.integers(0, 7),
    st.booleans(),
)


def access(base, offset, size_bytes=4, address=0x100, *, is_store=False):
    return SimpleNamespace(
        base=base, offset=offset, size_bytes=size_bytes, instruction_address=address, is_store=is_store
    )


def of(*accesses, extent_of=lambda _: None, config=None):
    values = SimpleNamespace(accesses={0: accesses})
    return data_footprint(values, config or cache_config(line_bytes=LINE), extent_of)[:2]


def fills(config, initial, draw, footprint, *, strays, accesses, kept=None):
    """How often a random run misses on lines of the footprint, but for crowded sets, and how many strays it has."""
    start = 1 << 20 | 8 * draw.randrange(64)  # of the stack
    crowded = kept.crowded if kept else ()
    if kept and kept.stack_pointer is not None:
        start = kept.stack_pointer
    known = [LINE * one for one in footprint.numbers]
    if footprint.stack:
        known += range(start + footprint.stack[0], start + footprint.stack[1])
    lines = sorted({one // LINE for one in known})
    cache, missed, strayed = CacheSimulation(config, initial), 0, 0
    for _ in range(accesses):
        if strays and draw.random() < 0.3:
            # Mostly into one set, which is the worst for its lines.
            number = config.sets * draw.randrange(1 << 12) + draw.choice((0, draw.randrange(config.sets)))
            cache.access(LINE * number, is_write=draw.random() < 0.3)
            strayed += 1
        elif lines:
            number, is_write = draw.choice(lines), draw.random() < 0.3
            hit = cache.access(LINE * number, is_write=is_write)
            missed += not hit and (config.write_allocate or not is_write) and number % config.sets not in crowded
    return missed, strayed


@given(
    caches,
    st.frozensets(st.integers(0, 40), max_size=12),
    st.one_of(st.none(), st.tuples(st.integers(-200, 0), st.integers(1, 40))),
    st.booleans(),
    st.integers(0, 1 << 20),
)
def test_no_run_misses_more_often_on_a_footprint_than_it_has_lines_and_strays_evict(
    config, numbers, stack, strays, seed
):
    footprint = DataFootprint(numbers, stack, has_strays=strays)
    kept, draw = kept_lines(footprint, config), random.Random(seed)
    if kept is None:
        return
    for initial in (InitialCache.COLD, InitialCache.DIRTY):
        missed, strayed = fills(config, initial, draw, footprint, strays=strays, accesses=150)
        assert kept.strays_for_each * (missed - kept.number) <= kept.in_a_set * strayed


footprints = st.builds(
    DataFootprint,
    st.frozensets(st.integers(0, 40), min_size=1, max_size=12),
    st.one_of(st.none(), st.tuples(st.integers(-200, 0), st.integers(1, 40))),
    st.booleans(),
)


@given(caches, footprints, st.integers(0, 64), st.integers(0, 1 << 20))
def test_each_set_is_for_itself_and_a_known_stack_is_where_it_is(config, footprint, place, seed):
    pointer, strays = 1 << 16 | 8 * place, footprint.has_strays
    kept, draw = kept_lines(footprint, config, pointer, in_part=True), random.Random(seed)
    if kept is None:
        return
    whole = kept_lines(footprint, config, pointer)
    assert (whole == kept) if not kept.crowded else whole is None
    for initial in (InitialCache.COLD, InitialCache.DIRTY):
        missed, strayed = fills(config, initial, draw, footprint, strays=strays, accesses=150, kept=kept)
        assert kept.strays_for_each * (missed - kept.number) <= kept.in_a_set * strayed


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("allocates", [False, True])
def test_stores_that_evict_nothing_are_told_but_their_lines_do_not_count(policy, allocates):
    config = cache_config(4, 2, LINE, Replacement(policy), write_allocate=allocates)
    own = (
        access(Base.NUMBER, strided.constant(32, 0)),
        access(Base.NUMBER, strided.constant(32, LINE), address=0x104, is_store=True),
        access(Base.STACK, strided.constant(32, -4 % (1 << 32)), address=0x108, is_store=True),
        access(Base.ANY, strided.top(32), address=0x10C, is_store=True),
    )
    found, strays, extents = data_footprint(SimpleNamespace(accesses={0: own}), config)
    counts = allocates or policy in {"lru", "plru"}
    assert (found.numbers, found.has_strays) == (frozenset({0, 1} if counts else {0}), counts)
    assert (found.stack is None) == (not counts)
    assert (strays, extents.keys()) == ({(0, 0x10C)}, {(0, 0x100), (0, 0x104), (0, 0x108)})


def test_lines_that_crowd_a_set_are_told_by_the_accesses_that_may_go_there():
    config = cache_config(4, 1, LINE)
    kept = kept_lines(DataFootprint(frozenset({0, 4, 1, 2}), (-LINE, 0)), config, 7 * LINE, in_part=True)
    assert kept == (1, 1, 1, frozenset({0, 2}), 7 * LINE)
    extents = {
        (0, 4): ((Base.NUMBER, LINE, LINE + 4),),
        (0, 8): ((Base.NUMBER, LINE, 2 * LINE + 1),),
        (1, 4): ((Base.STACK, -4, 0),),
        (1, 8): ((Base.NUMBER, LINE, LINE + 4), (Base.NUMBER, 4 * LINE, 4 * LINE + 4)),
    }
    assert crowding(extents, kept, config) == {(0, 8), (1, 4), (1, 8)}
    unknown = kept_lines(DataFootprint(frozenset({0, 4}), (-4, 0)), cache_config(4, 2, LINE), in_part=True)
    assert unknown is None
    unknown = kept_lines(DataFootprint(frozenset({0, 4, 1}), (-4, 0)), cache_config(4, 2, LINE), in_part=True)
    assert unknown == (1, 2, 1, frozenset({0}), None)
    assert crowding(extents, unknown, config) == {(1, 4), (1, 8)}


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("strays", [False, True])
def test_lines_in_one_set_are_kept_as_long_as_the_policy_keeps_them(policy, strays):
    """Of more lines than ways some run misses again: so the law above can be refuted."""
    config = cache_config(1, 4, LINE, Replacement(policy))
    most = max(
        count
        for count in range(9)
        if kept_lines(DataFootprint(frozenset(range(count)), has_strays=strays), config) is not None
    )
    expected = {"lru": 4, "fifo": 1 if strays else 4, "plru": 3, "random": 1, "round-robin": 1}
    assert most == expected[policy]
    if not strays:
        footprint, evicted = DataFootprint(frozenset(range(config.ways + 2))), 0
        for seed in range(200):
            missed, _ = fills(config, InitialCache.COLD, random.Random(seed), footprint, strays=False, accesses=60)
            evicted = max(evicted, missed)
        assert evicted > config.ways + 2


def test_strays_evict_where_they_are_as_many_as_it_takes():
    """LRU of 4 ways: lines 0 and 1, and three strays after another, evict both: the ratio is met."""
    config = cache_config(1, 4, LINE)
    kept = kept_lines(DataFootprint(frozenset({0, 1}), has_strays=True), config)
    assert kept[:3] == (2, 2, 3)
    cache, missed, strayed = CacheSimulation(config, InitialCache.COLD), 0, 0
    for step in range(100):
        for number in (0, 1):
            missed += not cache.access(LINE * number, is_write=False)
        for more in range(3):
            cache.access(LINE * (100 + 3 * step + more), is_write=False)
            strayed += 1
    assert missed == 200
    assert kept.strays_for_each * (missed - kept.number) <= kept.in_a_set * strayed
    assert strayed == 300


def test_all_addresses_of_an_access_are_in_the_footprint():
    table, word = strided.between(32, 0x100, 0x13C), strided.constant(32, 0x2FE)
    local = strided.between(32, -24, -8)
    found, strays = of(access(Base.NUMBER, table), access(Base.NUMBER, word), access(Base.STACK, local))
    assert found == (frozenset({0x10, 0x11, 0x12, 0x13, 0x2F, 0x30}), (-24, -4), False)
    assert not strays


def test_what_may_be_anywhere_is_a_stray_unless_an_extent_is_known():
    wide = access(Base.ANY, strided.top(32), address=0x44)
    found, strays = of(wide, access(Base.NUMBER, strided.constant(32, 0)))
    assert (found.numbers, found.has_strays, strays) == (frozenset({0}), True, {(0, 0x44)})
    found, strays = of(wide, extent_of=lambda _: Extent(Base.STACK, -16, 12))
    assert (found, strays) == (DataFootprint(frozenset(), (-16, 16)), frozenset())
    found, strays = of(wide, extent_of=lambda _: Extent(Base.NUMBER, 0, 1 << 20))
    assert strays == {(0, 0x44)}


def test_an_instruction_one_of_whose_words_may_be_anywhere_is_a_stray_that_evicts_anywhere():
    """From four bytes before the address 0, of which the range tells nothing, a load of two words goes on to 0."""
    before, behind = access(Base.NUMBER, strided.top(32)), access(Base.NUMBER, strided.constant(32, 0))
    for words in ((before, behind), (behind, before)):
        values = SimpleNamespace(accesses={0: words})
        _, strays, extents = data_footprint(values, cache_config(line_bytes=LINE))
        assert (strays, extents) == ({(0, 0x100)}, {})


def test_footprints_of_callees_are_told_from_the_callers_stack_pointer():
    callee = DataFootprint(frozenset({1}), (-32, 8))
    assert moved(callee, -100) == DataFootprint(frozenset({1}), (-132, -92))
    assert moved(callee, None) == ANYWHERE
    assert moved(DataFootprint(frozenset({1})), None) == DataFootprint(frozenset({1}))
    both = united([DataFootprint(frozenset({2}), (-8, 0)), moved(callee, -100), NOTHING])
    assert both == DataFootprint(frozenset({1, 2}), (-132, 0))
    assert united([both, ANYWHERE]) == ANYWHERE
    assert kept_lines(ANYWHERE, cache_config()) is None


def test_all_that_is_not_on_the_stack_may_be_a_stray():
    values = SimpleNamespace(
        accesses={
            0: (
                access(Base.NUMBER, strided.constant(32, 0)),
                access(Base.STACK, strided.constant(32, -4), address=0x104),
            )
        }
    )
    found, strays, extents = data_footprint(values, cache_config(line_bytes=LINE))
    assert not strays
    assert extents == {(0, 0x100): ((Base.NUMBER, 0, 4),), (0, 0x104): ((Base.STACK, -4, 0),)}
    assert of_stack(found) == DataFootprint(frozenset(), (-4, 0), has_strays=True)
    assert of_stack(ANYWHERE) == ANYWHERE


def test_the_stack_may_begin_anywhere_in_a_line():
    config = cache_config(64, 4, LINE)
    assert kept_lines(DataFootprint(frozenset(), (-2, 0)), config)[:3] == (2, 1, 4)
    assert kept_lines(DataFootprint(frozenset(), (-LINE, 0)), config)[:3] == (2, 1, 4)
    assert kept_lines(DataFootprint(frozenset(), (-LINE - 2, 0)), config)[:3] == (3, 1, 4)
    assert kept_ways(config) == 4


def test_stores_to_lines_that_nothing_else_fills_are_not_to_lines_that_are_kept():
    config = cache_config(8, 1, LINE, Replacement.RANDOM, write_allocate=False)
    found = DataFootprint(frozenset({2, 3}), (-16, 0))
    number, stack = Base.NUMBER, Base.STACK
    extents = {
        (0, 0): ((number, 2 * LINE, 4 * LINE),),
        (0, 4): ((number, 3 * LINE, 4 * LINE + 1),),
        (0, 8): ((stack, -16, 0),),
        (1, 0): ((stack, -20, -12),),
        (1, 4): ((number, 2 * LINE, 3 * LINE), (stack, -4, 4)),
    }
    kept = kept_lines(found, config, 0x1000)
    assert not_kept(extents, found, kept, config) == {(0, 4), (1, 0), (1, 4)}
    assert not_kept({(0, 0): ((number, 0, 4),)}, NOTHING, kept, config) == {(0, 0)}
