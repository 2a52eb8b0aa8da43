"""The errors of SLEIGH that are put right, or refused."""

import pytest

from tests.analyzer.pcode.machines import BASE, arm, lifter_of_v7, powerpc, thumb
from tests.path_check import attack, proved
from tests.support import assembler, guest_of
from wcet_probe.analyzer.pcode.operations import SPECIAL_REGISTER, PcodeOp, Varnode
from wcet_probe.catalog.lookup import load_target
from wcet_probe.errors import DecodeError
from wcet_probe.model.scenario import InitialCache


@pytest.mark.parametrize("word", [0xB0E510B4, 0xE06510B4, 0xE02510B4])  # strhtlt … #4; strht r1, [r5], #-4; …, -r4
def test_a_store_that_sleigh_takes_for_one_elsewhere_is_refused(word):
    with pytest.raises(DecodeError, match="the strht at 0x00001000 is not known: store by strh"):
        lifter_of_v7(word).lift(BASE)


@pytest.mark.parametrize(("machine", "units"), [(arm, (0xE10F0000,)), (thumb, (0xF3EF, 0x8000))])
def test_the_flags_as_a_number_are_unknown(machine, units):  # mrs r0, cpsr; mrs r0, apsr
    """Their Q was that of the last saturation alone, and the mode was 0."""
    r0 = Varnode("register", 0x20, 4)
    assert machine(*units).lift(BASE).ops == (PcodeOp("CALLOTHER", r0, (), SPECIAL_REGISTER),)


def test_what_is_unknown_is_so_under_its_condition():
    ops = arm(0x510F0000).lift(BASE).ops  # mrspl r0, cpsr
    assert [op.opcode for op in ops[-2:]] == ["CBRANCH", "CALLOTHER"]


@pytest.mark.parametrize(
    ("machine", "units"),
    [(arm, (0xE102F051,)), (lifter_of_v7, (0xE66F0F92,)), (thumb, (0xFA8D, 0xF081)), (thumb, (0xF321, 0x0D04))],
)
def test_saturations_of_the_program_counter_and_the_like_are_refused(machine, units):
    """Of qadd pc, r1, r2, uqadd8 r0, pc, r2, and in Thumb qadd r0, r1, sp, ssat16 sp, #5, r1 the result is unknown."""
    with pytest.raises(DecodeError, match="at 0x00001000 is UNPREDICTABLE"):
        machine(*units).lift(BASE)


@pytest.mark.parametrize(("word", "bit"), [(0xE6A40011, 4), (0xE6BF0011, 31), (0xE6E40011, 4)])
def test_saturation_of_arm_is_told_by_the_bit_that_thumb_tells(word, bit):  # ssat #5, ssat #32, usat #4
    (saturated,) = [op for op in lifter_of_v7(word).lift(BASE).ops if op.user_op.endswith("dSaturate")]
    assert saturated.inputs[1].offset == bit


OVERFLOW = """
  li 5, 0
  li 6, 9
  divw. 7, 6, 5
  bso 1f
  li 3, 100
  mtctr 3
0:
  bdnz 0b
1:
  blr
"""


def test_a_division_by_zero_without_an_o_is_no_overflow():
    """SLEIGH has `divw.` set the summary, which CR0 shows (5 instructions proved, 107 executed)."""
    guest = guest_of(assembler({"f": OVERFLOW}, load_target("mpc603e")), load_target("mpc603e"))
    with guest.machine() as machine:
        run = machine.measure("f", (), InitialCache.COLD)
    assert run.instructions == proved(guest, "f").bound.instructions == 107


@pytest.mark.parametrize(("word", "writes"), [(0x7CE633D7, False), (0x7CE637D7, True), (0x7CE637D6, True)])
def test_overflows_are_written_by_instructions_that_end_with_an_o(word, writes):  # divw. divwo. divwo
    one = powerpc(word)
    written = {op.output for op in one.lift(BASE).ops}
    assert all((one.registers[name] in written) == writes for name in ("xer_ov", "xer_so"))


@pytest.mark.parametrize("halves", [(0xEA4F, 0x0115), (0xEA5F, 0x0115)])  # lsr.w, lsrs.w r1, r5, #32
def test_a_shift_by_32_that_sleigh_takes_for_none_is_refused(halves):
    with pytest.raises(DecodeError, match="the lsr by 32 bits at 0x00001000"):
        thumb(*halves).lift(BASE)
    thumb(halves[0], halves[1] | 0x40).lift(BASE)


def test_a_part_of_a_word_that_sleigh_stores_as_a_whole_is_refused():
    with pytest.raises(DecodeError, match="the stswi of a part of a word at 0x00001000"):
        powerpc(0x7CA32DAA).lift(BASE)  # stswi r5, r3, 5
    powerpc(0x7CA345AA).lift(BASE)  # 8


@pytest.mark.parametrize(
    ("word", "is_known"),
    [
        (0x7C6802A6, True),
        (0x7C6902A6, True),
        (0x7C7042A6, True),
        (0x7C6C42E6, False),
        (0x7C6C42A6, False),
        (0x7C7602A6, False),
    ],
)
def test_special_registers_that_change_unseen_are_unknown(word, is_known):  # lr, ctr, sprg0; mftb, tbl, dec
    (op,) = powerpc(word).lift(BASE).ops
    assert op.output == Varnode("register", 12, 4)
    assert (op.opcode == "COPY") == is_known == (op.user_op != SPECIAL_REGISTER)


@pytest.mark.parametrize("word", [0xE1DF00B4, 0xE1DF00F4, 0xE1DF00D4])  # ldrh, ldrsh, ldrsb r0, [pc, #4]
def test_literal_loads_of_arm_take_the_literals_address(word):
    pointers = [op.inputs[0] for op in arm(word).lift(BASE).ops if op.opcode == "LOAD"]
    assert pointers == [Varnode("const", 0x100C, 4)]


def test_literal_ldrd_of_thumb_is_two_words_in_order():
    ops = thumb(0xE9DF, 0x0101).lift(BASE).ops  # ldrd r0, r1, [pc, #4]
    expected = [(Varnode("register", 0x20, 4), 0x1008), (Varnode("register", 0x24, 4), 0x100C)]
    assert ops == tuple(PcodeOp("COPY", half, (Varnode("ram", address, 4),)) for half, address in expected)


def test_literal_ldrd_of_thumb_from_before_it():
    """SLEIGH added the distance."""
    ops = thumb(0xE95F, 0x0102).lift(BASE).ops  # ldrd r0, r1, [pc, #-8]
    assert [op.inputs[0] for op in ops] == [Varnode("ram", 0xFFC, 4), Varnode("ram", 0x1000, 4)]


def test_a_base_that_is_stored_is_written_back():
    """SLEIGH left that out of `stm` in 16 bits, and took the one of the stack pointer for `push`."""
    base = Varnode("register", 0x28, 4)
    assert thumb(0xC21C).lift(BASE).ops[-1].output == base  # stm r2!, {r2, r3, r4}
    for halves, reason in (((0xC21E,), "not first"), ((0xE8AD, 0x0006), "stm sp!")):  # r1 before r2
        with pytest.raises(DecodeError, match=reason):
            thumb(*halves).lift(BASE)


@pytest.mark.parametrize(
    ("halves", "is_cleared"),
    [
        ((0x46A5,), True),  # mov sp, r4
        ((0xF10D, 0x0D06), True),  # add.w sp, sp, #6
        ((0xF85D, 0xFB05), True),  # ldr pc, [sp], #5
        ((0xF85D, 0xFB08), False),
        ((0xB510,), False),  # push {r4, lr}
        ((0xBD10,), False),  # pop {r4, pc}
        ((0xB082,), False),  # sub sp, #8
        ((0xED2D, 0x8B02), False),  # vpush {d8}
    ],
)
def test_the_lowest_bits_of_the_stack_pointer_are_0_in_thumb(halves, is_cleared):
    """The core ignores what is written to them, of which SLEIGH knows nothing."""
    machine = thumb(*halves)
    pointer = machine.registers["sp"]
    last = [op for op in machine.lift(BASE).ops if op.output == pointer][-1]
    cleared = PcodeOp("INT_AND", pointer, (pointer, Varnode("const", 0xFFFF_FFFC, 4)))
    assert (last == cleared) == is_cleared
    assert cleared not in arm(0xE1A0D004).lift(BASE).ops


def test_a_popped_program_counter_is_a_return():
    """``ldr pc, [sp], #n``, and no other load to it."""
    for word, opcode in {
        0xE49DF004: "RETURN",
        0x149DF008: "RETURN",
        0xE59DF004: "BRANCHIND",
        0xE494F004: "BRANCHIND",
    }.items():
        assert arm(word).lift(BASE).ops[-1].opcode == opcode
    for second, opcode in {0xFB04: "RETURN", 0xFB08: "RETURN", 0xFC04: "BRANCHIND"}.items():
        assert thumb(0xF85D, second).lift(BASE).ops[-1].opcode == opcode


@pytest.mark.parametrize(("word", "negated"), [(0x4002FFF8, True), (0x4042FFF8, True), (0x4102FFF8, False)])
def test_decrement_and_branch_if_false(word, negated):  # bdnzf eq, bdzf eq, bdnzt eq
    lifted = powerpc(word).lift(BASE)
    conjunction = next(op for op in lifted.ops if op.opcode == "BOOL_AND")
    producers = [op.opcode for op in lifted.ops if op.output == conjunction.inputs[1]]
    assert (producers[-1] in ("BOOL_NEGATE", "INT_EQUAL")) == negated or producers[-1] == "INT_EQUAL"


@pytest.mark.parametrize(("machine", "word"), [(powerpc, 0x7C6102A6), (powerpc, 0x7C6103A6)])
def test_flags_as_a_whole_are_refused(machine, word):  # mfxer r3, mtxer r3
    with pytest.raises(DecodeError, match="0x00001000 accesses the flags as a whole"):
        machine(word).lift(BASE)


@pytest.mark.parametrize("word", [0xE129F000, 0xE121F000, 0xE321F0D3])
def test_another_mode_is_refused_as_that(word):  # msr cpsr_fc, r0; msr cpsr_c, r0; msr cpsr_c, #0xd3
    with pytest.raises(DecodeError, match="msr at 0x00001000 writes more than the flags"):
        arm(word).lift(BASE)


def test_the_status_is_read():  # mrs r0, cpsr
    assert [op.opcode for op in arm(0xE10F0000).lift(BASE).ops] == ["CALLOTHER"]


@pytest.mark.parametrize("first", [0xEC2D, 0xEC3D])
def test_a_call_of_non_secure_code_is_told_where_its_registers_are_saved(first):
    with pytest.raises(DecodeError, match="call of non-secure code"):
        thumb(first, 0x0A00).lift(BASE)  # vlstm sp, vlldm sp


@pytest.mark.parametrize(
    ("machine", "units", "is_known"),
    [
        (lifter_of_v7, (0xACC66A57,), False),  # vstmge r6, {s13 and 86 more}: SLEIGH ended the process
        (lifter_of_v7, (0xECA60A20,), True),  # vstm r6!, {s0 to s31}
        (lifter_of_v7, (0xECE60A20,), False),  # one further
        (lifter_of_v7, (0xECA60B20,), True),  # vstm r6!, {d0 to d15}
        (lifter_of_v7, (0xECA60A00,), False),  # of none
        (lifter_of_v7, (0xED860AFF,), True),  # vstr s0, [r6, #1020]
        (lifter_of_v7, (0xEC410B10,), True),  # vmov d0, r0, r1
        (thumb, (0xEC81, 0x6A96), False),
        (thumb, (0xED2D, 0x8B10), True),  # vpush {d8 to d15}
        (thumb, (0xBF08, 0xEC81, 0x6A96), False),  # in an IT block
    ],
)
def test_registers_that_there_are_not_are_refused_before_sleigh_is_asked(machine, units, is_known):
    if is_known:
        assert machine(*units).lift(BASE).size_bytes == 4
        return
    with pytest.raises(DecodeError, match="transfers registers that there are not"):
        machine(*units).lift(BASE)


JUMPS_BY_POP = """
    push {{r0, r1}}
    {target}
    str r0, [sp, #4]
    pop {{r0, pc}}
    .balign 4
2:  .word g + 1 - 2b
"""
"""As a thunk of LLD jumps where no register is free, and division of 64 bits of libgcc to ``__aeabi_ldiv0``."""
TARGETS = {
    "a function": ("ldr r0, 2f\nadr r1, 2f\nadds r0, r0, r1", 9),
    "the caller": ("mov r0, lr", 4),
}


@pytest.mark.parametrize("name", TARGETS)
def test_a_pop_of_what_was_stored_jumps_there(name):
    target, most = TARGETS[name]
    core = load_target("cortex-m0plus")
    text = assembler({"f": JUMPS_BY_POP.format(target=target), "g": "adds r0, r0, #1\nnop\nbx lr"}, core)
    proof = proved(guest_of(text, core), "f")
    assert proof.bound.instructions == most
    attack(proof, 1, 2)


def test_a_pop_of_what_was_stored_there_is_a_jump_and_no_other():
    jumps = {}
    for units in ((0x9001, 0xBD01), (0x9001, 0xBD03), (0x9801, 0xBD01), (0x9001, 0xBC01)):
        ops = thumb(*units).lift(BASE + 2).ops  # str r0, [sp, #4]; pop {r0, pc}, and others
        jumps[units] = ops[-1].opcode == "BRANCHIND"
    assert [*jumps.values()] == [True, False, False, False]
