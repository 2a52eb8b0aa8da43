"""Wrapped strided intervals against sets: all of a few bits by enumeration, those of 32 bits by Hypothesis."""

from __future__ import annotations

from functools import cache
from itertools import product
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.domains.strided import (
    StridedInterval,
    apply,
    between,
    bottom,
    constant,
    constrain,
    join,
    leq,
    meet,
    top,
    widen,
)
from wcet_probe.analyzer.domains.strided_interval import arc, clip, hull
from wcet_probe.analyzer.pcode.semantics import _SEMANTICS, signed

UNARY = {"COPY", "INT_ZEXT", "INT_SEXT", "INT_2COMP", "INT_NEGATE", "BOOL_NEGATE", "POPCOUNT", "LZCOUNT"}
WIDENING = {"INT_ZEXT", "INT_SEXT", "SUBPIECE", "PIECE"}
RELATIONS = ("INT_EQUAL", "INT_NOTEQUAL", "INT_LESS", "INT_LESSEQUAL", "INT_SLESS", "INT_SLESSEQUAL")


@cache
def every_interval(bits: int) -> tuple[StridedInterval, ...]:
    numbers = range(1 << bits)
    found = {arc(bits, low, stride, steps) for low in numbers for stride in numbers for steps in numbers}
    return bottom(bits), *sorted(found, key=lambda a: (a.low, a.stride, a.steps))


def some_pairs(bits: int, count: int, seed: object) -> list[tuple[StridedInterval, StridedInterval]]:
    random, intervals = Random(f"{bits} {seed}"), every_interval(bits)
    return [(random.choice(intervals), random.choice(intervals)) for _ in range(count)]


def members(interval: StridedInterval) -> set[int]:
    return set(interval.values())


# ------------------------------------------------------------------------------------------------------ sets and order


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


# ----------------------------------------------------------------------------------------------------------- widening


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


# --------------------------------------------------------------------------------------------------------- operations


@pytest.mark.parametrize("opcode", sorted(_SEMANTICS))
@pytest.mark.parametrize("listed", [64, 1], ids=["listed", "computed"])
def test_an_operation_contains_all_results(opcode, listed, monkeypatch):
    monkeypatch.setattr(strided, "_MOST_LISTED", listed)
    for bits, count in ((1, 40), (2, 150), (3, 500), (4, 250), (5, 120)):
        random = Random(opcode)
        for a, b in some_pairs(bits, count, opcode):
            operands = (a,) if opcode in UNARY else (a, random.choice((b, b, constant(bits, random.getrandbits(bits)))))
            output_bits = random.choice((1, bits, bits + 1, 2 * bits) if opcode in WIDENING else (bits, bits, bits + 1))
            mask = (1 << output_bits) - 1
            results = {_SEMANTICS[opcode](bits, *values) & mask for values in product(*map(members, operands))}
            result = apply(opcode, operands, output_bits)
            assert results <= members(result), (operands, result)
            assert result == arc(output_bits, result.low, result.stride, result.steps)
            if len(results) <= 1 and all(operand.steps <= 0 for operand in operands):
                assert results == members(result)


def test_an_unknown_operation_gives_all_values():
    assert apply("FLOAT_ADD", (constant(32, 1), constant(32, 2)), 32) == top(32)
    assert apply("FLOAT_ADD", (constant(32, 1), bottom(32)), 32) == bottom(32)


@pytest.mark.parametrize("opcode", RELATIONS)
@pytest.mark.parametrize("holds", [True, False])
def test_constrain_keeps_what_agrees(opcode, holds):
    for bits, count in ((1, 50), (3, 1500), (4, 700)):
        pairs = some_pairs(bits, count, opcode)
        for left, right in pairs:
            agreeing = [
                (a, b)
                for a, b in product(left.values(), right.values())
                if bool(_SEMANTICS[opcode](bits, a, b)) == holds
            ]
            new_left, new_right = constrain(opcode, left, right, holds)
            assert {a for a, _ in agreeing} <= members(new_left)
            assert {b for _, b in agreeing} <= members(new_right)
            if opcode not in ("INT_EQUAL", "INT_NOTEQUAL"):
                assert leq(new_left, left)
                assert leq(new_right, right)
            if not agreeing:
                assert new_left.is_bottom
                assert new_right.is_bottom


# ------------------------------------------------------------------------------------------------------------- 32 bits

WORDS = st.one_of(
    st.integers(-40, 40),
    st.integers(0, 0xFFFFFFFF),
    st.builds(lambda power, near: (1 << power) + near, st.integers(0, 31), st.integers(-2, 2)),
)
INTERVALS = st.builds(
    lambda low, stride, steps: arc(32, low, stride, steps),
    WORDS,
    st.one_of(st.sampled_from((1, 2, 3, 4, 8, 12, 24, 4096)), WORDS),
    st.one_of(st.integers(0, 40), WORDS.map(abs)),
)


@st.composite
def intervals_with_a_member(draw: st.DrawFn) -> tuple[StridedInterval, int]:
    interval = draw(INTERVALS)
    step = draw(st.one_of(st.integers(0, interval.steps), st.sampled_from((0, interval.steps))))
    return interval, (interval.low + step * interval.stride) & 0xFFFFFFFF


@given(st.sampled_from(sorted(_SEMANTICS)), intervals_with_a_member(), intervals_with_a_member(), st.data())
def test_words_contain_each_result(opcode, one, other, data):
    amounts = data.draw(st.integers(0, 33))
    if opcode in ("INT_LEFT", "SUBPIECE") or "Saturate" in opcode:
        other = constant(32, amounts), amounts
    operands = (one,) if opcode in UNARY else (one, other)
    output_bits = data.draw(st.sampled_from((8, 16, 32, 64))) if opcode in WIDENING else 32
    result = apply(opcode, [interval for interval, _ in operands], output_bits)
    assert _SEMANTICS[opcode](32, *(value for _, value in operands)) & (1 << output_bits) - 1 in result


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


@given(INTERVALS, INTERVALS, INTERVALS)
def test_the_order_of_words_is_one(a, b, c):
    assert leq(a, a)
    assert not (leq(a, b) and leq(b, a)) or a == b
    assert leq(a, c) or not (leq(a, b) and leq(b, c))
    assert leq(a, join(join(a, b), c))


@given(st.sampled_from(RELATIONS), intervals_with_a_member(), intervals_with_a_member())
def test_words_that_agree_are_kept(opcode, one, other):
    (left, a), (right, b) = one, other
    new_left, new_right = constrain(opcode, left, right, bool(_SEMANTICS[opcode](32, a, b)))
    assert a in new_left
    assert b in new_right


# ----------------------------------------------------------------------------------------------------------- precision


def word(low: int, high: int | None = None, stride: int = 1) -> StridedInterval:
    return constant(32, low) if high is None else between(32, low, high, stride)


ALL = top(32)
FLAG = between(8, 0, 1)


@pytest.mark.parametrize(
    ("opcode", "operands", "result"),
    [
        ("INT_ADD", (word(0, 400, 4), word(-8)), word(-8, 392, 4)),
        ("INT_ADD", (word(0, 400, 4), word(0, 60, 6)), word(0, 460, 2)),
        ("INT_ADD", (word(3, 0xFFFFFFFB, 8), word(1)), word(4, 0xFFFFFFFC, 8)),
        ("INT_SUB", (word(0x1000), word(8, 4096, 8)), word(0, 4088, 8)),
        ("INT_SUB", (word(100, 200), word(0, 20)), word(80, 200)),
        ("INT_2COMP", (word(0, 800, 8),), word(-800, 0, 8)),
        ("INT_NEGATE", (word(0, 800, 8),), word(-801, -1, 8)),
        ("INT_MULT", (word(0, 1000), word(12)), word(0, 12000, 12)),
        ("INT_MULT", (word(-5, 1000), word(-12)), word(-12000, 60, 12)),
        ("INT_MULT", (word(0, 999, 3), word(0xAAAAAAAB)), word(0, 333)),
        ("INT_MULT", (ALL, word(24)), word(0, 0xFFFFFFF8, 8)),
        ("INT_MULT", (word(-100, 100), word(0, 400, 4)), word(-40000, 40000, 4)),
        ("INT_LEFT", (word(-8, 1000), word(3)), word(-64, 8000, 8)),
        ("INT_LEFT", (ALL, word(4)), word(0, 0xFFFFFFF0, 16)),
        ("INT_LEFT", (word(32), word(5, 8)), word(1024, 8192, 1024)),
        ("INT_LEFT", (word(1, 100), word(32)), word(0)),
        ("INT_RIGHT", (word(16, 4096, 16), word(3)), word(2, 512, 2)),
        ("INT_RIGHT", (ALL, word(27)), word(0, 31)),
        ("INT_RIGHT", (ALL, word(27, 30)), word(0, 31)),
        ("INT_SRIGHT", (word(-4096, 4096, 8), word(2)), word(-1024, 1024, 2)),
        ("INT_SRIGHT", (ALL, word(31)), word(-1, 0)),
        ("INT_AND", (ALL, word(7)), word(0, 7)),
        ("INT_AND", (ALL, word(0xFF0)), word(0, 0xFF0, 16)),
        ("INT_AND", (ALL, word(0x84)), word(0, 0x84, 4)),
        ("INT_AND", (word(7, 0x1006), word(~7)), word(0, 0x1000, 8)),
        ("INT_AND", (word(-3, 400), word(~7)), word(-8, 400, 8)),
        ("INT_AND", (word(0x20000000, 0x20001000, 12), word(~3)), word(0x20000000, 0x20001000, 12)),
        ("INT_AND", (word(3, 1000003, 8), word(7)), word(3)),
        ("INT_AND", (word(0, 1000), word(0, 20)), word(0, 20)),
        ("INT_OR", (word(16, 4096, 8), word(3)), word(19, 4099, 8)),
        ("INT_OR", (ALL, word(1)), word(1, 0xFFFFFFFF, 2)),
        ("INT_OR", (word(0, 4096, 8), word(0, 7)), word(0, 4103)),
        ("INT_OR", (word(0, 1000), word(500, 600)), word(500, 1023)),
        ("INT_XOR", (word(7, 4095, 8), word(1)), word(6, 4094, 8)),
        ("INT_XOR", (word(0, 800, 8), word(-1)), word(-801, -1, 8)),
        ("INT_XOR", (word(-100, 100), word(1 << 31)), word(0x7FFFFF9C, 0x80000064)),
        ("INT_XOR", (word(0, 1000), word(1)), word(0, 1001)),
        ("INT_DIV", (word(24, 1200, 12), word(12)), word(2, 100)),
        ("INT_DIV", (ALL, word(10)), word(0, 0x19999999)),
        ("INT_DIV", (word(100, 1000), word(2, 5)), word(20, 500)),
        ("INT_REM", (ALL, word(24)), word(0, 23)),
        ("INT_REM", (word(0, 4000, 16), word(24)), word(0, 16, 8)),
        ("INT_REM", (word(1100, 2900, 4), word(1000)), word(0, 996, 4)),
        ("INT_REM", (word(1100, 1900, 4), word(1000, 1099)), word(0, 1098)),
        ("INT_REM", (word(2100, 2900, 4), word(1000)), word(100, 900, 4)),
        ("INT_SDIV", (word(-1000, 1000, 4), word(4)), word(-250, 250)),
        ("INT_SDIV", (word(-1000, 1000), word(-3)), word(-333, 333)),
        ("INT_SREM", (word(-1000, 1000), word(10)), word(-9, 9)),
        ("INT_SREM", (word(0, 1000), word(-10)), word(0, 9)),
        ("LZCOUNT", (word(1, 1000),), word(22, 31)),
        ("LZCOUNT", (ALL,), word(0, 32)),
        ("POPCOUNT", (word(0, 2040, 8),), word(0, 8)),
        ("SignedSaturate", (word(-1000, 1000), word(7)), word(-128, 127)),
        ("UnsignedSaturate", (word(-1000, 100), word(8)), word(0, 100)),
    ],
)
def test_a_typical_operation_is_precise(opcode, operands, result):
    assert apply(opcode, operands, 32) == result


@pytest.mark.parametrize(
    ("opcode", "operands", "result"),
    [
        ("INT_ZEXT", (between(8, 0, 200, 4),), word(0, 200, 4)),
        ("INT_ZEXT", (top(8),), word(0, 255)),
        ("INT_ZEXT", (between(8, -4, 4, 4),), word(0, 252, 4)),
        ("INT_SEXT", (between(8, -100, 100, 4),), word(-100, 100, 4)),
        ("INT_SEXT", (between(8, 1, 253, 4),), word(-127, 125, 4)),
        ("SUBPIECE", (word(-4, 100, 4), word(0)), between(8, -4, 100, 4)),
        ("SUBPIECE", (word(0, 4000, 4), word(0)), between(8, 0, 252, 4)),
        ("SUBPIECE", (word(0, 0xFF0000, 0x20000), word(2)), between(16, 0, 0xFE, 2)),
        ("PIECE", (constant(16, 1), top(16)), word(0x10000, 0x1FFFF)),
        ("PIECE", (top(16), constant(16, 4)), word(4, 0xFFFF0004, 0x10000)),
        ("INT_EQUAL", (word(0, 1000, 4), word(2, 1002, 4)), constant(8, 0)),
        ("INT_NOTEQUAL", (word(0, 1000), word(-9, -1)), constant(8, 1)),
        ("INT_EQUAL", (word(0, 1000, 4), word(8)), FLAG),
        ("INT_LESS", (word(0, 100), word(101, 200)), constant(8, 1)),
        ("INT_LESS", (word(100, 200), word(0, 100)), constant(8, 0)),
        ("INT_LESS", (word(0, 100), word(100, 200)), FLAG),
        ("INT_LESS", (word(-1, 100), word(101)), FLAG),
        ("INT_LESSEQUAL", (word(0, 100), word(100, 200)), constant(8, 1)),
        ("INT_SLESS", (word(-1, 100), word(101)), constant(8, 1)),
        ("INT_SLESSEQUAL", (word(1, 100), word(-100, 0)), constant(8, 0)),
        ("INT_CARRY", (word(0, 1000), word(0, 1000)), constant(8, 0)),
        ("INT_CARRY", (word(-1000, -500), word(1000, 2000)), constant(8, 1)),
        ("INT_SBORROW", (word(0, 1000), word(0, 1000)), constant(8, 0)),
        ("INT_SCARRY", (word(0x7FFFFF00, 0x7FFFFFFF), word(0x100, 0x200)), constant(8, 1)),
        ("BOOL_NEGATE", (FLAG,), FLAG),
        ("BOOL_AND", (FLAG, constant(8, 0)), constant(8, 0)),
        ("SignedDoesSaturate", (word(-100, 100), word(7)), constant(8, 0)),
    ],
)
def test_a_typical_change_of_width_is_precise(opcode, operands, result):
    assert apply(opcode, operands, result.bits) == result


@pytest.mark.parametrize(
    ("opcode", "operands", "holds", "refined"),
    [
        ("INT_LESS", (ALL, word(10)), True, (word(0, 9), word(10))),
        ("INT_LESS", (ALL, word(10)), False, (word(10, -1 + (1 << 32)), word(10))),
        ("INT_SLESS", (ALL, word(10)), True, (word(-(1 << 31), 9), word(10))),
        ("INT_SLESS", (ALL, word(10)), False, (word(10, (1 << 31) - 1), word(10))),
        ("INT_SLESS", (word(0), ALL), True, (word(0), word(1, (1 << 31) - 1))),
        ("INT_LESS", (word(-3, 100), word(10)), True, (word(0, 9), word(10))),
        ("INT_SLESS", (word(-3, 100), word(10)), True, (word(-3, 9), word(10))),
        ("INT_LESS", (word(2, 1002, 4), word(100)), True, (word(2, 98, 4), word(100))),
        ("INT_LESSEQUAL", (word(100), word(2, 1002, 4)), True, (word(100), word(102, 1002, 4))),
        ("INT_LESSEQUAL", (word(2, 1002, 4), word(100)), False, (word(102, 1002, 4), word(100))),
        ("INT_SLESSEQUAL", (word(-50, 50, 10), word(0)), True, (word(-50, 0, 10), word(0))),
        ("INT_LESS", (word(0, 100), word(50, 70)), True, (word(0, 69), word(50, 70))),
        ("INT_LESS", (word(60, 100), word(50, 70)), True, (word(60, 69), word(61, 70))),
        ("INT_LESS", (word(5), word(5)), True, (bottom(32), bottom(32))),
        ("INT_SLESS", (word(-3, 7), word(-3)), True, (bottom(32), bottom(32))),
        ("INT_NOTEQUAL", (word(0, 40, 4), word(0)), True, (word(4, 40, 4), word(0))),
        ("INT_EQUAL", (word(0, 40, 4), word(40)), False, (word(0, 36, 4), word(40))),
        ("INT_NOTEQUAL", (word(0, 40, 4), word(20)), True, (word(0, 40, 4), word(20))),
        ("INT_NOTEQUAL", (word(0, 0xFFFFFFF8, 8), word(16)), True, (word(24, (1 << 32) + 8, 8), word(16))),
        ("INT_NOTEQUAL", (word(0), ALL), True, (word(0), word(1, (1 << 32) - 1))),
        ("INT_EQUAL", (word(0, 40, 4), word(2, 100, 6)), True, (word(8, 32, 12), word(8, 32, 12))),
        ("INT_EQUAL", (word(0, 40, 4), word(7)), True, (bottom(32), bottom(32))),
    ],
)
def test_a_comparison_tells_what_it_can(opcode, operands, holds, refined):
    assert constrain(opcode, *operands, holds) == refined


def test_join_and_meet_keep_strides():
    assert join(word(0), word(4, 400, 4)) == word(0, 400, 4)
    assert join(word(0, 8, 8), word(100, 108, 8)) == word(0, 108, 4)
    assert join(word(-8, -4, 4), word(0, 4, 4)) == word(-8, 4, 4)
    assert join(word(5, 0xFFFFFFFD, 8), word(1)) == word(1, 0xFFFFFFFD, 4)
    assert meet(word(0, 96, 12), word(0, 96, 8)) == word(0, 96, 24)
    assert meet(word(0, 0xFFFFFFF8, 8), word(3, 100)) == word(8, 96, 8)
    assert meet(word(-20, 20), word(0, 1000)) == word(0, 20)
