"""Contents of words: what normal forms, joins and meets stand for."""

from hypothesis import given
from hypothesis import strategies as st

from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.invariants.contents import (
    ContentsLattice,
    Region,
    anything,
    in_arena,
    is_anything,
    met,
    number,
)

WAY_BITS = 8
FULL = (1 << 32) - 1


@st.composite
def intervals(draw):
    low, stride = draw(st.integers(0, FULL)), draw(st.sampled_from((1, 2, 4, 6, 8, 32, 4096)))
    return strided.between(32, low, low + stride * draw(st.integers(0, 1 << 12)), stride)


def stands_for(contents, word):
    return any(
        part.region is Region.ANY or (word in part.value and word % (1 << WAY_BITS) in part.way) for part in contents
    )


@given(intervals(), st.data())
def test_a_normal_form_stands_for_all_numbers(value, data):
    word = (value.low + value.stride * data.draw(st.integers(0, value.steps))) & FULL
    assert stands_for(number(value, WAY_BITS), word)


@given(intervals(), intervals(), st.data())
def test_a_meet_keeps_what_is_in_both(one, other, data):
    word = data.draw(st.sampled_from([one.low, other.low, (one.low + one.extent) & FULL]))
    both = met(number(one, WAY_BITS), number(other, WAY_BITS), WAY_BITS)
    assert stands_for(both, word) or word not in one or word not in other


def test_null_is_apart_from_numbers_and_from_small_ones():
    found = number(strided.between(32, 0, 1024, 4), WAY_BITS)
    assert [part.is_null for part in found] == [True, False]
    moved = number(strided.constant(32, 4), WAY_BITS) + number(strided.constant(32, 4096), WAY_BITS)
    assert len({part.flags for part in moved}) == 2


def test_an_equal_word_may_be_in_the_arena_and_a_number_but_not_null():
    arena = in_arena(strided.residue_class(WAY_BITS, 0, 8))
    assert not met(arena, number(strided.constant(32, 0), WAY_BITS), WAY_BITS)
    kept = met(arena, number(strided.residue_class(32, 16, 32), WAY_BITS), WAY_BITS)
    assert [(part.region, part.way.low, part.way.stride) for part in kept] == [(Region.ARENA, 16, 32)]


def test_what_is_any_word_stays_any():
    lattice = ContentsLattice(WAY_BITS)
    assert is_anything(lattice.join(in_arena(strided.top(WAY_BITS)), anything(WAY_BITS)))
    assert lattice.leq(number(strided.top(32), WAY_BITS), anything(WAY_BITS))
    assert not lattice.leq(anything(WAY_BITS), number(strided.top(32), WAY_BITS))
