"""Products and shifts that are divisions by constants, and those that are not, against what they compute."""

import random
from math import ceil

import pytest

from tests.analyzer.values.symbolic.test_terms import evaluated
from wcet_probe.analyzer.values.symbolic.terms import Terms

WORDS = (0, 1, 2, 9, 10, 11, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFE, 0xFFFFFFFF)
DIVISORS = (3, 5, 6, 7, 9, 10, 11, 12, 13, 14, 25, 28, 31, 60, 100, 127, 1000, 3600, 10007, 1_000_000)


class Words:
    """Makes terms of words, as instructions do."""

    def __init__(self):
        self.terms = Terms()
        self.x = self.terms.symbol(("entry", "r0", 0), 32)

    def number(self, value, bits=32):
        return self.terms.constant(value, bits)

    def apply(self, opcode, *operands, bits=32):
        return self.terms.apply(opcode, operands, bits)

    def upper(self, word, factor):
        """The upper word of ``word`` times ``factor``, as ``umull`` makes it."""
        wide = self.apply("INT_ZEXT", word, bits=64)
        return self.apply("SUBPIECE", self.apply("INT_MULT", wide, self.number(factor, 64), bits=64), self.number(4))

    def moved(self, word, shift):
        return self.apply("INT_RIGHT", word, self.number(shift))

    def opcode(self, term):
        return self.terms[term].opcode


def magic(divisor):
    """The factor and the shift of all words of 32 bits; the factor may have 33."""
    for shift in range(32):
        factor = -(-(1 << 32 + shift) // divisor)
        if (factor * divisor - (1 << 32 + shift)) * 0xFFFFFFFF < 1 << 32 + shift:
            return factor, shift
    raise AssertionError


def divided(words, divisor):
    factor, shift = magic(divisor)
    if factor < 1 << 32:
        return words.moved(words.upper(words.x, factor), shift)
    upper = words.upper(words.x, factor - (1 << 32))
    half = words.moved(words.apply("INT_SUB", words.x, upper), 1)
    return words.moved(words.apply("INT_ADD", half, upper), shift - 1)


@pytest.mark.parametrize("divisor", DIVISORS)
def test_a_reciprocal_divides_and_leaves_a_remainder(divisor):
    words = Words()
    found = divided(words, divisor)
    assert words.opcode(found) == "INT_DIV"
    left = words.apply("INT_SUB", words.x, words.apply("INT_MULT", found, words.number(divisor)))
    assert words.opcode(left) == "INT_REM"
    digit = words.apply("INT_ADD", left, words.number(48))
    for x in (*WORDS, *(random.Random(n).getrandbits(32) for n in range(20))):
        told = {words.x: x}
        assert evaluated(words.terms, found, told) == x // divisor
        assert evaluated(words.terms, left, told) == x % divisor
        assert evaluated(words.terms, digit, told) == x % divisor + 48


@pytest.mark.parametrize("divisor", DIVISORS)
def test_a_multiple_of_a_quotient_is_made_by_clearing_bits(divisor):
    words = Words()
    factor, shift = magic(divisor)
    if factor < 1 << 32 and shift:
        upper = words.upper(words.x, factor)
        cleared = words.apply("INT_AND", upper, words.number(-1 << shift))
        assert words.terms.linear(cleared).coefficients == {words.moved(upper, shift): 1 << shift}


def test_a_rotation_is_a_shift_as_powerpc_makes_it():
    words = Words()
    upper = words.upper(words.x, 0xCCCCCCCD)
    turned = words.apply("INT_OR", words.apply("INT_LEFT", upper, words.number(30)), words.moved(upper, 2))
    assert words.apply("INT_AND", turned, words.number(0x3FFFFFFF)) == words.moved(upper, 2)


def test_udiv_of_wide_numbers_is_a_quotient_of_words():
    words = Words()
    wide = words.apply("INT_ZEXT", words.x, bits=64)
    found = words.apply("SUBPIECE", words.apply("INT_DIV", wide, words.number(10, 64), bits=64), words.number(0))
    assert words.terms[found].arguments == (words.x, words.number(10))
    for divisor in (0, 0xFFFFFFFF, 1 << 32):
        by = words.number(divisor, 64)
        quotient = words.apply("INT_DIV", wide, by, bits=64)
        found = None if quotient is None else words.apply("SUBPIECE", quotient, words.number(0))
        assert found is None or evaluated(words.terms, found, {words.x: 77}) == (77 // divisor if divisor else 0)


def test_udiv_by_what_is_not_known_is_not_put_otherwise():
    words = Words()
    wide = words.apply("INT_ZEXT", words.x, bits=64)
    by = words.apply("INT_ZEXT", words.terms.symbol(("entry", "r1", 0), 32), bits=64)
    quotient = words.apply("INT_DIV", wide, by, bits=64)
    if quotient is not None:
        assert words.opcode(words.apply("SUBPIECE", quotient, words.number(0))) == "SUBPIECE"


def test_every_product_of_a_byte_that_is_a_quotient_is_one():
    found = 0
    for factor in range(1, 256):
        for shift in range(1, 16):
            words = Words()
            byte = words.apply("INT_AND", words.x, words.number(0xFF))
            term = words.moved(words.apply("INT_MULT", byte, words.number(factor)), shift)
            if words.opcode(term) == "INT_DIV":
                found += 1
                divisor = words.terms.value(words.terms.operands(term)[1])
                assert all((x * factor) >> shift == x // divisor for x in range(256)), (factor, shift)
    assert found > 100


def test_a_reciprocal_that_is_not_exact_is_no_quotient():
    for divisor in (3, 7, 10, 641):
        for shift in range(1, 8):
            for error in (-1, 0, 1, 2):
                words = Words()
                factor = ceil((1 << 32 + shift) / divisor) + error
                if not 0 < factor < 1 << 32:
                    continue
                term = words.moved(words.upper(words.x, factor), shift)
                node, numbers = words.terms[term], (*WORDS, *range(0xFFFFF000, 0xFFFFFFFF, 7))
                is_exact = all((x * factor) >> 32 + shift == x // divisor for x in numbers)
                assert node.opcode == "INT_RIGHT" or is_exact or words.terms.value(node.arguments[1]) != divisor


def test_a_product_that_may_be_too_large_is_no_quotient():
    words = Words()
    half = words.apply("INT_AND", words.x, words.number(0xFFFF))
    assert words.opcode(words.moved(words.apply("INT_MULT", half, words.number(0xCCCD)), 19)) == "INT_DIV"
    assert words.opcode(words.moved(words.apply("INT_MULT", words.x, words.number(0xCCCD)), 19)) == "INT_RIGHT"


def test_sums_of_dividends_and_quotients_are_told_by_what_is_left():
    words = Words()
    found = divided(words, 10)
    left = words.apply("INT_REM", words.x, words.number(10))
    form = words.terms.linear(words.apply("INT_MULT", left, words.number(4)))
    assert len(form.coefficients) == 2
    assert words.terms.with_remainders(form).coefficients == {left: 4}
    assert words.terms.linear(found).coefficients == {found: 1}
    whole = words.apply("INT_ADD", left, words.apply("INT_MULT", found, words.number(10)))
    assert whole == words.x
