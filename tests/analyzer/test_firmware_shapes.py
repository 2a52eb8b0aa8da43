"""What instructions of libraries leave: shifts, divisions, pointers into frames, and what SLEIGH has otherwise.

Tests: analyzer.bound.
"""

import pytest

from tests.analyzer.firmware_code import ARM, arm, assumed, checked, of, refused
from tests.path_check import check_emulated
from tests.support import TARGETS, assembler
from wcet_probe.catalog.lookup import load_target

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
