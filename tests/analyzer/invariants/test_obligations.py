"""Which lemmas an access needs: none to static data, and those that are told where one leaves something out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.analyzer.invariants.small_memory import DATA, small_image, small_module
from tests.analyzer.invariants.test_contents import WAY_BITS
from tests.analyzer.small_functions import lifter_of
from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.invariants.contents import NEAR_NULL, Part, Region, in_arena, number
from wcet_probe.analyzer.invariants.obligations import FollowedWords, Lemma, by_lemma, is_by_null, of_address
from wcet_probe.analyzer.invariants.operations import Moved, operation
from wcet_probe.analyzer.invariants.static_memory import StaticMemory
from wcet_probe.analyzer.values.execution.accesses import WordTransfer
from wcet_probe.analyzer.values.properties.own_block import Roles
from wcet_probe.analyzer.values.states.state import State
from wcet_probe.analyzer.values.symbolic.terms import Terms

MEMORY = StaticMemory(small_image(), WAY_BITS)
ARENA = in_arena(strided.top(WAY_BITS))
STATIC = number(strided.between(32, DATA, DATA + 60, 4), WAY_BITS)
NULL = number(strided.constant(32, 0), WAY_BITS)


@given(st.integers(0, 3 * NEAR_NULL), st.integers(0, NEAR_NULL), st.integers(-NEAR_NULL, NEAR_NULL))
def test_words_near_null_are_so_with_what_is_added(low, extent, constant):
    value = strided.between(32, low, low + extent)
    part = Part(Region.NUMBER, 0, value, strided.top(WAY_BITS))
    moved = {(one + constant) % (1 << 32) for one in (low, low + extent)}
    assert is_by_null(part, constant % (1 << 32)) == (max(moved) < NEAR_NULL and max(moved) - min(moved) == extent)
    assert not is_by_null(part._replace(region=Region.ARENA), constant % (1 << 32))


def moved(*, is_store, distance=None):
    terms = Terms()
    state = State(terms, big_endian=True)
    pointer = terms.symbol((0, 0, 0), 32)
    transfer = WordTransfer(0, 0x40000, 0, pointer, pointer if is_store else None, 4, state)
    return Moved(0, transfer, distance, is_certain=True)


@pytest.mark.parametrize(
    ("address", "is_store", "distance", "needed"),
    [
        (STATIC, False, None, set()),
        (STATIC, True, None, set()),
        ((*NULL, *STATIC), False, None, {Lemma.NULL}),
        (ARENA, True, None, {Lemma.OBJECTS}),
        (ARENA, False, None, {Lemma.OBJECTS, Lemma.STORED, Lemma.BLOCKS}),
        ((*NULL, *ARENA), True, None, {Lemma.NULL, Lemma.OBJECTS}),
        (ARENA, True, 8, {Lemma.OBJECTS}),
        (ARENA, False, 8, {Lemma.OBJECTS, Lemma.STORED, Lemma.BLOCKS}),
        ((*NULL, *ARENA), False, 8, {Lemma.NULL, Lemma.OBJECTS, Lemma.STORED, Lemma.BLOCKS}),
        (number(strided.between(32, DATA, DATA + 64, 4), WAY_BITS), False, None, {Lemma.OBJECTS}),
    ],
)
def test_an_access_needs_the_lemmas_that_its_address_leaves_something_to(address, is_store, distance, needed):
    assert set(of_address(address, moved(is_store=is_store, distance=distance), MEMORY)) == needed


def test_places_are_told_by_lemma_and_what_is_not_needed_is_not():
    needed = {(0, 1): {Lemma.NULL, Lemma.OBJECTS}, (1, 0): {Lemma.OBJECTS}, (1, 1): set()}
    assert by_lemma(needed) == {Lemma.NULL: {(0, 1)}, Lemma.OBJECTS: {(0, 1), (1, 0)}}


def test_behind_an_access_its_word_has_been_followed_and_in_no_other_state():
    guest, values = small_module({"f": "lwz 5, 8(4)\nlwz 6, 4(5)\nlwz 7, 0(5)\nblr"})
    one = operation("f", values["f"], guest.image, lifter_of(guest), Roles(None, None), "r3")
    known, terms = FollowedWords([one]), values["f"].terms
    argument = next(iter(terms.symbols(one.moved[0].transfer.pointer)))
    link = next(iter(terms.symbols(one.moved[1].transfer.pointer)))
    states = [each.transfer.state for each in one.moved]
    assert known.at(states[0], [argument, link]) == frozenset()
    assert known.at(states[1], [argument, link]) == {(argument, 8)}
    assert known.at(states[2], [argument, link]) == {(argument, 8), (link, 4)}
    assert known.at(states[2], [argument]) == {(argument, 8)}
    assert known.at(State(terms, big_endian=True), [argument]) == frozenset()
