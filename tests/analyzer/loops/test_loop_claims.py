"""Runs are held against each loop of the binary, with its greatest bound, and against none that they count wrongly."""

import pytest

from tests.path_check import check_emulated, proved
from tests.support import assembler, guest_of
from wcet_probe.catalog.lookup import load_target

ENTERED_TWICE = """\
    and r3, r0, #15
    cmp r3, #5
    beq .Lfive
.Ltest:
    cmp r3, #1
    bls .Lend
.Lless:
    subs r3, r3, #1
    cmp r3, #5
    bne .Ltest
.Lfive:
    adds r2, r2, #1
    movs r3, #4
    b .Lless
.Lend:
    bx lr"""


@pytest.mark.parametrize("start", [0, 5, 9, 15])
def test_runs_are_held_against_no_loop_whose_copies_they_count(start):
    """As GCC makes of a do loop with an if (-O2): split in two for the proof, one loop to a run."""
    target = load_target("cortex-m4")
    proof = proved(guest_of(assembler({"f": ENTERED_TWICE}, target), target), "f")
    check_emulated(proof, start)
    assert len(proof.bound.loops) > len(proof.bound.loop_claims)
