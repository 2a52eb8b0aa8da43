"""Operations on bytes, bit by bit: those of the machine on numbers, and none where a bit is not known."""

import operator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wcet_probe.analyzer.deduction.byte_terms import byte, compared, constant, of_bits
from wcet_probe.analyzer.deduction.formulas import negation, unknown
from wcet_probe.analyzer.deduction.words import SPAN, Word

NUMBERS = st.integers(0, SPAN - 1) | st.sampled_from([0, 1, (1 << 31) - 1, 1 << 31, SPAN - 1])
UNKNOWN = tuple(unknown(f"bit {bit}", "bool") for bit in range(8))
OPERATIONS = {
    "INT_AND": operator.and_,
    "INT_OR": operator.or_,
    "INT_XOR": operator.xor,
    "INT_ADD": lambda one, other: (one + other) % 256,
    "INT_SUB": lambda one, other: (one - other) % 256,
    "INT_LEFT": lambda one, other: (one << other) % 256,
    "INT_RIGHT": operator.rshift,
    "INT_EQUAL": operator.eq,
    "INT_NOTEQUAL": operator.ne,
}


def signed(number):
    return number - SPAN if number >= SPAN // 2 else number


COMPARISONS = {
    "INT_EQUAL": operator.eq,
    "INT_NOTEQUAL": operator.ne,
    "INT_LESS": operator.lt,
    "INT_LESSEQUAL": operator.le,
    "INT_SLESS": lambda one, other: signed(one) < signed(other),
    "INT_SLESSEQUAL": lambda one, other: signed(one) <= signed(other),
    "INT_CARRY": lambda one, other: one + other >= SPAN,
    "INT_SCARRY": lambda one, other: not -SPAN // 2 <= signed(one) + signed(other) < SPAN // 2,
    "INT_SBORROW": lambda one, other: not -SPAN // 2 <= signed(one) - signed(other) < SPAN // 2,
}


@pytest.mark.parametrize("opcode", OPERATIONS)
@given(one=st.integers(0, 255), other=st.integers(0, 255) | st.integers(0, 9))
def test_operations_on_numbers_are_those_of_the_machine(opcode, one, other):
    assert constant(of_bits(opcode, [byte(one), byte(other)])) == int(OPERATIONS[opcode](one, other))


@pytest.mark.parametrize("opcode", COMPARISONS)
@given(one=NUMBERS, other=NUMBERS)
def test_comparisons_of_numbers_are_those_of_the_machine(opcode, one, other):
    assert constant(compared(opcode, [Word(one), Word(other)])) == int(COMPARISONS[opcode](one, other))


def test_what_is_not_known_bit_by_bit_is_none():
    assert constant(UNKNOWN) is None
    assert constant((*byte(0)[1:], UNKNOWN[0])) is None
    for opcode in ("INT_ADD", "INT_SUB"):
        assert of_bits(opcode, [UNKNOWN, byte(1)]) is None
        assert of_bits(opcode, [byte(1), UNKNOWN]) is None
    assert of_bits("INT_LEFT", [byte(1), UNKNOWN]) is None
    assert of_bits("INT_MULT", [byte(1), byte(1)]) is None
    assert of_bits("INT_AND", [byte(1), Word(1)]) is None
    assert of_bits("COPY", [Word(1)]) is None
    assert compared("INT_ADD", [Word(1), Word(1)]) is None


def test_bits_that_are_not_known_keep_their_places():
    assert of_bits("INT_AND", [UNKNOWN, byte(0b101)]) == (UNKNOWN[0], byte(0)[0], UNKNOWN[2], *byte(0)[3:])
    assert of_bits("INT_LEFT", [UNKNOWN, Word(3)]) == (*byte(0)[:3], *UNKNOWN[:5])
    assert of_bits("INT_RIGHT", [UNKNOWN, byte(3)]) == (*UNKNOWN[3:], *byte(0)[:3])
    assert of_bits("BOOL_NEGATE", [UNKNOWN]) == (negation(UNKNOWN[0]), *UNKNOWN[1:])
