"""Pairs of edges that exclude each other: no run takes both."""

import random

import pytest

from tests.path_check import attack, edge_counts, interpret, proved
from tests.support import TARGETS, assembler, guest_of
from wcet_probe.analyzer.conflicts import conflicting_edges
from wcet_probe.analyzer.flow_graph import edge_name, point_name
from wcet_probe.catalog import load_target

CORRELATED = """typedef unsigned u; volatile u g; u h[8];
u twice(u n) { u r = 0; if (n & 4) { g = 1; g = 2; } h[n & 7]++; if (!(n & 4)) { g = 3; g = 4; g = 5; } return g; }
u ranges(u n) { if (n < 10) g = 1; h[n & 7]++; if (n > 20) { g = 2; g = 3; } if (n == 15) g = 4; return g; }
u in_loop(u n) { for (u i = 0; i < 8; i++) { if (n >> i & 1) g = i; h[i]++; if (!(n >> i & 1)) { g = n; g = 1; } } return g; }
u changed(u n) { if (n < 10) g = 1; n = g; if (n > 20) g = 2; return n; }
"""


@pytest.mark.parametrize("target", TARGETS)
def test_no_run_takes_both_edges(target):
    guest, draw, found = guest_of(CORRELATED, load_target(target), ".c"), random.Random(1), 0
    for name in ("twice", "ranges", "in_loop", "changed"):
        proof = proved(guest, name)
        names = {index: point_name(proof.values.graph.points[index]) for index in proof.values.states}
        conflicts = conflicting_edges(proof.values)
        found += len(conflicts)
        for argument in (*range(32), *(draw.getrandbits(32) for _ in range(20))):
            counts = edge_counts(proof.values, interpret(proof, argument).path)
            for one in conflicts:
                if one.header is None:
                    assert counts[edge_name(names, one.first)] + counts[edge_name(names, one.second)] <= 1
            attack(proof, argument)
    assert found


BROUGHT_BACK = """
    ldr r3, =0x20000000
    cmp r1, #7
    ldr r0, [r3]
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
    text = assembler({"f": BROUGHT_BACK}, load_target(target)).replace("0x20000000", "data") + "\n.data\n.align 2\ndata: .word 4\n"
    proof = proved(guest_of(text, load_target(target)), "f")
    for arguments in ((0, 0, 0), (0, 0, 1), (0, 7, 1)):
        attack(proof, *arguments)
