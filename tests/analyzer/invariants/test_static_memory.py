"""The words of static data as an image has them, against its bytes."""

import struct

import pytest

from tests.analyzer.invariants.small_memory import CODE, DATA, small_image
from tests.analyzer.invariants.test_contents import WAY_BITS, stands_for
from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.invariants.contents import Region, anything, in_arena, number
from wcet_probe.analyzer.invariants.static_memory import StaticMemory, number_of_null
from wcet_probe.analyzer.values.states.memory import MOST_READ

WORDS = (7, 0, 0, 0x200010, 5, 0, 0, 0)


def memory(*, big_endian=True):
    order = ">" if big_endian else "<"
    return StaticMemory(small_image(struct.pack(f"{order}8I", *WORDS), big_endian=big_endian), WAY_BITS)


def at(low, high=None, stride=4):
    return number(strided.between(32, low, low if high is None else high, stride), WAY_BITS)


NOTHING_STORED = frozenset[int]()


@pytest.mark.parametrize("big_endian", [False, True])
def test_before_anything_is_stored_a_word_is_what_the_image_has(big_endian):
    known = memory(big_endian=big_endian)
    for place, value in enumerate(WORDS):
        found = known.initial(at(DATA + 4 * place), NOTHING_STORED)
        assert stands_for(found, value)
        assert not stands_for(found, value + 4)
    several = known.initial(at(DATA, DATA + 16), NOTHING_STORED)
    assert all(stands_for(several, value) for value in WORDS[:5])
    assert known.initial(at(DATA + 20, DATA + 28), NOTHING_STORED) == number_of_null(WAY_BITS)
    assert stands_for(known.initial(at(DATA + 40), NOTHING_STORED), 0)  # what the file leaves out is zero


def test_what_is_stored_before_it_is_loaded_is_not_told():
    assert not memory().initial(at(DATA), frozenset({DATA}))
    assert memory().initial(at(DATA), frozenset({DATA + 4}))
    assert memory().initial(at(DATA, DATA + 8), frozenset({DATA}))  # of several it may be another


def test_of_too_many_words_any_number_is_told_and_of_the_arena_none():
    data = struct.pack(">I", 9) * (MOST_READ + 4)
    known = StaticMemory(small_image(data), WAY_BITS)
    found = known.initial(at(DATA, DATA + 4 * (MOST_READ + 2)), NOTHING_STORED)
    assert stands_for(found, 0xABCD0123)
    assert not known.initial(in_arena(strided.top(WAY_BITS)), NOTHING_STORED)
    assert not known.initial(at(0x999000), NOTHING_STORED)


def test_static_data_is_what_lies_in_it_to_its_last_byte():
    known = memory()
    assert known.is_static(at(DATA, DATA + 60), 4)
    assert not known.is_static(at(DATA, DATA + 60), 5)
    assert not known.is_static(at(DATA - 4, DATA), 4)
    assert known.is_static(at(CODE), 4)
    assert not known.is_static(anything(WAY_BITS), 4)
    assert not known.is_static(in_arena(strided.top(WAY_BITS)), 4)


def test_an_object_is_in_the_arena_or_in_static_data():
    known = memory()
    arena = in_arena(strided.top(WAY_BITS))
    assert known.is_object(arena, 4)
    assert known.is_object((*at(DATA), *arena), 4)
    assert not known.is_object((*at(DATA + 62, stride=1), *arena), 4)
    assert not known.is_object(anything(WAY_BITS), 4)


def test_a_sum_with_an_address_of_static_data_stays_in_it():
    known = memory()
    address = at(DATA + 8, DATA + 4096)
    (part,) = known.within(address, DATA + 8)
    assert part.value.unsigned_range() == (DATA + 8, DATA + 60)
    assert known.within(address, 8) == address  # of what is not made of it nothing is said
    before = at(DATA - 8, DATA + 4096)
    assert known.within(before, DATA) == before
    assert {part.region for part in known.within(in_arena(strided.top(WAY_BITS)), DATA)} == {Region.ARENA}
