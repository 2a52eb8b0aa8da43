"""Loops of several ways back, one of which ends a phase and is taken a few times, held against runs."""

import random

import pytest

from tests.path_check import attack, proved
from tests.support import assembler, guest_of
from wcet_probe.catalog.lookup import load_target
from wcet_probe.errors import AnalysisError

TWO_WORDS_OF_A_RESULT = """
    and r1, r1, #0x80000000
    mov r0, #0x00100000
    mov r12, #0x00080000
1:  cmp r2, r3
    it hs
    orrhs r0, r0, r12
    lsr r3, r3, #1
    cmp r2, r3
    beq 3f
    movs r12, r12, lsr #4
    bne 1b
    tst r1, #0x00100000
    bne 3f
    orr r1, r1, r0
    mov r0, #0
    mov r12, #0x80000000
    b 1b
3:  bx lr
"""
"""As libgcc divides: the bit that ends all is in the first word from the start, and goes to the second one with it."""

THREE_PHASES = """
    movs r1, #1
    movs r2, #5
1:  lsrs r3, r0, #1
    subs r2, r2, #1
    bne 1b
    lsls r1, r1, #1
    tst r1, #8
    bne 3f
    movs r2, #7
    b 1b
3:  bx lr
"""
"""A bit that moves in each phase."""

STALE_LIMIT = """
    movs r1, #1
    movs r2, #0
    and r3, r0, #7
1:  adds r2, r2, #1
    cmp r2, r3
    blo 1b
    lsls r1, r1, #1
    tst r1, #8
    bne 3f
    lsls r3, r3, #3
    movs r2, #0
    b 1b
3:  bx lr
"""
"""The limit of a phase is set by the end of the last one: what the entry brings is that of the first phase only."""


def predicated(count, last="orr r0, r0, r12, lsr #3"):
    """A round that sets ``count`` bits of the result, each by predicated instructions; the last one is given."""
    bit = """
    subs lr, r6, r2
    sbcs lr, r5, r3
    ittt cs
    subcs r6, r6, r2
    movcs r5, lr
    {}
    lsrs r3, r3, #1
    rrx r2, r2
"""
    name, operands = last.split(" ", 1)
    bits = "".join(bit.format(f"orrcs r0, r0, r12, lsr #{1 + number}") for number in range(count - 1))
    return f"""
    push {{r4, r5, r6, lr}}
    mov r5, r0
    mov r6, r1
    and r1, r1, #0x80000000
    mov r0, #0x00100000
    mov r12, #0x00080000
1:  {bits}{bit.format(f"{name}cs {operands}")}
    orrs lr, r5, r6
    beq 3f
    lsl r5, r5, #4
    lsl r6, r6, #4
    movs r12, r12, lsr #4
    bne 1b
    tst r1, #0x00100000
    bne 3f
    orr r1, r1, r0
    mov r0, #0
    mov r12, #0x80000000
    b 1b
3:  pop {{r4, r5, r6, pc}}
"""


def of_three_ways(third):
    """A round that comes together from three ways, the last of which does ``third``."""
    return f"""
    movs r1, #0
    mov r0, #0x00100000
    mov r12, #0x00080000
1:  cmp r2, #1
    beq 4f
    cmp r2, #2
    beq 5f
    orr r0, r0, r12
    b 6f
4:  orr r0, r0, r12, lsr #1
    b 6f
5:  {third}
6:  movs r12, r12, lsr #4
    bne 1b
    tst r1, #0x00100000
    bne 3f
    orr r1, r1, r0
    mov r0, #0
    mov r12, #0x80000000
    b 1b
3:  bx lr
"""


BOUNDED = {
    "three ways": (of_three_ways("orr r0, r0, #1"), 5 + 8, [(0, 0, 1), (0, 0, 2), (0, 0, 3)]),
    "predicated": (predicated(5), 5 + 8, [(0xFFFFFFFF, 0xFFFFFFFF, 1, 0), (1, 0, 0, 0)]),
    "two words": (TWO_WORDS_OF_A_RESULT, 5 + 8, [(0, 0, 9, 1), (0, 0x80100000, 1, 9), (0, 0, 1, 0)]),
    "three phases": (THREE_PHASES, 5 + 2 * 7, [(0,), (0xFFFFFFFF,)]),
}

LOST_IN_A_PHASE = """
    mov r0, #0x00100000
    movs r1, #0
    mov r12, #0x00080000
1:  cmp r2, r3
    it hs
    movhs r0, r12
    movs r12, r12, lsr #4
    bne 1b
    tst r1, #0x00100000
    bne 3f
    orr r1, r1, r0
    mov r0, #0
    mov r12, #0x80000
    b 1b
3:  bx lr
"""
"""A round overwrites the bit before the phase ends: with r2 >= r3 the loop does not end."""

SHIFTED_OUT = """
    movs r1, #1
    movs r2, #5
1:  subs r2, r2, #1
    bne 1b
    lsls r1, r1, #2
    tst r1, #8
    bne 3f
    movs r2, #7
    b 1b
3:  bx lr
"""
"""The bit moves past the place that is tested."""

CLEARED_BY_THE_END = """
    movs r1, #8
    movs r2, #5
    movs r3, #0
1:  subs r2, r2, #1
    bne 1b
    tst r3, #8
    bne 3f
    movs r2, #7
    movs r3, r1
    cmp r0, #0
    it ne
    movne r3, #0
    b 1b
3:  bx lr
"""
"""The bit reaches the test in one case only, which r0 decides."""

MOVED_BY_THE_OTHER_WAY = """
    movs r1, #1
    movs r2, #5
1:  cmp r0, #0
    it ne
    lsrne r1, r1, #1
    subs r2, r2, #1
    bne 1b
    lsls r1, r1, #1
    tst r1, #8
    bne 3f
    movs r2, #7
    b 1b
3:  bx lr
"""
"""The rounds of a phase take back what its end has moved."""

ENDLESS = {
    "lost on one of three ways": of_three_ways("mov r0, #1"),
    "predicated, and lost at the first bit": predicated(5).replace("orrcs r0, r0, r12, lsr #1", "movcs r0, r12"),
    "predicated, and lost at the last bit": predicated(5, "mov r0, r12"),
    "predicated, and cleared at the last bit": predicated(5, "bic r0, r0, #0x00100000"),
    "lost in a phase": LOST_IN_A_PHASE,
    "shifted out": SHIFTED_OUT,
    "cleared by the end": CLEARED_BY_THE_END,
    "moved by the other way": MOVED_BY_THE_OTHER_WAY,
}


def guest(text):
    return guest_of(assembler({"f": text}, load_target("cortex-m4")), load_target("cortex-m4"))


@pytest.mark.parametrize("name", BOUNDED)
def test_phases_and_their_number_bound_a_loop(name):
    text, most, calls = BOUNDED[name]
    proof = proved(guest(text), "f")
    assert max(loop.max for loop in proof.bound.loops) == most
    draw = random.Random(11)
    for call in (*calls, *(tuple(draw.getrandbits(32) for _ in range(4)) for _ in range(4))):
        attack(proof, *call)


def test_the_limit_of_a_later_phase_is_that_which_its_beginning_brings():
    """A rule that takes the entry's limit for all phases counts 7 for each, and 7 + 56 + 448 are executed."""
    try:
        proof = proved(guest(STALE_LIMIT), "f")
    except AnalysisError as error:
        assert "no bound for the loop" in str(error)  # noqa: PT017  no answer is sound as well
        return
    for argument in range(8):
        attack(proof, argument)


@pytest.mark.parametrize("name", ENDLESS)
def test_a_bit_that_need_not_arrive_ends_no_phases(name):
    with pytest.raises(AnalysisError, match="no bound for the loop"):
        proved(guest(ENDLESS[name]), "f")
