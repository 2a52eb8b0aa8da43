"""Abstract sets against all sets that they describe, under LRU; the reductions of the other policies step by step."""

from __future__ import annotations

from functools import cache
from itertools import product
from random import Random

import pytest

from tests.analyzer.concrete_caches import EMPTY, config_of, contents, touches
from tests.support import cache_config
from wcet_probe.analyzer.domains.cache_sets import (
    EffectiveWays,
    SetAccess,
    SetState,
    access,
    cannot_hold,
    effective_ways,
    initial_state,
    join,
    leq,
    must_hold,
    stores_evict,
)
from wcet_probe.emu.cache import CacheSimulation
from wcet_probe.errors import UsageError
from wcet_probe.model.scenario import InitialCache
from wcet_probe.model.target import Replacement

LINES = (0, 1, 2)
WAYS = EffectiveWays(2, 2)
ACCESSES = [
    SetAccess(0, lines, is_certain=is_certain, fills=fills)
    for lines in (None, (0,), (1,), (2,), (0, 1), (0, 2), LINES)
    for is_certain in (True, False)
    for fills in (True, False)
]


@cache
def every_state() -> tuple[SetState, ...]:
    """All states of two ways and three lines."""
    found = set()
    for old, young, others in product(product(range(3), repeat=3), product(range(3), repeat=3), range(3)):
        if all(y <= min(o, others) for o, y in zip(old, young, strict=True)):
            found.add((old, young, others))
    states = [
        SetState(
            {line: age for line, age in zip(LINES, old, strict=True) if age < 2},
            {line: age for line, age in zip(LINES, young, strict=True) if age < others},
            others,
        )
        for old, young, others in sorted(found)
    ]
    return tuple(states)


def describes(state: SetState, content: tuple[int, ...]) -> bool:
    ages = {line: content.index(line) if line in content else 2 for line in (*LINES, *content)}
    return all(state.youngest.get(line, state.others) <= age for line, age in ages.items()) and all(
        ages[line] <= age for line, age in state.oldest.items()
    )


def results(content: tuple[int, ...], part: SetAccess):
    """Sets behind an access, with whether it hit; None where it did not take place."""
    if not part.is_certain:
        yield None, content
    for line in (*LINES, 7) if part.lines is None else part.lines:
        yield from touches(Replacement.LRU, 2, content, line, fills=part.fills)


@pytest.mark.parametrize("part", ACCESSES, ids=str)
def test_the_result_describes_every_set_that_the_access_can_lead_to(part):
    for state in every_state():
        after = access(state, part, WAYS)
        for content in filter(lambda c: describes(state, c), contents(Replacement.LRU, 2, (*LINES, 7))):
            for hit, new in results(content, part):
                assert describes(after, new), (state, content)
                if hit is not None and part.lines is not None:
                    assert hit or not must_hold(state, part.lines)
                    assert not (hit and cannot_hold(state, part.lines, WAYS))


@pytest.mark.parametrize("part", ACCESSES, ids=str)
@pytest.mark.parametrize("ways", [WAYS, EffectiveWays(1, 3), EffectiveWays(2, None)], ids=str)
def test_an_access_is_monotone(part, ways):
    random = Random(str(part))
    for _ in range(300):
        a, b = random.choice(states_of(ways)), random.choice(states_of(ways))
        above = join(a, b)
        assert leq(a, above)
        assert leq(b, above)
        assert leq(access(a, part, ways), access(above, part, ways)), (a, b)


@cache
def states_of(ways: EffectiveWays) -> tuple[SetState, ...]:
    """States that occur: what random accesses and joins make of the two starts."""
    random = Random(str(ways))
    found = [initial_state(ways, is_cold=True), initial_state(ways, is_cold=False)]
    while len(found) < 400:
        new = access(random.choice(found), random.choice(ACCESSES), ways)
        found.append(join(new, random.choice(found)) if random.random() < 0.3 else new)
    return tuple(found)


def test_join_is_the_least_upper_bound():
    states = [state for state in states_of(WAYS) if state.others or not state.youngest][:60]
    for a, b in product(states, repeat=2):
        above = join(a, b)
        assert join(b, a) == above
        assert leq(a, b) == (above == b)
        assert join(above, a) is above
        for c in states:
            if leq(a, c) and leq(b, c):
                assert leq(above, c)


@pytest.mark.parametrize("part", ACCESSES[4:8], ids=str)
def test_a_certain_access_to_the_youngest_line_changes_nothing(part):
    for state in states_of(WAYS):
        once = access(state, part, WAYS)
        if part.is_certain and part.fills:
            assert access(once, part, WAYS) is once


def test_effective_ways_are_those_of_the_literature():
    def of(policy, ways):
        return effective_ways(config_of(policy, ways))

    assert of("lru", 3) == EffectiveWays(3, 3)
    assert of("fifo", 4) == EffectiveWays(1, 7)
    assert [of("plru", ways).must for ways in (1, 2, 4, 8, 16)] == [1, 2, 3, 4, 5]
    assert of("plru", 2).may == 2
    assert of("plru", 4).may is None
    assert of("random", 4) == of("round-robin", 4) == EffectiveWays(1, None)
    for policy in Replacement:
        assert of(policy, 1) == EffectiveWays(1, 1)


def test_a_tree_needs_a_power_of_two():
    with pytest.raises(UsageError, match="power of two"):
        effective_ways(config_of("plru", 3))


@pytest.mark.parametrize(("policy", "ways"), [("plru", 2), ("plru", 4), ("plru", 8), ("fifo", 2), ("fifo", 3)])
def test_a_set_is_between_its_two_lru_sets(policy, ways):
    """Long random touches from many contents: lines of less must age are in, those in are of less may age."""
    random, effective = Random(f"{policy} {ways}"), effective_ways(config_of(policy, ways))
    for _ in range(300):
        lines = range(random.randint(ways, 2 * ways + 1))
        content = tuple(random.sample([*lines, *range(100, 100 + ways)], ways))
        touched: list[int] = []
        for _ in range(60):
            line = random.choice(lines[: random.randint(1, len(lines))])
            content = random.choice(touches(Replacement(policy), ways, content, line, fills=True))[1]
            touched = [line, *(other for other in touched if other != line)]
            assert set(touched[: effective.must]) <= set(content)
            if effective.may:
                assert not set(touched[effective.may :]) & set(content)


@pytest.mark.parametrize(("policy", "ways"), [("lru", 3), ("fifo", 3), ("plru", 2), ("plru", 4)])
def test_one_must_way_more_would_be_too_many(policy, ways):
    """As many other lines as the effective ways can evict a line that was just touched."""
    must = effective_ways(config_of(policy, ways)).must
    start = tuple(range(100, 100 + ways))

    def after(touched: int, others: int) -> set[tuple[int, ...]]:
        """All sets that ``touched`` and then accesses to a number of other lines lead to."""
        reached = {touches(Replacement(policy), ways, start, touched, fills=True)[0][1]}
        for _ in range(2 * must):
            steps = product(reached, range(others))
            reached |= {touches(Replacement(policy), ways, old, line, fills=True)[0][1] for old, line in steps}
        return reached

    assert any(line not in content for line in start for content in after(line, must))
    assert all(line in content for line in start for content in after(line, must - 1))


@pytest.mark.parametrize("ways", [2, 3])
def test_a_fifo_line_can_outlive_all_but_the_last_of_its_may_ways(ways):
    content = tuple(range(ways))
    for line in (*range(1, ways), *range(ways, 2 * ways - 1)):
        ((_, content),) = touches(Replacement.FIFO, ways, content, line, fills=True)
    assert 0 in content
    ((_, content),) = touches(Replacement.FIFO, ways, content, 2 * ways, fills=True)
    assert 0 not in content


@pytest.mark.parametrize("policy", list(Replacement))
@pytest.mark.parametrize("write_allocate", [True, False])
def test_the_tiny_caches_are_the_simulated_ones(policy, write_allocate):
    """From an empty set: the emulator's hits are among those that the tests reckon with."""
    for seed in range(60):
        random, ways = Random(seed), 4
        simulation = CacheSimulation(config_of(policy, ways, write_allocate=write_allocate), InitialCache.COLD)
        sets = {(EMPTY,) * ways if policy is Replacement.PLRU else ()}
        for _ in range(80):
            line, is_write = random.randrange(6), random.random() < 0.3
            fills = write_allocate or not is_write
            hit = simulation.access(line * 32, is_write=is_write)
            sets = {new for old in sets for h, new in touches(policy, ways, old, line, fills=fills) if h == hit}
            assert sets


@pytest.mark.parametrize("policy", list(Replacement))
@pytest.mark.parametrize("allocates", [False, True])
def test_stores_evict_as_the_simulation_has_them(policy, allocates):
    """Two runs that differ in stores alone: whether a load of one misses that hits in the other."""
    config, draw, differs = cache_config(1, 4, 16, policy, write_allocate=allocates), Random(3), False
    for _ in range(300):
        loads = [16 * draw.randrange(6) for _ in range(12)]
        found = []
        for stores in (False, True):
            simulated, between = CacheSimulation(config, InitialCache.COLD), Random(5)
            hits = []
            for address in loads:
                if stores:
                    simulated.access(16 * between.randrange(6), is_write=True)
                hits.append(simulated.access(address, is_write=False))
            found.append(hits)
        differs |= any(one and not other for one, other in zip(*found, strict=True))
    assert differs == stores_evict(config)
