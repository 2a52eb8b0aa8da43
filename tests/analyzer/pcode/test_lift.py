"""Lifting: instruction boundaries, guards of IT blocks, and the errors of SLEIGH that are put right."""

from functools import cache

import pytest

from wcet_probe.analyzer.pcode import lift as lift_module
from wcet_probe.analyzer.pcode.lift import (
    SATURATION,
    SPECIAL_REGISTER,
    Lifter,
    PcodeOp,
    Varnode,
    code_reader,
    image_lifter,
)
from wcet_probe.errors import DecodeError
from wcet_probe.model.image import Segment
from wcet_probe.model.target import Isa

BASE = 0x1000


def lifter(isa, code):
    language = {Isa.THUMB: "ARM:LE:32:Cortex", Isa.ARM: "ARM:LE:32:v5t", Isa.POWERPC: "PowerPC:BE:32:default"}[isa]
    return Lifter(language, isa, code_reader([Segment(BASE, code, len(code), writable=False, executable=True)]))


def thumb(*halfwords):
    return lifter(Isa.THUMB, b"".join(halfword.to_bytes(2, "little") for halfword in halfwords))


def arm(word):
    return lifter(Isa.ARM, word.to_bytes(4, "little"))


def lifter_of_v7(word):
    code = word.to_bytes(4, "little")
    segment = Segment(BASE, code, len(code), writable=False, executable=True)
    return Lifter("ARM:LE:32:v7", Isa.ARM, code_reader([segment]))


def powerpc(word):
    return lifter(Isa.POWERPC, word.to_bytes(4, "big"))


def is_guarded(instruction):
    following = Varnode("ram", instruction.address + instruction.size_bytes, 4)
    return any(op.opcode == "CBRANCH" and op.inputs[0] == following for op in instruction.ops)


ITTE_EQ, ADDEQ, LDREQ_WIDE, SUBNE, MOVS = 0xBF06, 0x1840, (0xF8D1, 0x0004), 0x1A40, 0x2001


def test_guards_of_an_it_block():
    lift = thumb(ITTE_EQ, ADDEQ, *LDREQ_WIDE, SUBNE, MOVS).lift
    lift(BASE)
    sizes = {BASE: 2, BASE + 2: 2, BASE + 4: 4, BASE + 8: 2, BASE + 10: 2}
    assert {address: lift(address).size_bytes for address in sizes} == sizes
    assert [is_guarded(lift(address)) for address in sizes] == [False, True, True, True, False]


@pytest.mark.parametrize(("mask", "count"), [(0x8, 1), (0x4, 2), (0xC, 2), (0x2, 3), (0xE, 3), (0x1, 4), (0xF, 4)])
def test_an_it_mask_predicates_as_many(mask, count):
    lift = thumb(0xBF00 | mask, *[ADDEQ] * 6).lift
    lift(BASE)
    assert [is_guarded(lift(BASE + 2 * n)) for n in range(1, 7)] == [True] * count + [False] * (6 - count)


SATURATED = (0xF381, 0x0203), (0xF301, 0x0203), (0xF3A1, 0x0203)  # usat, ssat, usat16 r2, #…, r1


@pytest.mark.parametrize("condition", [1, 10])
def test_what_sleigh_leaves_without_a_guard_has_that_of_its_neighbour(condition):
    """Saturation was taken to be executed whatever the condition of its IT block: its result was a bound of rounds."""
    itte = 0xBF06 ^ (condition << 4 | (condition & 1) * 0xC)
    lift = thumb(*(half for wide in SATURATED for half in (itte, ADDEQ, *wide, SUBNE))).lift
    for start in range(BASE, BASE + 10 * len(SATURATED), 10):
        lift(start)
        blocks = [lift(start + offset) for offset in (2, 4, 8)]
        assert all(map(is_guarded, blocks))
        met, own, other = (
            [(op.opcode, *(one for one in op.inputs if one.space == "register")) for op in block.ops[: 1 + branch]]
            for block in blocks
            for branch in [[op.opcode for op in block.ops].index("CBRANCH")]
        )
        assert own == met != other


@pytest.mark.parametrize("word", [0xB0E510B4, 0xE06510B4, 0xE02510B4])  # strhtlt … #4; strht r1, [r5], #-4; …, -r4
def test_a_store_that_sleigh_takes_for_one_elsewhere_is_refused(word):
    with pytest.raises(DecodeError, match="the strht at 0x00001000 is not known: store by strh"):
        lifter_of_v7(word).lift(BASE)


@pytest.mark.parametrize(("machine", "units"), [(arm, (0xE10F0000,)), (thumb, (0xF3EF, 0x8000))])
def test_the_flags_as_a_number_are_unknown(machine, units):  # mrs r0, cpsr; mrs r0, apsr
    """Their Q was that of the last saturation alone, and the mode was 0."""
    r0 = Varnode("register", 0x20, 4)
    assert machine(*units).lift(BASE).ops == (PcodeOp("CALLOTHER", r0, (), SPECIAL_REGISTER),)


UNKNOWN = {
    "qadd": (arm, (0xE1020051,)),
    "qdsub": (arm, (0xE1620051,)),
    "uqadd8": (lifter_of_v7, (0xE6610F92,)),
    "ssat16": (lifter_of_v7, (0xE6A30F31,)),
    "usat16 of Thumb": (thumb, (0xF3A1, 0x0004)),
    "ssat16 of Thumb": (thumb, (0xF321, 0x0004)),
    "uqsub8 of Thumb": (thumb, (0xFAC1, 0xF052)),
    "qadd of Thumb": (thumb, (0xFA82, 0xF081)),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_of_what_sleigh_saturates_otherwise_nothing_is_known(name):
    machine, units = UNKNOWN[name]
    r0 = Varnode("register", 0x20, 4)
    assert machine(*units).lift(BASE).ops == (PcodeOp("CALLOTHER", r0, (), SATURATION),)


def test_what_is_unknown_is_so_under_its_condition():
    ops = arm(0x51020051).lift(BASE).ops  # qaddpl r0, r1, r2
    assert [op.opcode for op in ops[-2:]] == ["CBRANCH", "CALLOTHER"]


@pytest.mark.parametrize(("word", "bit"), [(0xE6A40011, 4), (0xE6BF0011, 31), (0xE6E40011, 4)])
def test_saturation_of_arm_is_told_by_the_bit_that_thumb_tells(word, bit):  # ssat #5, ssat #32, usat #4
    (saturated,) = [op for op in lifter_of_v7(word).lift(BASE).ops if op.user_op.endswith("dSaturate")]
    assert saturated.inputs[1].offset == bit


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


def test_nop_is_no_it_instruction():
    lift = thumb(0xBF00, ADDEQ).lift
    assert lift(BASE).ops == ()
    assert not is_guarded(lift(BASE + 2))


def test_an_it_block_entered_in_its_middle_is_an_error_once_its_start_is_met():
    lift = thumb(ITTE_EQ, ADDEQ, *LDREQ_WIDE, SUBNE).lift
    assert not is_guarded(lift(BASE + 8))
    with pytest.raises(DecodeError, match=r"0x00001008 .* 0x00001000"):
        lift(BASE)


def outcome(lift, address):
    try:
        return lift(address)
    except DecodeError as error:
        return str(error)


AFTER_A_BLOCK = (ITTE_EQ, ADDEQ, *LDREQ_WIDE, SUBNE, MOVS, 0xBF08, ADDEQ, MOVS, ITTE_EQ, ADDEQ)


@pytest.mark.parametrize("earlier", [(), (0, 12, 18), (18, 12, 0), (2, 8, 0), (12, 0, 10), (18, 16)])
def test_what_others_have_lifted_of_an_image_changes_nothing(earlier):
    """In whatever order: instructions, blocks, the middle of a block, a block that the code cuts off."""
    code = b"".join(halfword.to_bytes(2, "little") for halfword in AFTER_A_BLOCK)
    segments = (Segment(BASE, code, len(code), writable=False, executable=True),)
    lift_module._first_lifter.cache_clear()
    other = image_lifter("ARM:LE:32:Cortex", Isa.THUMB, segments)
    for offset in earlier:
        outcome(other.lift, BASE + offset)
    for first, second in ((0, 2), (2, 0), (8, 10), (10, 8), (12, 14), (14, 12), (16, 18), (20, 18)):
        shared = image_lifter("ARM:LE:32:Cortex", Isa.THUMB, segments)
        found = [outcome(shared.lift, BASE + offset) for offset in (first, second)]
        assert found == alone(first, second)


@cache
def alone(*offsets):
    lift = thumb(*AFTER_A_BLOCK).lift
    return [outcome(lift, BASE + offset) for offset in offsets]


def test_what_was_translated_of_an_image_is_shared():
    code = (0xE5910004).to_bytes(4, "little")
    segments = (Segment(BASE, code, len(code), writable=False, executable=True),)
    one, other = (image_lifter("ARM:LE:32:v5t", Isa.ARM, segments) for _ in range(2))
    assert one is not other
    assert one.lift(BASE) is other.lift(BASE)


def test_an_it_block_that_the_code_cuts_off():
    with pytest.raises(DecodeError, match="whole IT block at 0x00001000: only 2 of 4"):
        thumb(ITTE_EQ, ADDEQ).lift(BASE)


def test_no_code():
    with pytest.raises(DecodeError, match="no code at 0x00002000"):
        arm(0).lift(0x2000)


def test_no_instruction():
    with pytest.raises(DecodeError, match="cannot lift the instruction at 0x00001000"):
        powerpc(0).lift(BASE)


def test_unknown_language():
    with pytest.raises(DecodeError, match="no language 'Z80:LE:32:x'"):
        Lifter("Z80:LE:32:x", Isa.ARM, lambda _address, _size: b"")


def test_code_reader_gives_executable_segments_only():
    read = code_reader([Segment(0, b"code", 4, False, True), Segment(8, b"data", 4, True, False)])
    assert [read(2, 4), read(4, 4), read(8, 4)] == [b"de", b"", b""]


def test_an_instruction_is_lifted_once():
    lift = arm(0xE5910004).lift
    assert lift(BASE) is lift(BASE)


def test_plain_form_of_load_and_user_operation():
    load = arm(0xE5910004).lift(BASE)  # ldr r0, [r1, #4]
    assert (load.size_bytes, load.ops[-1].opcode, load.ops[-1].output) == (4, "LOAD", Varnode("register", 0x20, 4))
    assert len(load.ops[-1].inputs) == 1
    assert powerpc(0x7C0004AC).lift(BASE).ops[0].user_op == "sync"


def test_registers_by_canonical_name():
    registers = arm(0).registers
    assert registers["r13"] == registers["sp"]
    assert registers["r14"] == registers["lr"]
    registers = powerpc(0).registers
    assert registers["r1"] == Varnode("register", 4, 4)
    assert {"lr", "ctr", "r31"} <= registers.keys()


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


@pytest.mark.parametrize(("word", "negated"), [(0x4002FFF8, True), (0x4042FFF8, True), (0x4102FFF8, False)])
def test_decrement_and_branch_if_false(word, negated):  # bdnzf eq, bdzf eq, bdnzt eq
    lifted = powerpc(word).lift(BASE)
    conjunction = next(op for op in lifted.ops if op.opcode == "BOOL_AND")
    producers = [op.opcode for op in lifted.ops if op.output == conjunction.inputs[1]]
    assert (producers[-1] in ("BOOL_NEGATE", "INT_EQUAL")) == negated or producers[-1] == "INT_EQUAL"


@pytest.mark.parametrize(("machine", "word"), [(powerpc, 0x7C6102A6), (powerpc, 0x7C6103A6), (arm, 0xE128F000)])
def test_flags_as_a_whole_are_refused(machine, word):  # mfxer r3, mtxer r3, msr cpsr_f, r0
    with pytest.raises(DecodeError, match="0x00001000 accesses the flags as a whole"):
        machine(word).lift(BASE)


def test_a_word_of_the_code_is_read_in_its_byte_order():
    assert arm(0x12345678).code_word(BASE) == powerpc(0x12345678).code_word(BASE) == 0x12345678
    assert arm(0x12345678).code_word(BASE + 1) is None


def test_rbit_is_told_by_its_registers():
    own = thumb(0xFA93, 0xF2A3, 0xFA93, 0xF2A4, 0xFAB3, 0xF283)  # rbit r2, r3; one of two sources; clz r2, r3
    assert own.reversed_bits(BASE) == (own.registers["r2"], own.registers["r3"])
    assert own.reversed_bits(BASE + 4) is None
    assert own.reversed_bits(BASE + 8) is None
    assert arm(0xF2A3FA93).reversed_bits(BASE) is None
