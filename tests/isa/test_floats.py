"""Floating point: decoded from its encodings, executed by the engine, charged by hand, bounded without values.

Tests: isa.decode_vfp, isa.timing.
"""

from __future__ import annotations

import struct

import pytest

from tests.analyzer.loops.one_loop import refuse_or_bound_by_width
from tests.support import Guest, assembler, guest_of, image_of
from wcet_probe.analyzer.bound import prove
from wcet_probe.analyzer.facts.language import Facts
from wcet_probe.analyzer.request import BoundRequest
from wcet_probe.catalog.lookup import load_target
from wcet_probe.errors import AnalysisError, EmulationError
from wcet_probe.isa.decode import decode
from wcet_probe.model.instruction import Access, AccessKind
from wcet_probe.model.proof import Bound
from wcet_probe.model.scenario import InitialCache
from wcet_probe.model.target import Isa

LOAD, STORE = AccessKind.LOAD, AccessKind.STORE
UNITS = {"cortex-m4f": ".fpu fpv4-sp-d16\n", "cortex-m7": ".fpu fpv5-d16\n", "cortex-r5": ".fpu vfpv3-d16\n"}
WITH_FPU = (*UNITS, "mpc603e", "mpc755")
DOUBLE = tuple(name for name in WITH_FPU if name != "cortex-m4f")


def source(functions: dict[str, str], target: str) -> str:
    return UNITS.get(target, "") + assembler(functions, load_target(target))


def guest(functions: dict[str, str], target: str) -> Guest:
    return guest_of(source(functions, target), load_target(target))


def bound(on: Guest, entry: str = "f") -> Bound:
    return prove(BoundRequest(on.image, on.target, on.instructions, on.costs, entry, Facts(), {}, {}))


# ---------------------------------------------------------------------------------------------------------- decoding

S, D = "s{}".format, lambda n: f"s{2 * n} s{2 * n + 1}"
ARM_CASES = [
    ("vadd.f32 s0, s3, s30", "float_add", "s3 s30", "s0"),
    ("vsub.f64 d1, d2, d15", "float_add_double", "s4 s5 s30 s31", "s2 s3"),
    ("vmul.f32 s1, s2, s3", "float_multiply", "s2 s3", "s1"),
    ("vnmul.f64 d1, d2, d3", "float_multiply_double", "s4 s5 s6 s7", "s2 s3"),
    ("vmla.f32 s1, s2, s3", "float_multiply_add", "s1 s2 s3", "s1"),
    ("vnmls.f64 d0, d1, d2", "float_multiply_add_double", "s0 s1 s2 s3 s4 s5", "s0 s1"),
    ("vdiv.f32 s1, s2, s3", "float_divide", "s2 s3", "s1"),
    ("vsqrt.f64 d1, d2", "float_square_root_double", "s4 s5", "s2 s3"),
    ("vcmp.f32 s1, s2", "float_compare", "s1 s2", "fpscr"),
    ("vcmpe.f64 d1, #0", "float_compare_double", "s2 s3", "fpscr"),
    ("vmov.f32 s1, s2", "float_move", "s2", "s1"),
    ("vmov.f64 d1, #1.0", "float_move_double", "", "s2 s3"),
    ("vabs.f32 s1, s2", "float_move", "s2", "s1"),
    ("vneg.f64 d1, d2", "float_move_double", "s4 s5", "s2 s3"),
    ("vcvt.f64.f32 d1, s5", "float_convert_double", "s5", "s2 s3"),
    ("vcvt.f32.f64 s5, d1", "float_convert_double", "s2 s3", "s5"),
    ("vcvt.s32.f32 s1, s2", "float_convert", "s2", "s1"),
    ("vcvtr.u32.f64 s1, d2", "float_convert_double", "s4 s5", "s1"),
    ("vcvt.f64.u32 d1, s5", "float_convert_double", "s5", "s2 s3"),
    ("vcvt.f32.s32 s1, s1, #4", "float_convert", "s1", "s1"),
    ("vmov r1, s3", "float_to_core", "s3", "r1"),
    ("vmov s3, r1", "float_from_core", "r1", "s3"),
    ("vmov r1, r2, d3", "float_to_core", "s6 s7", "r1 r2"),
    ("vmov d3, r1, r2", "float_from_core", "r1 r2", "s6 s7"),
    ("vmov r1, r2, s5, s6", "float_to_core", "s5 s6", "r1 r2"),
    ("vmov.32 r1, d2[1]", "float_to_core", "s5", "r1"),
    ("vmov.32 d2[0], r1", "float_from_core", "r1", "s4"),
    ("vmrs r1, fpscr", "float_status_read", "fpscr", "r1"),
    ("vmrs APSR_nzcv, fpscr", "float_status_read", "fpscr", ""),
    ("vmsr fpscr, r1", "float_status_write", "r1", "fpscr"),
    ("vldr s3, [r1, #-8]", "float_load", "r1", "s3", Access(LOAD, "r1", -8, 4)),
    ("vldr d3, [r1, #8]", "float_load_double", "r1", "s6 s7", Access(LOAD, "r1", 8, 8)),
    ("vstr s3, [sp]", "float_store", "r13 s3", "", Access(STORE, "r13", 0, 4)),
    ("vstr d3, [r1]", "float_store_double", "r1 s6 s7", "", Access(STORE, "r1", 0, 8)),
    ("vldmia r1!, {s3-s5}", "float_load_multiple", "r1", "r1 s3 s4 s5", Access(LOAD, "r1", 0, 4, 3)),
    ("vldmia r1, {d1-d2}", "float_load_multiple", "r1", "s2 s3 s4 s5", Access(LOAD, "r1", 0, 8, 2)),
    ("vstmdb r1!, {s3-s4}", "float_store_multiple", "r1 s3 s4", "r1", Access(STORE, "r1", -8, 4, 2)),
    ("vpush {d8}", "float_store_multiple", "r13 s16 s17", "r13", Access(STORE, "r13", -8, 8, 1)),
    ("vpop {s1}", "float_load_multiple", "r13", "r13 s1", Access(LOAD, "r13", 0, 4, 1)),
]
V8_CASES = [
    ("vfma.f32 s1, s2, s3", "float_multiply_add", "s1 s2 s3", "s1"),
    ("vfnms.f64 d0, d1, d2", "float_multiply_add_double", "s0 s1 s2 s3 s4 s5", "s0 s1"),
    ("vselgt.f32 s1, s2, s3", "float_move", "s2 s3", "s1"),
    ("vmaxnm.f64 d1, d2, d3", "float_compare_double", "s4 s5 s6 s7", "s2 s3"),
    ("vrintz.f32 s1, s2", "float_convert", "s2", "s1"),
    ("vrinta.f64 d1, d2", "float_convert_double", "s4 s5", "s2 s3"),
    ("vcvta.s32.f64 s1, d2", "float_convert_double", "s4 s5", "s1"),
]
POWERPC_CASES = [
    ("fadds 1, 2, 3", "float_add", "f2 f3", "f1"),
    ("fsub. 1, 2, 3", "float_add_double", "f2 f3", "f1 cr1"),
    ("fmuls 1, 2, 3", "float_multiply", "f2 f3", "f1"),
    ("fmul 1, 2, 3", "float_multiply_double", "f2 f3", "f1"),
    ("fmadds 1, 2, 3, 4", "float_multiply_add", "f2 f3 f4", "f1"),
    ("fnmsub 1, 2, 3, 4", "float_multiply_add_double", "f2 f3 f4", "f1"),
    ("fdivs 1, 2, 3", "float_divide", "f2 f3", "f1"),
    ("fdiv 1, 2, 3", "float_divide_double", "f2 f3", "f1"),
    ("frsp 1, 2", "float_convert", "f2", "f1"),
    ("fctiwz 1, 2", "float_convert", "f2", "f1"),
    ("fmr 1, 2", "float_move", "f2", "f1"),
    ("fneg 1, 2", "float_move", "f2", "f1"),
    ("fsel 1, 2, 3, 4", "float_move", "f2 f3 f4", "f1"),
    ("frsqrte 1, 2", "float_estimate", "f2", "f1"),
    ("fcmpu 3, 1, 2", "float_compare", "f1 f2", "cr3"),
    ("mffs 1", "float_status", "", "f1"),
    ("mtfsf 255, 1", "float_status", "f1", ""),
    ("lfs 1, 8(3)", "float_load", "r3", "f1", Access(LOAD, "r3", 8, 4)),
    ("lfdu 1, -8(3)", "float_load_double", "r3", "f1 r3", Access(LOAD, "r3", -8, 8)),
    ("lfdx 1, 3, 4", "float_load_double", "r3 r4", "f1", Access(LOAD, "r3", 0, 8, index="r4")),
    ("stfsux 1, 3, 4", "float_store", "f1 r3 r4", "r3", Access(STORE, "r3", 0, 4, index="r4")),
    ("stfd 1, 0(1)", "float_store_double", "f1 r1", "", Access(STORE, "r1", 0, 8)),
    ("stfiwx 1, 0, 4", "float_store", "f1 r4", "", Access(STORE, None, 0, 4, index="r4")),
]
LISTS = {
    "cortex-r5": ARM_CASES,
    "cortex-m7": [*ARM_CASES, *V8_CASES],
    "mpc603e": POWERPC_CASES,
}


@pytest.mark.parametrize("target", LISTS)
def test_classes_registers_and_accesses(target):
    text = "\n".join(case[0] for case in LISTS[target])
    found = decode(image_of(source({"f": text}, target), load_target(target)))
    assert len(found) == len(LISTS[target])
    for one, (line, timing_class, reads, writes, *accesses) in zip(found, LISTS[target], strict=True):
        assert one.problem is None, line
        assert one.timing_class == timing_class, line
        assert one.reads == set(reads.split()), line
        assert one.writes == set(writes.split()), line
        assert one.accesses == tuple(accesses), line
        assert one.loaded == ({name for name in one.writes if name[0] in "sf"} if "load" in timing_class else set())
        assert one.timing_class in load_target(target).timing, line


def test_literals_are_relative_to_the_program_counter():
    for target, pc in (("cortex-m7", 4), ("cortex-r5", 8)):
        (one,) = decode(image_of(source({"f": "vldr d1, [pc, #16]"}, target), load_target(target)))
        assert one.accesses == (Access(LOAD, None, one.address + pc + 16, 8),)
        assert one.literal


# ---------------------------------------------------------------------------------------- executed, charged, bounded

ARM_POLYNOMIAL = """
    vmov s0, r0
    vmov s1, r1
    vmul.f32 s2, s0, s1
    vadd.f32 s2, s2, s0
    vcmp.f32 s2, s1
    vmrs APSR_nzcv, fpscr
    bmi 1f
    vneg.f32 s2, s2
    1: vdiv.f32 s2, s2, s1
    vpush {s2}
    vpop {s3}
    vmov r0, s3
    bx lr
"""
POWERPC_POLYNOMIAL = """
    stw 3, -8(1)
    stw 4, -4(1)
    lfs 0, -8(1)
    lfs 1, -4(1)
    fmuls 2, 0, 1
    fadds 2, 2, 0
    fcmpu 0, 2, 1
    blt 1f
    fneg 2, 2
    1: fdivs 2, 2, 1
    stfs 2, -8(1)
    lwz 3, -8(1)
    blr
"""


def word(number: float) -> int:
    return struct.unpack("<I", struct.pack("<f", number))[0]


@pytest.mark.parametrize("arguments", [(1.5, 4.0), (1.5, 100.0), (3.0, -2.0)])
@pytest.mark.parametrize("target", WITH_FPU)
def test_the_engine_computes_and_the_bound_holds(target, arguments):
    isa = load_target(target).isa
    on = guest({"f": POWERPC_POLYNOMIAL if isa is Isa.POWERPC else ARM_POLYNOMIAL}, target)
    a, b = arguments
    value = a * b + a
    expected = (value if value < b else -value) / b
    proved = bound(on)
    with on.machine() as machine:
        measured = machine.measure("f", (word(a), word(b)), InitialCache.DIRTY)
    assert measured.result == word(expected)
    assert measured.instructions == (12 if value < b else 13)
    assert proved.instructions == 13
    assert measured.cycles <= proved.cycles
    assert (measured.loads, measured.stores) == ((3, 3) if isa is Isa.POWERPC else (1, 1))


def test_cycles_of_the_cortex_m4f_worked_by_hand():
    on = guest({"f": ARM_POLYNOMIAL}, "cortex-m4f")
    with on.machine() as machine:
        taken = machine.measure("f", (word(3.0), word(-2.0)), InitialCache.COLD)
        fallen = machine.measure("f", (word(1.5), word(4.0)), InitialCache.COLD)
    # vmov vmov vmul (1 + 1, its result is used next) vadd (likewise) vcmp vmrs
    start = 2 + 2 + 2 + 2 + 1 + 1
    # vdiv (14 + 1) vpush and vpop of a word, the base of the second just updated, vmov, bx
    end = 15 + (2 + 1) + 2 + 2 + 4
    assert fallen.instruction_cycles == start + 1 + 1 + end
    assert taken.instruction_cycles == start + (1 + 3) + end


def test_a_core_without_fpu_refuses_to_execute_and_to_bound():
    on = guest_of(".fpu fpv4-sp-d16\n" + assembler({"f": "vadd.f32 s0, s1, s2\nbx lr"}, load_target("cortex-m4")),
                  load_target("cortex-m4"))  # fmt: skip
    with pytest.raises(AnalysisError, match="cortex-m4 has no timing class 'float_add'"):
        bound(on)
    with on.machine() as machine, pytest.raises(EmulationError):
        machine.measure("f", (), InitialCache.COLD)


# SLEIGH gives some conversions as operations of a coprocessor that write nothing: what was in the register before must
# not be taken for the result.
STALE = {
    "to double": "movs r1, #1\nvmov s0, r1\nvmov s1, r1\nvcvt.f64.f32 d0, s0\nvmov r0, s1\n",
    "to single": "movs r1, #1\nvmov s0, r1\nvcvt.f32.f64 s0, d1\nvmov r0, s0\n",
    "arithmetic": "movs r1, #1\nvmov s0, r1\nvadd.f32 s0, s0, s0\nvmov r0, s0\n",
    "unsigned": "movs r1, #1\nvmov s0, r1\nvcvt.f32.u32 s0, s0\nvmov r0, s0\n",
}
MOVED = {
    "through memory": "movs r1, #1\npush {r1}\nvmov s0, r0\nvstr s0, [sp]\npop {r0}\n",
    "two words through memory": "movs r1, #1\npush {r0, r1}\nvstr d0, [sp]\npop {r2}\npop {r0}\n",
}
COUNTED = "1: subs r0, r0, #1\nbne 1b\nbx lr"


@pytest.mark.parametrize("how", STALE)
@pytest.mark.parametrize("target", ["cortex-m7", "cortex-r5"])
def test_nothing_is_known_of_what_floating_point_arithmetic_gives(target, how):
    on = guest({"f": f"{STALE[how]}{COUNTED}"}, target)
    refuse_or_bound_by_width(lambda: bound(on), "f+0x")


@pytest.mark.parametrize("how", MOVED)
@pytest.mark.parametrize("target", ["cortex-m7", "cortex-r5"])
def test_what_is_moved_over_a_known_word_is_not_that_word(target, how):
    found = bound(guest({"f": f"{MOVED[how]}{COUNTED}"}, target))
    assert found.by_type
    assert found.instructions > 1 << 32


@pytest.mark.parametrize("target", ["cortex-m7", "cortex-r5"])
def test_a_word_that_is_only_moved_is_known(target):
    found = bound(guest({"f": f"movs r1, #3\nvmov s0, r1\nvmov r0, s0\n{COUNTED}"}, target))
    assert found.instructions == 3 + 3 * 2 + 1


def test_a_selection_of_armv8_is_analysed_as_writing_floating_point_registers_only():
    selection = "cmp r0, r1\nvselgt.f32 s0, s1, s2\nvrintz.f32 s0, s0\n"
    on = guest({"f": f"movs r2, #7\n{selection}1: subs r2, #1\nbne 1b\nbx lr"}, "cortex-m7")
    assert bound(on).instructions == 4 + 14 + 1


@pytest.mark.parametrize("target", DOUBLE)
def test_double_precision_is_executed(target):
    arm = "vmov s0, r0\nvcvt.f64.s32 d1, s0\nvmul.f64 d1, d1, d1\nvsqrt.f64 d2, d1\nvadd.f64 d1, d1, d2\n"
    arm += "vcvt.s32.f64 s0, d1\nvmov r0, s0\nbx lr"
    powerpc = "stw 3, -4(1)\nlfs 0, -4(1)\nfmul 0, 0, 0\nfadd 0, 0, 0\nfctiwz 0, 0\nstfd 0, -8(1)\nlwz 3, -4(1)\nblr"
    is_powerpc = load_target(target).isa is Isa.POWERPC
    on = guest({"f": powerpc if is_powerpc else arm}, target)
    with on.machine() as machine:
        measured = machine.measure("f", (word(9.0) if is_powerpc else 9,), InitialCache.COLD)
    assert measured.result == (162 if is_powerpc else 90)
    assert measured.cycles <= bound(on).cycles
