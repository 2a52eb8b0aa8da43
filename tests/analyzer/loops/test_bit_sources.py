"""Bits of words that may be addresses, for all that is known, and words that are not 0 in each case of a choice.

The loops are those by which libgcc aligns a divisor: by threes, fours and ones, of a word that was loaded when an
address of the stack had been stored.
"""

import random

import pytest

from tests.path_check import attack, proved
from tests.support import assembler, guest_of
from wcet_probe.catalog.lookup import load_target
from wcet_probe.errors import AnalysisError

DIVISION = """
    str sp, [r1]
    str r0, [r1, #4]
    ldr r3, [r1, #4]
    ldr r0, [r1, #8]
    movs r1, r3
    {test}
    rsbmi r1, r1, #0
    subs r2, r1, #1
    beq 9f
    cmp r0, r1
    bls 9f
    tst r1, #0xe0000000
    lsleq r1, r1, #{first}
    moveq r2, #8
    movne r2, #1
1:  cmp r1, #0x10000000
    cmpcc r1, r0
    lslcc r1, r1, #4
    lslcc r2, r2, #4
    bcc 1b
2:  cmp r1, #0x80000000
    cmpcc r1, r0
    lslcc r1, r1, #1
    lslcc r2, r2, #1
    bcc 2b
9:  bx lr
"""
ARM = load_target("arm926ej-s")


def divided(*, test="beq 9f", first=3):
    return proved(guest_of(assembler({"f": DIVISION.format(test=test, first=first)}, ARM), ARM), "f")


def test_a_loaded_divisor_that_is_not_0_ends_the_loops_that_align_it():
    proof = divided()
    assert proof.values.stack_escapes
    assert [loop.max for loop in proof.bound.loops] == [8, 32]
    draw, heap = random.Random(7), ARM.memory_map.heap_address
    for word in (0, 1, 2, 3, 0x1FFFFFFF, 0x20000000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, draw.getrandbits(32)):
        attack(proof, word, heap)


@pytest.mark.parametrize("not_known", [{"test": ""}, {"first": 4}], ids=["that it is 0", "that no bit is moved out"])
def test_a_divisor_that_may_be_0_bounds_nothing(not_known):
    with pytest.raises(AnalysisError, match="no bound for the loop"):
        divided(**not_known)
