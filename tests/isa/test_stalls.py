"""Waits between neighbours: each rule of the targets by a sequence whose cycles the rule's source tells."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support import assembler, guest_of, image_of
from wcet_probe.catalog.lookup import load_target, target_names
from wcet_probe.isa.decode import decode
from wcet_probe.isa.stalls import waits_behind
from wcet_probe.model.instruction import Control, Instruction
from wcet_probe.model.target import Basis, Need, Result, Stall

M4, ARM9, E603, E755, Z6, M7, R5 = (
    "cortex-m4", "arm926ej-s", "mpc603e", "mpc755", "e200z6", "cortex-m7", "cortex-r5",
)  # fmt: skip
M3, M33, M4F = "cortex-m3", "cortex-m33", "cortex-m4f"

SEQUENCES = [
    # Cortex-M3 TRM, DDI 0337I, page 3-9: an address that a data processing operation just computed.
    (M4, "adds r0, #4; ldr r1, [r0]; bx lr", (1, 0, 0)),
    (M4, "adds r0, #4; str r0, [r1]; bx lr", (0, 0, 0)),
    (M4, "adds r0, #4; strb r2, [r1, r0]; bx lr", (1, 0, 0)),
    (M4, "adds r0, #4; nop; ldr r1, [r0]; bx lr", (0, 0, 0, 0)),
    (M4, "sub sp, #8; push {r4}; bx lr", (1, 0, 0)),
    (M4, "lsls r0, #1; tbb [r1, r0]", (1, 0)),
    (M4, "ldr r0, [r1]; ldr r2, [r0]; bx lr", (0, 0, 0)),
    (M4, "ldr r0, [r1], #4; ldr r2, [r1]; bx lr", (1, 0, 0)),
    (M4, "ldr r0, [r1], #4; ldr r2, [r0]; bx lr", (0, 0, 0)),
    (M4, "push {r4}; pop {r4, pc}", (1, 0)),
    # An address behind a branch: on the way that is taken its cycles lie in between, on the other only one.
    (M4, "adds r0, #4; b 1f; 1: ldr r1, [r0]; bx lr", (0, 0, 0, 0)),
    (M4, "adds r0, #4; cbz r1, 1f; ldr r1, [r0]; 1: ldr r1, [r0]; bx lr", (0, 0, 0, 0, 0)),
    (M4, "it eq; addeq r0, #4; ldr r1, [r0]; bx lr", (0, 1, 0, 0)),
    (M3, "adds r0, #4; ldr r1, [r0]; bx lr", (1, 0, 0)),
    (M3, "ldr r0, [r1], #4; ldr r2, [r1]; bx lr", (1, 0, 0)),
    (M33, "adds r0, #4; ldr r1, [r0]; bx lr", (1, 0, 0)),
    (M33, "ldr r0, [r1], #4; ldr r2, [r1]; bx lr", (1, 0, 0)),
    (M33, "ldr r0, [r1]; adds r0, #4; bx lr", (1, 0, 0)),
    # GCC, cortex-m4-fpu.md: latency 2 of additions and multiplications, 4 and 15 of those that take 3 and 14 cycles.
    (M4F, "adds r0, #4; vldr s0, [r0]; bx lr", (1, 0, 0)),
    (M4F, "ldr r0, [r1], #4; ldr r2, [r1]; bx lr", (1, 0, 0)),
    (M4F, "vadd.f32 s0, s1, s2; vmul.f32 s3, s0, s4; bx lr", (1, 0, 0)),
    (M4F, "vadd.f32 s0, s1, s2; vmul.f32 s3, s1, s4; bx lr", (0, 0, 0)),
    (M4F, "vdiv.f32 s0, s1, s2; nop; vadd.f32 s3, s0, s4; bx lr", (0, 0, 0, 0)),
    (M4F, "vadd.f32 s1, s2, s3; vstr d0, [r0]; bx lr", (1, 0, 0)),
    # ARM7EJ-S TRM, DDI 0214B, 9.9.1, 9.10.1; 9.11.1 and ARM9E-S TRM, DDI 0165B, page 8-22, with two cycles for bytes.
    (ARM9, "mul r0, r1, r2; sub r4, r0, r3; bx lr", (1, 0, 0)),
    (ARM9, "mla r0, r1, r2, r3; str r0, [r8]; bx lr", (1, 0, 0)),
    (ARM9, "mul r0, r1, r2; sub r4, r1, r3; sub r4, r0, r3; bx lr", (0, 0, 0, 0)),
    (ARM9, "muls r0, r1, r2; sub r4, r0, r3; bx lr", (0, 0, 0)),
    (ARM9, "qadd r0, r1, r2; sub r4, r0, r3; bx lr", (1, 0, 0)),
    (ARM9, "ldrb r0, [r1, #1]; add r2, r0, r3; add r4, r0, r5; bx lr", (2, 0, 0, 0)),
    (ARM9, "ldrb r0, [r1, #1]; orr r4, r4, r5; add r2, r0, r3; bx lr", (1, 0, 0, 0)),
    (ARM9, "ldrb r0, [r1]; mul r6, r7, r8; add r4, r0, r5; bx lr", (0, 0, 0, 0)),
    (ARM9, "ldrb r0, [r1]; mov r0, #1; add r4, r0, r5; bx lr", (0, 0, 0, 0)),
    (ARM9, "ldrb r0, [r1]; moveq r0, #1; add r4, r0, r5; bx lr", (1, 0, 0, 0)),
    (ARM9, "ldrb r0, [r1]; b 1f; 1: add r4, r0, r5; bx lr", (0, 0, 0, 0)),
    (ARM9, "ldrb r0, [r1]; beq 1f; mov r2, #0; bx lr; 1: add r4, r0, r5; bx lr", (0, 0, 0, 0, 0, 0)),
    (ARM9, "ldrb r0, [r1]; beq 1f; add r4, r0, r5; bx lr; 1: mov r2, #0; bx lr", (1, 0, 0, 0, 0, 0)),
    (ARM9, "ldr r0, [r1]; str r0, [r2]; bx lr", (1, 0, 0)),
    (ARM9, "ldr r0, [r1]; mov r5, r5; str r0, [r2]; bx lr", (0, 0, 0, 0)),
    (ARM9, "ldr r0, [r1]; stmia r0, {r1-r2}; bx lr", (1, 0, 0)),
    (ARM9, "add r0, r0, #4; ldmia r0, {r1-r2}; bx lr", (1, 0, 0)),
    (ARM9, "add r0, r0, #4; ldr r1, [r0]; bx lr", (0, 0, 0)),
    # GCC, 603.md: latency 3 of a compare to a branch, 2 of both results of a load with update; 7xx.md: 2 and 2.
    (E603, "cmpwi 3, 0; beq 1f; 1: blr", (2, 0, 0)),
    (E603, "cmpwi 3, 0; addi 4, 4, 1; beq 1f; 1: blr", (1, 0, 0, 0)),
    (E603, "cmpwi 3, 0; addi 4, 4, 1; addi 5, 5, 1; beq 1f; 1: blr", (0, 0, 0, 0, 0)),
    (E603, "cmpwi 7, 3, 0; beq 1f; 1: blr", (0, 0, 0)),
    (E603, "cmpwi 7, 3, 0; beq 7, 1f; 1: blr", (2, 0, 0)),
    (E603, "cmpwi 7, 3, 0; bnelr 7; blr", (2, 0, 0)),
    (E603, "cmpwi 3, 0; bdnz 1f; 1: beq 2f; 2: blr", (1, 0, 0, 0)),
    (E603, "andi. 4, 3, 1; beq 1f; 1: blr", (2, 0, 0)),
    (E603, "add 4, 3, 3; beq 1f; 1: blr", (0, 0, 0)),
    (E603, "add. 4, 3, 3; mfcr 5; blr", (2, 0, 0)),
    (E603, "cmpwi 1, 3, 0; cror 0, 4, 9; blr", (2, 0, 0)),
    (E603, "lwzu 4, 4(3); addi 3, 3, 1; blr", (1, 0, 0)),
    (E603, "stwu 4, 4(3); addi 3, 3, 1; blr", (0, 0, 0)),
    (E755, "cmpwi 3, 0; beq 1f; 1: blr", (1, 0, 0)),
    (E755, "cmpwi 3, 0; addi 4, 4, 1; beq 1f; 1: blr", (0, 0, 0, 0)),
    (E755, "lwzu 4, 4(3); addi 3, 3, 1; blr", (1, 0, 0)),
    (Z6, "lwzu 4, 4(3); addi 3, 3, 1; blr", (1, 0, 0)),
    (Z6, "cmpwi 3, 0; beq 1f; 1: blr", (1, 0, 0)),
    (Z6, "lwz 4, 0(3); addi 5, 5, 1; addi 4, 4, 1; blr", (1, 0, 0, 0)),
    # LLVM, ARMScheduleM7.td: addresses and operands of the first shifter in EX1; load-use reaches two and three ahead.
    (M7, "adds r0, #4; ldr r1, [r0]; bx lr", (1, 0, 0)),
    (M7, "adds r0, #4; add.w r1, r1, r0, lsl #2; bx lr", (1, 0, 0)),
    (M7, "adds r0, #4; add.w r1, r0, r1, lsl #2; bx lr", (0, 0, 0)),
    (M7, "adds r0, #4; ubfx r1, r0, #1, #2; bx lr", (1, 0, 0)),
    (M7, "ldr r0, [r1]; movs r2, #0; adds r0, #1; bx lr", (1, 0, 0, 0)),
    (M7, "ldrb r0, [r1]; movs r2, #0; movs r3, #0; adds r0, #1; bx lr", (1, 0, 0, 0, 0)),
    # Cortex-R4 TRM, DDI 0363E, table 14-2.
    (R5, "ldr r1, [r2]; add r6, r5, r4; bx lr", (0, 0, 0)),
    (R5, "add r1, r2, r3; add r9, r6, r1; bx lr", (0, 0, 0)),
    (R5, "ldr r1, [r2]; add r6, r5, r1; bx lr", (1, 0, 0)),
    (R5, "add r2, r5, r6; ldr r1, [r2]; bx lr", (2, 0, 0)),
    (R5, "ldr r1, [r2]; ldr r5, [r1]; bx lr", (2, 0, 0)),
    (R5, "add r2, r5, r6; add r1, r1, r2, lsl #1; bx lr", (1, 0, 0)),
    (R5, "ldr r2, [r5]; add r1, r1, r2, lsl #1; bx lr", (2, 0, 0)),
    (R5, "add r2, r5, r6; mul r1, r3, r2; bx lr", (1, 0, 0)),
    (R5, "ldr r2, [r5]; mul r1, r3, r2; bx lr", (2, 0, 0)),
]  # fmt: skip


def code(target_name: str, text: str) -> tuple[Instruction, ...]:
    image = image_of(assembler({"f": text.replace(";", "\n")}, load_target(target_name)), load_target(target_name))
    return decode(image)


@pytest.mark.parametrize(("target", "text", "waits"), SEQUENCES, ids=[f"{t} {s}" for t, s, _ in SEQUENCES])
def test_waits_are_those_of_the_manual(target, text, waits):
    found = waits_behind(code(target, text), load_target(target))
    assert found[: len(waits)] == waits


def test_every_rule_of_every_target_is_in_a_sequence():
    for name in target_names():
        target = load_target(name)
        sequences = [code(name, text) for on, text, _ in SEQUENCES if on == name]
        for rule in target.stalls:
            others = replace(target, stalls=tuple(one for one in target.stalls if one is not rule))
            assert any(waits_behind(one, target) != waits_behind(one, others) for one in sequences), (name, rule.name)


# ------------------------------------------------------------------------------------------- paths nobody can foresee


def instruction(address: int, **properties: object) -> Instruction:
    return Instruction(address, 4, "an instruction", "alu", **properties)  # type: ignore[arg-type]


def of_long_wait(cycles: int):
    """A target whose results all come late."""
    target = load_target(ARM9)
    every = tuple(target.timing)
    rule = Stall("late", every, every, Result.WRITTEN, Need.ANY, cycles, Basis.ASSUMED, "a test")
    return replace(target, stalls=(rule,))


MAKES, USES = {"writes": frozenset({"r0"})}, {"reads": frozenset({"r0"})}


def test_where_control_goes_is_unknown_the_dearest_dependent_instruction_is_met():
    target = of_long_wait(9)
    makes, leaves = instruction(0, **MAKES), instruction(4, control=Control.INDIRECT)
    assert waits_behind((makes, leaves), target) == (8, 0)
    jumps = instruction(4, control=Control.BRANCH, branch_target=0x8000)
    assert waits_behind((makes, jumps), target) == (8, 0)


def test_a_predicated_return_may_also_fall_through():
    target = of_long_wait(9)
    leaves = instruction(4, control=Control.INDIRECT, condition=0)
    assert waits_behind((instruction(0, **MAKES), leaves, instruction(8, **USES)), target) == (8, 0, 0)
    calls = instruction(4, control=Control.CALL, branch_target=12, condition=0)
    after = (instruction(8, **USES), instruction(12, control=Control.BRANCH, branch_target=12))
    assert waits_behind((instruction(0, **MAKES), calls, *after), target)[0] == 8


def test_behind_a_call_the_called_function_is_next():
    target = of_long_wait(9)
    calls = instruction(4, control=Control.CALL, branch_target=16)
    after = (instruction(8, **USES), instruction(12), instruction(16), instruction(20, **USES))
    assert waits_behind((instruction(0, **MAKES), calls, *after), target)[0] == 7


def test_the_search_ends_in_a_loop():
    target = of_long_wait(40)
    loop = (instruction(0, **MAKES), instruction(4), instruction(8, control=Control.BRANCH, branch_target=4))
    assert waits_behind(loop, target) == (0, 0, 0)
    again = (*loop[:2], instruction(8, control=Control.CONDITIONAL_BRANCH, branch_target=4), instruction(12, **USES))
    assert waits_behind(again, target) == (38, 0, 0, 0)


def test_a_pattern_of_a_literal_costs_its_cycle_only_where_the_address_is_a_literal():
    literal, other = (guest_of(assembler({"f": text}, load_target(M4)), load_target(M4)) for text in
                      ("ldr r0, =0x12345678\nbx lr\n.ltorg", "ldr r0, [r1]\nbx lr"))  # fmt: skip
    assert (literal.costs[0].executed_cycles, other.costs[0].executed_cycles) == (3, 2)
