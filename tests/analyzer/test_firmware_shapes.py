"""Shapes of code that libraries and other compilers make: panics, returns by value, division, unwinding.

Tests: analyzer.bound, analyzer.graph.returning, analyzer.graph.cfg.
"""

import pytest

from tests.analyzer.firmware_code import ARM, THUMB, arm, assumed, checked, of, refused, thumb
from tests.path_check import check_emulated
from tests.support import TARGETS, assembler
from wcet_probe.analyzer.graph.supergraph import EXIT
from wcet_probe.catalog.lookup import load_target

# ------------------------------------------------------------------------------------------------------ never returning

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


# ---------------------------------------------------------------------------------------------------- by their value

RETURNS = {
    "cortex-m4": {
        "by_register": "mov r3, lr\n bx r3",
        "by_load": "push {lr}\n ldr pc, [sp], #4",
        "by_sum": "subs r3, r0, #1\n mov r2, lr\n it ne\n bxne lr\n bx r2",
    },
    "arm926ej-s": {
        "by_register": "mov r3, lr\n bx r3",
        "by_load": "str lr, [sp, #-4]!\n ldr pc, [sp], #4",
        "by_condition": "str lr, [sp, #-4]!\n cmp r0, #3\n ldrne pc, [sp], #4\n add r0, r0, #1\n ldr pc, [sp], #4",
        "by_block": "push {r4, lr}\n mov r4, r0\n ldmia sp!, {r4, pc}",
    },
    "mpc603e": {"by_count": "mflr 12\n mtctr 12\n bctr"},
}


@pytest.mark.parametrize(("target", "name"), [(target, name) for target in RETURNS for name in RETURNS[target]])
def test_a_jump_to_the_return_address_is_a_return(target, name):
    """As the entry, and called twice from different places."""
    call = {
        "cortex-m4": "push {r4, lr}\n bl leaf\n bl leaf\n pop {r4, pc}",
        "arm926ej-s": "str lr, [sp, #-8]!\n bl leaf\n bl leaf\n ldr pc, [sp], #8",
        "mpc603e": "mflr 0\n stw 0, 4(1)\n stwu 1, -16(1)\n bl leaf\n bl leaf\n addi 1, 1, 16\n lwz 0, 4(1)\n"
        " mtlr 0\n blr",
    }[target]
    core = load_target(target)
    source = assembler({"f": call, "leaf": RETURNS[target][name]}, core)
    for entry in ("leaf", "f"):
        proof = of(target, source, entry)
        checked(proof, (3,), (1,))
        assert any(edge.target == EXIT for edge in proof.values.edges)


PREDICATED = {
    # The condition rests on one that a predicated instruction has changed, as in libgcc's multiplication.
    "of flags": "push {r4, r5, r6, lr}\n subs r4, r0, #3\n rsbsgt r5, r4, r1\n popgt {r4, r5, r6, lr}\n bxgt lr\n"
    " mov lr, #0\n mov r4, #7\n1: subs r4, r4, #1\n bne 1b\n pop {r4, r5, r6, lr}\n bx lr",
    # It rests on a long chain of choices, as in its addition, which counts leading zeros.
    "of a chain": "push {r4, r5, r6, lr}\n mov r3, #20\n mov r2, r1\n cmp r2, #0x10000\n lsrcs r2, r2, #16\n"
    " subcs r3, r3, #16\n cmp r2, #0x100\n lsrcs r2, r2, #8\n subcs r3, r3, #8\n cmp r2, #16\n lsrcs r2, r2, #4\n"
    " subcs r3, r3, #4\n cmp r2, #4\n subcs r3, r3, #2\n subcc r3, r3, r2, lsr #1\n sub r3, r3, r2, lsr #3\n"
    " subs r4, r0, r3\n addge r0, r0, r4\n popge {r4, r5, r6, lr}\n bxge lr\n"
    " mov lr, #0\n mov r4, #7\n1: subs r4, r4, #1\n bne 1b\n pop {r4, r5, r6, lr}\n bx lr",
}


@pytest.mark.parametrize("name", PREDICATED)
def test_a_return_on_the_condition_on_which_the_frame_was_popped(name):
    """Pop and return are predicated apart; behind them and behind the call the frame is known again."""
    source = ARM + arm("f", "push {r4, lr}\n bl g\n add r0, r0, #1\n pop {r4, lr}\n bx lr") + arm("g", PREDICATED[name])
    proof = of("arm926ej-s", source)
    runs = [(first, second) for first in (0, 3, 4, 30) for second in (0, 5, 0x12345, 0xFFFFFFFF)]
    assert checked(proof, *runs) == proof.bound.instructions


def test_a_return_on_another_condition_than_the_pop_is_refused():
    body = PREDICATED["of flags"].replace("bxgt lr", "cmp r1, #5\n bxgt lr")
    source = ARM + arm("f", "push {r4, lr}\n bl g\n add r0, r0, #1\n pop {r4, lr}\n bx lr") + arm("g", body)
    assert "is not known to be one of its function" in refused("arm926ej-s", source)


@pytest.mark.parametrize("back", ["str lr, [sp, #-8]! … ldr pc, [sp], #8", "push {r4, lr} … pop {r4, pc}"])
def test_a_jump_to_another_place_is_no_return(back):
    """The address is the caller's, and an instruction further: the nop is not executed."""
    body = back.replace("…", "\n bl g\n nop\n mov r0, #1\n")
    proof = of("arm926ej-s", ARM + arm("f", body) + arm("g", "add r3, lr, #4\n bx r3"), "f")
    assert checked(proof, (3,), (1,)) == proof.bound.instructions == 6


@pytest.mark.parametrize(
    ("target", "pushed", "popped"),
    [
        ("arm926ej-s", "str lr, [sp, #-4]!", "ldr pc, [sp], #4"),
        ("arm926ej-s", "push {r4, lr}", "pop {r4, pc}"),
        ("cortex-m4", "str lr, [sp, #-4]!", "ldr.w pc, [sp], #4"),
    ],
)
def test_a_return_by_a_word_that_a_store_may_have_changed_is_assumed(target, pushed, popped):
    """GCC returns by ``ldr pc, [sp], #4`` where the link register alone is saved: four programs of TACLeBench."""
    body = f"{pushed}\n sub sp, sp, #20\n add r1, sp, r0, lsl #2\n str r0, [r1]\n add sp, sp, #20\n {popped}"
    proof = of(target, assembler({"f": body}, load_target(target)), "f")
    assert "return-address" in {one.id for one in proof.bound.assumptions}
    checked(proof, (3,), (1,))


@pytest.mark.parametrize("popped", ["ldr pc, [sp], #4", "pop {pc}"])
def test_a_word_that_was_pushed_and_is_no_return_address_is_no_return_of_arm(popped):
    """SLEIGH has a jump for the one and a return for the other; behind both a hundred rounds would be left out."""
    rounds = "back: mov r2, #100\n1: subs r2, r2, #1\n bne 1b\n ldmia sp!, {r4, pc}\n.ltorg"
    body = f"push {{r4, lr}}\n ldr r3, =back\n str r3, [sp, #-4]!\n {popped}\n{rounds}"
    refused("arm926ej-s", ARM + arm("f", body))


COUNT_DOWN = "movs r2, #100\n1: subs r2, #1\n bne 1b\n pop {r4, pc}\n"
STRAYS = {
    "made": "push {r4, lr}\n ldr lr, =back\n b.w g\n .globl back\n.thumb_func\nback: " + COUNT_DOWN,
    "pushed": "push {r4, lr}\n ldr r3, =back\n push {r3}\n pop {pc}\n .globl back\n.thumb_func\nback: " + COUNT_DOWN,
    "moved": "push {r4, lr}\n bl h\n adds r0, #1\n b 2f\n movs r2, #100\n1: subs r2, #1\n bne 1b\n2: pop {r4, pc}\n",
    "looked up": "push {r4, lr}\n and r0, r0, #1\n ldr r3, =tab\n ldr lr, [r3, r0, lsl #2]\n bx lr\n.globl back\n"
    ".thumb_func\nback: " + COUNT_DOWN,
}


@pytest.mark.parametrize("name", STRAYS)
def test_a_return_that_surely_goes_elsewhere_is_refused(name):
    """Behind it a hundred rounds would be left out."""
    source = THUMB + thumb("f", STRAYS[name] + ".ltorg") + thumb("g", "adds r0, #1\n bx lr")
    table = ".section .rodata\n.balign 4\ntab: .word back, g\n" if name == "looked up" else ""
    text = refused("cortex-m4", source + thumb("h", "add lr, lr, #4\n bx lr") + table)
    assert "and not to its caller" in text


@pytest.mark.parametrize("target", TARGETS)
def test_an_indirect_jump_to_the_function_that_is_laid_out_next(target):
    """It does not fall into it; and of two functions of a table, the other one alone would be cheap."""
    pick = {
        "cortex-m4": "and r0, r0, #1\n ldr r3, =tab\n ldr r3, [r3, r0, lsl #2]\n bx r3",
        "arm926ej-s": "and r0, r0, #1\n ldr r3, =tab\n ldr r3, [r3, r0, lsl #2]\n bx r3",
        "mpc603e": "rlwinm 3, 3, 2, 29, 29\n lis 4, tab@ha\n addi 4, 4, tab@l\n lwzx 4, 4, 3\n mtctr 4\n bctr",
    }[target]
    slow, cheap = {
        "cortex-m4": ("movs r2, #100\n1: subs r2, #1\n bne 1b\n bx lr", "bx lr"),
        "arm926ej-s": ("mov r2, #100\n1: subs r2, r2, #1\n bne 1b\n bx lr", "bx lr"),
        "mpc603e": ("li 5, 100\n mtctr 5\n1: bdnz 1b\n blr", "blr"),
    }[target]
    core = load_target(target)
    source = assembler({"cheap": cheap, "f": pick, "slow": slow}, core)
    proof = of(target, source + ".section .rodata\n.balign 4\ntab: .long cheap, slow\n")
    assert checked(proof, (0,), (1,)) == proof.bound.instructions > 100


TO_THE_NEXT = {
    "cortex-m4": "ldr r3, =next\n cmp r0, #3\n it eq\n bxeq r3\n.globl next\n.thumb_func\nnext: bx lr",
    "arm926ej-s": "cmp r0, #3\n ldreq pc, =next\n.globl next\nnext: bx lr",
    "mpc603e": "lis 4, next@ha\n addi 4, 4, next@l\n mtctr 4\n cmpwi 3, 3\n beqctr\n.globl next\nnext: blr",
}


@pytest.mark.parametrize("target", TO_THE_NEXT)
def test_a_predicated_indirect_jump_to_the_next_instruction_costs_what_it_takes(target):
    """It is executed, and not skipped, though control comes to the same place."""
    checked(of(target, assembler({"f": TO_THE_NEXT[target]}, load_target(target))), (1,), (3,))


# --------------------------------------------------------------------------------------------------- division and roots

SHIFTS = """typedef unsigned u; volatile u sink;
u root(u x) { u r = 0, b = 1u << 30; while (b > x) b >>= 2;
  while (b) { if (x >= r + b) { x -= r + b; r = (r >> 1) + b; } else r >>= 1; b >>= 2; } return r; }
u doubled(u n) { u x = (n & 7) + 1, k = 0; while (x < 1000) { sink = x; x <<= 1; k++; } return k; }
u by_eight(u n) { u x = n | 2, k = 0; while (x <= 0x1ffffff0) { sink = x; x *= 8; k++; } return k; }
u any(u n) { u x = n, k = 0; while (x < 1000) { sink = x; x <<= 1; k++; } return k; }
u wrapping(u n) { u x = n | 1, k = 0; while (x < 0xfffffff0) { sink = x; x <<= 1; k++; } return k; }
"""


@pytest.mark.covering(1)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("entry", "most"), [("root", 17), ("doubled", 11), ("by_eight", 11)])
def test_values_that_are_shifted_up_to_a_limit(target, entry, most):
    proof = of(target, SHIFTS, entry, ".c")
    assert max(loop.max for loop in proof.bound.loops) <= most
    checked(proof, *[(number,) for number in (0, 1, 2, 7, 999, 0x40000000, 0xFFFFFFFF)])


@pytest.mark.covering
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("entry", ["any", "wrapping"])
def test_what_may_be_zero_or_lose_its_bits_is_not_counted(target, entry):
    assert "no bound for the loop" in refused(target, SHIFTS, entry, ".c")


DIVISION = """cmp r1, #1
    bxeq lr
    blo 9f
    cmp r0, r1
    bls 9f
    tst r1, #0xe0000000
    lsleq r1, r1, #3
    moveq r2, #8
    movne r2, #1
    1: cmp r1, #0x10000000
    cmplo r1, r0
    lsllo r1, r1, #4
    lsllo r2, r2, #4
    blo 1b
    mov r3, #0
    2: cmp r0, r1
    subhs r0, r0, r1
    orrhs r3, r3, r2
    cmp r0, #0
    lsrsne r2, r2, #1
    lsrne r1, r1, #1
    bne 2b
    mov r0, r3
    bx lr
    9: mov r0, #0
    bx lr"""


def test_a_division_in_assembly_with_predicated_shifts():
    """The divisor is shifted up while it is less than a constant and than the dividend, in predicated instructions."""
    proof = of("arm926ej-s", ARM + arm("f", DIVISION))
    pairs = [(7, 2), (0xFFFFFFFF, 2), (0xFFFFFFFF, 0x1FFFFFFF), (0xFFFFFFFE, 0x7FFFFFFF), (0, 5), (5, 0), (9, 1)]
    checked(proof, *pairs)
    assert [loop.max for loop in proof.bound.loops] == [7, 32]


# ------------------------------------------------------------------------------------------- returns of other functions

ARM_UNWINDING = {
    "f": "push {r4, r5, lr}\n movs r5, #1\n bl g\n1: subs r0, r0, #1\n bne 1b\n pop {r4, r5, pc}",
    "g": "push {r4, lr}\n mov r4, sp\n ldr r0, =place\n str r4, [r0]\n bl store\n bl h\n"
    " movs r0, #1\n pop {r4, pc}\n .ltorg",
    "store": "ldr r1, =elsewhere\n ldr r1, [r1]\n str r0, [r1]\n bx lr\n .ltorg",
}
ARM_JUMPS = {
    "own frame dropped": "push {r5, lr}\n ldr r4, =place\n ldr r4, [r4]\n"
    " movs r0, #200\n mov sp, r4\n pop {r4, pc}\n .ltorg",
    "frame passed over": "movs r0, #200\n add sp, sp, #0\n push {r4, lr}\n ldr r1, =elsewhere\n ldr r1, [r1]\n"
    " str r0, [r1]\n add sp, sp, #8\n pop {r4, pc}\n .ltorg",
}
STATIC = ".data\n.balign 4\nplace: .long 0\nelsewhere: .long spare\nspare: .long 0\n"


@pytest.mark.parametrize("jump", ARM_JUMPS)
@pytest.mark.parametrize("target", ["cortex-m4", "arm926ej-s"])
def test_a_return_from_the_frame_of_another_function_is_refused(target, jump):
    """What is behind the call in ``g`` sets r0 to 1; who jumps over it repeats the loop of ``f`` 200 times."""
    source = assembler({**ARM_UNWINDING, "h": ARM_JUMPS[jump]}, load_target(target)) + STATIC
    assert "is not known to be one of its function" in refused(target, source)


POWERPC_UNWINDING = """
    .globl f
    .type f, @function
    f: stwu 1, -16(1)
    mflr 0
    stw 0, 20(1)
    bl g
    1: addic. 3, 3, -1
    bne 1b
    lwz 0, 20(1)
    addi 1, 1, 16
    mtlr 0
    blr
    .size f, . - f
    .type g, @function
    g: stwu 1, -16(1)
    mflr 0
    stw 0, 20(1)
    lis 4, place@ha
    stw 1, place@l(4)
    lis 5, elsewhere@ha
    lwz 5, elsewhere@l(5)
    stw 3, 0(5)
    bl h
    li 3, 1
    lwz 0, 20(1)
    addi 1, 1, 16
    mtlr 0
    blr
    .size g, . - g
    .type h, @function
    h: lis 4, place@ha
    lwz 1, place@l(4)
    li 3, 200
    lwz 0, 20(1)
    addi 1, 1, 16
    mtlr 0
    blr
    .size h, . - h
"""


def test_a_return_from_the_frame_of_another_function_is_refused_on_powerpc():
    source = ".text\n.balign 4\n" + POWERPC_UNWINDING + STATIC
    assert "is not known to be one of its function" in refused("mpc603e", source)


def test_a_return_to_the_caller_of_the_analysed_function_from_one_that_it_calls_is_followed():
    """What it would come to behind the call, a loop of four thousand million rounds, is not in the graph."""
    bodies = {"f": "mov r5, lr\n movs r0, #0\n bl h\n1: subs r0, #1\n bne 1b\n bx r5", "h": "mov lr, r5\n bx lr"}
    proof = of("cortex-m4", assembler(bodies, load_target("cortex-m4")))
    assert checked(proof, ()) == proof.bound.instructions == 5


def test_a_return_near_the_callers_address_is_not_taken_for_one_to_it():
    """An address made of the link register is not what is in it."""
    proof = of(
        "cortex-m4",
        assembler({"f": "adds r0, #1\n mov r3, lr\n adds r3, #4\n mov lr, r3\n bx lr"}, load_target("cortex-m4")),
    )
    assert assumed(proof, "return-address")


# -------------------------------------------------------------------------------------------------- aligned pointers

ALIGNED = {
    "cortex-m4": "push {r4, lr}\n sub sp, #24\n add r0, sp, #5\n add r1, r0, #16\n bic r3, r0, #3\n subs r1, r1, r3\n"
    "1: str r2, [r3], #4\n subs r1, #4\n bhi 1b\n add sp, #24\n pop {r4, pc}",
    "arm926ej-s": "push {r4, lr}\n sub sp, sp, #24\n add r0, sp, #5\n add r1, r0, #16\n bic r3, r0, #7\n"
    " sub r1, r1, r3\n1: str r2, [r3], #4\n subs r1, r1, #4\n bhi 1b\n add sp, sp, #24\n pop {r4, pc}",
    "mpc603e": "stwu 1, -48(1)\n stw 31, 44(1)\n addi 6, 1, 13\n addi 7, 6, 16\n clrrwi 8, 6, 2\n subf 7, 8, 7\n"
    " srwi 7, 7, 2\n mtctr 7\n1: stw 5, 0(8)\n addi 8, 8, 4\n bdnz 1b\n lwz 31, 44(1)\n addi 1, 1, 48\n blr",
}


@pytest.mark.parametrize("target", ALIGNED)
def test_a_pointer_into_the_frame_is_aligned_as_the_stack_is(target):
    """As a library's memset does it: the stores go to known places, and leave the saved registers alone."""
    proof = of(target, assembler({"f": ALIGNED[target]}, load_target(target)))
    assert assumed(proof, "stack-alignment")
    assert checked(proof, (1,)) == proof.bound.instructions
    assert {one.base for one in proof.bound.accesses} == {"stack"}


QUOTIENT = """volatile int sink;
void counted(unsigned a, unsigned b) {
    unsigned rounds, dividend = a & 127, divisor = b & 16;
    __asm__ volatile(DIVIDE : "=r"(rounds) : "r"(dividend), "r"(divisor));
    for (unsigned i = 0; i < rounds; i++) sink = i;
}
"""


@pytest.mark.parametrize("core", ["cortex-m4", "mpc603e"])
def test_a_quotient_is_any_value_where_the_architecture_leaves_it_undefined(core):
    """By zero: 0 on Arm, undefined on PowerPC, where the engine gives the dividend: 127 rounds, and not at most 7."""
    mnemonic = "udiv" if core == "cortex-m4" else "divwu"
    proof = of(core, QUOTIENT.replace("DIVIDE", f'"{mnemonic} %0, %1, %2"'), "counted", ".c")
    assert checked(proof, (127, 0), (127, 16)) <= proof.bound.instructions
    (loop,) = proof.bound.loops
    assert (loop.max < 10) == (core == "cortex-m4")


FORGOTTEN = {
    "the condition of a saturation": "movs r1, #100\n cmp r0, #9\n it ls\n usatls r1, #2, r0\n adds r1, #1",
    "the carry of a mask": "movs r1, #100\n cmp r0, #0\n ands r2, r0, #0x4980\n it hs\n movhs r1, #1",
}


@pytest.mark.parametrize("what", FORGOTTEN)
def test_what_sleigh_forgets_of_an_instruction_is_not_forgotten(what):
    """Bounds of Thumb code were below runs: of 5 rounds for 101, and of 1 for 100."""
    rounds = "\n1: subs r1, #1\n bne 1b\n bx lr"
    proof = of("cortex-m4", assembler({"f": FORGOTTEN[what] + rounds}, load_target("cortex-m4")))
    assert checked(proof, (3,), (10,)) == proof.bound.instructions


OTHERWISE_COMPUTED = {
    "a saturation to five bits": ("cortex-r5", "mov r1, #100\n ssat r1, #5, r1\n rsb r1, r1, #40", 25),
    "a sum": (
        "arm926ej-s",
        "mvn r1, #0x80000000\n mov r2, #100\n qadd r1, r1, r2\n and r1, r1, #255\n orr r1, r1, #1",
        255,
    ),
    "two halves": (
        "cortex-m4",
        "movs r1, #255\n orr r1, r1, #0x80000000\n usat16 r1, #4, r1\n and r1, r1, #255\n orr r1, #1",
        15,
    ),
}
"""Core, code that leaves a number of rounds in r1, and that number."""


@pytest.mark.parametrize("what", OTHERWISE_COMPUTED)
def test_what_sleigh_saturates_otherwise_than_the_core_is_not_what_sleigh_says(what):
    """Bounds were below runs: of 9 rounds for 25, 99 for 255, and 1 for 15."""
    core, code, rounds = OTHERWISE_COMPUTED[what]
    loop = "\n1: subs r1, r1, #1\n bne 1b\n bx lr"
    proof = of(core, assembler({"f": code + loop}, load_target(core)))
    check_emulated(proof, 0)
    assert proof.bound.loops[0].max >= rounds


@pytest.mark.parametrize("read", ["mftb", "mfdec"])
def test_what_a_register_of_the_time_holds_is_not_what_it_held(read):
    """Two reads were taken to be equal, and a branch by it decided so: 9 instructions proved, 3,012 possible."""
    rounds = "li 6, 1\n cmpw 4, 5\n beq 2f\n li 6, 100\n2: mtctr 6\n1: bdnz 1b\n blr"
    proof = of("mpc603e", assembler({"f": f"{read} 4\n {read} 5\n {rounds}"}, load_target("mpc603e")))
    assert proof.bound.loops[0].max == 100
