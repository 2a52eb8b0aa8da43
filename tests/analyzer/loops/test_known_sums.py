"""Loops whose distance is a sum of which nothing is known but that another one was tested, held against runs."""

import pytest

from tests.path_check import attack, proved
from tests.support import assembler, guest_of
from wcet_probe.catalog.lookup import load_target

DIVISION = """
    cmp r1, #0
    cmpne r0, #0
    bxeq lr
    clz r2, r0
    clz r3, r1
    sub r12, r3, r2
    cmp r12, #31
    bxhi lr
    mvn r3, r3
    add r2, r3, r2
1:  lsl r0, r0, #1
    adds r2, r2, #1
    bcc 1b
    bx lr
"""
"""How far a divisor is shifted is tested, and the rounds are counted up from its negative."""

UNTESTED = DIVISION.replace("    bxhi lr\n", "")
OTHER_FACTOR = DIVISION.replace("add r2, r3, r2", "add r2, r2, r3, lsl #1")
OTHER_TERM = DIVISION.replace("mvn r3, r3", "clz r3, r12\n    mvn r3, r3")


def guest(text):
    return guest_of(assembler({"f": text}, load_target("arm926ej-s")), load_target("arm926ej-s"))


def test_a_sum_that_was_tested_bounds_a_loop_that_counts_its_negative():
    proof = proved(guest(DIVISION), "f")
    assert max(loop.max for loop in proof.bound.loops) == 32
    for call in ((0x80000000, 1), (0xFFFFFFFF, 1), (1, 1), (5, 3), (3, 5), (0, 1), (1, 0), (1, 0x80000000)):
        attack(proof, *call)


@pytest.mark.parametrize("text", [UNTESTED, OTHER_FACTOR, OTHER_TERM])
def test_other_sums_tell_nothing(text):
    assert max(loop.max for loop in proved(guest(text), "f").bound.loops) >= 1 << 31
