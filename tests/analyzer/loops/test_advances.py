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
BY_A_CHANGED_NUMBER = BY_A_NUMBER.replace("    cmp", "    ands r2, r2, r1\n    cmp")


PUT_RIGHT = """
    cmp r1, #0
    it eq
    bxeq lr
    clz r2, r1
    lsls r1, r1, r2
    lsrs r1, r1, #16
1:  adds r0, r0, r1
    lsrs r3, r0, #16
    beq 1b
    bx lr
"""
"""A remainder grows by the upper half of a divisor that is normalised, as long as it is one of 16 bits."""

OVER_TWO_WAYS = """
    uxtb r1, r1
    add r1, r1, #200
    uxtb r2, r2
    add r2, r2, #1000
1:  tst r0, #1
    ite eq
    addeq r0, r0, r1
    addne r0, r0, r2
    lsrs r3, r0, #12
    beq 1b
    bx lr
"""
"""The amounts are two, each of a range."""

MAY_ADD_NOTHING = PUT_RIGHT.replace("it eq\n    bxeq lr", "nop")
BY_ANOTHER_COUNT = PUT_RIGHT.replace("clz r2, r1", "clz r2, r0")
MAY_WRAP = """
    orr r1, r1, #0x80000000
1:  adds r0, r0, r1
    cmp r0, #0x90000000
    bls 1b
    bx lr
"""
"""Twice 2**31 is nothing."""


def guest(text, name="cortex-m4"):
    return guest_of(assembler({"f": text}, load_target(name)), load_target(name))


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
    """It was an exception of the program: the empty set has no least number. The loop is followed value by value."""
    target = load_target("mpc603e")
    found = proved(guest_of(assembler({"f": f"{STOPPED_AT_NINE}    .space 64\n"}, target), target), "f")
    read = found.guest.image.symbols["f"].address
    taken = [attack(found, number, read) for number in range(128)]
    assert max(taken) <= found.bound.instructions


POWERPC = """
    cmplwi 4, 0
    beqlr
    cntlzw 5, 4
    slw 4, 4, 5
    srwi 4, 4, 16
1:  add 3, 3, 4
    cmplwi 3, 65535
    ble 1b
    blr
"""


@pytest.mark.parametrize(
    ("text", "name", "most"),
    [
        (PUT_RIGHT, "cortex-m4", 3),
        (PUT_RIGHT.replace("it eq", ""), "arm926ej-s", 3),
        (POWERPC, "mpc603e", 3),
        (OVER_TWO_WAYS, "cortex-m4", 22),
    ],
)
def test_an_amount_of_a_range_ends_the_loop_whatever_the_number_was(text, name, most):
    proof = proved(guest(text, name), "f")
    assert [loop.max for loop in proof.bound.loops] == [most]
    numbers = (0, 1, 0xFFFF, 0x10000, 0xFFFF8000, 0xFFFF0001, 0xFFFFFFFF, 0x80000000, 0xFFFFFF38)
    observed = [attack(proof, first, second, 5) for first in numbers for second in (0, 1, 0x80000000, 0xFFFFFFFF)]
    assert most != 3 or max(observed) == proof.bound.instructions


@pytest.mark.parametrize("text", [MAY_ADD_NOTHING, BY_ANOTHER_COUNT, MAY_WRAP])
def test_an_amount_that_may_be_nothing_bounds_nothing(text):
    with pytest.raises(AnalysisError, match="no bound for the loop"):
        proved(guest(text), "f")
