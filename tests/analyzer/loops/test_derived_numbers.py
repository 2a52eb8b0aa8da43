"""Searches whose next middle is computed at the end of a round, held against runs; and where it is another one."""

import pytest

from tests.analyzer.loops.one_loop import hold, refuse
from tests.analyzer.loops.test_bisection import HALVED, LOW, NEXT, THUMB, WORDS

BOUNDED = {
    "the middle is computed at the end": (
        THUMB,
        (
            "mov r2, r1\nmov r1, r0\nmovs r0, #0\ncmp r0, r1\nbhs 3f\nsubs r3, r1, r0\nadd r3, r0, r3, lsr #1\n"
            f"1: {NEXT.format(low=LOW, high='movcc r1, r3')}\nsubs r3, r1, r0\ncmp r1, r0\n"
            "add r3, r0, r3, lsr #1\nbhi 1b\n3: bx lr"
        ),
        32,
        WORDS,
    ),
}

REFUSED = {
    "another middle behind one round": "mov r2, r1\nubfx r1, r0, #0, #12\nmovs r0, #0\ncmp r0, r1\nbhs 3f\nmov r3, r0\n"
    f"1: {NEXT.format(low=LOW, high='movcc r1, r3')}\nadd r3, r0, r1\ncmp r1, r0\nbhi 1b\n3: bx lr",
}


@pytest.mark.parametrize("name", BOUNDED)
def test_a_number_that_is_always_a_function_of_others_is_taken_for_it(name):
    assert hold(*BOUNDED[name]).expression == HALVED


@pytest.mark.parametrize("name", REFUSED)
def test_a_number_that_is_so_in_some_rounds_is_not(name):
    refuse(THUMB, REFUSED[name])
