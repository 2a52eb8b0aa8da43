"""Lines of code that data evicts from a unified cache: how often they miss again, and that no run misses more often."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from tests.analyzer.concrete_caches import config_of
from tests.end_to_end.test_cache_soundness import POLICIES, SLOW_CYCLES, analysed, any_cache, provable
from tests.random_programs import arguments
from tests.support import guest_of
from wcet_probe.analyzer.bound import prove
from wcet_probe.analyzer.dcache.misses import data_misses
from wcet_probe.analyzer.dcache.refetches import Refetches
from wcet_probe.analyzer.facts.language import Facts
from wcet_probe.analyzer.facts.memory import PointerFacts, Pointers
from wcet_probe.analyzer.icache.fetches import FetchMisses
from wcet_probe.analyzer.request import BoundRequest
from wcet_probe.catalog.cache_option import apply_cache_option
from wcet_probe.catalog.lookup import load_target
from wcet_probe.model.scenario import InitialCache

TARGET = load_target("e200z6")


def misses_again(policy: str, draw: random.Random, chosen: tuple[int, ...], sets: int, ways: int) -> tuple[int, int]:
    """Of a run with random accesses: misses of the chosen lines but for the first of each, and fills of other lines."""
    config = config_of(policy, ways, sets=sets)
    cache: list[list[int]] = [[-1] * draw.randrange(ways + 1) for _ in range(sets)]
    counter, again, others = draw.randrange(ways), 0, 0
    seen: set[int] = set()
    for _ in range(300):
        line = draw.choice(chosen) if draw.randrange(2) else draw.randrange(6 * sets)
        own = cache[line % sets]
        if line in own:
            continue
        if line in chosen:
            again += line in seen
            seen.add(line)
        else:
            others += 1
        if len(own) < config.ways:
            own.append(line)
        else:
            own[counter if policy == "round-robin" else draw.randrange(ways)] = line
        counter = (counter + 1) % ways
    return again, others


@pytest.mark.parametrize("policy", ["random", "round-robin"])
def test_chosen_lines_miss_again_as_often_as_others_are_filled_at_most(policy):
    draw, tight = random.Random(f"refetches {policy}"), 0
    for _ in range(60):
        sets, ways = draw.choice((1, 2, 4)), draw.choice((1, 2, 4))
        found = Refetches(sets, 32)
        for number in (draw.randrange(8 * sets) for _ in range(6)):
            found.add(0, number, is_local=False)
        chosen = tuple(key.number for key in found.chosen())
        assert len({number % sets for number in chosen}) == len(chosen)
        again, others = misses_again(policy, draw, chosen, sets, ways)
        assert again <= others
        tight += ways == 1 and again > others // 8
    assert tight


def test_several_fetches_of_a_block_that_share_a_miss_are_one():
    found = Refetches(4, 32)
    for _ in range(3):
        found.add(1, 8, is_local=True)
    found.add(1, 8, is_local=False)
    assert [dict(points) for points in found.points.values()] == [{1: 2}]


CODE = """
struct node { struct node *next; unsigned key, other[14]; };
unsigned f(struct node *n)
{
    unsigned sum = 0, mixed = 0;
    for (unsigned count = 41; count; count--) {
        unsigned key = n->key;
        mixed ^= key << 3 ^ key >> 5;
        mixed += (mixed << 7) - (key ^ 0x1234567);
        mixed ^= mixed >> 9 ^ sum << 2;
        sum += (mixed & 0x55555555) * 3 + (mixed >> 16 ^ 0x89abcdef);
        sum ^= (sum << 11) + (mixed | 0x10203040);
        n = n->next;
    }
    return sum ^ mixed;
}
"""


def proved(guest) -> int:
    return prove(BoundRequest(guest.image, TARGET, guest.instructions, guest.costs, "f", Facts(), {}, {})).cycles


def test_a_round_that_loads_one_line_misses_one_line_of_its_code_again_at_most(monkeypatch):
    """Each round loads two words of a node, which may be in two lines, and fetches four lines of code and more."""
    guest = guest_of(CODE, TARGET, ".c")
    fill = TARGET.memory.line_cycles(TARGET.dcache.line_bytes)
    found = proved(guest)
    monkeypatch.setattr(Refetches, "chosen", lambda _: [])
    assert proved(guest) - found > 40 * 2 * fill


def with_unified(target, spec: str):
    """``target`` with slow memory and this cache of data and code."""
    memory = replace(
        target.memory, first_beat_cycles=replace(target.memory.first_beat_cycles, value=SLOW_CYCLES), regions=()
    )
    return apply_cache_option(replace(target, memory=memory), spec)


def bound_of(one, target) -> int:
    """Cycles on ``target`` of a function whose values are known."""
    data = data_misses(one.prepared.values, target, PointerFacts(Pointers(), {}))
    request = replace(one.prepared.request, target=target)
    stage = replace(one.prepared, request=request, data=data, fetches=FetchMisses({}, {}, {})).bounded({})
    return stage.solved("cycles").solution.certified


def campaign(seed: int, caches: int, runs: int) -> int:
    """Runs of random programs on e200z6 with tiny unified caches, none above its bound."""
    draw, done = random.Random(f"unified {seed}"), 0
    for one in provable(seed, "e200z6"):
        for _ in range(caches):
            target = with_unified(one.guest.target, "u" + any_cache(draw)[1:])
            bound = bound_of(one, target)
            with one.machine(target) as machine:
                for words in (arguments(draw) for _ in range(runs)):
                    for start in InitialCache:
                        found = machine.measure(one.entry, words, start)
                        assert found.cycles <= bound, (one.entry, target.dcache, words, start)
                        done += 1
    return done


def test_random_programs_with_a_unified_cache_stay_within_their_bounds():
    assert set(POLICIES) >= {"random", "round-robin"}
    assert campaign(2, 5, 2) > 25


WALK = """
unsigned f(const unsigned *words)
{
    unsigned sum = 0;
    for (unsigned i = 0; i < 128; i++) sum ^= words[i];
    return sum;
}
unsigned g(const unsigned *words, const unsigned *others)
{
    unsigned sum = 0;
    for (unsigned i = 0; i < 128; i++) sum ^= words[i] + others[i];
    return sum;
}
"""


@pytest.mark.covering
@pytest.mark.parametrize("ways", [1, 2])
@pytest.mark.parametrize("name", ["e200z6", "arm926ej-s"])
def test_code_that_is_fetched_again_evicts_the_lines_of_a_traversal_too(name, ways):
    """First-in first-out: each round misses code and arrays, which are as many as there are ways, in one set."""
    entry, draw = "fg"[ways - 1], random.Random("traversals")
    one = analysed(guest_of(WALK, load_target(name), ".c"), entry)
    target = with_unified(one.guest.target, f"u:sets=4,ways={ways},line=32,policy=fifo")
    bound, worst = bound_of(one, target), 0
    with one.machine(target) as machine:
        for _ in range(16):
            words = tuple(machine.heap.base_address + 32 * draw.randrange(32) for _ in range(2))
            worst = max(worst, machine.measure(entry, words, InitialCache.COLD).cycles)
    assert 64 * SLOW_CYCLES < worst <= bound


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(400, 430))
def test_many_random_programs_with_a_unified_cache_stay_within_their_bounds(seed):
    campaign(seed, 25, 4)


def test_runs_refute_that_lines_of_one_set_do_not_evict_each_other(monkeypatch):
    monkeypatch.setattr(Refetches, "chosen", lambda found: sorted(found.points))
    with pytest.raises(AssertionError, match="InitialCache"):
        campaign(2, 8, 2)
