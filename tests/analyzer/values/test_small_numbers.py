"""A few low bits of a value that may be an address are a number, and index tables."""

import pytest

from tests.path_check import attack, proved
from tests.support import TARGETS, guest_of
from wcet_probe.analyzer.values.state import Base, State
from wcet_probe.analyzer.values.terms import Terms
from wcet_probe.catalog.lookup import load_target


@pytest.mark.parametrize(("mask", "base"), [(3, Base.NUMBER), (255, Base.NUMBER), (256, Base.ANY), (~3, Base.ANY)])
def test_only_a_number_that_is_no_address_of_a_frame_loses_its_base(mask, base):
    terms = Terms()
    state = State(terms, big_endian=False)
    symbol = state.define((0, 0, 0), 32, base=Base.ANY)
    part = terms.apply("INT_AND", (symbol, terms.constant(mask, 32)), 32)
    assert state.base(part) is base
    assert state.value(part).unsigned_range() == ((0, mask) if base is Base.NUMBER else (0, (1 << 32) - 1))


@pytest.mark.parametrize("target", TARGETS)
def test_a_switch_over_low_bits_of_what_may_be_an_address_is_resolved(target):
    """What a call through a pointer to the stack gives back may be an address, as far as the analysis knows."""
    text = (
        "typedef unsigned u; volatile u sink; __attribute__((noinline)) u g(u *p) { u k = *p; *p = sink; return k; }\n"
        "u f(u x) { u y[2] = {x, x}; switch (g(y) & 3) {"
        " case 0: return sink; case 1: sink = x; return 7; case 2: sink = sink + x; return sink * 3;"
        " default: sink = 4; return sink / 5; } }\n"
    )
    proof = proved(guest_of(text, load_target(target), ".c"), "f")
    assert max(attack(proof, value) for value in range(4)) <= proof.bound.instructions
