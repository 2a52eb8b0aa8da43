"""Lifting: instruction boundaries and guards of IT blocks."""

from functools import cache

import pytest

from tests.analyzer.pcode.machines import BASE, arm, powerpc, thumb
from wcet_probe.analyzer.pcode import lift as lift_module
from wcet_probe.analyzer.pcode.lift import Lifter, code_reader, image_lifter
from wcet_probe.analyzer.pcode.operations import Varnode
from wcet_probe.errors import DecodeError
from wcet_probe.model.image import Segment
from wcet_probe.model.target import Isa


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


def test_where_there_is_no_code_at_0_an_undefined_symbol_is_called():
    with pytest.raises(DecodeError, match="a symbol that the linker has left undefined"):
        thumb(0x4770).lift(0)


def test_no_instruction():
    with pytest.raises(DecodeError, match="cannot lift the instruction at 0x00001000"):
        powerpc(0).lift(BASE)


def test_unknown_language():
    with pytest.raises(DecodeError, match="no language 'Z80:LE:32:x'"):
        Lifter("Z80:LE:32:x", Isa.ARM, lambda _address, _size: b"")


def test_registers_of_a_language_are_the_same_objects_for_all_code():
    """By which the analysis remembers what it makes of them: there are 3,208 of mpc603e."""
    one, other = powerpc(0x4E800020), powerpc(0x38600001)
    assert one.registers is other.registers
    assert one.float_bytes is other.float_bytes
    assert thumb(0x4770).registers is not arm(0xE12FFF1E).registers


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


def test_a_word_of_the_code_is_read_in_its_byte_order():
    assert arm(0x12345678).code_word(BASE) == powerpc(0x12345678).code_word(BASE) == 0x12345678
    assert arm(0x12345678).code_word(BASE + 1) is None


def test_rbit_is_told_by_its_registers():
    own = thumb(0xFA93, 0xF2A3, 0xFA93, 0xF2A4, 0xFAB3, 0xF283)  # rbit r2, r3; one of two sources; clz r2, r3
    assert own.reversed_bits(BASE) == (own.registers["r2"], own.registers["r3"])
    assert own.reversed_bits(BASE + 4) is None
    assert own.reversed_bits(BASE + 8) is None
    assert arm(0xF2A3FA93).reversed_bits(BASE) is None
