"""Which accesses of memory that is told by kinds may meet, whole or in part."""

from itertools import product
from random import Random

import pytest

from wcet_probe.analyzer.invariants.accessed_places import Target, sees
from wcet_probe.analyzer.invariants.kinds import MODULUS, Kind, residue


def random_target(random, base):
    low = base + random.randrange(12)
    high = low + random.randrange(0, 24)
    residues = 0
    for _ in range(random.randint(1, 3)):
        residues |= residue(random.randint(low, high))
    return Target(Kind.STATIC, 0, random.choice((1, 2, 4)), residues, low, high)


def places(target):
    return [one for one in range(target.low, target.high + 1) if target.residues >> one % MODULUS & 1]


@pytest.mark.parametrize("part", range(3))
def test_a_load_sees_the_stores_that_may_be_to_its_place_whole_or_in_part(part):
    random, told = Random(f"sees {part}"), set()
    for _ in range(600):
        load, store = (random_target(random, 0x200000) for _ in range(2))
        overlapping = [
            (one, other)
            for one, other in product(places(load), places(store))
            if one < other + store.size_bytes and other < one + load.size_bytes
        ]
        in_part = any(one != other or load.size_bytes != store.size_bytes for one, other in overlapping)
        found = sees(load, store)
        told.add(found)
        if in_part:
            assert found is None
        elif overlapping:
            assert found is not False
    assert told == {None, False, True}


def test_accesses_of_other_regions_and_stacks_see_nothing_of_each_other():
    arena = Target(Kind.ARENA, 0, 4, residue(0), 0, 100)
    stack = Target(Kind.NULL, 0, 4, residue(0), -8, -8)
    assert sees(arena, arena)
    assert sees(arena, arena._replace(region=Kind.STATIC)) is False
    assert sees(stack, stack._replace(owner=1)) is False
    assert sees(stack, stack._replace(low=-16, high=-12)) is False
    assert sees(stack, stack._replace(size_bytes=2)) is None
