"""Comparisons, overflow and saturation of strided intervals against all their numbers."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.analyzer.domains.intervals import (
    RELATIONS,
    every_interval,
    intervals_with_a_member,
    members,
    some_pairs,
    word,
)
from wcet_probe.analyzer.domains.strided_comparisons import (
    carry,
    constrain,
    equal,
    ordered,
    saturated,
    saturates,
    signed_overflow,
    truth,
)
from wcet_probe.analyzer.domains.strided_interval import bottom, constant, leq, top
from wcet_probe.analyzer.pcode.semantics import _SEMANTICS

ALL = top(32)


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


@given(st.sampled_from(RELATIONS), intervals_with_a_member(), intervals_with_a_member())
def test_words_that_agree_are_kept(opcode, one, other):
    (left, a), (right, b) = one, other
    new_left, new_right = constrain(opcode, left, right, bool(_SEMANTICS[opcode](32, a, b)))
    assert a in new_left
    assert b in new_right


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


def reading(value: int, bits: int, *, is_signed: bool) -> int:
    return value - (1 << bits) if is_signed and value >> bits - 1 else value


@pytest.mark.parametrize("is_signed", [False, True])
@pytest.mark.parametrize("or_equal", [0, 1])
def test_an_order_is_decided_where_all_pairs_agree_and_only_there(is_signed, or_equal):
    some = every_interval(3)[1:]
    for one, other in product(some, some):
        pairs = product(
            [reading(value, 3, is_signed=is_signed) for value in one.values()],
            [reading(value, 3, is_signed=is_signed) for value in other.values()],
        )
        found = {int(a < b + or_equal) for a, b in pairs}
        assert members(ordered(8, one, other, is_signed=is_signed, or_equal=or_equal)) == found


def test_equality_is_denied_where_no_number_is_shared_and_only_there():
    some = every_interval(3)[1:]
    for one, other in product(some, some):
        is_apart = members(one).isdisjoint(members(other))
        assert equal(8, one, other, wanted=True) == truth(8, value=False if is_apart else None)
        assert equal(8, one, other, wanted=False) == truth(8, value=True if is_apart else None)


def test_what_overflows_is_told_where_all_pairs_agree_and_only_there():
    some = every_interval(3)[1:]
    for one, other in product(some, some):
        pairs = list(product(one.values(), other.values()))
        as_signed = [(reading(a, 3, is_signed=True), reading(b, 3, is_signed=True)) for a, b in pairs]
        assert members(carry(8, one, other)) >= {int(a + b > 7) for a, b in pairs}
        assert members(signed_overflow(1, 8, one, other)) >= {int(not -4 <= a + b < 4) for a, b in as_signed}
        assert members(signed_overflow(-1, 8, one, other)) >= {int(not -4 <= a - b < 4) for a, b in as_signed}
    full = top(3)
    for value in range(8):
        assert carry(8, full, constant(3, value)).is_constant == (value == 0)
    assert carry(8, full, full) == signed_overflow(1, 8, full, full) == truth(8, value=None)


@pytest.mark.parametrize("opcode", ["SignedSaturate", "UnsignedSaturate"])
def test_saturation_keeps_each_clamped_number(opcode):
    for one, width in product(every_interval(4)[1:], range(6)):
        least, most = (-(1 << width), (1 << width) - 1) if opcode.startswith("S") else (0, (1 << width) - 1)
        readings = [reading(value, 4, is_signed=True) for value in one.values()]
        clamped = [min(max(value, least), most) for value in readings]
        limit = constant(4, width)
        assert {value & 15 for value in clamped} <= members(saturated(opcode, 4, one, limit))
        changes = {int(value != after) for value, after in zip(readings, clamped, strict=True)}
        assert changes <= members(saturates(opcode, 8, one, limit))
        if len(readings) == 1:
            assert changes == members(saturates(opcode, 8, one, limit))
    assert saturated(opcode, 32, ALL, word(1, 2)).is_top
