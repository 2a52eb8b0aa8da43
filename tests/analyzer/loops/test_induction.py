"""Copying loops into the stack: what they cannot reach is kept, what they reach is not."""

import random

import pytest

from tests.analyzer.loops.one_loop import refuse_or_bound_by_width
from tests.path_check import attack, check_emulated, proved
from tests.support import TARGETS, assembler, guest_of
from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.loops.counters import Step
from wcet_probe.analyzer.loops.induction import _reached
from wcet_probe.analyzer.values.symbolic.locations import Location
from wcet_probe.catalog.lookup import load_target
from wcet_probe.errors import AnalysisError

WORDS = "1: ldr r3, [r1], #4\n str r3, [r0], #4\n subs r2, r2, #4\n bne 1b\n bx lr"
HEAD_TESTED = "1: cmp r2, #4\n blo 2f\n ldr r3, [r1], #4\n str r3, [r0], #4\n subs r2, r2, #4\n b 1b\n2: bx lr"
SIGNED = "subs r2, r2, #4\n1: ldr r3, [r1], #4\n str r3, [r0], #4\n subs r2, r2, #4\n bge 1b\n bx lr"
DOWN = "add r0, r0, r2\n add r1, r1, r2\n1: ldr r3, [r1, #-4]!\n str r3, [r0, #-4]!\n subs r2, r2, #4\n bne 1b\n bx lr"
UNROLLED = """subs r2, r2, #8
    blo 2f
    1: ldr r3, [r1], #4
    str r3, [r0], #4
    ldr r3, [r1], #4
    str r3, [r0], #4
    subs r2, r2, #8
    bhs 1b
    2: adds r2, r2, #8
    beq 4f
    3: ldrb r3, [r1], #1
    strb r3, [r0], #1
    subs r2, r2, #1
    bne 3b
    4: bx lr"""
COPIES = {"words": WORDS, "tested at its head": HEAD_TESTED, "signed": SIGNED, "down": DOWN, "unrolled": UNROLLED}


def caller(length):
    """Copies to 16 bytes at the stack pointer, beside which it keeps the number of its own rounds, on both sides."""
    return f"""push {{r4, lr}}
    sub sp, sp, #32
    mov r3, #9
    str r3, [sp, #24]
    str r3, [sp]
    add r0, sp, #8
    ldr r1, =f
    mov r2, #{length}
    bl copy
    ldr r3, [sp, #24]
    1: subs r3, r3, #1
    bne 1b
    ldr r3, [sp]
    2: subs r3, r3, #1
    bne 2b
    add sp, sp, #32
    pop {{r4, pc}}
    .ltorg"""


@pytest.mark.parametrize(("bits", "rounds", "known"), [(8, 255, True), (8, 256, False), (16, 300, True)])
def test_a_narrow_counter_that_comes_round_tells_nothing(bits, rounds, known):
    step = Step(Location("stack", -4, bits // 8), 1, shifts=False, after=None)
    assert (_reached(strided.constant(bits, 0), step, rounds) is not None) is known


@pytest.mark.covering
@pytest.mark.parametrize("target", ["cortex-m4", "arm926ej-s"])
@pytest.mark.parametrize("copy", COPIES)
def test_what_lies_beside_the_copy_is_kept(target, copy):
    core = load_target(target)
    proof = proved(guest_of(assembler({"f": caller(16), "copy": COPIES[copy]}, core), core), "f")
    assert [loop.max for loop in proof.bound.loops if loop.function == "f"] == [9, 9]
    assert attack(proof, 1) == proof.bound.instructions
    check_emulated(proof, 1)
    assert not [one for one in proof.bound.assumptions if one.id == "return-address"]


@pytest.mark.parametrize("copy", COPIES)
def test_what_the_copy_reaches_is_not(copy):
    """A round more than fits overwrites the count of the caller's loop, on the side that the copy runs to."""
    core = load_target("cortex-m4")
    source = assembler({"f": caller(20), "copy": COPIES[copy]}, core)
    refuse_or_bound_by_width(lambda: proved(guest_of(source, core), "f").bound, "f+0x")


def test_before_the_place_likewise():
    core = load_target("cortex-m4")
    source = assembler({"f": caller(16).replace("add r0, sp, #8", "add r0, sp, #4"), "copy": WORDS}, core)
    proof = proved(guest_of(source, core), "f")
    attack(proof, 1)
    source = assembler({"f": caller(16).replace("add r0, sp, #8", "mov r0, sp"), "copy": WORDS}, core)
    refuse_or_bound_by_width(lambda: proved(guest_of(source, core), "f").bound, "f+0x")


C = """typedef unsigned u; u src[64]; volatile u sink;
__attribute__((noinline)) void copy(u *d, const u *s, u n) { while (n >= 4) { d[0] = s[0]; d[1] = s[1]; d[2] = s[2];
  d[3] = s[3]; d += 4; s += 4; n -= 4; } while (n--) *d++ = *s++; }
__attribute__((noinline)) void fill(unsigned char *d, u v, u n) { while (((u)d & 3) && n) { *d++ = v; n--; }
  for (; n >= 4; n -= 4) { *(u *)d = v; d += 4; } while (n--) *d++ = v; }
u copied(u n) { volatile u before = n & 7; u a[23]; volatile u behind = 5; copy(a, src, 23); u s = 0;
  for (u i = 0; i < before; i++) s += a[i]; for (u i = 0; i < behind; i++) sink = i; return s; }
u filled(u n) { volatile u before = 6; union { unsigned char c[48]; u w[12]; } x; volatile u behind = n & 3;
  fill(x.c, n & 255, 48); u s = 0;
  for (u i = 0; i < before; i++) s += x.w[i]; for (u i = 0; i < behind; i++) sink = i; return s; }
u masked(u n) { volatile u before = 6; u a[32]; copy(a, src, n & 15); u s = 0;
  for (u i = 0; i < before; i++) s += a[i]; return s; }
u parts(u n) { volatile u k = 4; u a[4]; u p = (u)a, q = 0; q |= p & 0xffff0000; q |= p & 7; q |= p & 0xfff8;
  *(volatile u *)(q + (n & 28)) = 77; u s = 0; for (u i = 0; i < k; i++) s++; return s + a[n & 3]; }
"""


@pytest.mark.covering
@pytest.mark.parametrize(
    ("target", "entry"), [(target, entry) for target in TARGETS for entry in ("copied", "filled", "masked")][:-1]
)
def test_compiled_copies(target, entry):
    """Left out is the masked length on mpc603e: its count register holds a quotient of the length."""
    proof = proved(guest_of(C, load_target(target), ".c"), entry)
    draw = random.Random(7)
    for _ in range(12):
        attack(proof, draw.getrandbits(32))
    check_emulated(proof, 15)
    assert not proof.bound.by_type
    assert not [one for one in proof.bound.assumptions if one.id == "return-address"]


@pytest.mark.covering(0)
@pytest.mark.parametrize("target", TARGETS)
def test_an_address_put_together_from_its_parts_is_no_number(target):
    """It may go anywhere in the stack, also to the count of the loop."""
    core = load_target(target)
    guest = guest_of(C, core, ".c")
    refuse_or_bound_by_width(lambda: proved(guest, "parts").bound, "parts+0x")


@pytest.mark.parametrize("target", ["cortex-m4", "arm926ej-s"])
def test_the_alignment_of_the_stack_is_an_assumption(target):
    source = {
        "f": "sub sp, sp, #16\n add r1, sp, #4\n and r1, r1, #7\n1: subs r1, r1, #1\n bne 1b\n add sp, sp, #16\n bx lr"
    }
    core = load_target(target)
    proof = proved(guest_of(assembler(source, core), core), "f")
    assert [loop.max for loop in proof.bound.loops] == [4]
    assert attack(proof, 5) == proof.bound.instructions
    assert any(one.id == "stack-alignment" for one in proof.bound.assumptions)
    source["f"] = source["f"].replace("#7", "#15")
    with pytest.raises(AnalysisError, match="no bound for the loop"):
        proved(guest_of(assembler(source, core), core), "f")


LEFT_FROM_WITHIN = """push {r4, r5, r6, r7, lr}
    sub sp, sp, #48
    mov r7, #5
    str r7, [sp, #40]
    mov r1, sp
    mov r4, #0
    1: mov r5, #0
    add r2, sp, #16
    2: str r4, [r2], #4
    cmp r5, r0
    beq 3f
    add r5, r5, #1
    cmp r5, #3
    bne 2b
    add r1, r1, #4
    add r4, r4, #1
    cmp r4, #3
    bne 1b
    3: str r5, [r1]
    str r4, [r2, #-4]
    ldr r7, [sp, #40]
    4: subs r7, r7, #1
    bne 4b
    add sp, sp, #48
    pop {r4, r5, r6, r7, pc}"""


@pytest.mark.parametrize("target", ["cortex-m4", "arm926ej-s"])
def test_two_loops_that_are_left_at_once_are_in_rounds_of_their_own(target):
    core = load_target(target)
    proof = proved(guest_of(assembler({"f": LEFT_FROM_WITHIN}, core), core), "f")
    for number in range(5):
        attack(proof, number)
    assert {loop.max for loop in proof.bound.loops} == {3, 5}


TRIANGLE = """
    push {r4, r5, r6, r7, lr}
    sub sp, sp, #320
    mov r1, sp
    add r2, sp, #4
    add r3, sp, r0, lsl #2
    1: mov r4, #0
    mov r5, r1
    2: ldr r6, [r5], #4
    add r4, r4, r6
    cmp r5, r2
    bne 2b
    str r4, [r2], #4
    cmp r2, r3
    bne 1b
    add sp, sp, #320
    pop {r4, r5, r6, r7, pc}
"""
CALLER = """
    push {r4, r5, r6, lr}
    mov r4, #0
    ldr r5, =400
    1: mov r0, #7
    bl fill
    add r4, r4, #1
    cmp r4, r5
    bne 1b
    pop {r4, r5, r6, pc}
    .ltorg
"""


@pytest.mark.covering(0)
@pytest.mark.parametrize("target", ["cortex-m4", "arm926ej-s"])
def test_rounds_that_follow_from_constants_tell_where_a_store_goes(target):
    """Each end is an address in the stack, and the caller's 400 rounds are too many instructions to be followed."""
    core = load_target(target)
    proof = proved(guest_of(assembler({"fill": TRIANGLE, "often": CALLER}, core), core), "often")
    assert sorted(loop.max for loop in proof.bound.loops) == [6, 6, 400]
    assert attack(proof) == proof.bound.instructions


BOTH_IN_THE_STACK = {
    "f": """push {r4, lr}
    sub sp, sp, #168
    mov r3, #9
    str r3, [sp, #72]
    add r0, sp, #8
    add r1, sp, #88
    mov r2, #64
    bl decode
    ldr r3, [sp, #72]
    1: subs r3, r3, #1
    bne 1b
    add sp, sp, #168
    pop {r4, pc}""",
    "decode": """push {r4, r5, r6, lr}
    subs r5, r2, #0
    beq 2f
    sub lr, r0, #4
    1: ldr r3, [r1], #4
    add r12, lr, #8
    sub r12, r12, r0
    cmp r5, r12
    str r3, [lr, #4]!
    bhi 1b
    2: pop {r4, r5, r6, pc}""",
}


@pytest.mark.parametrize("target", ["cortex-m4", "arm926ej-s"])
def test_what_was_lost_while_a_pointer_was_widened_is_kept_where_its_end_is_known(target):
    """The end of the pointer follows in the first analysis already, from what the loop compares, but too late."""
    core = load_target(target)
    proof = proved(guest_of(assembler(BOTH_IN_THE_STACK, core), core), "f")
    assert [loop.max for loop in proof.bound.loops if loop.function == "f"] == [9]
    check_emulated(proof, 1)
