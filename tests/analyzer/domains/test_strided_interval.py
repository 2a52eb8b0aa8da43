"""Wrapped strided intervals against sets: all of a few bits by enumeration, those of 32 bits by Hypothesis."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.analyzer.domains.intervals import (
    INTERVALS,
    WORDS,
    every_interval,
    intervals_with_a_member,
    members,
    some_pairs,
    word,
)
from tests.examples import examples
from wcet_probe.analyzer.domains.strided_interval import (
    StridedInterval,
    arc,
    between,
    bottom,
    clip,
    constant,
    hull,
    join,
    leq,
    meet,
    residue_class,
    top,
    widen,
)
from wcet_probe.analyzer.pcode.semantics import signed


@pytest.mark.parametrize("bits", [1, 2, 3, 4, 5])
def test_a_set_has_one_form(bits):
    intervals = every_interval(bits)
    assert len({frozenset(members(a)) for a in intervals}) == len(intervals)
    assert {bottom(bits), top(bits)} <= set(intervals)
    assert all(constant(bits, value) in intervals for value in range(1 << bits))
    for a in intervals:
        assert arc(bits, a.low, a.stride, a.steps) == a
        assert len(members(a)) == a.size


@pytest.mark.parametrize("bits", [1, 3, 4])
def test_a_set_tells_what_is_in_it(bits):
    for a in every_interval(bits):
        inside = members(a)
        assert inside == {value for value in range(1 << bits) if value in a}
        assert inside == {value & (1 << bits) - 1 for value in inside}
        assert a.is_bottom == (not inside)
        assert a.is_top == (len(inside) == 1 << bits)
        assert a.is_constant == (len(inside) == 1)
        if inside:
            readings = {signed(bits, value) for value in inside}
            assert a.unsigned_range() == (min(inside), max(inside))
            assert a.signed_range() == (min(readings), max(readings))
        if len(inside) == 1:
            assert {a.value} == inside


def test_what_a_set_has_not_is_an_error():
    with pytest.raises(ValueError, match="not a constant"):
        _ = top(8).value
    with pytest.raises(ValueError, match="no range"):
        bottom(8).unsigned_range()


@pytest.mark.parametrize("bits", [2, 3])
def test_between_is_the_numbers_between(bits):
    full = 1 << bits
    for low, high, stride in product(range(-full, full), range(-full, full), range(1, full)):
        numbers = {number % full for number in range(low, high + 1, stride)}
        result = between(bits, low, high, stride)
        assert numbers <= members(result)
        if high - low < full:
            assert numbers == members(result)


def test_between_beyond_one_turn_is_all():
    assert between(8, 0, 300) == top(8)
    assert between(8, 1, 1000, 4) == between(8, 1, 253, 4)


def test_order_is_inclusion():
    for one, other in product(every_interval(3), repeat=2):
        assert leq(one, other) == (members(one) <= members(other))
    for one, other in some_pairs(5, 3000, "leq"):
        assert leq(one, other) == (members(one) <= members(other))
        assert leq(meet(one, other), one) or leq(meet(one, other), other)


@pytest.mark.parametrize("bits", [1, 2, 3])
def test_hull_is_the_smallest(bits):
    intervals = [(members(a), a.size) for a in every_interval(bits)]
    for chosen in product((False, True), repeat=1 << bits):
        values = {value for value, is_in in enumerate(chosen) if is_in}
        result = hull(bits, values)
        assert values <= members(result)
        assert result.size == min(size for inside, size in intervals if values <= inside)


@pytest.mark.parametrize("bits", [3, 4, 5])
@pytest.mark.parametrize("listed", [8, 0], ids=["listed", "computed"])
def test_join_covers_both_and_meet_what_is_shared(bits, listed, monkeypatch):
    monkeypatch.setattr("wcet_probe.analyzer.domains.strided_interval._MOST_LISTED", listed)
    for one, other in some_pairs(bits, 2000, "join"):
        joined, met = join(one, other), meet(one, other)
        assert members(one) | members(other) <= members(joined)
        assert joined == join(other, one)
        assert members(one) & members(other) <= members(met)
        if leq(one, other):
            assert (joined, met) == (other, one)


def test_meet_with_a_run_is_exact():
    for one, other in some_pairs(5, 3000, "meet"):
        shared = members(one) & members(other)
        if one.low + one.extent < 32 and other.low + other.extent < 32:
            assert members(meet(one, other)) == shared
        if not shared:
            assert meet(one, other).is_bottom


def test_clip_keeps_what_lies_between():
    for a, (low, high) in product(every_interval(3), [(0, 3), (2, 6), (5, 7), (4, 2), (0, 7)]):
        for is_signed, shift in ((False, 0), (True, 4)):
            kept = {v for v in members(a) if low - shift <= (signed(3, v) if is_signed else v) <= high - shift}
            result = clip(a, low - shift, high - shift, is_signed=is_signed)
            assert kept <= members(result) <= members(a)
            assert kept or result.is_bottom


@pytest.mark.parametrize("bits", [1, 3, 4, 5])
def test_widening_covers_both(bits):
    random = Random(bits)
    for old, new in some_pairs(bits, 2000, "widen"):
        thresholds = random.sample(range(1 << bits), random.randrange(3) % (1 << bits))
        result = widen(old, new, thresholds)
        assert members(old) | members(new) <= members(result)
        if leq(new, old):
            assert result == old
        elif old.is_residue_class:
            assert result.is_residue_class
        elif not (old.is_bottom or result.is_residue_class):
            # The arc has only grown: what the end of a chain rests on.
            assert (old.low - result.low) % (1 << bits) + old.extent <= result.extent


def any_arc(random: Random, bits: int) -> StridedInterval:
    stride = random.choice((1, 1, 4, 8, 12, random.randrange(1, 1 << bits)))
    return arc(bits, random.getrandbits(bits), stride, random.choice((0, 0, 1, 2, random.randrange(1 << bits // 2))))


@pytest.mark.parametrize("bits", [3, 8, 32, 64])
@pytest.mark.parametrize("near", [True, False])
def test_a_chain_of_widenings_ends(bits, near):
    random = Random(f"{bits} {near}")
    for _ in range(60):
        thresholds = [random.getrandbits(bits) for _ in range(random.randrange(6))]
        value, changes = any_arc(random, bits), 0
        for _ in range(400):
            new = any_arc(random, bits)
            if near:
                # The smallest growth there is, at one end or the other, of the set or of its stride.
                end = random.choice((value.low, value.low + value.extent))
                new = constant(bits, end + random.choice((-1, 1)) * random.choice((value.stride, value.stride // 2, 1)))
            after = widen(value, new if random.random() < 0.5 else join(value, new), thresholds)
            assert leq(value, after)
            changes += after != value
            value = after
        assert changes <= 2 * len(thresholds) + 2 * bits + 8


def test_widening_stops_at_thresholds_and_ends_of_orders():
    def chain(value: StridedInterval, stride: int, thresholds: tuple[int, ...]) -> list[tuple[int, int, int]]:
        ends = []
        while not ends or value.extent != ends[-1][2]:
            ends.append((value.low, value.stride, value.extent))
            value = widen(value, constant(8, value.low + value.extent + stride), thresholds)
        return ends

    assert chain(constant(8, 0), 1, (10, 100)) == [
        (0, 0, 0),
        (0, 1, 10),
        (0, 1, 100),
        (0, 1, 127),
        (0, 1, 255),
    ]
    assert chain(constant(8, 2), 4, (50,)) == [(2, 0, 0), (2, 4, 48), (2, 4, 124), (2, 4, 252)]
    assert widen(constant(8, 100), between(8, 90, 100, 5), ()) == between(8, 0, 100, 5)
    assert widen(between(8, 0, 100), between(8, -1, 100), ()) == between(8, -128, 100)
    assert widen(between(8, -128, 100), between(8, -128, 101), (-100,)) == top(8)
    assert widen(between(8, -4, 4), constant(8, 5), (6,)) == between(8, -4, 6)  # past the end of one order
    assert widen(between(8, 8, 252, 4), constant(8, 0), (0, 1, 4)) == residue_class(8, 0, 4)  # and of both


@settings(max_examples=examples(100))
@given(intervals_with_a_member(), intervals_with_a_member(), st.lists(WORDS, max_size=4))
def test_words_keep_their_members(one, other, thresholds):
    (a, a_value), (b, b_value) = one, other
    for covering in (join(a, b), widen(a, b, thresholds)):
        assert leq(a, covering)
        assert leq(b, covering)
        assert a_value in covering
        assert b_value in covering
    for value in (a_value, b_value):
        assert (value in meet(a, b)) or not (value in a and value in b)


@settings(max_examples=examples(100))
@given(INTERVALS, INTERVALS, INTERVALS)
def test_the_order_of_words_is_one(a, b, c):
    assert leq(a, a)
    assert not (leq(a, b) and leq(b, a)) or a == b
    assert leq(a, c) or not (leq(a, b) and leq(b, c))
    assert leq(a, join(join(a, b), c))


def test_join_and_meet_keep_strides():
    assert join(word(0), word(4, 400, 4)) == word(0, 400, 4)
    assert join(word(0, 8, 8), word(100, 108, 8)) == word(0, 108, 4)
    assert join(word(-8, -4, 4), word(0, 4, 4)) == word(-8, 4, 4)
    assert join(word(5, 0xFFFFFFFD, 8), word(1)) == word(1, 0xFFFFFFFD, 4)
    assert meet(word(0, 96, 12), word(0, 96, 8)) == word(0, 96, 24)
    assert meet(word(0, 0xFFFFFFF8, 8), word(3, 100)) == word(8, 96, 8)
    assert meet(word(-20, 20), word(0, 1000)) == word(0, 20)
