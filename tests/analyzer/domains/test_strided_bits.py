"""Bitwise operations and shifts of strided intervals against all their numbers, and what is precise of words."""

from __future__ import annotations

from itertools import product

import pytest

from tests.analyzer.domains.intervals import every_interval, members, some_pairs, word
from wcet_probe.analyzer.domains.strided_bits import bitwise, known_bits, leading_zeros, population, shift
from wcet_probe.analyzer.domains.strided_interval import between, constant, top

OPERATIONS = {
    "INT_AND": lambda a, b: a & b,
    "INT_OR": lambda a, b: a | b,
    "INT_XOR": lambda a, b: a ^ b,
}


@pytest.mark.parametrize("bits", [1, 3, 4])
def test_known_bits_are_those_of_all_numbers(bits):
    for one in every_interval(bits)[1:]:
        ones, unknown = known_bits(one)
        assert not ones & unknown
        for value in one.values():
            assert value & ~unknown == ones
    for value in range(1 << bits):
        assert known_bits(constant(bits, value)) == (value, 0)
    assert known_bits(top(bits)) == (0, (1 << bits) - 1)


@pytest.mark.parametrize("opcode", OPERATIONS)
def test_a_bitwise_operation_contains_the_results_of_all_pairs(opcode):
    compute = OPERATIONS[opcode]
    some = every_interval(3)[1:]
    more = [pair for pair in some_pairs(5, 400, opcode) if not any(one.is_bottom for one in pair)]
    for one, other in [*product(some, some), *more]:
        found = members(bitwise(opcode, one, other))
        assert {compute(a, b) for a, b in product(one.values(), other.values())} <= found


@pytest.mark.parametrize("opcode", ["INT_LEFT", "INT_RIGHT", "INT_SRIGHT"])
def test_a_shift_contains_the_results_of_all_amounts(opcode):
    def shifted(value: int, amount: int) -> int:
        if opcode == "INT_LEFT":
            return value << amount & 15
        signed = value - 16 if opcode == "INT_SRIGHT" and value > 7 else value
        return signed >> amount & 15

    for one, amounts in some_pairs(4, 700, opcode):
        results = {shifted(a, b) for a, b in product(one.values(), amounts.values())}
        assert results <= members(shift(opcode, 4, one, amounts))
    assert shift(opcode, 32, top(16), constant(16, 1)) == top(32)


def test_ones_and_leading_zeros_are_counted():
    for one in every_interval(4)[1:]:
        assert {value.bit_count() for value in one.values()} <= members(population(4, one))
        zeros = {4 - value.bit_length() for value in one.values()}
        assert zeros <= members(leading_zeros(4, one))
        low, high = leading_zeros(4, one).unsigned_range()
        assert (low, high) == (min(zeros), max(zeros))


def test_masks_keep_strides_and_alignment():
    assert bitwise("INT_AND", word(7, 0x1006), word(~7)) == word(0, 0x1000, 8)
    assert bitwise("INT_OR", word(16, 4096, 8), word(3)) == word(19, 4099, 8)
    assert bitwise("INT_XOR", word(0, 800, 8), word(-1)) == word(-801, -1, 8)
    assert bitwise("INT_XOR", word(-100, 100), word(1 << 31)) == word(0x7FFFFF9C, 0x80000064)
    assert shift("INT_LEFT", 32, word(32), word(5, 8)) == word(1024, 8192, 1024)
    assert population(32, word(0, 2040, 8)) == between(32, 0, 8)
