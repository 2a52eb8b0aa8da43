"""Decoding: explicit cases for each trap. test_decode_oracle.py compares random encodings with the engine."""

import functools
import io
import subprocess
import tempfile
from pathlib import Path

import pytest
import ziglang
from elftools.elf.elffile import ELFFile

from wcet_probe.errors import DecodeError
from wcet_probe.isa.decode import TIMING_CLASSES, decode, decode_range
from wcet_probe.isa.effective_address import evaluate
from wcet_probe.model.image import Image, LineTable, Segment
from wcet_probe.model.instruction import Access, AccessKind, Control, Shift
from wcet_probe.model.target import Isa, MemoryRange

ADDRESS = 0x1000
CLANG_FLAGS = {
    Isa.ARM: ("--target=arm-none-eabi", "-march=armv5te", "-marm"),
    Isa.THUMB: ("--target=arm-none-eabi", "-mcpu=cortex-m4", "-mthumb"),
    Isa.POWERPC: ("--target=powerpc-none-eabi", "-mcpu=603e"),
}


@functools.cache
def assemble(isa, source):
    syntax = "" if isa is Isa.POWERPC else f".syntax unified\n.{isa}\n"
    with tempfile.TemporaryDirectory() as folder:
        text, elf = Path(folder, "case.s"), Path(folder, "case.o")
        text.write_text(f"{syntax}{source}\n", "utf-8")
        zig = Path(ziglang.__file__).with_name("zig")
        subprocess.run([zig, "clang", *CLANG_FLAGS[isa], "-c", text, "-o", elf], check=True)
        return ELFFile(io.BytesIO(elf.read_bytes())).get_section_by_name(".text").data()


def decoded(isa, source):
    return decode_range(assemble(isa, source), ADDRESS, isa, big_endian=isa is Isa.POWERPC)


def load(base, displacement=0, size=4, count=1, **more):
    return Access(AccessKind.LOAD, base, displacement, size, count, **more)


def store(base, displacement=0, size=4, count=1, **more):
    return Access(AccessKind.STORE, base, displacement, size, count, **more)


# ------------------------------------------------------------------------------------------ accesses, timing classes

ARM_CASES = [
    ("ldr r0, [r1]", "load_word", load("r1")),
    ("ldr r0, [r1, #-4]!", "load_word", load("r1", -4)),
    ("ldr r0, [r1], #4", "load_word", load("r1")),
    ("ldrb r0, [r1, -r2]", "load_narrow_scaled", load("r1", 0, 1, index="r2", subtract_index=True)),
    ("ldr r0, [r1, r2, lsl #2]", "load_word_scaled", load("r1", index="r2", shift_bits=2)),
    ("ldr r0, [r1, r2, lsr #32]", "load_word_scaled", load("r1", index="r2", shift=Shift.LSR, shift_bits=32)),
    (
        "ldr r0, [r1, -r2, asr #3]",
        "load_word_scaled",
        load("r1", index="r2", subtract_index=True, shift=Shift.ASR, shift_bits=3),
    ),
    ("strb r0, [r1, r2, rrx]", "store_scaled", store("r1", 0, 1, index="r2", shift=Shift.RRX, shift_bits=1)),
    ("str r0, [r1], r2, lsl #2", "store_scaled", store("r1")),
    ("ldrsb r0, [r1, #3]", "load_narrow", load("r1", 3, 1)),
    ("strh r0, [r1, -r2]", "store_scaled", store("r1", 0, 2, index="r2", subtract_index=True)),
    ("ldrd r0, r1, [r2, #8]", "load_double", load("r2", 8, 4, 2)),
    ("strd r0, r1, [r2], #-8", "store_double", store("r2", 0, 4, 2)),
    ("ldmia r0, {r1, r2, r3}", "load_multiple", load("r0", 0, 4, 3)),
    ("ldmib r0!, {r1, r2, r3}", "load_multiple", load("r0", 4, 4, 3)),
    ("ldmda r0, {r1, r2, r3}", "load_multiple", load("r0", -8, 4, 3)),
    ("ldmdb r0!, {r1, r2, r3}", "load_multiple", load("r0", -12, 4, 3)),
    ("stmia r0!, {r1, r2}", "store_multiple", store("r0", 0, 4, 2)),
    ("stmib r0, {r1, r2}", "store_multiple", store("r0", 4, 4, 2)),
    ("stmda r0!, {r1, r2}", "store_multiple", store("r0", -4, 4, 2)),
    ("stmdb r0, {r7}", "store_one_multiple", store("r0", -4, 4, 1)),
    ("push {r4, lr}", "store_multiple", store("r13", -8, 4, 2)),
    ("pop {r4, pc}", "load_multiple_pc", load("r13", 0, 4, 2)),
    ("pop {r4}", "load_word", load("r13")),
    ("push {r4}", "store", store("r13", -4)),
    ("ldr pc, [r0, r1, lsl #2]", "load_pc_scaled", load("r0", index="r1", shift_bits=2)),
    ("swp r0, r1, [r2]", "swap", Access(AccessKind.LOAD_STORE, "r2", 0, 4)),
    ("swpb r0, r1, [r2]", "swap_narrow", Access(AccessKind.LOAD_STORE, "r2", 0, 1)),
    ("pld [r0, #4]", "hint", None),
    ("add r0, r1, r2, lsl #3", "alu", None),
    ("add r0, r1, r2, lsl r3", "alu_shift_by_register", None),
    ("cmp r0, r1, lsr r2", "alu_shift_by_register", None),
    ("lsl r0, r1, r2", "alu_shift_by_register", None),
    ("mov pc, lr", "alu_to_pc", None),
    ("muls r0, r1, r2", "multiply_flags", None),
    ("umull r0, r1, r2, r3", "multiply_long", None),
    ("smlals r0, r1, r2, r3", "multiply_long_flags", None),
    ("smlabb r0, r1, r2, r3", "multiply_halfword", None),
    ("smlalbb r0, r1, r2, r3", "multiply_long_halfword", None),
    ("clz r0, r1", "count_leading_zeros", None),
    ("qadd r0, r1, r2", "saturating", None),
    ("mrs r0, cpsr", "status_read", None),
    ("msr cpsr_f, r0", "status_write", None),
]
THUMB_CASES = [
    ("ldr r0, [r1, #124]", "load_word", load("r1", 124)),
    ("ldrb r0, [r1, #31]", "load_narrow", load("r1", 31, 1)),
    ("strh r0, [r1, #62]", "store", store("r1", 62, 2)),
    ("ldr r0, [sp, #1020]", "load_word", load("r13", 1020)),
    ("ldrsh r0, [r1, r2]", "load_narrow", load("r1", 0, 2, index="r2")),
    ("ldr.w r0, [r1, r2, lsl #3]", "load_word", load("r1", index="r2", shift_bits=3)),
    ("ldr r0, [r1, #-255]", "load_word", load("r1", -255)),
    ("ldr r0, [r1, #4095]", "load_word", load("r1", 4095)),
    ("strb r0, [r1], #-1", "store", store("r1", 0, 1)),
    ("strb r0, [r1, #-1]!", "store", store("r1", -1, 1)),
    ("ldrd r0, r1, [r2, #-8]!", "load_double", load("r2", -8, 4, 2)),
    ("strd r0, r1, [r2], #8", "store_double", store("r2", 0, 4, 2)),
    ("ldmia r0!, {r1, r2}", "load_multiple", load("r0", 0, 4, 2)),
    ("ldmdb r0, {r1, r2}", "load_multiple", load("r0", -8, 4, 2)),
    ("stmia.w r9!, {r1, r2}", "store_multiple", store("r9", 0, 4, 2)),
    ("stmdb r0!, {r1, r2}", "store_multiple", store("r0", -8, 4, 2)),
    ("push {r0, r1, lr}", "store_multiple", store("r13", -12, 4, 3)),
    ("push.w {r4, r8}", "store_multiple", store("r13", -8, 4, 2)),
    ("pop {r4}", "load_one_multiple", load("r13")),
    ("ldr r4, [sp], #4", "load_word", load("r13")),
    ("pop.w {r4, r8, pc}", "load_multiple_pc", load("r13", 0, 4, 3)),
    ("ldr pc, [sp], #4", "load_pc", load("r13")),
    ("ldrex r0, [r1, #8]", "load_exclusive", load("r1", 8)),
    ("strexh r0, r1, [r2]", "store_exclusive", store("r2", 0, 2)),
    ("tbb [r0, r1]", "table_branch", load("r0", 0, 1, index="r1")),
    ("tbh [r0, r1, lsl #1]", "table_branch", load("r0", 0, 2, index="r1", shift_bits=1)),
    ("pld [r0]", "hint", None),
    ("nop.w", "hint", None),
    ("wfi", "wait", None),
    ("lsls r0, r1", "alu", None),
    ("mov pc, lr", "alu_to_pc", None),
    ("bfi r0, r1, #2, #3", "bit_field", None),
    ("udiv r0, r1, r2", "divide", None),
    ("mls r0, r1, r2, r3", "multiply", None),
    ("smlad r0, r1, r2, r3", "simd", None),
    ("cpsid i", "interrupt_mask", None),
    ("dmb sy", "barrier", None),
    ("svc 0", "supervisor_call", None),
]
ARMV8_M_CASES = [
    ("lda r0, [r1]", "load_exclusive", load("r1")),
    ("ldaexb r0, [r1]", "load_exclusive", load("r1", 0, 1)),
    ("stlh r0, [r1]", "store_exclusive", store("r1", 0, 2)),
    ("stlex r0, r1, [r2]", "store_exclusive", store("r2")),
    ("sg", "secure_gateway", None),
    ("tt r0, r1", "test_target", None),
    ("bxns lr", "branch_indirect", None),
]
POWERPC_CASES = [
    ("lwz 3, -8(4)", "load", load("r4", -8)),
    ("lwz 3, 8(0)", "load", load(None, 8)),
    ("lwzu 3, 4(5)", "load", load("r5", 4)),
    ("lwzx 3, 0, 4", "load", load(None, index="r4")),
    ("lhaux 3, 4, 5", "load", load("r4", 0, 2, index="r5")),
    ("lhbrx 3, 4, 5", "load", load("r4", 0, 2, index="r5")),
    ("stwu 1, -16(1)", "store", store("r1", -16)),
    ("stbux 3, 4, 5", "store", store("r4", 0, 1, index="r5")),
    ("sthbrx 3, 4, 5", "store", store("r4", 0, 2, index="r5")),
    ("lmw 29, 4(3)", "load_multiple", load("r3", 4, 4, 3)),
    ("stmw 14, -72(1)", "store_multiple", store("r1", -72, 4, 18)),
    ("lwarx 3, 0, 5", "load_reserve", load(None, index="r5")),
    ("stwcx. 3, 4, 5", "store_conditional", store("r4", index="r5")),
    ("lswi 3, 4, 7", "load_string", load("r4", 0, 1, 7)),
    ("stswi 3, 4, 0", "store_string", store("r4", 0, 1, 32)),
    ("dcbz 3, 4", "cache_zero", store("r3", 0, 32, index="r4", align_mask=0xFFFFFFE0)),
    ("dcbt 3, 4", "cache_hint", None),
    ("mullw 3, 4, 5", "multiply_low", None),
    ("mulhwu. 3, 4, 5", "multiply_high_unsigned", None),
    ("subfe. 3, 4, 5", "integer", None),
    ("divwu 3, 4, 5", "divide", None),
    ("crclr 6", "condition_logical", None),
    ("mtlr 0", "move_to_special", None),
    ("isync", "instruction_synchronize", None),
]
CASES = {Isa.ARM: ARM_CASES, Isa.THUMB: THUMB_CASES, Isa.POWERPC: POWERPC_CASES}


@pytest.mark.parametrize("isa", Isa)
def test_accesses_and_timing_classes(isa):
    found = decoded(isa, "\n".join(line for line, _, _ in CASES[isa]))
    assert len(found) == len(CASES[isa])
    for instruction, (line, timing_class, access) in zip(found, CASES[isa], strict=True):
        assert instruction.problem is None, line
        assert instruction.timing_class == timing_class, line
        assert instruction.accesses == ((access,) if access else ()), line
        multiple = access is not None and ("multiple" in timing_class or "string" in timing_class)
        expected = (access.count + 3) // 4 if "string" in timing_class else access.count if multiple else 0
        assert instruction.registers == expected, line


def test_ordered_accesses_and_gateways_of_armv8_m():
    found = decoded(Isa.THUMB, ".cpu cortex-m33\n" + "\n".join(line for line, _, _ in ARMV8_M_CASES))
    for instruction, (line, timing_class, access) in zip(found, ARMV8_M_CASES, strict=True):
        assert (instruction.problem, instruction.timing_class) == (None, timing_class), line
        assert instruction.accesses == ((access,) if access else ()), line


def test_literal_loads_have_absolute_addresses():
    _, second = decoded(Isa.ARM, "nop\nldr r0, [pc, #-4]")
    assert second.accesses == (load(None, ADDRESS + 4 + 8 - 4),)
    _, narrow, _, wide, double, byte_table, half_table = decoded(
        Isa.THUMB, "nop\nldr r0, [pc, #8]\nnop\nldr.w r0, [pc, #-4]\nldrd r0, r1, [pc, #8]\ntbb [pc, r0]\n"
        "tbh [pc, r1, lsl #1]"
    )  # fmt: skip
    assert narrow.accesses == (load(None, ADDRESS + 4 + 8),)  # pc is 0x1006, taken as 0x1004
    assert wide.accesses == (load(None, ADDRESS + 8 - 4),)  # pc is 0x100a, taken as 0x1008
    assert double.accesses == (load(None, ADDRESS + 12 + 8, 4, 2),)
    assert byte_table.accesses == (load(None, ADDRESS + 0x12, 1, index="r0"),)
    assert half_table.accesses == (load(None, ADDRESS + 0x16, 2, index="r1", shift_bits=1),)


# --------------------------------------------------------------------------------------------------- flow of control


def test_arm_conditions():
    source = (
        "loop: ldreq r0, [r1]\nbxne lr\npopge {r4, pc}\n.inst 0x0BFFFFFB\nbeq loop\nb loop\nblx r3\naddal r0, r1, r2"
    )
    found = decoded(Isa.ARM, source)
    assert [one.condition for one in found] == [0, 1, 10, 0, 14, 14, 14, 14]
    assert [one.control for one in found] == [
        Control.NEXT, Control.INDIRECT, Control.INDIRECT, Control.CALL, Control.CONDITIONAL_BRANCH, Control.BRANCH,
        Control.CALL, Control.NEXT,
    ]  # fmt: skip
    assert [one.branch_target for one in found] == [None, None, None, ADDRESS, ADDRESS, ADDRESS, None, None]


def test_it_blocks():
    source = """
        ite eq
        addeq r0, r1
        ldrne.w r0, [r1, #400]
        add r2, r3
        itte ne
        strne r0, [r1]
        movne r0, #1
        bxeq lr
        it ne
        bne far
        beq far
        cbz r0, far
        beq.w far
        b.w far
        bl far
        far: nop
    """
    found = decoded(Isa.THUMB, source)
    inside = [index for index, one in enumerate(found) if one.in_it_block]
    assert inside == [1, 2, 5, 6, 7, 9]
    assert {one.condition for one in found} == {14}
    assert [found[index].timing_class for index in (0, 4, 8)] == ["it"] * 3
    controls = [one.control for one in found]
    assert controls[7] is Control.INDIRECT
    assert controls[9:15] == [Control.BRANCH, *[Control.CONDITIONAL_BRANCH] * 3, Control.BRANCH, Control.CALL]
    assert {one.branch_target for one in found[9:15]} == {found[15].address}


def test_an_it_block_survives_an_unknown_instruction():
    code = assemble(Isa.THUMB, "itt eq\nnopeq\nnopeq\nnop").replace(b"\x00\xbf", b"\x00\xb6", 1)
    found = decode_range(code, ADDRESS, Isa.THUMB, big_endian=False)
    assert [one.in_it_block for one in found] == [False, True, True, False]
    assert [one.timing_class for one in found] == ["it", "unknown", "hint", "hint"]
    assert "no instruction known" in found[1].problem


def test_a_link_to_the_next_instruction_is_no_call():
    """By it position-independent code asks where it is."""
    found = decoded(Isa.POWERPC, "bcl 20, 31, . + 4\nbl . + 4\nbl . + 8\nnop\nnop")
    assert [one.control for one in found[:3]] == [Control.BRANCH, Control.BRANCH, Control.CALL]
    assert all("lr" in one.writes for one in found[:3])


def test_powerpc_branches():
    lines = ["b f", "bl f", "beq f", "bdnz f", "blr", "bctr", "bctrl", "blrl", "beqlr", "bnectr", "bcl 20, 31, f",
             "ba 0x100", "bdzf 5, f"]  # fmt: skip
    found = decoded(Isa.POWERPC, "\n".join([*lines, "f: nop"]))
    branch = Control.CONDITIONAL_BRANCH
    assert [one.control for one in found[:-1]] == [
        Control.BRANCH, Control.CALL, branch, branch, Control.INDIRECT, Control.INDIRECT, Control.CALL, Control.CALL,
        branch, branch, Control.CALL, Control.BRANCH, branch,
    ]  # fmt: skip
    far = found[-1].address
    targets = [far, far, far, far, None, None, None, None, None, None, far, 0x100, far]
    assert [one.branch_target for one in found[:-1]] == targets
    assert all(one.problem is None for one in found)


# --------------------------------------------------------------------------------------------------------- registers


def test_registers_read_written_and_loaded():
    stm, ldm, add, smlal, post = decoded(
        Isa.ARM, "stmdb r0!, {r1, r2}\npop {r4, pc}\nadd r0, r1, r2, lsl r3\nsmlal r0, r1, r2, r3\nldrb r0, [r1], r2"
    )
    assert (stm.reads, stm.writes, stm.loaded) == ({"r0", "r1", "r2"}, {"r0"}, frozenset())
    assert (ldm.reads, ldm.writes, ldm.loaded) == ({"r13"}, {"r4", "r13", "r15"}, {"r4", "r15"})
    assert (add.reads, add.writes) == ({"r1", "r2", "r3"}, {"r0"})
    assert (smlal.reads, smlal.writes) == ({"r0", "r1", "r2", "r3"}, {"r0", "r1"})
    assert (post.reads, post.writes, post.loaded) == ({"r1", "r2"}, {"r0", "r1"}, {"r0"})
    update, multiple, insert, move = decoded(Isa.POWERPC, "lwzux 3, 4, 5\nlmw 30, 0(3)\nrlwimi 3, 4, 5, 6, 7\nmtctr 3")
    assert (update.reads, update.writes, update.loaded) == ({"r4", "r5"}, {"r3", "r4"}, {"r3"})
    assert (multiple.reads, multiple.loaded) == ({"r3"}, {"r30", "r31"})
    assert (insert.reads, insert.writes) == ({"r3", "r4"}, {"r3"})
    assert (move.reads, move.writes) == ({"r3"}, {"ctr"})


# ---------------------------------------------------------------------------------------------------------- problems


@pytest.mark.parametrize(
    ("isa", "word", "reason"),
    [
        (Isa.ARM, 0xE7F000F0, "timing class unknown|no instruction known|undefined"),
        (Isa.ARM, 0xED900900, "timing class unknown"),  # vldr of 16 bits
        (Isa.ARM, 0xED901E00, "timing class unknown"),  # ldc
        (Isa.ARM, 0xE8D00006, "user registers"),  # ldm r0, {r1, r2}^
        (Isa.ARM, 0xE1B0F00E, "return from an exception"),  # movs pc, lr
        (Isa.ARM, 0xFA000000, "change of the instruction set"),  # blx label
        (Isa.ARM, 0xE6B1F072, "program counter"),  # sxtah pc, r1, r2
        (Isa.ARM, 0xE16FFF10, "program counter"),  # clz pc, r0
        (Isa.ARM, 0xE5D0F000, "program counter"),  # ldrb pc, [r0]
        (Isa.ARM, 0xEC5EFB10, "program counter"),  # vmov pc, lr, d0
        (Isa.ARM, 0xE791000F, "address unpredictable"),  # ldr r0, [r1, pc]
        (Isa.ARM, 0xE8900000, "no instruction known|memory access unknown"),  # ldm r0, {}
        (Isa.POWERPC, 0xFC00002C, "no instruction known|timing class unknown"),  # fsqrt
        (Isa.POWERPC, 0x7C64042A, "no instruction known"),  # lswx
        (Isa.POWERPC, 0x7C0020AC, "effect on the caches"),  # dcbf
        (Isa.POWERPC, 0x7C70FBA6, "special register 1008"),  # mtspr HID0, r3: caches on and off
        (Isa.POWERPC, 0x7C7083A6, "special register 528"),  # mtibatu 0, r3
        (Isa.POWERPC, 0x4182000D, "conditional call"),  # beql
        (Isa.POWERPC, 0x00000000, "no instruction known"),
    ],
)
def test_what_is_not_described_has_a_problem(isa, word, reason):
    big = isa is Isa.POWERPC
    (found,) = decode_range(word.to_bytes(4, "big" if big else "little"), ADDRESS, isa, big_endian=big)
    if found.timing_class != "undefined":
        assert any(part in found.problem for part in reason.split("|"))
        assert found.problem.startswith(f"0x00001000: {found.text}: not supported: ")


def test_undecodable_units_keep_the_next_instruction_whole():
    code = b"\x00\xb6" + b"\x40\x18" + b"\xff\xff\xff\xff" + b"\x40\x18" + b"\xff\xf7"
    found = decode_range(code, ADDRESS, Isa.THUMB, big_endian=False)
    assert [(one.address - ADDRESS, one.size_bytes) for one in found] == [(0, 2), (2, 2), (4, 4), (8, 2), (10, 2)]
    assert [one.timing_class for one in found] == ["unknown", "alu", "unknown", "alu", "unknown"]


def test_images_are_decoded_by_their_code_ranges():
    code = assemble(Isa.ARM, "ldr r0, [pc, #0]\nbx lr\n.word 0x12345678\nmov r0, r1")
    ranges = (MemoryRange(0x8000, 8), MemoryRange(0x800C, 4))
    image = Image(
        elf=b"", sha256="", isa=Isa.ARM, big_endian=False, segments=(Segment(0x8000, code, 16, False, True),),
        symbols={}, functions=(), code=ranges, lines=LineTable(), compiler="", flags=(),
    )  # fmt: skip
    assert [one.address for one in decode(image)] == [0x8000, 0x8004, 0x800C]
    assert decode(image)[0].accesses == (load(None, 0x8008),)
    outside = Image(**{name: getattr(image, name) for name in Image.__slots__} | {"segments": ()})
    with pytest.raises(DecodeError, match="no segment holds the code at 0x00008000"):
        decode(outside)


def test_effective_addresses():
    registers = {"r1": 0x80000000, "r2": 0xFFFFFFF0, "r3": 5}
    assert evaluate(load("r3", -8, 4, 2), registers) == [(0xFFFFFFFD, 4), (1, 4)]
    assert evaluate(load(None, 8, index="r2", subtract_index=True), registers) == [(24, 4)]
    for shift, bits, index in (
        (Shift.LSL, 4, 0xFFFFFF00), (Shift.LSR, 4, 0x0FFFFFFF), (Shift.ASR, 4, 0xFFFFFFFF), (Shift.ROR, 8, 0xF0FFFFFF),
        (Shift.LSR, 32, 0), (Shift.ASR, 32, 0xFFFFFFFF), (Shift.RRX, 1, 0xFFFFFFF8),
    ):  # fmt: skip
        access = load(None, index="r2", shift=shift, shift_bits=bits)
        assert evaluate(access, registers, carry=True) == [(index, 4)]
    assert evaluate(load(None, index="r1", shift=Shift.RRX, shift_bits=1), registers) == [(0x40000000, 4)]
    assert evaluate(store("r2", 0, 32, align_mask=0xFFFFFFE0), registers) == [(0xFFFFFFE0, 32)]


def test_every_class_found_is_listed():
    for isa, cases in CASES.items():
        assert {timing_class for _, timing_class, _ in cases} <= TIMING_CLASSES[isa]


@pytest.mark.parametrize(
    ("code", "writes"),
    [("103f11ee", {"r3"}), ("112f51ec", {"r2", "r1"}), ("103f01ee", set())],  # mrc, mrrc, mcr
)
def test_what_a_coprocessor_gives_is_written(code, writes):
    """A target may charge them; the disassembler calls these registers read."""
    (instruction,) = decode_range(bytes.fromhex(code), 0, Isa.ARM, big_endian=False)
    assert instruction.writes == writes
