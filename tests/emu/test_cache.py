"""The native cache simulation against its plain-Python twin, and both against sequences worked by hand."""

from __future__ import annotations

import ctypes
from dataclasses import astuple, dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.support import cache_config
from wcet_probe.emu import native
from wcet_probe.emu.cache import CacheSimulation
from wcet_probe.model.scenario import InitialCache
from wcet_probe.model.target import CacheConfig, Replacement

COUNTS = ("read_hits", "read_misses", "write_hits", "write_misses", "writebacks", "memory_writes")
WORD = 0xFFFFFFFF


@dataclass(frozen=True)
class Outcome:
    """Hits access by access, and the counts."""

    hits: list[bool]
    counts: dict[str, int]


def native_replay(config: CacheConfig, initial: InitialCache, accesses: list[tuple[int, bool]]) -> Outcome:
    count = len(accesses)
    addresses = (ctypes.c_uint32 * count)(*(address for address, _ in accesses))
    writes = (ctypes.c_uint8 * count)(*(is_write for _, is_write in accesses))
    hits, counts = (ctypes.c_uint8 * count)(), native.CacheCountsLayout()
    assert native.load().wp_cache_replay(
        native.cache_layout(config), native.CONTENT[initial], addresses, writes, count, hits, counts
    )
    return Outcome([bool(hit) for hit in hits], {name: getattr(counts, name) for name in COUNTS})


def plain_replay(config: CacheConfig, initial: InitialCache, accesses: list[tuple[int, bool]]) -> Outcome:
    simulation = CacheSimulation(config, initial)
    return Outcome(simulation.replay(accesses), {name: getattr(simulation, name) for name in COUNTS})


@st.composite
def configs(draw: st.DrawFn) -> CacheConfig:
    replacement = draw(st.sampled_from(Replacement))
    ways = draw(st.sampled_from((1, 2, 4, 8, 16, 64)) | st.integers(1, 40))
    if replacement is Replacement.PLRU:
        ways = 1 << (ways.bit_length() - 1)
    return cache_config(
        sets=1 << draw(st.integers(0, 4)),
        ways=ways,
        line_bytes=1 << draw(st.integers(2, 7)),
        replacement=replacement,
        write_back=draw(st.booleans()),
        write_allocate=draw(st.booleans()),
        seed=draw(st.integers(0, WORD)),
    )


@st.composite
def traces(draw: st.DrawFn) -> tuple[CacheConfig, list[tuple[int, bool]]]:
    """A cache, and accesses to few enough lines that they fight for it; at either end of the address space, too."""
    config = draw(configs())
    span = draw(st.sampled_from((config.size_bytes + 1, 2 * config.size_bytes, 3 * config.line_bytes * config.sets)))
    base = draw(st.sampled_from((0, 0x20000000, (1 << 32) - span)))
    offsets = st.integers(0, span - 1)
    return config, draw(st.lists(st.tuples(offsets.map(lambda offset: base + offset), st.booleans()), max_size=200))


@given(traces(), st.sampled_from((InitialCache.COLD, InitialCache.DIRTY)))
@settings(max_examples=examples(150))
def test_native_and_plain_simulation_agree_hit_for_hit(trace, initial):
    config, accesses = trace
    assert native_replay(config, initial, accesses) == plain_replay(config, initial, accesses)


@pytest.mark.parametrize("replacement", Replacement)
@pytest.mark.parametrize("write_back", [True, False], ids=["back", "through"])
@pytest.mark.parametrize("write_allocate", [True, False], ids=["allocate", "around"])
@pytest.mark.parametrize("initial", [InitialCache.COLD, InitialCache.DIRTY])
def test_every_combination_agrees_on_a_long_trace(replacement, write_back, write_allocate, initial):
    config = cache_config(8, 4, 32, replacement, write_back=write_back, write_allocate=write_allocate, seed=7)
    state, accesses = 1, []
    for _ in range(4000):
        state = (state * 1103515245 + 12345) & 0x7FFFFFFF
        accesses.append((state >> 8 & 0xFFF, bool(state >> 24 & 1)))
    outcome = native_replay(config, initial, accesses)
    assert outcome == plain_replay(config, initial, accesses)
    assert 0 < sum(outcome.hits) < len(accesses)


@settings(max_examples=examples(100))
@given(st.integers(0, WORD), st.integers(1, 12))
def test_random_replacement_is_the_seeds_alone(seed, ways):
    config = cache_config(1, ways, 16, Replacement.RANDOM, seed=seed)
    accesses = [(16 * (i * i % 37), False) for i in range(120)]
    assert astuple(native_replay(config, InitialCache.COLD, accesses)) == astuple(
        native_replay(config, InitialCache.COLD, accesses)
    )


# One set of lines A, B, C …: what hits, in order. `a` reads line A, `A` writes it. A dot is a miss, a letter a hit.
TEXTBOOK = [
    # LRU, 2 ways: b is least recent when c comes.
    (Replacement.LRU, 2, "abacab", "..a.a."),
    # LRU, 4 ways: a hit renews; e evicts b.
    (Replacement.LRU, 4, "abcdaeb", "....a.."),
    # LRU, cyclic sweep over one line more than ways: never a hit.
    (Replacement.LRU, 4, "abcdeabcde", ".........."),
    # FIFO, 4 ways: the hit on a does not renew; e evicts a.
    (Replacement.FIFO, 4, "abcdaea", "....a.."),
    # Belady's anomaly: 12 references, 9 misses with 3 ways, 10 with 4.
    (Replacement.FIFO, 3, "abcdabeabcde", "......" + ".ab..e"),
    (Replacement.FIFO, 4, "abcdabeabcde", "....ab......"),
    # Tree-PLRU, 4 ways: after a b c d the tree points at a; a hit on a makes it point at c, not at b as LRU would.
    (Replacement.PLRU, 4, "abcda" + "e" + "b" + "c", "....a.b."),
    # Without the hit, a goes first, then c, then b, then d.
    (Replacement.PLRU, 4, "abcd" + "efgh" + "bd", ".........."),
    (Replacement.PLRU, 4, "abcd" + "e" + "bd", ".....bd"),
    (Replacement.PLRU, 4, "abcd" + "ef" + "bd", "......bd"),
    (Replacement.PLRU, 4, "abcd" + "efg" + "d", ".......d"),
    # Two ways: tree-PLRU is LRU.
    (Replacement.PLRU, 2, "abacab", "..a.a."),
    # Round robin, one set: no hit renews, as with FIFO.
    (Replacement.ROUND_ROBIN, 4, "abcdaea", "....a.."),
    (Replacement.ROUND_ROBIN, 3, "abcdabeabcde", "......" + ".ab..e"),
    # One way: every policy is the same.
    *((policy, 1, "aabba", ".a.b.") for policy in Replacement),
]


@pytest.mark.parametrize("replay", [native_replay, plain_replay])
@pytest.mark.parametrize(("replacement", "ways", "text", "expected"), TEXTBOOK)
def test_textbook_sequence(replay, replacement, ways, text, expected):
    outcome = replay(cache_config(1, ways, 16, replacement), InitialCache.COLD, letters(text))
    assert "".join(c if hit else "." for c, hit in zip(text, outcome.hits, strict=True)) == expected


def letters(text: str) -> list[tuple[int, bool]]:
    return [(16 * (ord(letter.lower()) - ord("a")), letter.isupper()) for letter in text]


# Two ways, one set; what is counted after the text: write-backs, single writes to memory.
WRITES = [
    # Clean lines are evicted silently.
    ("abcd", True, True, InitialCache.COLD, 0, 0),
    # A written line costs one write-back when it leaves, and only then.
    ("Ab", True, True, InitialCache.COLD, 0, 0),
    ("Abc", True, True, InitialCache.COLD, 1, 0),
    # Written by a hit; twice written is once written back.
    ("aAAbc", True, True, InitialCache.COLD, 1, 0),
    ("ABCD", True, True, InitialCache.COLD, 2, 0),
    # Filled again by a read, it is clean again.
    ("Abcacb", True, True, InitialCache.COLD, 1, 0),
    # Write-through: no write-backs, every write goes to memory.
    ("AAbcA", False, True, InitialCache.COLD, 0, 3),
    # Without allocation a write miss is a single write, and a later read still misses.
    ("AaAA", True, False, InitialCache.COLD, 0, 1),
    ("AaAA", False, False, InitialCache.COLD, 0, 3),
    # All lines dirty at first: each first fill of a way costs a write-back, also one by a read.
    ("ab", True, True, InitialCache.DIRTY, 2, 0),
    ("abc", True, True, InitialCache.DIRTY, 2, 0),
    ("aaa", True, True, InitialCache.DIRTY, 1, 0),
    # A write-through cache has nothing dirty.
    ("abA", False, True, InitialCache.DIRTY, 0, 1),
    # A write miss without allocation evicts nothing.
    ("AB", True, False, InitialCache.DIRTY, 0, 2),
]


@pytest.mark.parametrize("replay", [native_replay, plain_replay])
@pytest.mark.parametrize(
    ("seed", "text", "expected"),
    [(0, "abcdefbd", "......b."), (2, "abcdefbd", "......b."), (1, "abcdefdb", "......d.")],
)
def test_one_counter_of_a_round_robin_serves_all_sets(replay, seed, text, expected):
    """Lines a, c, e are in set 0, b, d, f in set 1, of two ways: e moves the counter, and f evicts from the other way.

    With a counter per set f would evict b, the older one.
    """
    config = cache_config(2, 2, 16, Replacement.ROUND_ROBIN, seed=seed)
    outcome = replay(config, InitialCache.COLD, letters(text))
    assert "".join(one if hit else "." for one, hit in zip(text, outcome.hits, strict=True)) == expected


@pytest.mark.parametrize("replay", [native_replay, plain_replay])
@pytest.mark.parametrize("replacement", [Replacement.LRU, Replacement.FIFO, Replacement.PLRU])
@pytest.mark.parametrize("case", WRITES)
def test_writes_worked_by_hand(replay, replacement, case):
    text, write_back, allocate, initial, writebacks, memory_writes = case
    config = cache_config(1, 2, 16, replacement, write_back=write_back, write_allocate=allocate)
    counts = replay(config, initial, letters(text)).counts
    assert (counts["writebacks"], counts["memory_writes"]) == (writebacks, memory_writes)


@pytest.mark.parametrize("replay", [native_replay, plain_replay])
def test_lines_of_other_sets_do_not_meet(replay):
    config = cache_config(sets=4, ways=1, line_bytes=16)
    accesses = [(16 * line, False) for line in (0, 1, 2, 3, 0, 1, 2, 3, 4, 0, 1)]
    assert replay(config, InitialCache.COLD, accesses).hits == [*[False] * 4, *[True] * 4, False, False, True]


def test_an_access_that_straddles_touches_both_lines():
    simulation = CacheSimulation(cache_config(sets=4, ways=1, line_bytes=16))
    simulation.access_bytes(14, 4, is_write=True)
    assert (simulation.write_misses, simulation.touched_sets) == (2, {0, 1})
