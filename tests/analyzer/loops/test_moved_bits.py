"""Loops that move bits of words until one comes to a place that is tested, held against runs."""

import random

import pytest

from tests.path_check import attack, proved
from tests.support import assembler, guest_of
from wcet_probe.catalog.lookup import load_target
from wcet_probe.errors import AnalysisError

ONE_WORD = """
    ands r2, r0, #0x7f800000
    bne 9f
    bics r3, r0, #0x80000000
    beq 9f
    teq r2, #0
1:  ittt eq
    lsleq r0, r0, #1
    tsteq r0, #0x00800000
    subeq r2, r2, #1
    beq 1b
9:  bx lr
"""
"""A float whose exponent is 0 is normalised by predicated instructions."""

EACH_BY_ITSELF = """
    lsr r2, r0, #23
    and r2, r2, #255
    bics r3, r0, #0x80000000
    beq 9f
    teq r2, #0
1:  lsleq r0, r0, #1
    tsteq r0, #0x00800000
    subeq r2, r2, #1
    beq 1b
9:  bx lr
"""
"""The same in A32, where the test of a round changes the condition of what follows."""

TWO_WORDS = """
    lsrs r2, r1, #20
    lsls r2, r2, #21
    bne 9f
    orrs r3, r0, r1, lsl #1
    beq 9f
1:  movs r0, r0, lsl #1
    adc r1, r1, r1
    tst r1, #0x00100000
    beq 1b
9:  bx lr
"""
"""The halves of a double, moved together."""

MAY_BE_AN_ADDRESS = f"""
    str sp, [r1]
    str r0, [r1, #4]
    ldr r0, [r1, #4]
    {ONE_WORD}
"""
"""A word of memory that may be an address of the stack, for all that is known, as one was stored."""

ONE_OR_THE_OTHER = """
    lsrs r2, r0, #24
    lsrs r3, r1, #24
    cmp r2, #0
    it ne
    cmpne r3, #0
    bne 9f
    cmp r0, #0
    beq 9f
    cmp r2, #0
    bne 9f
1:  lsls r0, r0, #1
    tst r0, #0x01000000
    beq 1b
9:  bx lr
"""
"""That one of two words has a small exponent says of each what the other does not."""

DOWNWARDS = """
    cmp r0, #0
    beq 9f
1:  tst r0, #1
    bne 9f
    lsrs r0, r0, #1
    b 1b
9:  bx lr
"""
"""Bits that come down to the lowest place."""

_CALCULATED = "\n".join("mul r0, r0, r3\neor r0, r0, #0x55" for _ in range(6))
CALCULATED = f"""
    movs r3, #3
    {_CALCULATED}
    movs r2, #5
    ubfx r0, r0, #0, #20
    orrs r1, r0, r0
    it ne
    orrsne r1, r2, r2
    beq 9f
1:  lsls r0, r0, #1
    tst r0, #0x00100000
    beq 1b
9:  bx lr
"""
"""Both of two numbers are tested not to be 0, as libgcc does; one of them is too deep a term for a choice."""

IN_TWO_LOOPS = """
    push {r4, r5, lr}
    movs r4, #2
    movs r1, #3
0:  mov r5, r1
    subs r2, r1, #1
    beq 9f
    bcc 9f
    tst r1, #0xe0000000
    itte eq
    lsleq r1, r1, #3
    moveq r3, #8
    movne r3, #1
1:  cmp r1, #0x10000000
    it cc
    cmpcc r1, r0
    itt cc
    lslcc r1, r1, #4
    lslcc r3, r3, #4
    bcc 1b
2:  cmp r1, #0x80000000
    it cc
    cmpcc r1, r0
    itt cc
    lslcc r1, r1, #1
    lslcc r3, r3, #1
    bcc 2b
9:  adds r1, r5, #2
    udiv r3, r0, r1
    mul r3, r3, r1
    cmp r3, r0
    beq 3f
    subs r4, r4, #1
    bne 0b
3:  pop {r4, r5, pc}
"""
"""A divisor is aligned by fours and then by ones: that it is not 0 holds behind the first loop, too."""

COUNTED_BESIDES = """
    uxtb r2, r1
    adds r2, r2, #100
    bic r0, r0, #0xff000000
    bics r0, r0, #0x00800000
    beq 9f
1:  subs r2, r2, #1
    beq 9f
    lsls r0, r0, #1
    tst r0, #0x00800000
    beq 1b
9:  bx lr
"""
"""A counter would let the loop go on far longer than the bits do."""

EACH_CASE_BY_ITSELF = """
    cmp r1, #0
    ble 2f
    asrs r2, r1, #20
    bne 9f
    mov r3, r1
    b 3f
2:  lsrs r3, r0, #11
    beq 9f
    lsls r2, r3, #11
    bmi 9f
3:  movs r2, #0
1:  lsls r3, r3, #1
    adds r2, r2, #1
    tst r3, #0x00100000
    beq 1b
9:  bx lr
"""
"""The upper half of a double, or the lower one where that is 0, as newlib's sqrt normalises it."""

BOUNDED = {
    "one word": (ONE_WORD, [(1, 0), (2, 0), (0x80000001, 0), (0x400000, 0), (0, 0), (0x800000, 0)], 23),
    "calculated": (CALCULATED, [(0, 0), (1, 0), (0x2D4F_1C39, 0), (0xFFFF_FFFF, 0)], 20),
    "two words": (TWO_WORDS, [(1, 0), (0, 1), (1, 0x80000000), (0x80000000, 0), (0, 0x80000), (0, 0)], 52),
    "one or the other": (ONE_OR_THE_OTHER, [(1, 1), (0x800000, 1), (1, 0xFFFFFFFF)], 24),
    "in two loops": (IN_TWO_LOOPS, [(0xFFFFFFFF, 1), (0xFFFFFFFF, 0x7FFFFFFF), (1, 0), (100, 3)], 32),
    "counted besides": (COUNTED_BESIDES, [(1, 0), (1, 255), (0x400000, 9), (0, 9)], 23),
    "each case by itself": (
        EACH_CASE_BY_ITSELF,
        [(0, 1), (0, 0xFFFFF), (0x800, 0), (0x7FFFFFFF, 0x80000000), (9, 0)],
        20,
    ),
    "downwards": (DOWNWARDS, [(0x80000000, 0), (1, 0), (0x10, 0)], 32),
}

MAY_BE_ZERO = """
1:  lsls r0, r0, #1
    tst r0, #0x00800000
    beq 1b
    bx lr
"""
BELOW_THE_TEST = """
    orr r0, r0, #0x01000000
1:  lsls r0, r0, #1
    tst r0, #0x00800000
    beq 1b
    bx lr
"""
"""The bit that is set has passed the tested place already."""

OTHER_WAY_ROUND = """
    movs r2, #1
    cmp r1, #0
1:  lsl r2, r2, #1
    bne 2f
    tst r2, #0x10
    beq 3f
    bx lr
2:  tst r2, #0x20
    beq 3f
    bx lr
3:  eor r1, r1, #1
    cmp r1, #0
    b 1b
"""
"""The bit meets the test of the other way each time: neither of the two ends the loop."""

ONE_CASE_MAY_BE_ZERO = EACH_CASE_BY_ITSELF.replace("beq 9f", "nop")
ONE_CASE_IS_ABOVE = EACH_CASE_BY_ITSELF.replace("bmi 9f", "nop")
ANY_SIGN = EACH_CASE_BY_ITSELF.replace("ble 2f", "beq 2f").replace("asrs r2, r1, #20", "lsrs r2, r1, #21")
"""One of both is not entered by a bit below the tested one, or may be entered by none."""

UNSET_IN_TURN = """
    movs r2, #1
1:  lsl r2, r2, #1
    cmp r0, #3
    it eq
    moveq r2, #0
    tst r2, #0x80
    beq 1b
    bx lr
"""
"""What is moved is put to 0 at times."""

FIRST_BLOCK = """
1:  lsrs r2, r2, #1
    beq 2f
    orr r0, r0, r1
    b 1b
2:  tst r0, #0x80000000
    bne 3f
    cmp r3, #0
    beq 3f
    subs r3, #1
    lsls r0, r0, #1
    b 2b
3:  bx lr
"""
"""The loop in front keeps each bit, but the function begins with it: there was none."""

ENDLESS = {
    "may be zero": MAY_BE_ZERO,
    "below the test": BELOW_THE_TEST,
    "other way round": OTHER_WAY_ROUND,
    "unset in turn": UNSET_IN_TURN,
    "one case may be zero": ONE_CASE_MAY_BE_ZERO,
    "one case is above": ONE_CASE_IS_ABOVE,
    "any sign": ANY_SIGN,
}


def guest(text, name="cortex-m4"):
    return guest_of(assembler({"f": text}, load_target(name)), load_target(name))


@pytest.mark.parametrize("name", BOUNDED)
def test_a_bit_that_is_set_ends_the_loop(name):
    text, calls, most = BOUNDED[name]
    proof = proved(guest(text), "f")
    assert max(loop.max for loop in proof.bound.loops) == most
    draw = random.Random(7)
    for call in (*calls, *((draw.getrandbits(32) >> draw.randrange(32), draw.getrandbits(21)) for _ in range(4))):
        attack(proof, *call)


def test_where_each_instruction_has_its_own_condition_bits_move_as_well():
    """The flag of which a round begins is a comparison's or the loop's own; its instructions are skipped by it."""
    proof = proved(guest(EACH_BY_ITSELF, "arm926ej-s"), "f")
    assert [loop.max for loop in proof.bound.loops] == [23]
    for word in (0, 1, 2, 0x400000, 0x7FFFFF, 0x800000, 0x80000001, 0xFFFFFFFF):
        attack(proof, word, 0)


@pytest.mark.parametrize("name", ENDLESS)
def test_bits_that_need_not_arrive_bound_nothing(name):
    with pytest.raises(AnalysisError, match="no bound for the loop"):
        proved(guest(ENDLESS[name]), "f")


def test_words_that_may_be_addresses_move_their_bits_as_well():
    proof = proved(guest(MAY_BE_AN_ADDRESS), "f")
    assert proof.values.stack_escapes
    assert [loop.max for loop in proof.bound.loops] == [23]
    heap = load_target("cortex-m4").memory_map.heap_address
    for word in (0, 1, 2, 0x400000, 0x7FFFFF, 0x800000, 0x80000001, 0xFFFFFFFF):
        attack(proof, word, heap)


def test_what_a_loop_keeps_may_be_zero_where_the_function_begins_with_that():
    proof = proved(guest(FIRST_BLOCK), "f")
    for word in (0, 1, 0x80000000):
        assert attack(proof, word, 0, 5, 100)
