"""Loops whose distance is a sum of which nothing is known but that another one was tested, held against runs."""

from random import Random

import pytest

from tests.path_check import attack, proved
from tests.support import assembler, guest_of
from wcet_probe.catalog.lookup import load_target
from wcet_probe.errors import AnalysisError

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


def test_a_constant_divisor_leaves_one_term():
    proof = proved(guest("    mov r1, #24\n" + DIVISION), "f")
    assert max(loop.max for loop in proof.bound.loops) == 28
    assert max(attack(proof, number) for number in (0, 1, 23, 24, 0xFFFFFFFF)) == proof.bound.instructions


def test_bits_are_counted_of_what_may_be_an_address_of_the_stack():
    """As a function divides that is proved once for all of its calls, which may pass such addresses."""
    for name in ("r13", "r5"):
        either = f"    cmp r1, #7\n    mov r5, r0\n    movhi r5, r13\n    sub r0, {name}, r0\n"
        assert max(loop.max for loop in proved(guest(either + DIVISION), "f").bound.loops) == 32


@pytest.mark.parametrize("text", [UNTESTED, OTHER_FACTOR, OTHER_TERM])
def test_other_sums_tell_nothing(text):
    assert max(loop.max for loop in proved(guest(text), "f").bound.loops) >= 1 << 31


ONE_OF_TWO_ENDS = """
    cmp r1, #64
    addls r2, r0, r1
    addhi r2, r0, #64
    mov r3, r0
1:  cmp r3, r2
    bxeq lr
    ldrb r12, [r3], #1
    b 1b
"""
"""Bytes up to the less of a given number and 64."""

BY_TWO_CONDITIONS = """
    cmp r1, #64
    addls r2, r0, r1
    addhi r2, r0, #64
    cmp r1, #7
    movhi r3, r0
    addls r3, r0, r1
1:  cmp r3, r2
    bxeq lr
    add r3, r3, #1
    b 1b
"""
"""Where the number is small nothing is left: the begin is one of two as well."""

STEPS = ONE_OF_TWO_ENDS.replace("ldrb r12, [r3], #1", "add r3, r3, #1")
ON_THE_STACK = STEPS.replace("r0, ", "sp, ").replace("r3, r0", "r3, sp")
ANY_NUMBER = ONE_OF_TWO_ENDS.replace("cmp r1, #64", "cmp r1, #4096\n    cmphi r1, #0")
OTHER_BEGIN = ONE_OF_TWO_ENDS.replace("addhi r2, r0", "addhi r2, r12")


@pytest.mark.parametrize("text", [ONE_OF_TWO_ENDS, BY_TWO_CONDITIONS, ON_THE_STACK])
def test_an_end_that_is_one_of_two_bounds_a_loop(text):
    proof = proved(guest(text), "f")
    assert [loop.max for loop in proof.bound.loops] == [65]
    heap = load_target("arm926ej-s").memory_map.heap_address
    observed = max(attack(proof, heap, number) for number in (0, 1, 7, 8, 63, 64, 65, 0xFFFFFFFF))
    assert observed == proof.bound.instructions


@pytest.mark.parametrize("text", [ANY_NUMBER, OTHER_BEGIN])
def test_an_end_of_which_one_part_is_not_known_bounds_nothing(text):
    with pytest.raises(AnalysisError, match="no bound for the loop"):
        proved(guest(text), "f")


LOOPS_OF_THE_STACK = """
    sub sp, sp, #64
    mov r2, sp
    add r3, sp, #32
1:  lsrs r1, r0, #1
    mov r0, r1
    strb r0, [r2], #4
    bcc 2f
    cmp r2, r3
    bne 1b
    b 9f
2:  cmp r2, r3
    beq 9f
3:  ldrb r12, [r2], #4
    cmp r2, r3
    bne 3b
9:  add sp, sp, #64
    bx lr
"""
"""The second loop goes on in the array where the first one ended, and both ends are addresses of the stack."""


def test_the_distance_of_two_addresses_of_the_stack_is_that_of_their_offsets():
    random = Random("loops of the stack")
    proof = proved(guest(LOOPS_OF_THE_STACK), "f")
    assert max(loop.max for loop in proof.bound.loops) <= 9
    calls = [(0, 0), (0xFF, 0), (0xFE, 0), (0x55, 0xFFFFFFFF), (0xFFFFFFFF, 0xAA)]
    calls += [(random.getrandbits(32), random.getrandbits(32)) for _ in range(40)]
    assert max(attack(proof, *call) for call in calls) > proof.bound.instructions // 2


def test_an_address_of_the_stack_and_one_that_is_none_have_no_distance():
    for end in ("add r3, sp, #32\n    add r3, r3, r1", "mov r3, r1", "add r3, sp, sp"):
        with pytest.raises(AnalysisError, match="no bound for the loop"):
            proved(guest(LOOPS_OF_THE_STACK.replace("add r3, sp, #32", end)), "f")
