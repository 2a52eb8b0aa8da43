"""Loops whose rounds move a number on by different amounts, held against runs."""

import pytest

from tests.path_check import attack, proved
from tests.support import assembler, guest_of
from wcet_probe.catalog.lookup import load_target
from wcet_probe.errors import AnalysisError

IN_EACH_OTHER = """
    movs r3, #0
1:  tst r0, r3
    beq 2f
    adds r3, r3, #1
    b 3f
2:  adds r3, r3, #1
    cmp r3, #60
    beq 9f
    tst r1, r3
    bne 2b
3:  cmp r3, #60
    bne 1b
9:  bx lr
"""
"""The loop inside counts on in the register of the one around it."""

DOWNWARDS = """
    movs r3, #60
1:  tst r0, r3
    ite eq
    subeq r3, r3, #1
    subne r3, r3, #5
    tst r1, r3
    beq 2f
    subs r3, r3, #2
2:  cmp r3, #4
    bgt 1b
    bx lr
"""

BACK_AND_FORTH = IN_EACH_OTHER.replace("adds r3, r3, #1\n    cmp", "subs r3, r3, #1\n    cmp")
STANDING = IN_EACH_OTHER.replace("#1\n    b 3f", "#0\n    b 3f")
GOING_ROUND = IN_EACH_OTHER.replace("#1\n    b 3f", "#2\n    b 3f")
"""The end may be jumped over, and the register wraps around."""

BY_A_NUMBER = """
    and r2, r0, #3
    adds r2, r2, #1
    movs r3, #0
1:  adds r3, r3, r2
    tst r1, r3
    it ne
    addne r3, r3, r2
    cmp r3, #60
    bcc 1b
    bx lr
"""
"""By how much a round moves the register is known as a range only."""

BY_NOTHING = BY_A_NUMBER.replace("adds r2, r2, #1", "nop")
OVER_ITS_END = BY_A_NUMBER.replace("bcc", "bne")
BY_A_CHANGED_NUMBER = BY_A_NUMBER.replace("    cmp", "    subs r2, r2, #1\n    cmp")


def guest(text):
    return guest_of(assembler({"f": text}, load_target("cortex-m4")), load_target("cortex-m4"))


@pytest.mark.parametrize(("text", "most"), [(IN_EACH_OTHER, 60), (DOWNWARDS, 56), (BY_A_NUMBER, 60)])
def test_a_number_that_moves_on_ends_the_loop(text, most):
    proof = proved(guest(text), "f")
    assert max(loop.max for loop in proof.bound.loops) == most
    for first, second in ((0, 0), (1, 1), (0xFFFFFFFF, 0), (0, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (6, 9), (3, 0)):
        attack(proof, first, second)


@pytest.mark.parametrize("text", [BACK_AND_FORTH, STANDING, GOING_ROUND, BY_NOTHING, OVER_ITS_END, BY_A_CHANGED_NUMBER])
def test_a_number_that_need_not_move_on_bounds_nothing(text):
    with pytest.raises(AnalysisError, match="no bound for the loop"):
        proved(guest(text), "f")


STOPPED_AT_NINE = """
    mr 7, 4
    andi. 4, 3, 127
    beq 8f
    li 5, 0
    li 6, 9
    li 3, 0
    b 2f
1:  lbzx 9, 7, 8
    cmplwi 4, 9
    mr 4, 8
    add 3, 3, 9
    blelr
2:  subfc 9, 6, 4
    addze. 8, 5
    li 8, 0
    beq 1b
    mr 8, 9
    b 1b
8:  li 3, 0
    blr
"""
"""A number that goes down by 9 in each round, or to 0: where a borrow tells that nothing is left, no round follows."""


def test_a_way_that_brings_no_number_at_all_is_none():
    """It was an exception of the program: the empty set has no least number."""
    target = load_target("mpc603e")
    with pytest.raises(AnalysisError, match="no bound for the loop at f"):
        proved(guest_of(assembler({"f": STOPPED_AT_NINE}, target), target), "f")
