"""Where addresses of the stack may stand on it: what was taken for none is held against what is found later."""

import random

from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.analyzer.values.states.held_addresses import (
    ANYWHERE,
    WHOLE_STACK,
    Held,
    HeldAddresses,
    both,
    moved,
    register_at_entry,
)
from wcet_probe.analyzer.values.states.state import State
from wcet_probe.analyzer.values.symbolic.locations import Location
from wcet_probe.analyzer.values.symbolic.terms import Terms

REGISTER = Location("register", 16, 4)


def test_a_load_is_refuted_by_a_store_to_one_of_its_bytes_that_is_found_later():
    for low, high, is_refuted in (
        (-12, -9, False),
        (-11, -8, True),
        (-5, -2, True),
        (-4, -1, False),
        (*WHOLE_STACK, True),
    ):
        found = HeldAddresses(Held())
        assert not found.may_hold(-8, -5)
        found.note(low, high)
        assert found.is_refuted == is_refuted
        found.begin()
        assert not found.is_refuted
        assert found.may_hold(low, high)


def test_bytes_are_those_of_all_that_was_stored():
    for seed in range(60):
        draw, found, stored = random.Random(seed), HeldAddresses(Held()), set()
        for _ in range(draw.randrange(1, 9)):
            low = draw.randrange(-40, 0)
            high = low + draw.randrange(6)
            found.note(low, high, REGISTER if draw.random() < 0.5 else None)
            stored |= set(range(low, high + 1))
        assert {at for at in range(-50, 20) if found.may_hold(at, at)} == stored


def test_what_a_register_held_is_kept_below_the_stack_pointer_only():
    found = HeldAddresses(Held())
    found.note(-8, -5, REGISTER)
    found.note(-4, 3, REGISTER)
    assert found.held == Held(((-4, 3),), ((-8, -5),), frozenset({REGISTER}))


def test_what_goes_round_is_anywhere():
    found = HeldAddresses(Held())
    found.note(WHOLE_STACK[1], WHOLE_STACK[1] + 3)
    assert found.held.ranges == (WHOLE_STACK,)


def test_what_is_refuted_again_and_again_is_given_up():
    found = HeldAddresses(Held())
    for _ in range(6):
        assert not found.held.is_any
        found.begin()
    assert found.held == ANYWHERE


def test_a_caller_sees_ranges_from_its_own_stack_pointer():
    one = Held(((-8, -5),), ((-16, -9),), frozenset({REGISTER}))
    assert moved(one, -24) == [(-32, -29)]
    assert moved(one, None) == [WHOLE_STACK]
    assert moved(one, -(1 << 31) + 4) == [WHOLE_STACK]
    assert both(one, Held(((-4, -1),))) == Held(((-8, -1),), ((-16, -9),), frozenset({REGISTER}))


def test_a_register_at_entry_is_told_by_its_symbol():
    terms = Terms()
    state, symbol = State(terms, big_endian=False), terms.symbol(("in", REGISTER), 32)
    state.set_base(symbol, Base.ANY)
    assert register_at_entry(state, symbol) == REGISTER
    assert register_at_entry(state, terms.apply("INT_ADD", (symbol, terms.constant(4, 32)), 32)) is None
    assert register_at_entry(state, None) is None
