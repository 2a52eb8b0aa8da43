"""Corner cases of jumps and of the stack pointer: the checker's execution takes what the engine takes, or says nothing.

Tests: certificate.runs.run, certificate.runs.arm_code, certificate.runs.powerpc_code.
"""

from contextlib import suppress

import pytest

from tests.support import guest_of
from wcet_probe.catalog.lookup import load_target
from wcet_probe.certificate.facts.asserted import Asserted
from wcet_probe.certificate.facts.findings import Binary
from wcet_probe.certificate.kernel.coverage import code_of
from wcet_probe.certificate.runs.memory import memory_at_entry
from wcet_probe.certificate.runs.run import executed
from wcet_probe.certificate.runs.words import LostError
from wcet_probe.errors import EmulationError
from wcet_probe.model.scenario import InitialCache

_THUMB = ".syntax unified\n.thumb\n.text\n.global f\n.thumb_func\n.type f, %function\nf:\n"
_POWERPC = ".text\n.global f\n.type f, @function\nf:\n"
_END = "\n.size f, . - f\n"
_TABLE_TO_NEXT = f"""{_THUMB}movs r0, #0\nldr r1, =table\nmovs r3, #100
1: cmp r0, r0\nit eq\ntbbeq [r1, r0]\nsubs r3, #1\nbne 1b\nbx lr\n.ltorg{_END}
.section .rodata\ntable: .byte 0, 0, 0, 0
"""
_LOOP_BY_LOW_BITS = (
    "mov r0, sp\nand r0, r0, #3\nmovs r3, #100\ncmp r0, #{}\nit eq\nmoveq r3, #1\n2: subs r3, #1\nbne 2b\n"
)
_ODD_POINTER = _THUMB + "mov r2, sp\nsub sp, #8\nadd sp, sp, #2\n{}mov sp, r2\nbx lr" + _END
_ODD_BY_JUMP = (
    _THUMB + "mov r2, sp\nmov r4, lr\nsub sp, #8\nldr r1, =1f\norr r1, r1, #1\nstr r1, [sp]\nldr pc, [sp], #2\n"
    ".align 2\n1: {}mov sp, r2\nbx r4\n.ltorg" + _END
)


def ran_and_executed(core, text, *, told):
    """Instructions and cycles of a run, and those that the checker makes of it; None where nothing is said."""
    guest = guest_of(text, load_target(core))
    with guest.machine() as machine:
        pointer = machine.entry_registers(())[guest.target.isa.stack_pointer] if told else None
        ran = None
        with suppress(EmulationError):  # a stack pointer that Thumb clears
            ran = machine.measure("f", (), InitialCache.DIRTY)
    binary = Binary(guest.image, guest.instructions, guest.costs, guest.target, Asserted(), {})
    code, content = code_of(guest.image, guest.instructions), memory_at_entry(guest.image, pointer)
    try:
        found = executed(code, binary, "f", content, {}, pointer, 100_000)
    except LostError:
        return ran and (ran.instructions, ran.cycles), None
    return (ran.instructions, ran.cycles), (found.instructions, found.cycles)


@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize("text", [_ODD_POINTER, _ODD_BY_JUMP])
@pytest.mark.parametrize("bits", [0, 2])
def test_nothing_is_said_behind_a_stack_pointer_of_thumb_that_is_no_multiple_of_4(text, bits, told):
    _, found = ran_and_executed("cortex-m4", text.format(_LOOP_BY_LOW_BITS.format(bits)), told=told)
    assert found is None


def test_a_conditional_table_that_leads_to_the_next_instruction_is_not_taken_for_one_that_is_skipped():
    ran, found = ran_and_executed("cortex-m4", _TABLE_TO_NEXT, told=False)
    assert found is None, (ran, found)
    beyond = _TABLE_TO_NEXT.replace("subs r3, #1\nbne", "nop\nsubs r3, #1\nbne").replace(".byte 0,", ".byte 1,")
    ran, found = ran_and_executed("cortex-m4", beyond, told=False)
    assert found == ran


@pytest.mark.parametrize("low", [0, 2, 3])
def test_the_lowest_bits_of_a_conditional_jump_of_powerpc_do_not_make_another_place_of_the_next_instruction(low):
    text = f"""{_POWERPC}li 3, 100\nlis 4, 2f@ha\naddi 4, 4, 2f@l\naddi 4, 4, {low}\nmtctr 4
1: cmpw 3, 3\nbeqctr\n2: addi 3, 3, -1\ncmpwi 3, 0\nbne 1b\nblr{_END}"""
    assert ran_and_executed("mpc603e", text, told=False)[1] is None
