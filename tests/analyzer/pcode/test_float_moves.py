"""Instructions of floating point against the engine: what is told of them holds, what else they write is unknown."""

import random

import pytest
from unicorn import arm_const, ppc_const

from tests.analyzer.pcode.machines import BASE, lifter_of_v7, powerpc, thumb
from tests.analyzer.pcode.test_encodings import CODE, DATA, DATA_BYTES, EACH, Engine, random_word
from wcet_probe.analyzer.pcode.interpreter import _Machine
from wcet_probe.analyzer.pcode.lift import Lifter
from wcet_probe.analyzer.pcode.operations import FLOAT_OPERATION, PcodeOp
from wcet_probe.catalog.lookup import load_target
from wcet_probe.errors import DecodeError, EmulationError
from wcet_probe.isa.decode import decode_range
from wcet_probe.isa.timing import with_timing_problems
from wcet_probe.model.target import Isa

POWERPC_FORMS = (
    *((primary, None) for primary in (50, 51, 54, 55, *range(48, 56), 59, 63)),
    *((31, extended) for extended in (535, 567, 599, 599, 631, 663, 695, 727, 727, 759, 983)),
    *((63, extended) for extended in (72, 72, 72, 40, 136, 264, 12, 14, 15, 0, 32, 583, 711)),
)
"""Primary and extended opcodes of floating point."""


class FloatEngine(Engine):
    """The engine with its floating point on, and its registers by name."""

    def __init__(self, target, codes):
        super().__init__(target, codes)
        if self.isa is Isa.POWERPC:
            self.engine.reg_write(ppc_const.UC_PPC_REG_MSR, 1 << 13)
            self.floats = {f"f{n}": getattr(ppc_const, f"UC_PPC_REG_FPR{n}") for n in range(32)}
        else:
            self.engine.reg_write(arm_const.UC_ARM_REG_C1_C0_2, 0xF << 20)
            self.engine.reg_write(arm_const.UC_ARM_REG_FPEXC, 1 << 30)
            self.floats = {f"s{n}": getattr(arm_const, f"UC_ARM_REG_S{n}") for n in range(32)}

    def run_floats(self, instruction, values, floats, flags, data):
        for name, value in floats.items():
            self.engine.reg_write(self.floats[name], value)
        found = self.run(instruction, values, flags, data)
        return found and (*found, {name: self.engine.reg_read(register) for name, register in self.floats.items()})


def random_code(isa, choose):
    bits = choose.getrandbits
    if isa is Isa.POWERPC:
        primary, extended = choose.choice(POWERPC_FORMS)
        low = bits(26) if extended is None else bits(15) << 11 | extended << 1
        return (primary << 26 | low).to_bytes(4, "big")
    group = choose.choice((0b1100, 0b1101, 0b1110, 0b1110))
    condition = 0b1111 if isa is Isa.THUMB and choose.random() < 0.1 else 0b1110
    word = condition << 28 | group << 24 | bits(12) << 12 | 0b1010 << 8 | bits(9)
    if group != 0b1110 and choose.random() < 0.7:
        word &= ~0xF8  # short lists and offsets
    halves = (word >> 16, word & 0xFFFF) if isa is Isa.THUMB else (word & 0xFFFF, word >> 16)
    return b"".join(half.to_bytes(2, "little") for half in halves)


def interpreted(lifter, instruction, values, floats, data):
    """Registers, memory, registers of floating point, and those of all that are told to be unknown."""
    machine = _Machine(lifter, {DATA: bytearray(data)})
    for name, value in {**values, **floats}.items():
        machine.write_register(name, value)
    lifted = lifter.lift(instruction.address)
    places = {lifter.registers[name]: name for name in (*values, *floats)}
    unknown = {places.get(op.output) for op in lifted.ops if op.user_op == FLOAT_OPERATION}
    known = tuple(op for op in lifted.ops if op.user_op != FLOAT_OPERATION)
    machine.pc = instruction.address
    machine.compile(type(lifted)(lifted.address, lifted.size_bytes, known))()
    ((_, memory),) = machine.regions
    read = machine.read_register
    return {n: read(n) for n in values}, bytes(memory), {n: read(n) for n in floats}, unknown


def without_status(lifter, address):
    """Whether the instruction neither reads nor writes the status, nor is arithmetic that SLEIGH computes flags of."""
    ops = lifter.lift(address).ops
    nodes = [one for op in ops for one in (op.output, *op.inputs) if one is not None and one.space == "register"]
    return not any(one.offset in lifter.float_status for one in nodes) and not any(
        op.opcode.startswith("FLOAT_") for op in ops
    )


@pytest.mark.parametrize("codes", [600, pytest.param(20_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("core", ["cortex-m7", "cortex-r5", "mpc603e"])
def test_what_is_told_of_an_instruction_is_what_the_engine_does(core, codes):
    """It found that SLEIGH pushes single registers in the reverse order, and stores none of a list of 32 of them."""
    target, choose = load_target(core), random.Random(f"{core} {codes}")
    encodings = [random_code(target.isa, choose) for _ in range(codes)]
    engine = FloatEngine(target, encodings)
    lifter = Lifter(target.pcode_language, target.isa, lambda address, size: encodings[(address - CODE) // EACH][:size])
    compared = {True: 0, False: 0}
    for place, code in enumerate(encodings):
        decoded = decode_range(code, CODE + EACH * place, target.isa, big_endian=target.isa is Isa.POWERPC)
        instruction, *rest = with_timing_problems(decoded, target)
        if rest or instruction.problem or "float" not in instruction.timing_class:
            continue
        try:
            lifted = lifter.lift(instruction.address)
        except DecodeError:
            continue
        for _ in range(3):
            values = {name: random_word(choose) & (~3 if name == "r13" else ~0) for name in engine.registers}
            wide = 2 if target.isa is Isa.POWERPC else 1
            floats = {name: choose.getrandbits(32 * wide) for name in engine.floats}
            flags, data = choose.getrandbits(3) << 32, choose.randbytes(DATA_BYTES)
            theirs = engine.run_floats(instruction, values, floats, flags, data)
            if theirs is None:
                continue
            written = {op.output for op in lifted.ops}
            after, _, memory, behind = theirs
            exact = without_status(lifter, instruction.address)
            try:
                ours = interpreted(lifter, instruction, values, floats, data) if exact else None
            except EmulationError:
                continue
            text = code.hex(), instruction.text
            if ours is not None:
                assert after == ours[0], text
                assert memory == ours[1], text
                assert {n for n in floats if behind[n] != ours[2][n]} <= ours[3], text
            else:  # conversions of PowerPC's loads and stores, and comparisons: what changes is written
                changed = {n for n in floats if behind[n] != floats[n]}
                assert all(lifter.registers[n] in written for n in changed), text
            compared[exact] += 1
    assert compared[True] > 0.2 * codes
    assert target.isa is not Isa.POWERPC or compared[False] > 0.1 * codes


@pytest.mark.parametrize(
    ("machine", "units", "words"),
    [
        (thumb, (0xED2D, 0x8A03), ["s16", "s17", "s18"]),  # vpush {s16, s17, s18}
        (lifter_of_v7, (0xECA60A20,), [f"s{number}" for number in range(32)]),  # vstm r6!, {s0 to s31}
        (lifter_of_v7, (0xECA60A1F,), [f"s{number}" for number in range(31)]),  # SLEIGH ends the process
    ],
)
def test_single_registers_are_stored_in_the_order_of_their_numbers(machine, units, words):
    lifter = machine(*units)
    stores = [op for op in lifter.lift(BASE).ops if op.opcode == "STORE"]
    assert [op.inputs[1] for op in stores] == [lifter.registers[name] for name in words]


@pytest.mark.parametrize("units", [(0xEE23, 0x1B10)])  # vmov.32 d3[1], r1
def test_half_of_a_double_register_is_moved_as_a_whole(units):
    lifter = thumb(*units)
    assert lifter.lift(BASE).ops == (PcodeOp("COPY", lifter.registers["s7"], (lifter.registers["r1"],)),)


def test_what_is_moved_under_a_condition_keeps_it():
    ops = lifter_of_v7(0x0D9D7A02).lift(BASE).ops  # vldreq s14, [sp, #8]
    assert [op.opcode for op in ops[-3:]] == ["CBRANCH", "INT_ADD", "LOAD"]
    block = thumb(0xBF08, 0xEE07, 0x3A10)  # it eq; vmoveq s14, r3
    block.lift(BASE)
    assert [op.opcode for op in block.lift(BASE + 2).ops[-2:]] == ["CBRANCH", "COPY"]


@pytest.mark.parametrize("word", [0xEC900A00 & ~0xFF | 0x100 | 0xB << 8 & 0xF00 | 3, 0xEC8F0A01])
def test_transfers_that_are_unpredictable_are_refused(word):  # fldmx r0, {d0}; vstm pc, {s0}
    with pytest.raises(DecodeError, match="at 0x00001000"):
        lifter_of_v7(word).lift(BASE)


@pytest.mark.parametrize(
    ("word", "exact"), [(0xFC201090, True), (0xC8290008, True), (0xC0290008, False), (0xFC201050, False)]
)
def test_on_powerpc_a_move_and_a_load_of_a_double_word_are_copies(word, exact):  # fmr f1, f2; lfd; lfs; fneg
    lifter = powerpc(word)
    (last,) = [op for op in lifter.lift(BASE).ops if op.output == lifter.registers["f1"]][-1:]
    assert (last.user_op != FLOAT_OPERATION) == exact
