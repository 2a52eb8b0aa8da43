"""Small functions of every target in assembler, and what a call of each must count, worked out by hand.

Cycles are the sums of the targets' TOML numbers; memory stalls are not among them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from tests.support import Guest, assembler, guest_of
from wcet_probe.catalog.lookup import load_target
from wcet_probe.emu.machine import Machine

HEAP = 1 << 40
"""``HEAP + n`` as an argument stands for the address ``n`` bytes into the heap."""


@dataclass(frozen=True)
class Case:
    """A call and its counts; ``cycles`` by the timing table."""

    function: str
    arguments: tuple[int, ...]
    instructions: int
    cycles: int
    loads: int = 0
    stores: int = 0
    result: int | None = None


def arguments_in(machine: Machine, arguments: tuple[int, ...]) -> tuple[int, ...]:
    """``arguments`` with the heap's address put in."""
    return tuple(machine.heap.base_address + a - HEAP if a >= HEAP - (1 << 20) else a for a in arguments)


@cache
def guest(target_name: str) -> Guest:
    """The functions of a target in one image."""
    target = load_target(target_name)
    return guest_of(assembler(FUNCTIONS[target_name], target), target)


_CONDITIONS = ("eq", "ne", "cs", "cc", "mi", "pl", "vs", "vc", "hi", "ls", "ge", "lt", "gt", "le")
_THUMB_CONDITIONS = "".join(
    f"msr apsr_nzcvq, r0\nitt {cc}\nldr{cc} r2, [r1]\norr{cc} r3, r3, #{1 << i}\n" for i, cc in enumerate(_CONDITIONS)
)
_ARM_CONDITIONS = "".join(
    f"ldr{cc} r2, [r1]\norr{cc} r3, r3, #{1 << i}\n" for i, cc in enumerate(_CONDITIONS)
)  # an orr without s leaves the flags

FUNCTIONS: Mapping[str, Mapping[str, str]] = {
    "cortex-m4": {
        "plain": "movs r0, #7\nbx lr",
        "late": "mov r0, #1\nmov r1, #2\nmov r2, #3\nmov r0, #4\nbx lr",
        "itt_ite": """
            cmp r0, #0
            itt eq
            ldreq r1, [r2]
            streq r1, [r2, #4]
            ite ne
            movne r0, #7
            moveq r0, #8
            bx lr""",
        "itte": """
            cmp r0, #0
            itte ne
            ldrne r1, [r2]
            strne r1, [r2, #8]
            ldreq r3, [r2]
            mov r0, r3
            bx lr""",
        "it_return": "cmp r0, #0\nit eq\nbxeq lr\nmovs r0, #9\nbx lr",
        "it_branch": "cmp r0, #0\nitt eq\nmoveq r0, #5\nbeq 1f\nmovs r0, #1\n1: bx lr",
        "it_pop": "push {r4, lr}\ncmp r0, #0\nit eq\npopeq {r4, pc}\nmovs r0, #9\npop {r4, pc}",
        "it_call": "push {r4, lr}\ncmp r0, #0\nit ne\nblne plain\npop {r4, pc}",
        "conditions": f"movs r3, #0\n{_THUMB_CONDITIONS}mov r0, r3\nbx lr",
        "cbz": "cbz r0, 1f\nmovs r0, #2\n1: bx lr",
        "loop": "1: subs r0, #1\nbne 1b\nbx lr",
        "divide": "udiv r0, r0, r1\nbx lr",
        "table": "tbb [pc, r0]\n0: .byte (1f-0b)/2, (2f-0b)/2\n1: movs r0, #1\nbx lr\n2: movs r0, #2\nbx lr",
        "literal": "ldr r0, =0x12345678\nbx lr\n.ltorg",
        "multiple": """
            push {r4-r6, lr}
            ldmia r0!, {r1-r3}
            stmdb r0!, {r1, r2}
            ldmdb r0, {r4, r5}
            ldrd r1, r2, [r0]
            strd r1, r2, [r0, #8]
            pop {r4-r6, pc}""",
        "forms": """
            ldr r2, [r0, r1, lsl #2]
            strb r2, [r0, #3]
            ldrsh r3, [r0, r1]
            str r3, [r0], #4
            ldr r2, [r0, #-4]!
            strh r2, [r0, r1, lsl #1]
            ldr r3, [sp, #-8]
            ldrsb r2, [r0, #255]
            bx lr""",
        "unaligned": "ldr r1, [r0]\nstr r1, [r0, #16]\nldrh r2, [r0, #1]\nbx lr",
        "frame": "sub sp, #64\nadd sp, #64\nbx lr",
        "maybe_frame": "cmp r0, #0\nit ne\nsubne sp, #32\nit ne\naddne sp, #32\nbx lr",
        "nested": "push {r4, lr}\nbl frame\npop {r4, pc}",
        "below": "str r0, [sp, #-12]\nbx lr",
        "store_pair": "movs r3, #1\nstr r2, [r0]\nadds r3, #1\nstr r2, [r1]\nadds r3, #1\nbx lr",
        "load_pair": "movs r3, #1\nldr r2, [r0]\nadds r3, #1\nldr r2, [r1]\nadds r3, #1\nbx lr",
        "long_store": "push {r4, lr}\nstmia r0, {r1-r4}\npop {r4, pc}",
        "it_stray": """
            cmp r0, r0
            itete eq
            streq r2, [r1]
            movne r0, #3
            streq r2, [r0]
            movne r0, #5
            str r2, [r0, #8]
            b 1f
            1: str r2, [r0, #12]
            bx lr""",
        "it_stray_skips": "cmp r0, r0\nitete eq\nstreq r2, [r1]\nmovne r3, #3\nmoveq r3, #4\nmovne r3, #5\nbx lr",
        "jump": "movs r1, #2\nbx r0",
        "write_code": "adr r0, jump\nmovs r1, #0\nstr r1, [r0]\nbx lr",
        "no_class": "movs r0, #1\nudf #0\nbx lr",
        "system_call": "movs r0, #1\nsvc #0\nbx lr",
        "newer": "movs r0, #1\n.inst.w 0xe840f000\nbx lr",
    },
    "arm926ej-s": {
        "plain": "mov r0, #7\nbx lr",
        "late": "mov r0, #1\nmov r1, #2\nmov r2, #3\nmov r0, #4\nbx lr",
        "select": """
            cmp r0, #0
            ldrne r1, [r2]
            streq r1, [r2]
            addmi r3, r3, #1
            ldmne r2, {r1, r3}
            stmeq r2, {r1, r3}
            mov r0, r1
            bx lr""",
        "early": "cmp r0, #0\nbxeq lr\nmov r0, #9\nbx lr",
        "popeq": "push {r4, lr}\ncmp r0, #0\npopeq {r4, pc}\nmov r0, #9\npop {r4, pc}",
        "callne": "push {r4, lr}\ncmp r0, #0\nblne plain\npop {r4, pc}",
        "conditions": f"mov r3, #0\nmsr cpsr_f, r0\n{_ARM_CONDITIONS}mov r0, r3\nbx lr",
        "loop": "1: subs r0, r0, #1\nbne 1b\nbx lr",
        "load_use": """
            ldr r1, [r0]
            add r2, r1, #1
            ldrb r3, [r0]
            mov r1, r2
            ldr r2, [r0, r1, lsl #2]
            mov r0, r2
            bx lr""",
        "multiply": "mul r0, r1, r0\nadd r0, r0, r0, lsl r1\nbx lr",
        "literal": "ldr r0, =0x12345678\nbx lr\n.ltorg",
        "multiple": """
            push {r4-r6, lr}
            ldmia r0!, {r1-r3}
            stmib r0, {r1, r2}
            ldmda r0!, {r4, r5}
            stmda r0, {r3, r6}
            ldmdb r0, {r4}
            stmdb r0!, {r4}
            swp r1, r2, [r0]
            pop {r4-r6, pc}""",
        "forms": """
            ldr r2, [r0, r1, lsl #2]
            ldr r2, [r0, -r1, lsl #1]
            ldrsh r3, [r0, r1]
            strh r3, [r0], #2
            ldrd r2, r3, [r0, #6]
            strd r2, r3, [r0, r1]
            mov r12, #0x80000001
            ldr r2, [r0, r12, ror #31]
            ldr r2, [r0, r12, lsr #30]
            ldr r2, [r0, r12, lsr #32]
            ldr r2, [r0, r12, asr #32]
            subs r3, r3, r3
            add r12, r0, #0x80000000
            ldr r2, [r12, -r1, rrx]!
            adds r3, r3, #0
            ldr r2, [r0, -r1, rrx]!
            ldr r2, [r0, #-4]!
            strb r2, [r0], r1
            bx lr""",
        "unaligned": "ldr r1, [r0]\nstr r1, [r0, #16]\nldrh r2, [r0, #1]\nbx lr",
        "frame": "sub sp, sp, #64\nadd sp, sp, #64\nbx lr",
        "maybe_frame": "cmp r0, #0\nsubne sp, sp, #32\naddne sp, sp, #32\nbx lr",
        "nested": "push {r4, lr}\nbl frame\npop {r4, pc}",
        "below": "str r0, [sp, #-12]\nbx lr",
        "store_pair": "mov r3, #1\nstr r2, [r0]\nadd r3, r3, #1\nstr r2, [r1]\nadd r3, r3, #1\nbx lr",
        "load_pair": "mov r3, #1\nldr r2, [r0]\nadd r3, r3, #1\nldr r2, [r1]\nadd r3, r3, #1\nbx lr",
        "long_store": "push {r4, lr}\nstmia r0, {r1-r4}\npop {r4, pc}",
        "jump": "mov r1, #2\nbx r0",
        "write_code": "adr r0, jump\nmov r1, #0\nstr r1, [r0]\nbx lr",
        "no_class": "mov r0, #1\nmrc p15, 0, r1, c0, c0, 0\nbx lr",
        "system_call": "mov r0, #1\nsvc #0\nbx lr",
        "newer": "mov r0, #1\n.inst 0xe730f110\nbx lr",
    },
    "mpc603e": {
        "plain": "li 3, 7\nblr",
        "late": "li 3, 1\nli 4, 2\nli 5, 3\nli 3, 4\nblr",
        "loop": "mtctr 3\n1: addi 4, 4, 1\nbdnz 1b\nblr",
        "early": "cmpwi 3, 0\nbeqlr\nli 3, 9\nblr",
        "load_use": "lwz 4, 0(3)\naddi 5, 4, 1\nlwz 6, 4(3)\nstw 5, 8(3)\nblr",
        "multiple": "stwu 1, -32(1)\nstmw 28, 16(1)\nstmw 30, 0(3)\nlmw 28, 16(1)\naddi 1, 1, 32\nblr",
        "zero": "dcbz 0, 3\ndcbz 4, 3\nlwz 3, 0(3)\nblr",
        "string": "lswi 5, 3, 6\nstswi 5, 4, 6\nblr",
        "forms": """
            lwzu 5, 4(3)
            stwux 5, 3, 4
            lwbrx 6, 0, 3
            sthbrx 6, 3, 4
            lhax 7, 3, 4
            stbu 7, -1(3)
            lha 6, 1(3)
            blr""",
        "unaligned": "lwz 4, 0(3)\nstw 4, 16(3)\nlhz 5, 1(3)\nblr",
        "frame": "stwu 1, -64(1)\naddi 1, 1, 64\nblr",
        "maybe_frame": "cmpwi 3, 0\nbeq 1f\naddi 1, 1, -32\naddi 1, 1, 32\n1: blr",
        "nested": "mflr 0\nstwu 1, -16(1)\nstw 0, 20(1)\nbl frame\nlwz 0, 20(1)\naddi 1, 1, 16\nmtlr 0\nblr",
        "below": "stw 3, -12(1)\nblr",
        "store_pair": "li 6, 1\nstw 5, 0(3)\naddi 6, 6, 1\nstw 5, 0(4)\naddi 6, 6, 1\nblr",
        "load_pair": "li 6, 1\nlwz 5, 0(3)\naddi 6, 6, 1\nlwz 5, 0(4)\naddi 6, 6, 1\nblr",
        "long_store": "li 6, 1\nstmw 28, 0(3)\nblr",
        "jump": "mtctr 3\nbctr",
        "write_code": "lis 3, jump@h\nori 3, 3, jump@l\nli 4, 0\nstw 4, 0(3)\nblr",
        "no_class": "li 3, 1\ndcbf 0, 3\nblr",
        "system_call": "li 3, 1\nsc\nblr",
        "newer": "li 3, 1\n.long 0\nblr",
    },
}

CASES: Mapping[str, tuple[Case, ...]] = {
    "cortex-m4": (
        Case("plain", (), 2, 1 + 4, result=7),
        Case("late", (), 5, 4 + 4, result=4),
        Case("itt_ite", (0, 0, HEAP), 8, 1 + 1 + 2 + 2 + 1 + 1 + 1 + 4, 1, 1, 8),
        Case("itt_ite", (1, 0, HEAP), 8, 1 + 1 + 1 + 1 + 1 + 1 + 1 + 4, 0, 0, 7),
        Case("itte", (1, 0, HEAP, 6), 7, 1 + 1 + 2 + 2 + 1 + 1 + 4, 1, 1, 6),
        Case("itte", (0, 0, HEAP, 6), 7, 1 + 1 + 1 + 1 + 2 + 1 + 4, 1, 0, 0),
        Case("it_return", (0,), 3, 1 + 1 + 4, result=0),
        Case("it_return", (1,), 5, 1 + 1 + 1 + 1 + 4, result=9),
        Case("it_branch", (0,), 5, 1 + 1 + 1 + 4 + 4, result=5),
        Case("it_branch", (3,), 6, 1 + 1 + 1 + 1 + 1 + 4, result=1),
        Case("it_pop", (0,), 4, 3 + 1 + 1 + 6, 2, 2, 0),
        Case("it_pop", (1,), 6, 3 + 1 + 1 + 1 + 1 + 6, 2, 2, 9),
        Case("it_call", (0,), 5, 3 + 1 + 1 + 1 + 6, 2, 2, 0),
        Case("it_call", (1,), 7, 3 + 1 + 1 + 4 + (1 + 4) + 6, 2, 2, 7),
        Case("cbz", (0,), 2, 1 + 3 + 4),
        Case("cbz", (1,), 3, 1 + 1 + 4),
        Case("loop", (3,), 7, 3 * 1 + 3 * 1 + 2 * 3 + 4),
        Case("divide", (100, 7), 2, 12 + 4, result=14),
        Case("table", (1,), 3, 6 + 1 + 4, 1, 0, 2),
        Case("literal", (), 2, (2 + 1) + 4, 1, 0, 0x12345678),
        Case("multiple", (HEAP + 64,), 7, 5 + (4 + 1) + (3 + 1) + 3 + 3 + 3 + 8, 11, 8),
        Case("forms", (HEAP + 64, 2), 9, 8 * 2 + 2 * 1 + 4, 5, 3),
        Case("unaligned", (HEAP + 14,), 4, (2 + 1) + (2 + 1) + (2 + 1) + 4, 2, 1),
        Case("unaligned", (HEAP + 13,), 4, (2 + 2) + (2 + 2) + 2 + 4, 2, 1),
        Case("unaligned", (HEAP + 12,), 4, 2 + 2 + (2 + 1) + 4, 2, 1),
        Case("nested", (), 6, 3 + 4 + (1 + 1 + 4) + 6, 2, 2),
    ),
    "arm926ej-s": (
        Case("plain", (), 2, 1 + 3, result=7),
        Case("late", (), 5, 4 + 3, result=4),
        Case("select", (1, 5, HEAP), 8, 1 + 2 + 1 + 1 + 3 + 1 + 1 + 3, 3, 0, 0),
        Case("select", (0, 5, HEAP), 8, 1 + 1 + 1 + 1 + 1 + 2 + 1 + 3, 0, 3, 5),
        Case("select", (-1, 5, HEAP), 8, 1 + 2 + 1 + 1 + 3 + 1 + 1 + 3, 3, 0, 0),
        Case("early", (0,), 2, 1 + 3, result=0),
        Case("early", (1,), 4, 1 + 1 + 1 + 3, result=9),
        Case("popeq", (0,), 3, 2 + 1 + 6, 2, 2, 0),
        Case("popeq", (1,), 5, 2 + 1 + 1 + 1 + 6, 2, 2, 9),
        Case("callne", (0,), 4, 2 + 1 + 1 + 6, 2, 2, 0),
        Case("callne", (1,), 6, 2 + 1 + 3 + (1 + 3) + 6, 2, 2, 7),
        Case("loop", (3,), 7, 3 * 1 + 3 * 1 + 2 * 2 + 3),
        Case("load_use", (HEAP,), 7, 2 + 1 + 1 + 1 + 3 + 1 + 3, 3),
        Case("multiply", (6, 7), 3, 3 + 2 + 3, result=42 + (42 << 7)),
        Case("literal", (), 2, 1 + 3, 1, 0, 0x12345678),
        Case("multiple", (HEAP + 64,), 9, 4 + 4 + 2 + (2 + 1) + 2 + 2 + 2 + 2 + 8, 11, 10),
        Case("unaligned", (HEAP + 14,), 4, 2 + 1 + 1 + 3, 2, 1),
        Case("nested", (), 6, 2 + 3 + (1 + 1 + 3) + 6, 2, 2),
    ),
    "mpc603e": (
        Case("plain", (), 2, 1 + 2, result=7),
        Case("late", (), 5, 4 + 2, result=4),
        Case("loop", (3,), 8, 4 + 3 * 1 + 3 * 1 + 2 * 1 + 2),
        # The last instruction is a conditional branch that is taken, to where nothing is executed any more.
        Case("early", (0,), 2, (1 + 2) + (1 + 1), result=0),
        Case("early", (1,), 4, (1 + 2) + 1 + 1 + 2, result=9),
        Case("load_use", (HEAP,), 5, 2 + 1 + 1 + 1 + 2, 2, 1),
        Case("multiple", (HEAP + 64,), 6, 1 + 6 + 4 + 6 + 1 + 2, 4, 7),
        Case("zero", (HEAP + 37, 64), 4, 10 + 10 + 1 + 2, 1, 2, 0),
        Case("string", (HEAP + 3, HEAP + 41), 3, 4 + 4 + 2, 6, 6),
        Case("forms", (HEAP + 64, 8), 8, 2 + 1 + 2 + 1 + 2 + 1 + 1 + 2, 4, 3),
        Case("unaligned", (HEAP + 14,), 4, 2 + 1 + 1 + 2, 2, 1),
        Case("nested", (), 11, 2 + 1 + 1 + 1 + (1 + 1 + 2) + 1 + 1 + 4 + 2, 1, 3),
    ),
}
ALL = [(target, case) for target, cases in CASES.items() for case in cases]
IDS = [f"{target}-{case.function}-{i}" for target, cases in CASES.items() for i, case in enumerate(cases)]
