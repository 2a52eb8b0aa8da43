"""What a call of a callee that was checked by itself makes of the state of its caller: nothing is kept unless shown."""

import pytest

from tests.support import TARGETS, guest_of
from wcet_probe.catalog.lookup import load_target
from wcet_probe.certificate.kernel.called import Callee
from wcet_probe.certificate.machines import arm
from wcet_probe.certificate.machines.machine import Machine
from wcet_probe.certificate.values.numbers import ANY, TOP, Value, constant, number
from wcet_probe.certificate.values.state import SAVED, STATIC, Comparison, State

assert TARGETS
SOURCE = "volatile int words[8] = {1};\nint f(int n) { return words[n]; }"


def callee(**changed):
    own = {"unknown": frozenset(), "results": {}, "stores": frozenset(), "holds": False, "escapes": False}
    return Callee(0x100, {"instructions": 1}, **{**own, **changed})


@pytest.fixture(name="machine")
def _machine():
    return Machine(guest_of(SOURCE, load_target("cortex-m4"), ".c").image)


def stack(low, high=None, stride=4):
    return Value("stack", low, low if high is None else high, 0 if high is None else stride)


def called(**values):
    return State({"r13": stack(-16), "r14": constant(0x101), **values})


def test_what_is_not_shown_to_be_kept_is_not_known_behind_a_call(machine):
    state = called(r0=constant(5), r4=constant(6))
    state.flags["nzcv"] = Comparison("r0", constant(5), None, constant(0))
    state.carry = constant(1)
    callee(results={"r0": number(0, 7), "r14": TOP}).leave(machine, arm, state)
    assert (state.read("r0"), state.read("r4"), state.read("r14")) == (number(0, 7), constant(6), TOP)
    assert state.name("r0") not in {"r0", "r4"}
    assert not state.flags
    assert state.carry is None


def test_words_below_the_stack_pointer_and_saved_ones_are_lost_and_others_stay(machine):
    places = {-24: constant(1), -20: constant(2), -16: constant(3), 0: constant(4), STATIC + 0x20000000: constant(5)}
    state = called()
    state.values |= {**places, SAVED: constant(6)}
    callee().leave(machine, arm, state)
    assert {place for place in state.values if isinstance(place, int)} == {-16, 0, STATIC + 0x20000000}
    assert not machine.on_stack.ranges


def test_where_the_stack_pointer_is_not_known_no_word_of_the_stack_stays(machine):
    state = called(r13=stack(-16, -8))
    state.values[0] = constant(1)
    callee(results={"r0": stack(0)}).leave(machine, arm, state)
    assert 0 not in state.values
    assert state.read("r0") == ANY


@pytest.mark.parametrize(
    ("address", "lost"),
    [
        (stack(4), {-12}),
        (stack(0, 8), {-16, -12, -8}),
        (Value("stack", -(1 << 31), (1 << 31) - 1, 1), {-16, -12, -8, 0}),
        (ANY, {-16, -12, -8, 0}),
        (TOP, set()),
    ],
)
def test_a_store_of_the_callee_is_one_of_the_caller(machine, address, lost):
    places = {-16, -12, -8, 0}
    state = called()
    state.values |= dict.fromkeys(places, constant(1))
    callee(stores=frozenset({(address, 4, False)})).leave(machine, arm, state)
    assert {place for place in places if state.values.get(place) == constant(1)} == places - lost
    assert not machine.found_escape


@pytest.mark.parametrize(("address", "place"), [(stack(4), -12), (constant(0x20000000), STATIC + 0x20000000)])
def test_where_a_callee_may_store_a_number_a_stack_address_may_stand_still(machine, address, place):
    """The store may be skipped, or another one to that word come behind it."""
    state = called()
    state.values[place] = stack(0)
    callee(stores=frozenset({(address, 4, False)})).leave(machine, arm, state)
    assert state.read(place) == ANY


def test_stack_addresses_that_a_callee_may_store_are_found_by_later_loads(machine):
    callee(holds=True).leave(machine, arm, called())
    assert machine.on_stack.may_hold(-20, -16)
    assert not machine.on_stack.may_hold(-16, -12)
    callee(stores=frozenset({(stack(4), 4, True)})).leave(machine, arm, called())
    assert machine.on_stack.may_hold(-12, -8)
    assert not machine.found_escape
    callee(escapes=True).leave(machine, arm, called())
    assert machine.found_escape


def test_a_result_that_points_into_the_stack_is_seen_from_the_caller(machine):
    state = called()
    callee(results={"r0": stack(8), "r1": Value("link", 0, 0, 0), "r2": ANY}).leave(machine, arm, state)
    assert (state.read("r0"), state.read("r1"), state.read("r2")) == (stack(-8), TOP, ANY)


@pytest.mark.parametrize(
    ("values", "unmet"),
    [
        ({}, ()),
        ({"r0": constant(4)}, ()),
        ({"r0": ANY}, ("r0",)),
        ({"r0": stack(0), "r4": ANY}, ("r0",)),
        ({"r13": stack(-12)}, ("r13",)),
        ({"r13": stack(-16, -8, 8)}, ("r13",)),
        ({"r13": ANY}, ("r13",)),
    ],
)
def test_a_callee_is_called_where_registers_hold_what_it_was_checked_for(values, unmet):
    assert callee(unknown=frozenset({"r4"})).unmet(arm, called(**values)) == unmet
