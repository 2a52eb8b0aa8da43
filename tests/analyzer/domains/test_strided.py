"""The operations of p-code on strided intervals: each result of the numbers is in that of the sets."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.analyzer.domains.intervals import intervals_with_a_member, members, some_pairs, word
from tests.examples import examples
from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.domains.strided import apply, between, bottom, constant, top
from wcet_probe.analyzer.domains.strided_interval import arc
from wcet_probe.analyzer.pcode.semantics import _SEMANTICS, UndefinedResultError

UNARY = {"COPY", "INT_ZEXT", "INT_SEXT", "INT_2COMP", "INT_NEGATE", "BOOL_NEGATE", "POPCOUNT", "LZCOUNT"}
WIDENING = {"INT_ZEXT", "INT_SEXT", "SUBPIECE", "PIECE"}
ALL = top(32)
FLAG = between(8, 0, 1)


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
            try:
                results = {_SEMANTICS[opcode](bits, *values) & mask for values in product(*map(members, operands))}
            except UndefinedResultError:
                results = set(range(mask + 1))
            result = apply(opcode, operands, output_bits)
            assert results <= members(result), (operands, result)
            assert result == arc(output_bits, result.low, result.stride, result.steps)
            if len(results) <= 1 and all(operand.steps <= 0 for operand in operands):
                assert results == members(result)


def test_an_unknown_operation_gives_all_values():
    assert apply("FLOAT_ADD", (constant(32, 1), constant(32, 2)), 32) == top(32)
    assert apply("FLOAT_ADD", (constant(32, 1), bottom(32)), 32) == bottom(32)


@settings(max_examples=examples(100))
@given(st.sampled_from(sorted(_SEMANTICS)), intervals_with_a_member(), intervals_with_a_member(), st.data())
def test_words_contain_each_result(opcode, one, other, data):
    amounts = data.draw(st.integers(0, 33))
    if opcode in ("INT_LEFT", "SUBPIECE") or "Saturate" in opcode:
        other = constant(32, amounts), amounts
    operands = (one,) if opcode in UNARY else (one, other)
    output_bits = data.draw(st.sampled_from((8, 16, 32, 64))) if opcode in WIDENING else 32
    result = apply(opcode, [interval for interval, _ in operands], output_bits)
    assert _SEMANTICS[opcode](32, *(value for _, value in operands)) & (1 << output_bits) - 1 in result


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
        ("DEFINED_DIV", (word(24, 1200, 12), word(12)), word(2, 100)),
        ("DEFINED_DIV", (word(24, 1200, 12), word(0, 12, 12)), ALL),
        ("DEFINED_DIV", (word(7), word(0)), ALL),
        ("DEFINED_SDIV", (word(-1000, 1000), word(-3)), word(-333, 333)),
        ("DEFINED_SDIV", (word(1 << 31), word(-3, 1, 2)), ALL),
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
