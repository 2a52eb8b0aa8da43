"""Loops that move all bits of two words out, or all that are set, held against runs; and those that do not."""

import pytest

from tests.path_check import attack, proved
from tests.support import assembler, guest_of
from wcet_probe.catalog.lookup import load_target
from wcet_probe.errors import AnalysisError

RIGHT = "1: lsrs r1, r1, #1\nrrx r0, r0\norrs r2, r0, r1\nbne 1b\nbx lr"
BY_FIVE = "1: lsrs r0, r0, #5\norr r0, r0, r1, lsl #27\nlsrs r1, r1, #5\norrs r2, r0, r1\nbne 1b\nbx lr"
QUOTIENT = "{}\n1: cmp r0, r1\nadcs r2, r2\nlsrs r0, r0, #1\ncmp r0, r1\nadcs r2, r2\nbcs 1b\nbx lr"
"""Two digits of a quotient a round, as long as a one is carried out that the word begins with."""
BOUNDED = {
    "ones at the top": (QUOTIENT.format("mov r2, #0xf0000000"), 3, [(0xFFFFFFFF, 1), (0, 1), (7, 0)]),
    "ones at the top, or none": (
        QUOTIENT.format("movs r2, #0\ncmp r0, #9\nbcc 1f\nmvns r2, r2\nlsls r2, r2, #26\n1:"),
        4,
        [(0xFFFFFFFF, 1), (0, 1), (7, 0)],
    ),
    "by a bit": (RIGHT, 64, [(0, 0x80000000), (1, 0), (0xFFFFFFFF, 0xFFFFFFFF)]),
    "by five bits": (BY_FIVE, 13, [(0, 0x80000000), (0xFFFFFFFF, 0xFFFFFFFF)]),
}
ENDLESS = {
    "each bit is set": QUOTIENT.format("mov r2, #0xffffffff"),
    "the quotient's bits are carried out": QUOTIENT.format("mov r2, #0x55555555"),
    "nothing is known of the word": QUOTIENT.format("mov r2, r1"),
    "a bit comes back": RIGHT.replace("orrs r2", "orr r1, r1, r0, lsl #31\norrs r2"),
    "a bit is set anew": RIGHT.replace("orrs r2", "orr r1, r1, #4\norrs r2"),
    "a bit of another number comes in": RIGHT.replace("orrs r2", "orr r1, r1, r3\norrs r2"),
    "a bit of another number is tested": RIGHT.replace("orrs r2, r0, r1", "orr r2, r0, r1\norrs r2, r2, r3"),
    "only one way moves it": "1: cmp r3, #1\nbeq 2f\nlsrs r1, r1, #1\nrrx r0, r0\n2: orrs r2, r0, r1\nbne 1b\nbx lr",
}


def proof_of(text):
    return proved(guest_of(assembler({"f": text}, load_target("cortex-m4")), load_target("cortex-m4")), "f")


@pytest.mark.parametrize("name", BOUNDED)
def test_a_loop_ends_when_all_bits_are_moved_out(name):
    text, most, runs = BOUNDED[name]
    proof = proof_of(text)
    (loop,) = proof.bound.loops
    assert loop.max == most
    for arguments in runs:
        attack(proof, *arguments)


@pytest.mark.parametrize("name", ENDLESS)
def test_bits_that_stay_bound_no_loop(name):
    with pytest.raises(AnalysisError, match=r"no bound for the loop|never returns"):
        proof_of(ENDLESS[name])
