"""Returns of other shapes than a compiler's usual one: by their value, and those that go elsewhere.

Tests: analyzer.bound, analyzer.graph.returning, analyzer.graph.cfg.
"""

import pytest

from tests.analyzer.firmware_code import ARM, THUMB, arm, assumed, checked, of, refused, thumb
from tests.support import TARGETS, assembler
from wcet_probe.analyzer.graph.supergraph import EXIT
from wcet_probe.catalog.lookup import load_target

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
    "looked up": "push {r4, lr}\n and r0, r0, #1\n ldr r3, =tab\n ldr lr, [r3, r0, lsl #2]\n bx lr\n.globl back\n"
    ".thumb_func\nback: " + COUNT_DOWN,
}


@pytest.mark.parametrize("name", STRAYS)
def test_a_return_that_surely_goes_elsewhere_is_refused(name):
    """Behind it a hundred rounds would be left out."""
    source = THUMB + thumb("f", STRAYS[name] + ".ltorg") + thumb("g", "adds r0, #1\n bx lr")
    table = ".section .rodata\n.balign 4\ntab: .word back, g\n" if name == "looked up" else ""
    assert "and not to its caller" in refused("cortex-m4", source + table)


def test_a_callee_that_skips_what_stands_behind_its_call_goes_on_there():
    body = "push {r4, lr}\n bl h\n adds r0, #1\n b 2f\n movs r2, #100\n1: subs r2, #1\n bne 1b\n2: pop {r4, pc}\n"
    proof = of("cortex-m4", THUMB + thumb("f", body) + thumb("h", "add lr, lr, #4\n bx lr"))
    assert checked(proof, (0,), (7,)) == proof.bound.instructions == 206


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
