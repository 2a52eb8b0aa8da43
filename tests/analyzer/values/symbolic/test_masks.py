"""What is known of a number under a mask tells of it under larger ones, if that was known first."""

import random

import pytest

from tests.analyzer.values.symbolic.test_terms import evaluated
from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.analyzer.values.states.learning import learn
from wcet_probe.analyzer.values.states.state import State
from wcet_probe.analyzer.values.symbolic.masks import is_normalised, least_by_masks
from wcet_probe.analyzer.values.symbolic.terms import Terms


def test_the_least_of_smaller_masks_is_found():
    terms = Terms()
    x, y = (terms.symbol((name,), 32) for name in "xy")

    def masked(symbol, mask):
        return terms.apply("INT_AND", (symbol, terms.constant(mask, 32)), 32)

    smaller, beside, other, larger, late = masked(x, 12), masked(x, 48), masked(y, 12), masked(x, 15), masked(x, 8)
    assert terms.masks(x) == {smaller: 12, beside: 48, larger: 15, late: 8}
    assert terms.masks(y) == {other: 12}
    assert not terms.masks(smaller)
    known = {smaller: strided.between(32, 4, 12), beside: strided.between(32, 16, 48)}
    known |= {other: strided.between(32, 8, 12), late: strided.constant(32, 8)}
    assert least_by_masks(terms, known, larger) == 4
    assert least_by_masks(terms, {}, larger) == 0


def shifted(terms, word, counted, *changes):
    """``word << clz(counted)``, the amount changed first, as instruction sets take the low bits of a register."""
    amount = terms.apply("LZCOUNT", (counted,), 32)
    for opcode, number, bits in changes:
        operands = (amount,) if number is None else (amount, terms.constant(number, 32))
        amount = terms.apply(opcode, operands, bits)
    return terms.apply("INT_LEFT", (word, amount), 32)


LOW_BITS = [(), (("INT_AND", 31, 32),), (("INT_AND", 255, 32),), (("SUBPIECE", 0, 8),), (("INT_ZEXT", None, 64),)]


@pytest.mark.parametrize("changes", LOW_BITS)
def test_a_word_that_is_shifted_by_its_leading_zeros_has_its_highest_bit_set(changes):
    terms, draw = Terms(), random.Random(str(changes))
    x = terms.symbol(("x",), 32)
    term = shifted(terms, x, x, *changes)
    assert is_normalised(terms, term)
    state = State(terms, big_endian=False)
    for number in (0, 1, 2**31, 2**32 - 1):
        assert evaluated(terms, term, {x: number}) in state.value(term)
    learn(state, x, strided.between(32, 1, 2**32 - 1))
    assert state.value(term).unsigned_range() == (2**31, 2**32 - 1)
    for _ in range(50):
        assert evaluated(terms, term, {x: 1 + draw.getrandbits(32) >> draw.randrange(32) or 1}) in state.value(term)


def test_by_other_amounts_the_highest_bit_need_not_be_set():
    terms = Terms()
    x, y = (terms.symbol((name,), 32) for name in "xy")
    others = [
        shifted(terms, x, y),
        shifted(terms, x, x, ("INT_AND", 15, 32)),
        shifted(terms, x, x, ("INT_AND", 30, 32)),
        shifted(terms, x, x, ("SUBPIECE", 1, 8)),
        shifted(terms, x, x, ("INT_ADD", 1, 32)),
        terms.apply("INT_LEFT", (x, y), 32),
    ]
    assert not any(is_normalised(terms, one) for one in others if terms[one].opcode == "INT_LEFT")


def test_of_the_offset_of_an_address_no_bit_is_told():
    terms = Terms()
    x = terms.symbol(("x",), 32)
    term = shifted(terms, x, x)
    state = State(terms, big_endian=False)
    state.set_base(x, Base.STACK)
    learn(state, x, strided.between(32, 1, 8))
    assert state.value(term).is_top
