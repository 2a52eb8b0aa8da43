"""Loops that are entered at two places, in each of many calls."""

from tests.path_check import attack, proved
from tests.support import assembler, guest_of
from wcet_probe.catalog.lookup import load_target

ENTERED_TWICE = """
    push {r4, r5, lr}
    and r4, r0, #7
    movs r5, #0
    tst r1, #1
    beq 2f
1:  adds r5, r5, #1
    lsls r2, r5, #3
2:  bl leaf
    adds r4, r4, #1
    cmp r4, #12
    blt 1b
    pop {r4, r5, pc}
"""
LEAF = """
    cmp r2, #8
    bhi 1f
    adds r2, r2, #1
1:  bx lr
"""
CALLS = 12


def test_each_call_of_an_irreducible_loop_is_split_with_little_copied():
    caller = "\n".join(["push {r4, lr}", *["adds r0, r0, #1", "bl twice"] * CALLS, "pop {r4, pc}"])
    text = assembler({"f": caller, "twice": ENTERED_TWICE, "leaf": LEAF}, load_target("cortex-m4"))
    proof = proved(guest_of(text, load_target("cortex-m4")), "f")
    points = proof.values.graph.points
    copies = [point for point in points if point.copy]
    assert {len([one for one in copies if one.context == point.context]) for point in copies} == {1}
    assert len({point.context for point in copies}) == CALLS
    for first, second in ((0, 0), (1, 1), (7, 3), (6, 2)):
        attack(proof, first, second)
