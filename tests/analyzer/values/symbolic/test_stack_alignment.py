"""Which terms ask for no more of an address than its lowest bits: those that do not tell aligned moves apart."""

from itertools import product

from tests.analyzer.values.symbolic.test_terms import CORNERS, evaluated
from wcet_probe.analyzer.values.symbolic.stack_alignment import (
    STACK_ALIGNMENT_BYTES,
    tells_low_bits,
    tells_stack_alignment,
)
from wcet_probe.analyzer.values.symbolic.terms import Terms

OPERATIONS = ("INT_AND", "INT_OR", "INT_XOR", "INT_LEFT", "INT_RIGHT", "INT_SRIGHT", "INT_ADD", "INT_MULT")
CONSTANTS = (*range(34), 0xFF, 0xFFFFFFF8, 0xFFFFFFFF)


def test_low_bits_do_not_change_with_a_multiple_of_the_alignment():
    terms, told = Terms(), 0
    x = terms.symbol(("x",), 32)
    for opcode, constant in product(OPERATIONS, CONSTANTS):
        term = terms.apply(opcode, (x, terms.constant(constant, 32)), 32)
        if terms[term].opcode not in {"const", "symbol"} and tells_low_bits(terms, term):
            told += 1
            for value, moved in product(CORNERS, (1, 5, 1 << 20)):
                other = value + moved * STACK_ALIGNMENT_BYTES & 0xFFFFFFFF
                assert evaluated(terms, term, {x: value}) == evaluated(terms, term, {x: other}), terms[term]
            assert evaluated(terms, term, {x: STACK_ALIGNMENT_BYTES}) == 0
    assert told == 7 + 3  # masks of 1 to 7, and shifts that leave one, two or three bits


def test_upper_bits_are_not_told():
    terms = Terms()
    x = terms.symbol(("x",), 32)
    for opcode, constant in (("INT_AND", 8), ("INT_AND", 15), ("INT_LEFT", 28), ("INT_RIGHT", 3), ("INT_OR", 7)):
        assert not tells_low_bits(terms, terms.apply(opcode, (x, terms.constant(constant, 32)), 32))
    y = terms.symbol(("y",), 32)
    assert not tells_low_bits(terms, terms.apply("INT_AND", (x, y), 32))
    assert not tells_low_bits(terms, x)


def test_the_assumption_is_needed_where_low_bits_of_the_stack_pointer_are_asked_for_anywhere():
    terms = Terms()
    x, pointer = terms.symbol(("x",), 32), terms.symbol(("stack pointer",), 32)
    terms.apply("INT_AND", (x, terms.constant(7, 32)), 32)
    address = terms.apply("INT_ADD", (pointer, x), 32)
    terms.apply("INT_AND", (address, terms.constant(0xFFFFFFF0, 32)), 32)
    assert not tells_stack_alignment(terms)
    terms.apply("INT_AND", (address, terms.constant(3, 32)), 32)
    assert tells_stack_alignment(terms)
