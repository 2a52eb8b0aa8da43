"""Loops that move one number on together, held against runs."""

from random import Random

import pytest

from tests.path_check import attack, proved
from tests.support import assembler, guest_of
from wcet_probe.analyzer.loops.counting import counted_loops
from wcet_probe.analyzer.values.properties.loop_shapes import loop_shapes
from wcet_probe.catalog.lookup import load_target
from wcet_probe.errors import AnalysisError

GOING_ON = """
    push {r4, r5, r6, lr}
    and r4, r0, #63
    adds r4, r4, #1
    movs r3, #0
1:  lsrs r5, r1, r3
    lsls r5, r5, #31
    bmi 3f
2:  adds r3, r3, #1
    cmp r3, r4
    beq 9f
    tst r2, r3
    beq 2b
    b 4f
3:  adds r3, r3, #1
    cmp r3, r4
    beq 9f
    tst r1, r3
    bne 3b
4:  adds r6, r6, #1
    b 1b
9:  pop {r4, r5, r6, pc}
"""
"""Two loops in a third one take turns to count one register up to an end that is not known."""

BY_FOUR = """
    push {r4, r5, r6, lr}
    and r4, r0, #63
    adds r4, r4, #1
    movs r3, #0
1:  tst r1, r3
    beq 4f
2:  cmp r3, r4
    beq 9f
    adds r5, r3, #1
    cmp r5, r4
    beq 9f
    adds r3, r3, #2
    tst r2, r3
    beq 2b
    b 5f
4:  cmp r3, r4
    beq 9f
    adds r3, r3, #1
5:  adds r6, r6, #1
    b 1b
9:  pop {r4, r5, r6, pc}
"""
"""One of them is unrolled, and tests twice for two rounds."""

DOWN = (
    GOING_ON.replace("movs r3, #0", "mov r3, r4")
    .replace("adds r3, r3, #1", "subs r3, r3, #1")
    .replace("cmp r3, r4", "cmp r3, #0")
)

RESTARTING = GOING_ON.replace("4:  adds r6, r6, #1", "4:  tst r0, #256\n    it ne\n    movne r3, #0")
"""The number begins anew in some rounds."""

BACK = GOING_ON.replace("4:  adds r6, r6, #1", "4:  tst r0, #256\n    it ne\n    subne r3, r3, #1")
ANOTHER_END = GOING_ON.replace("4:  adds r6, r6, #1", "4:  tst r0, #256\n    it ne\n    addne r4, r4, #1")
SKIPPING = GOING_ON.replace("2:  adds r3, r3, #1", "2:  lsls r5, r0, #23\n    bmi 2b\n    adds r3, r3, #1")
"""A round of an inner loop need not move the number."""
UNTESTED = GOING_ON.replace("4:  adds r6, r6, #1", "4:  adds r3, r3, #1")
"""The end may be jumped over."""

WAYS_MEET = """
    push {r4, r5, r6, lr}
    and r4, r0, #63
    adds r4, r4, #1
    movs r3, #0
1:  mov r5, r3
    lsrs r6, r1, r3
    lsls r6, r6, #31
    bpl 4f
2:  tst r2, r5
    beq 4f
    adds r5, r5, #1
    cmp r5, r4
    bne 2b
    b 9f
4:  movs r6, #3
5:  subs r6, r6, #1
    bne 5b
    adds r3, r5, #1
    cmp r3, r4
    bne 1b
9:  pop {r4, r5, r6, pc}
"""
"""The outer loop goes on with its own number or with what the loop inside left, a loop of its own further on."""
ANOTHER_NUMBER = WAYS_MEET.replace("movs r6, #3", "movs r6, #3\n    tst r0, #256\n    it ne\n    movne r5, r0")

INNER_BEGINS_AT_THE_OUTER = """
    push {r4, r5, lr}
    and r4, r0, #31
    adds r4, r4, #1
    movs r3, #0
1:  mov r5, r3
2:  adds r5, r5, #1
    cmp r5, r4
    bhs 3f
    tst r1, r5
    b 2b
3:  adds r3, r3, #1
    cmp r3, r4
    bne 1b
    pop {r4, r5, pc}
"""
"""Each round of the outer loop begins where the round before began: what both loops do is no distance, but a square."""

GOING_ON_OR_NOT = """
    push {r4, r5, lr}
    and r4, r0, #31
    adds r4, r4, #1
    movs r3, #0
1:  mov r5, r3
2:  adds r5, r5, #1
    cmp r5, r4
    beq 9f
    tst r1, r5
    beq 2b
    tst r0, #256
    bne 4f
    adds r3, r3, #1
    cmp r3, r4
    bne 1b
    b 9f
4:  mov r3, r5
    b 1b
9:  pop {r4, r5, pc}
"""
"""Where a bit is set the outer loop goes on with what the inner one left; else the inner one begins there again."""

SORT = """
typedef unsigned u;
int words[33] = {WORDS};
void sort(void)
{
    _Pragma("loopbound min 0 max 31")
    for (u k = 0; k < 31; k++) {
        u sorted = 1;
        _Pragma("loopbound min 0 max 99")
        for (u i = 0; i < 31; i++) {
            if (i > 32 - k)
                break;
            if (words[i] > words[i + 1]) {
                int kept = words[i];
                words[i] = words[i + 1];
                words[i + 1] = kept;
                sorted = 0;
            }
        }
        if (sorted)
            break;
    }
}
"""
"""Clang makes two loops of the inner one: where something was exchanged, and where nothing was."""
ORDERS = (range(33, 0, -1), range(33), (5, 3, 9, 9, 1, 0, 7, 2) * 4)


def guest(text):
    return guest_of(assembler({"f": text}, load_target("cortex-m4")), load_target("cortex-m4"))


def held_against_runs(proof, runs=24):
    """The dearest of some runs, each of which is held against the proof."""
    random = Random("shared")
    words = [(63, 0, 0), (63, 0xFFFFFFFF, 0xFFFFFFFF), (63, 0, 0xFFFFFFFF), (63, 0xFFFFFFFF, 0), (31 | 256, 5, 9)]
    words += [tuple(random.getrandbits(32) for _ in range(3)) for _ in range(runs)]
    for word in words:
        attack(proof, *word)


@pytest.mark.parametrize(("text", "most"), [(GOING_ON, 12), (BY_FOUR, 12), (DOWN, 12), (WAYS_MEET, 17)])
def test_all_loops_together_go_as_far_as_the_number(text, most):
    proof = proved(guest(text), "f")
    assert all(loop.max <= 65 for loop in proof.bound.loops)
    assert proof.bound.instructions < 64 * most
    held_against_runs(proof)


def test_an_inner_loop_may_begin_at_the_end_of_the_number():
    """The least distance that a certificate tells of it is not that at entry of the loop around it."""
    proof = proved(guest(GOING_ON.replace("adds r4, r4, #1", "adds r4, r4, #32")), "f")
    counts = counted_loops(proof.values, loop_shapes(proof.values)).counts
    assert [counts[header].distance_low for header in sorted(counts)] == [31, 0, 0]


@pytest.mark.parametrize("text", [RESTARTING, BACK, ANOTHER_END, SKIPPING, UNTESTED, GOING_ON_OR_NOT, ANOTHER_NUMBER])
def test_a_number_that_need_not_come_to_its_end_bounds_nothing(text):
    with pytest.raises(AnalysisError, match="no bound for the loop"):
        proved(guest(text), "f")


def test_a_loop_that_begins_anew_in_each_round_is_not_part_of_the_sum():
    proof = proved(guest(INNER_BEGINS_AT_THE_OUTER), "f")
    held_against_runs(proof)
    assert proof.bound.instructions > 32 * 31 // 2 * 5


@pytest.mark.covering(0)
@pytest.mark.parametrize("target", ["cortex-m4", "arm926ej-s"])
def test_what_a_compiler_made_of_one_loop_is_bounded_without_facts(target):
    for order in ORDERS:
        source = SORT.replace("WORDS", ", ".join(map(str, order)))
        sort = guest_of(source, load_target(target), ".c", "-O2")
        proof = proved(sort, "sort")
        assert max(loop.max for loop in proof.bound.loops) <= 32
        attack(proof)
    assert proof.bound.instructions < 13_000
    told = {one.id for one in proved(sort, "sort", sources={"guest.c": source}).bound.assumptions}
    # What copies of a loop run in all rests on its pragma, though values bound each of them.
    assert {"fact guest.c:9", "pragma guest.c:9"} <= told


ON_THE_STACK = """
    push {r0, r1, r2, r3}
    mov r0, sp
    subs r2, r0, #2
    add r1, r0, #14
    b 2f
1:  cmp r1, r2
    strh r3, [r2]
    beq 9f
2:  ldrsh r3, [r2, #2]!
    cmp r3, #0
    bge 1b
3:  adds r3, #1
5:  cmp r1, r2
    strh r3, [r2]
    beq 9f
4:  ldrsh r3, [r2, #2]!
    cmp r3, #0
    blt 3b
    cmp r3, #100
    bgt 6f
    cmp r1, r2
    strh r3, [r2]
    bne 4b
9:  add sp, sp, #16
    bx lr
6:  subs r3, #5
    b 5b
"""
"""A loop is left for a nest that goes on with its pointer, in an array of the stack; what is read decides which way."""


def test_a_pointer_to_the_stack_is_moved_on_together_as_a_number_is():
    random = Random("a pointer to the stack")
    proof = proved(guest(ON_THE_STACK), "f")
    assert all(loop.max <= 9 for loop in proof.bound.loops)
    halves = [0, 1, 0xFFFF, 0x8000, 101, 100]
    calls = [[random.choice(halves) << 16 | random.choice(halves) for _ in range(4)] for _ in range(60)]
    calls += [[0x00650065] * 4, [0xFFFF0065] * 4, [0x0065FFFF] * 4, [0xFFFFFFFF] * 4, [0xFFFF0000] + [0x00650065] * 3]
    assert max(attack(proof, *call) for call in calls) > proof.bound.instructions // 2
