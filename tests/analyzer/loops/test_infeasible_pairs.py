"""Pairs of edges that exclude each other: no run takes both."""

import random

import pytest

from tests.path_check import attack, check_path, edge_counts, interpret, proved
from tests.support import assembler, guest_of
from wcet_probe.analyzer.ipet.flow_problem import edge_name, point_name
from wcet_probe.analyzer.loops.infeasible_pairs import infeasible_edge_pairs
from wcet_probe.catalog.lookup import load_target

ONCE = """
    tst r0, #4
    beq 1f
    adds r2, r2, #1
1:  adds r3, r3, #1
    tst r0, #4
    bne 2f
    adds r2, r2, #2
    adds r2, r2, #2
2:  bx lr
"""
IN_A_LOOP = """
    movs r1, #8
1:  tst r0, #1
    beq 2f
    adds r2, r2, #1
    adds r2, r2, #1
2:  adds r3, r3, #1
    tst r0, #1
    bne 3f
    adds r2, r2, #2
    adds r2, r2, #2
3:  lsrs r0, r0, #1
    subs r1, r1, #1
    bne 1b
    bx lr
"""
CHANGED = """
    cmp r0, #10
    bhs 1f
    adds r2, r2, #1
1:  adds r0, r0, #15
    cmp r0, #20
    blo 2f
    adds r2, r2, #2
2:  bx lr
"""


@pytest.mark.parametrize("target", ["cortex-m4", "arm926ej-s"])
def test_no_run_takes_both_edges(target):
    bodies = {"once": ONCE, "in_a_loop": IN_A_LOOP, "changed": CHANGED}
    guest, draw = guest_of(assembler(bodies, load_target(target)), load_target(target)), random.Random(1)
    for name in bodies:
        proof = proved(guest, name)
        names = {index: point_name(proof.values.graph.points[index]) for index in proof.values.states}
        infeasible_pairs = infeasible_edge_pairs(proof.values)
        assert infeasible_pairs or name == "changed"
        longest = 0
        for argument in (*range(24), *(draw.getrandbits(32) for _ in range(8))):
            result = interpret(proof, argument)
            counts = edge_counts(proof.values, result.path)
            check_path(proof, result.path)
            for one in infeasible_pairs:
                if one.header is None:
                    assert counts[edge_name(names, one.first)] + counts[edge_name(names, one.second)] <= 1
            longest = max(longest, result.instructions)
        assert longest == proof.bound.instructions


BROUGHT_BACK = """
    cmp r1, #7
    bne 0f
    adds r2, r2, #0
0:  ldr r0, [r3]
    cmp r0, #3
    bne 1f
    cmp r1, #7
    bne 9f
    b 2f
1:  movs r0, #9
    cmp r1, #7
    beq 9f
2:  movs r3, #0
    cmp r2, #1
    beq 3f
    adds r3, r3, #1
    adds r3, r3, #1
    adds r3, r3, #1
    b 9f
3:  adds r3, r3, #1
    adds r3, r3, #1
    adds r3, r3, #1
    adds r3, r3, #1
9:  bx lr
    .ltorg
"""
"""Of the loaded number one side keeps that it is 3, and the other keeps nothing: where they meet, it need not be 3."""


@pytest.mark.parametrize("target", ["cortex-m4", "arm926ej-s"])
def test_a_value_that_a_choice_brings_back_excludes_nothing(target):
    data = "\n.data\n.align 2\n.globl data\n.type data, %object\n.size data, 4\ndata: .word 4\n"
    guest = guest_of(assembler({"f": BROUGHT_BACK}, load_target(target)) + data, load_target(target))
    proof = proved(guest, "f")
    for arguments in ((0, 0, 0), (0, 0, 1), (0, 7, 1)):
        attack(proof, *arguments, guest.address("data"))
