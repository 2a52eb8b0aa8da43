"""Stack addresses that code aligns, against the addresses that they are for a stack pointer that is aligned."""

from itertools import product

import pytest

from tests.analyzer.values.symbolic.test_terms import evaluated
from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.pcode.semantics import signed
from wcet_probe.analyzer.values.states.aligned_addresses import aligned_address
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.analyzer.values.states.state import State
from wcet_probe.analyzer.values.symbolic.stack_alignment import STACK_ALIGNMENT_BYTES, tells_stack_alignment
from wcet_probe.analyzer.values.symbolic.terms import Terms

FULL = (1 << 32) - 1


def on_the_stack():
    """A state, and the stack pointer of it."""
    terms = Terms()
    state = State(terms, big_endian=False)
    pointer = terms.symbol(("stack pointer",), 32)
    state.set_base(pointer, Base.STACK)
    state.set_known(pointer, strided.constant(32, 0))
    return terms, state, pointer


def masked(terms, pointer, offset, mask):
    address = terms.apply("INT_ADD", (pointer, terms.constant(offset, 32)), 32)
    return terms.apply("INT_AND", (address, terms.constant(mask, 32)), 32)


@pytest.mark.parametrize("low", [1, 3, 7])
def test_an_aligned_address_is_an_offset(low):
    for offset, where in product(range(-33, 17), (0x20000000, 0x7FFFFFF8, 0xFFFFFF00)):
        terms, state, pointer = on_the_stack()
        assert where % STACK_ALIGNMENT_BYTES == 0
        term = masked(terms, pointer, offset, FULL & ~low)
        found = aligned_address(state, term)
        assert evaluated(terms, found, {pointer: where}) == evaluated(terms, term, {pointer: where})
        assert state.base(found) is Base.STACK
        assert signed(32, state.value(found).value) == offset & ~low


def test_it_brings_the_assumption_along():
    terms, state, pointer = on_the_stack()
    term = masked(terms, pointer, -20, FULL & ~7)
    assert not tells_stack_alignment(terms)
    aligned_address(state, term)
    assert tells_stack_alignment(terms)


@pytest.mark.parametrize("mask", [FULL & ~15, FULL & ~5, FULL & ~6, 0xFF, 7, FULL & ~(1 << 31 | 1)])
def test_other_masks_stay_as_they_are(mask):
    """They ask for more than the alignment tells, or do not align."""
    terms, state, pointer = on_the_stack()
    term = masked(terms, pointer, -20, mask)
    assert aligned_address(state, term) == term


def test_numbers_and_what_may_be_either_stay_as_they_are():
    terms, state, pointer = on_the_stack()
    for base in (Base.NUMBER, Base.ANY):
        state.set_base(pointer, base)
        term = masked(terms, pointer, -20, FULL & ~7)
        assert aligned_address(state, term) == term
    assert aligned_address(state, pointer) == pointer


def test_an_offset_that_is_not_known_stays_as_it_is():
    terms, state, pointer = on_the_stack()
    index = state.define((0, 0, 0), 32, strided.between(32, 0, 3))
    address = terms.apply("INT_ADD", (pointer, index), 32)
    term = terms.apply("INT_AND", (address, terms.constant(FULL & ~7, 32)), 32)
    assert aligned_address(state, term) == term
