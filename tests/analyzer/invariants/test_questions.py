"""Questions about terms: one for all states that tell the same, answered anew where a word has changed."""

import pytest

from tests.analyzer.invariants.small_memory import small_module
from tests.analyzer.invariants.test_contents import WAY_BITS
from tests.analyzer.small_functions import lifter_of
from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.invariants.contents import NEAR_NULL, in_arena, number
from wcet_probe.analyzer.invariants.frontier import Area
from wcet_probe.analyzer.invariants.operations import operation
from wcet_probe.analyzer.invariants.questions import Question, Questions, _related
from wcet_probe.analyzer.values.properties.own_block import Roles
from wcet_probe.analyzer.values.states.learning import assume
from wcet_probe.analyzer.values.states.state import State
from wcet_probe.analyzer.values.symbolic.terms import Terms

NUMBER = number(strided.between(32, 8, 64, 8), WAY_BITS)


def setting(count=2):
    terms = Terms()
    symbols = [terms.symbol((place, 0, 0), 32) for place in range(3)]
    return terms, symbols, [State(terms, big_endian=False) for _ in range(count)]


def test_states_that_tell_the_same_of_a_term_share_a_question():
    terms, (x, y, _), (one, other) = setting()
    asked = Questions((None, None), WAY_BITS, None)
    other.set_known(y, strided.between(32, 0, 9))
    assert asked.of(0, one, x) is asked.of(0, other, x)
    assert asked.of(0, one, y) is not asked.of(0, other, y)
    assert asked.of(0, one, x) is not asked.of(1, one, x)  # of another operation
    assert asked.of(0, one, terms.apply("INT_ADD", (x, y), 32)).symbols == (x, y)


def test_an_answer_is_computed_for_what_the_symbols_are():
    terms, (x, y, _), (state,) = setting(1)
    asked = Questions((None, None), WAY_BITS, None)
    question = asked.of(0, state, terms.apply("INT_ADD", (x, y), 32))
    found = asked.answer(question, (NUMBER, number(strided.constant(32, 4), WAY_BITS)))
    assert {value for part in found for value in part.value.values()} == {12 + 8 * step for step in range(8)}
    question.answer = ()
    assert asked.answer(question, question.known) == ()  # not computed again
    again = asked.answer(question, (NUMBER, NUMBER))
    assert {value for part in again for value in part.value.values()} >= {16, 128}
    assert not asked.is_cut


def test_symbols_that_are_compared_with_a_term_s_are_asked_for_too():
    terms, (x, y, z), (state,) = setting(1)
    assert _related(state, x) == {x}
    assert assume(state, terms.apply("INT_EQUAL", (x, y), 8), False)
    assert assume(state, terms.apply("INT_LESS", (x, z), 8), True)
    assert _related(state, x) == {x, y}
    assert _related(state, z) == {z}


@pytest.mark.parametrize("constant", [0, 8, (1 << 32) - 8])
def test_a_word_that_was_followed_is_no_null(constant):
    _, (x, *_), (state,) = setting(1)
    null = number(strided.constant(32, 0), WAY_BITS)
    arena = in_arena(strided.residue_class(WAY_BITS, 0, 8))

    def told(contents, constants):
        asked = Questions((None,), WAY_BITS, None)
        return asked.answer(Question(0, state, x, (x,), {x: constants}), (contents,))

    mixed = (*null, *arena)
    assert told(mixed, ()) == mixed
    is_near = constant < NEAR_NULL
    assert told(mixed, (constant,)) == (arena if is_near else mixed)
    assert told(mixed, (0, constant)) == arena


ADVANCING = "lis 9, head@ha\naddi 9, 9, head@l\nlwz 3, 0(9)\naddi 5, 3, 32\nstw 5, 0(9)\nblr"


def test_what_is_followed_is_not_at_the_end_of_the_area():
    """Objects of 32 bytes are carved out of 128: where the last one ends, none is followed."""
    guest, values = small_module({"f": ADVANCING})
    advancing = operation("f", values["f"], guest.image, lifter_of(guest), Roles(None, None), "r3")
    asked = Questions((advancing,), WAY_BITS, Area(0, 128))
    places = in_arena(strided.between(WAY_BITS, 0, 128, 32))
    assert asked.not_at_end(places) == in_arena(strided.between(WAY_BITS, 0, 96, 32))
    assert Questions((advancing,), WAY_BITS, None).not_at_end(places) == places
    assert not asked.is_cut
    _, (x, *_), (state,) = setting(1)
    assert asked.answer(Question(0, state, x, (x,), {x: (4,)}), (places,)) == asked.not_at_end(places)
    assert asked.is_cut
