"""Code that never returns, as libraries and firmware have it: panics, traps, endless loops.

Tests: analyzer.bound, analyzer.graph.returning.
"""

import pytest

from tests.analyzer.firmware_code import ARM, THUMB, arm, assumed, checked, of, refused, thumb
from tests.support import TARGETS

PANICS = """volatile int sink;
__attribute__((noreturn, noinline)) void hang(int x) { sink = x; for (;;) sink++; }
__attribute__((noreturn, noinline)) void trap(int x) { sink = x; __builtin_trap(); }
__attribute__((noinline)) void panic(int x) { sink = x; for (int i = 0; i < sink; i++) sink -= x; hang(x); }
int by_call(int x) { if (x > 10) hang(x); return x + 1; }
int by_trap(int x) { if (x > 10) trap(x); return x + 1; }
int by_builtin(int x) { if (x > 10) __builtin_trap(); return x + 1; }
int by_loop(int x) { if (x > 10) for (;;) sink = x; return x + 1; }
int by_detour(int x) { if (x > 10) panic(x); return x + 1; }
void (*handler)(int);
__attribute__((noreturn, noinline)) void raise(int x) { for (;;) handler(x); }
int by_handler(int x) { if (x > 10) raise(x); return x + 1; }
int by_value(int x) { int k = 4; if (x > 10) while (k & 4) { sink = k; k += 8; } return x + 1; }
int chosen(int x) { switch (x) { case 0: hang(1); case 1: return 5; case 2: trap(x); default: return sink; } }
int main_loop(int x) { for (;;) sink += x; }
int only_panics(int x) { if (x) hang(x); panic(x); return 1; }
"""


@pytest.mark.covering
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    "entry", ["by_call", "by_trap", "by_builtin", "by_loop", "by_detour", "by_value", "by_handler"]
)
def test_what_never_returns_is_left_out_under_one_assumption(target, entry):
    proof = of(target, PANICS, entry, ".c")
    (text,) = assumed(proof, "call-returns")
    assert f"{entry}+0x" in text
    assert not proof.bound.loops
    assert checked(proof, (10,), (3,), (-5 & 0xFFFFFFFF,)) == proof.bound.instructions


@pytest.mark.parametrize("target", TARGETS)
def test_some_cases_of_a_switch_panic(target):
    proof = of(target, PANICS, "chosen", ".c")
    assert assumed(proof, "call-returns")
    checked(proof, (1,), (3,), (77,))


@pytest.mark.covering
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("entry", ["main_loop", "only_panics", "hang"])
def test_where_no_path_returns_there_is_no_bound(target, entry):
    assert f"{entry} never returns" in refused(target, PANICS, entry, ".c")


LATE_TARGETS = """push {r4, lr}
    movs r4, #0
    cmp r1, #0
    beq 8f
    ldr r3, =cases
    and r0, r0, #1
    ldr r3, [r3, r0, lsl #2]
    bx r3
    .globl one
    .thumb_func
    one: movs r4, #1
    b 8f
    .globl two
    .thumb_func
    two: pop {r4, pc}
    8: CALL
    pop {r4, pc}
    .ltorg"""
THROUGH_TABLE = "ldr r3, =calls\n ldr r3, [r3, r4, lsl #2]\n"


@pytest.mark.parametrize(
    ("call", "inner"),
    [(THROUGH_TABLE + " blx r3", "bx lr"), ("bl inner", THROUGH_TABLE + " bx r3")],
    ids=["in the function", "in a function that it calls"],
)
def test_a_branch_whose_first_known_target_never_returns_is_followed_for_others(call, inner):
    """The index 1 is found only when the first table's targets are known, one of which leads to the call again."""
    source = "".join(
        thumb(name, body)
        for name, body in {
            "f": LATE_TARGETS.replace("CALL", call),
            "inner": inner,
            "die": "b .",
            "slow": "movs r2, #100\n1: subs r2, #1\n bne 1b\n bx lr",
        }.items()
    )
    tables = ".section .rodata\n.balign 4\ncases: .word one, two\ncalls: .word die, slow\n"
    proof = of("cortex-m4", THUMB + source.replace("bx r3", "bx r3\n .ltorg") + tables)
    assert checked(proof, (1, 1), (0, 1)) == proof.bound.instructions > 200
    assert assumed(proof, "call-returns")


def test_a_call_that_returns_is_not_assumed():
    assert not assumed(of("cortex-m4", "int f(int x) { return x + 1; }\n", suffix=".c"), "call-returns")


def test_data_behind_a_call_that_never_returns_is_no_code():
    """The words behind the call would be two instructions, of which one overlaps the code that is jumped to."""
    source = THUMB + thumb("f", "cmp r0, #3\n bls 1f\n bl die\n .short 0xf7ff\n1: adds r0, #1\n bx lr")
    source += thumb("die", "b .")
    proof = of("cortex-m4", source)
    assert checked(proof, (3,)) == proof.bound.instructions == 4


@pytest.mark.parametrize(
    ("code", "target"), [("udf #7", "cortex-m4"), ("bkpt #0", "cortex-m4"), ("udf #0", "arm926ej-s")]
)
def test_traps_end_a_path(code, target):
    source = (THUMB if target == "cortex-m4" else ARM) + (thumb if target == "cortex-m4" else arm)(
        "f", f"cmp r0, #3\n bne 1f\n adds r0, #1\n bx lr\n1: {code}"
    )
    proof = of(target, source)
    assert checked(proof, (3,)) == 4
    assert assumed(proof, "call-returns")


def test_a_predicated_trap_is_part_of_a_block_and_has_no_cost():
    text = refused("cortex-m4", THUMB + thumb("f", "cmp r0, #3\n it ne\n .inst.n 0xde00\n adds r0, #1\n bx lr"))
    assert "udf #0: cortex-m4 has no timing class" in text


def test_semihosting_is_no_trap():
    assert "bkpt #0xab" in refused("cortex-m4", THUMB + thumb("f", "bkpt #0xab\n bx lr"))
