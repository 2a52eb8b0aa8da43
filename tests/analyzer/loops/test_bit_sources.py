"""Words that are not 0: in each case of a choice, by a comparison that no range remembers, or as a part of an address.

The loops are those by which libgcc aligns a divisor: by threes, fours and ones, of a word that was loaded when an
address of the stack had been stored, or that was divided itself.
"""

import random

import pytest

from tests.path_check import attack, proved
from tests.support import assembler, guest_of
from wcet_probe.catalog.lookup import load_target
from wcet_probe.errors import AnalysisError

DIVISION = """
    {load}
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
AS_AN_ADDRESS = "str sp, [r1]\nstr r0, [r1, #4]\nldr r3, [r1, #4]"
QUARTERED = "cmp r0, #0\naddlt r0, r0, #3\nasr r3, r0, #2"
"""A range around 0, which does not remember that it is not 0."""
ARM = load_target("arm926ej-s")


def divided(load, *, test="beq 9f", first=3):
    text = DIVISION.format(load=load, test=test, first=first)
    return proved(guest_of(assembler({"f": text}, ARM), ARM), "f")


@pytest.mark.parametrize(("load", "escapes", "most"), [(AS_AN_ADDRESS, True, 32), (QUARTERED, False, 29)])
def test_a_divisor_that_is_not_0_ends_the_loops_that_align_it(load, escapes, most):
    proof = divided(load)
    assert proof.values.stack_escapes == escapes
    assert [loop.max for loop in proof.bound.loops] == [8, most]
    draw, heap = random.Random(7), ARM.memory_map.heap_address
    for word in (0, 1, 2, 3, 0x1FFFFFFF, 0x20000000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, draw.getrandbits(32)):
        attack(proof, word, heap)


@pytest.mark.parametrize("not_known", [{"test": ""}, {"first": 4}], ids=["that it is 0", "that no bit is moved out"])
def test_a_divisor_that_may_be_0_bounds_nothing(not_known):
    with pytest.raises(AnalysisError, match="no bound for the loop"):
        divided(AS_AN_ADDRESS, **not_known)
