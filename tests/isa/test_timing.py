"""Charging by the timing table: load-use, registers of a list, and instructions that cannot be charged."""

from dataclasses import replace
from pathlib import Path

import pytest

from wcet_probe.catalog.target_file import parse_target
from wcet_probe.errors import DecodeError
from wcet_probe.isa.decode import decode_range
from wcet_probe.isa.timing import costs, executed_cycles, with_timing_problems
from wcet_probe.model.instruction import Instruction, InstructionCost
from wcet_probe.model.target import Isa

FOLDER = Path(__file__).parents[2] / "targets"
M4, ARM926, MPC603E = (
    parse_target(name, (FOLDER / f"{name}.toml").read_text("utf-8")) for name in ("cortex-m4", "arm926ej-s", "mpc603e")
)


def arm(*words):
    return decode_range(b"".join(word.to_bytes(4, "little") for word in words), 0x1000, Isa.ARM, big_endian=False)


def thumb(*halfwords):
    code = b"".join(halfword.to_bytes(2, "little") for halfword in halfwords)
    return decode_range(code, 0x1000, Isa.THUMB, big_endian=False)


def powerpc(*words):
    return decode_range(b"".join(word.to_bytes(4, "big") for word in words), 0x1000, Isa.POWERPC, big_endian=True)


LDR_R0, LDRB_R0, ADD_R1_R0, ADD_R1_R2 = 0xE5910000, 0xE5D10000, 0xE0811000, 0xE0811002


def executed(instructions, target):
    return [one.executed_cycles for one in costs(instructions, target)]


def test_load_use_is_charged_when_the_next_instruction_reads_what_is_loaded():
    assert executed(arm(LDR_R0, ADD_R1_R0), ARM926) == [2, 1]
    assert executed(arm(LDR_R0, ADD_R1_R2, ADD_R1_R0), ARM926) == [1, 1, 1]
    assert executed(arm(LDRB_R0, ADD_R1_R0), ARM926) == [3, 1]
    assert executed(powerpc(0x80640000, 0x7C632A14), MPC603E) == [2, 1]  # lwz r3,0(r4); add r3,r3,r5
    assert executed(powerpc(0x80640000, 0x7CC62A14), MPC603E) == [1, 1]  # add r6,r6,r5


def test_a_conditional_branch_to_the_next_instruction_is_charged_as_taken():
    """It refills the pipeline where it is taken, and which way it went cannot be told from where it led."""
    thumbs, powerpcs = (thumb(0xD001), thumb(0xD0FF)), (powerpc(0x41820010), powerpc(0x41820004))
    for target, (elsewhere, behind) in ((M4, thumbs), (MPC603E, powerpcs)):
        (far,), (near,) = costs(elsewhere, target), costs(behind, target)
        assert far.taken_cycles > 0 == near.taken_cycles
        assert near.executed_cycles == far.executed_cycles + far.taken_cycles


def test_load_use_is_not_charged_over_a_gap_of_addresses():
    load, _, _, use = arm(LDR_R0, ADD_R1_R2, ADD_R1_R2, ADD_R1_R0)
    assert executed((load, use), ARM926) == [1, 1]
    assert executed((load,), ARM926) == [1]


def test_registers_of_a_list_are_charged_one_by_one():
    assert executed(thumb(0xBD0F), M4) == [4 + 5]  # pop {r0-r3, pc}
    assert executed(thumb(0xB40F), M4) == [1 + 4]  # push {r0-r3}
    assert executed(arm(0xE8BD800F), ARM926) == [5 + 4]  # pop {r0-r3, pc}
    assert executed(arm(0xE8900002), ARM926) == [2]  # ldm r0, {r1}
    assert executed(arm(0xE890000E), ARM926) == [3]  # ldm r0, {r1-r3}
    assert executed(powerpc(0xBFA10000), MPC603E) == [2 + 3]  # stmw r29,0(r1)


def test_conditions():
    taken, skipped = costs(arm(0x0A000000, 0x00811002), ARM926)  # beq; addeq
    assert taken == InstructionCost(executed_cycles=1, skipped_cycles=1, taken_cycles=2)
    assert skipped == InstructionCost(executed_cycles=1, skipped_cycles=1, taken_cycles=0)
    assert costs(thumb(0xD000), M4) == (InstructionCost(1, 1, 3),)  # beq
    assert costs(thumb(0xB100), M4) == (InstructionCost(1, 1, 3),)  # cbz


def test_an_instruction_without_timing_class_is_refused_only_when_it_is_charged():
    svc, add = thumb(0xDF00, 0x1840)
    message = (
        "0x00001000: svc #0: control goes to the handler of the exception, which is not followed: bound the handler"
    )
    with pytest.raises(DecodeError, match=message.replace("[", r"\[")):
        executed_cycles(svc, M4)
    with pytest.raises(DecodeError):
        costs((svc, add), M4)
    marked = with_timing_problems((svc, add), M4)
    assert marked[0].problem.startswith(message)
    assert marked[1] is add
    assert costs(marked, M4) == (InstructionCost(0, 0, 0), InstructionCost(1, 1, 0))
    with pytest.raises(DecodeError, match="svc #0"):
        executed_cycles(marked[0], M4)


def test_a_problem_of_the_decoder_is_kept():
    problem = Instruction(0x1000, 4, "?", "unknown", problem="0x00001000: ?: not supported")
    assert with_timing_problems((problem,), M4) == (problem,)
    with pytest.raises(DecodeError, match="not supported"):
        executed_cycles(problem, M4)


@pytest.mark.parametrize("text", ["pld [r1]", "pldw [r1, #4]", "pli [r1]", "dcbt 0, r4", "dcbtst r3, r4"])
def test_what_asks_for_a_line_is_refused_where_there_are_caches(text):
    """It was charged as a load that nobody waits for, and the line that it may evict was taken to be there still."""
    hint = Instruction(0x1000, 4, text, "hint")
    assert with_timing_problems((hint,), M4) == (hint,)
    (marked,) = with_timing_problems((hint,), ARM926)
    assert (
        marked.problem == f"0x00001000: {text}: not supported: its effect on the caches is not modelled; leave it out."
    )
    other = replace(hint, text="yield")
    assert with_timing_problems((other,), ARM926) == (other,)
