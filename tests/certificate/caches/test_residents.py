"""What is known of cache lines behind an access: which are there, how many others came, and which names they have.

Tests: certificate.caches.residents, certificate.caches.steps.
"""

from dataclasses import replace

import pytest

from tests.support import cache_config
from wcet_probe.analyzer.ipet.joined_lines import joined
from wcet_probe.certificate.caches.residents import (
    FULL,
    NOTHING,
    Bound,
    Residents,
    YoungerSet,
    lasting_ways,
    must_holds,
)
from wcet_probe.certificate.caches.steps import Spot, Step, _lines, told_apart
from wcet_probe.certificate.names.names import Address, Passage
from wcet_probe.certificate.values.congruences import UNALIGNED, Congruence
from wcet_probe.certificate.values.numbers import TOP, number
from wcet_probe.emu.cache import CacheSimulation
from wcet_probe.model.scenario import InitialCache
from wcet_probe.model.target import Replacement


def step(line=None, *, spot=None, is_store=False, is_certain=True):
    if line is not None:
        spot = Spot("number", line * 16, 16)
    lines = frozenset({line}) if line is not None else None
    return Step(
        0, 0, spot, lines, is_fetch=False, is_store=is_store, fills=True, is_certain=is_certain, is_leaving=False
    )  # fmt: skip


@pytest.mark.covering
@pytest.mark.parametrize("replacement", Replacement)
@pytest.mark.parametrize("seed", range(8))
def test_lines_that_must_be_in_the_cache_are(replacement, seed):
    """Against the simulation, from any content: what must be in the cache is hit."""
    import random

    draw = random.Random(seed)
    config = cache_config(sets=4, ways=4, line_bytes=16, replacement=replacement)
    residents, simulation = Residents(config, {}, {}.get), CacheSimulation(config, InitialCache.DIRTY)
    must, hits = {}, 0
    for _ in range(600):
        line = draw.randrange(20)
        is_hit = simulation.access(line * 16, is_write=draw.random() < 0.3)
        own = step(line)
        if own.spot in must:
            assert is_hit
            hits += 1
        must = residents.touched(must, own)
    assert hits > 5


@pytest.mark.covering
@pytest.mark.parametrize("replacement", Replacement)
@pytest.mark.parametrize("are_placed", [False, True])
def test_lines_in_ranges_that_are_apart_stay(replacement, *, are_placed):
    """Against the simulation: names of which only a few lines are known, and each is one of them in the whole node.

    What is known tells each access to a name, or places that hold some of them where the node begins.
    """
    import random

    draw, kept = random.Random(6), 0
    config = cache_config(sets=4, ways=2, line_bytes=16, replacement=replacement)
    residents, simulation = Residents(config, {}, {}.get), CacheSimulation(config, InitialCache.DIRTY)
    for _ in range(400):
        ranges = {f"s{number}": draw.sample(range(20), draw.randrange(1, 4)) for number in range(4)}
        where = {name: draw.choice(lines) for name, lines in ranges.items()}
        names = [draw.choice(sorted(ranges)) for _ in range(6)]
        told = {name: None if are_placed and draw.random() < 0.4 else frozenset(own) for name, own in ranges.items()}
        placed = [(Spot(name, 0, 16), frozenset(own)) for name, own in ranges.items() if are_placed]
        steps = [
            replace(step(spot=Spot(name, 0, 16)), lines=told[name], is_certain=draw.random() < 0.9) for name in names
        ]
        must, plain = {}, {}
        for name, own, bare in zip(names, told_apart(steps, config, placed), steps, strict=True):
            is_hit = (own.is_certain or draw.random() < 0.5) and simulation.access(where[name] * 16, is_write=False)
            assert is_hit or not own.is_certain or own.spot not in must
            kept += own.spot in must and own.spot not in plain
            must, plain = residents.touched(must, own), residents.touched(plain, bare)
    assert kept > 5


def test_a_granule_is_apart_where_no_two_lines_of_a_set_can_differ():
    config = cache_config(sets=4, ways=2, line_bytes=16, replacement=Replacement.LRU)
    lines = {"s1": {1, 2}, "s2": {2, 5}, "s3": {3}, "s4": None}
    steps = [replace(step(spot=Spot(name, 0, 16)), lines=own and frozenset(own)) for name, own in lines.items()]
    apart = [{spot.base for spot in one.apart} for one in told_apart(steps, config)]
    assert apart == [{"s3"}, {"s3"}, {"s1", "s2"}, set()]
    steps[2] = replace(steps[2], is_certain=False)  # where it is skipped, s3 may be anything
    apart = [{spot.base for spot in one.apart} for one in told_apart(steps, config)]
    assert apart == [set(), set(), {"s1", "s2"}, set()]
    placed = [(Spot("s4", 0, 16), frozenset({7, 8})), (Spot("s5", 0, 16), frozenset({4})), (None, frozenset({4}))]
    apart = [{spot.base for spot in one.apart} for one in told_apart(steps, config, placed)]
    assert apart == [{"s4", "s5"}, {"s4", "s5"}, {"s1", "s2", "s5"}, set()]
    placed = [(Spot("s1", 0, 16), frozenset({1, 5})), (Spot("s5", 0, 16), frozenset())]
    apart = [{spot.base for spot in one.apart} for one in told_apart(steps, config, placed)]
    assert apart == [set(), set(), {"s1", "s2"}, set()]


@pytest.mark.covering
@pytest.mark.parametrize("replacement", Replacement)
@pytest.mark.parametrize("seed", range(8))
def test_misses_of_a_balance_are_no_more_than_its_credits(replacement, seed):
    import random

    draw = random.Random(seed)
    config = cache_config(sets=4, ways=4, line_bytes=16, replacement=replacement)
    residents, simulation = Residents(config, {}, {}.get), CacheSimulation(config, InitialCache.DIRTY)
    for _ in range(300):
        mine = draw.sample(range(12), 2)
        balance, misses = FULL, 0
        for _ in range(draw.randrange(1, 7)):
            line = draw.choice([*mine, draw.randrange(12)])
            is_hit = simulation.access(line * 16, is_write=False)
            if line in mine:
                balance = residents.paid(balance, step(line), 2)
                misses += not is_hit
            else:
                balance = residents.passed(balance, step(line))
            if balance is None:
                break
            assert misses <= 2


def test_a_line_is_evicted_by_as_many_others_as_there_are_ways():
    config = cache_config(sets=8, ways=2, line_bytes=16, replacement=Replacement.LRU)
    residents = Residents(config, {"s1": Congruence(16, 0), "s2": Congruence(16, 0)}, {}.get)
    must = residents.touched({}, step(spot=Spot("s1", 0, 16)))
    must = residents.touched(must, step(spot=Spot("s2", 0, 16)))
    assert {spot.base for spot in must} == {"s1", "s2"}
    assert {spot.base for spot in residents.touched(must, step())} == {"s2"}


def test_a_pointer_that_steps_on_stands_for_another_line_each_round():
    """A base that is moved by an edge counts as one more line: else a traversal would be one line for ever."""
    config = cache_config(sets=8, ways=4, line_bytes=16, replacement=Replacement.LRU)
    residents = Residents(config, {"s1": Congruence(16, 0), "s2": Congruence(16, 0)}, {}.get)
    passage = Passage(frozenset({"s1"}), {"s1": (("s1", -16),)})
    must = residents.touched({}, step(spot=Spot("s2", 0, 16)))
    for _ in range(lasting_ways(config) - 1):
        must = residents.along(residents.touched(must, step(spot=Spot("s1", 0, 16))), passage)
        assert Spot("s2", 0, 16) in must
    assert Spot("s2", 0, 16) not in residents.touched(must, step(spot=Spot("s1", 0, 16)))


def test_a_symbol_that_begins_anew_takes_its_lines_along_under_new_names_only():
    config = cache_config(sets=8, ways=4, line_bytes=16, replacement=Replacement.LRU)
    residents = Residents(config, {"s1": Congruence(8, 0), "s2": Congruence(8, 0)}, {}.get)
    must = {Spot("s1", 8, 8): NOTHING}
    assert residents.along(must, Passage(frozenset({"s1"}), {})) == {}
    assert residents.along(must, Passage(frozenset({"s1", "s2"}), {"s1": (("s2", -8),)})) == {Spot("s2", 0, 8): NOTHING}


def test_tokens_are_not_spent_on_more_lines_than_there_are():
    config = cache_config(sets=8, ways=4, line_bytes=16, replacement=Replacement.LRU)
    residents = Residents(config, {"s1": Congruence(4, 0)}, {}.get)
    balance = residents.paid(FULL, step(spot=Spot("s1", 0, 4)), 1)
    assert isinstance(balance, Bound)
    assert residents.paid(balance, step(spot=Spot("s1", 4, 4)), 1) is None, "it may be in the next line"
    assert residents.paid(balance, step(spot=Spot("s1", 0, 4)), 1) == balance


def test_what_is_said_must_follow():
    spot = Spot("s1", 0, 16)
    residents = Residents(cache_config(sets=8, ways=4), {"s1": Congruence(16, 0)}, {}.get)
    assert must_holds(residents, {spot: NOTHING}, {})
    assert not must_holds(residents, {}, {spot: NOTHING})


def test_others_are_as_many_as_lines_of_one_set():
    """Of lines known by number those of one set count; those of a name, or of the line's own set, may all be there."""
    residents = Residents(cache_config(sets=4, ways=8, line_bytes=16), {}, {}.get)
    numbers = [f"{16 * line:#x}" for line in (0, 1, 2, 3, 4)]
    for spot, most in ((Spot("x", 0, 16), 2), (Spot("number", 160, 16), 1), (Spot("number", 64, 16), 1)):
        for more in ((), ("a",), ("a", "b")):
            known = YoungerSet(frozenset({*numbers, *more}), 1)
            fewest = most + len(more) + 1
            assert residents.is_within(spot, known, YoungerSet(frozenset(), fewest))
            assert not residents.is_within(spot, known, YoungerSet(frozenset(), fewest - 1))
            assert joined(residents, spot, known, YoungerSet(frozenset("cdefgh"), 0)) == YoungerSet(frozenset(), 6)


def test_an_access_to_many_lines_ages_those_of_their_sets_only():
    """What may be to more lines than there are sets may be to any."""
    residents = Residents(cache_config(sets=128, ways=4, line_bytes=32), {}, {}.get)
    line = 1000
    must = {Spot("number", 32 * line, 32): NOTHING}
    for first in (line - 127, line - 100, line, line + 1, line + 2, line + 128):
        for count in (1, 27, 28, 101, 126, 127, 128, 129, 300):
            value = number(32 * first, 32 * (first + count) - 1)
            lines = _lines(Address(value, TOP, UNALIGNED, UNALIGNED), 0, residents.config)
            others = {first + one for one in range(count)} - {line}
            may_meet = count > 128 or any((other - line) % 128 == 0 for other in others)
            assert (residents.touched(must, replace(step(), lines=lines)) != must) == may_meet


def test_of_two_granules_in_each_other_the_line_is_one():
    config = cache_config(sets=16, ways=2, line_bytes=32)
    residents = Residents(config, {"s1": Congruence(16, 0)}, {}.get)
    must = {Spot("s1", 16, 16): NOTHING}
    assert all(residents.is_in(must, one) for one in (Spot("s1", 24, 8), Spot("s1", 0, 32)))
    others = Spot("s1", 32, 8), Spot("s2", 24, 8), Spot("s1", 12, 8), None
    assert not any(residents.is_in(must, one) for one in others)


def test_a_granule_that_gets_another_name_is_no_larger_than_it_was():
    """A fact makes the symbol a multiple of 16 for the code of others only: the access was by code that knows 8."""
    config = cache_config(sets=16, ways=2, line_bytes=32)
    residents = Residents(config, {"s1": Congruence(16, 0), "s2": Congruence(16, 0)}, {}.get)
    passage = Passage(frozenset({"s2"}), {"s1": (("s2", 0),)})
    behind = residents.along({Spot("s1", 24, 8): NOTHING}, passage)
    assert behind == {Spot("s1", 24, 8): NOTHING, Spot("s2", 24, 8): NOTHING}
