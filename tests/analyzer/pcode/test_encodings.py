"""P-code against the engine: random encodings, an instruction at a time, from random registers and flags.

The manuals call some instructions unpredictable, and code that asks for them means nothing: those are left out.

Tests: analyzer.pcode.semantics, analyzer.pcode.lift.
"""

import random
import re

import pytest
import unicorn
from unicorn import arm_const, ppc_const

from wcet_probe.analyzer.pcode.interpreter import _Machine
from wcet_probe.analyzer.pcode.lift import Lifter
from wcet_probe.catalog.lookup import load_target
from wcet_probe.errors import DecodeError, EmulationError
from wcet_probe.isa.decode import decode_range
from wcet_probe.isa.timing import with_timing_problems
from wcet_probe.model.target import Isa

CODE, DATA, DATA_BYTES, EACH = 0x300000, 0x20000000, 0x4000, 16
FLAGS = ("ng", "zr", "cy", "ov")
SPECIAL = (("xer_ov", 33), ("xer_so", 34), ("xer_ca", 32))
SYSTEM = {"it", "supervisor_call", "breakpoint", "wait", "interrupt_mask", "undefined", "hint", "barrier"}
SYSTEM |= {"status_read", "status_write", "load_exclusive", "store_exclusive", "clear_exclusive", "store_conditional"}
OTHERWISE = re.compile("mf[^co]|mt[^co]")
"""Of PowerPC: special registers are the engine's own."""
ALIASES = {"sb": "r9", "sl": "r10", "fp": "r11", "ip": "r12", "sp": "r13", "lr": "r14"}
TO_XER, FROM_XER = bytes.fromhex("7c0103a6"), bytes.fromhex("7c0102a6")
MEDIA = (0, 0x10, 0xF10, 0xF010, 0xF30)
"""Bits that A32's media instructions want set."""
WIDE = (0b1110101, 0b1111010, 0b1111101, 0b1110100, 0b1111100, 0b1111000, 0b1111011, 0b1111001)
"""Beginnings of Thumb encodings in 32 bits, but those of branches and coprocessors."""


def random_code(isa, choose):
    bits = choose.getrandbits
    if isa is Isa.THUMB and choose.random() < 0.2:
        return choose.randrange(0xE800).to_bytes(2, "little")
    if isa is Isa.THUMB:
        return (choose.choice(WIDE) << 9 | bits(9)).to_bytes(2, "little") + (bits(16) & 0x7FFF).to_bytes(2, "little")
    if isa is Isa.ARM:
        group = choose.choice((0, 0, 1, 2, 3, 3, 4))
        word = choose.randrange(15) << 28 | group << 25 | bits(25)
        return (word | (choose.choice(MEDIA) if group == 3 else 0)).to_bytes(4, "little")
    return (choose.choice((31, 31, 31, *range(7, 48))) << 26 | bits(26)).to_bytes(4, "big")


def is_consistent(isa, code):
    """Whether both fields of the operand of Thumb's `rev` and `clz` are the same."""
    return isa is not Isa.THUMB or code[0] & 0xF == code[2] & 0xF


def is_predictable(isa, instruction, code):
    """Nothing is computed of the program counter or put there, and no base that moves is transferred."""
    text = instruction.text
    if re.search(r"\bpc\b", text) and (not re.match("ldr", text) or re.search(r"!|\], ", text)):
        return False
    if re.match("(rbit|rev|clz)", text) and instruction.size_bytes == 4 and not is_consistent(isa, code):
        return False
    transferred = re.findall(r"\w+", text.partition("[")[0] if "[" in text else "")[1:]
    moves = "!" in text or "], " in text or text.startswith("pop")
    is_listed = text.startswith(("ldm", "pop")) and "{" in text
    transferred += re.findall(r"\w+", text.partition("{")[2]) if is_listed else []
    bases = {access.base for access in instruction.accesses}
    return not (moves and bases & {ALIASES.get(register, register) for register in transferred})


class Engine:
    """The engine on all codes, each in a place of its own."""

    def __init__(self, target, codes):
        self.isa, powerpc = target.isa, target.isa is Isa.POWERPC
        if powerpc:
            self.engine = unicorn.Uc(unicorn.UC_ARCH_PPC, unicorn.UC_MODE_PPC32 | unicorn.UC_MODE_BIG_ENDIAN)
            self.engine.ctl_set_cpu_model(ppc_const.UC_CPU_PPC32_603E_V4_1)
            self.registers = {f"r{n}": getattr(ppc_const, f"UC_PPC_REG_{n}") for n in range(32)}
        else:
            mode = unicorn.UC_MODE_THUMB if self.isa is Isa.THUMB else unicorn.UC_MODE_ARM
            self.engine = unicorn.Uc(unicorn.UC_ARCH_ARM, mode)
            self.engine.ctl_set_cpu_model(getattr(arm_const, target.emulator_model))
            self.registers = {f"r{n}": getattr(arm_const, f"UC_ARM_REG_R{n}") for n in range(15)}
        self.engine.mem_map(CODE, -(-len(codes) * EACH // 0x1000) * 0x1000 + 0x1000)
        self.engine.mem_map(DATA, DATA_BYTES)
        for place, code in enumerate((*codes, TO_XER, FROM_XER)):
            self.engine.mem_write(CODE + EACH * place, code)
        self.special = CODE + EACH * len(codes)

    def run(self, instruction, values, flags, data):
        """Registers, flags and memory behind ``instruction``, or None where the core would take an exception."""
        self.engine.mem_write(DATA, data)
        if self.isa is Isa.POWERPC:
            self.engine.reg_write(self.registers["r0"], flags >> 32 << 29)
            self.engine.emu_start(self.special, self.special + 4, count=1)
            self.engine.reg_write(ppc_const.UC_PPC_REG_CR, flags & 0xFFFFFFFF)
        else:
            thumb_bit = 0x20 if self.isa is Isa.THUMB else 0
            self.engine.reg_write(arm_const.UC_ARM_REG_CPSR, flags | 0x1D3 | thumb_bit)
        for name, value in values.items():
            self.engine.reg_write(self.registers[name], value)
        start, end = instruction.address, instruction.address + instruction.size_bytes
        try:
            self.engine.emu_start(start | (self.isa is Isa.THUMB), end, count=1)
        except unicorn.UcError:
            return None
        found = {name: self.engine.reg_read(register) for name, register in self.registers.items()}
        if self.isa is Isa.THUMB:
            found["r13"] &= ~3  # the engine keeps bits that the core ignores (ARM DDI 0403E, B1.4.1)
        if self.isa is Isa.POWERPC:
            self.engine.emu_start(self.special + EACH, self.special + EACH + 4, count=1)
            carry = self.engine.reg_read(self.registers["r0"])
            return found, self.engine.reg_read(ppc_const.UC_PPC_REG_CR) | carry << 3, self.memory()
        return found, self.engine.reg_read(arm_const.UC_ARM_REG_CPSR) >> 28, self.memory()

    def memory(self):
        return bytes(self.engine.mem_read(DATA, DATA_BYTES))


def interpreted(lifter, instruction, values, flags, data):
    """As `Engine.run`, by p-code; None where an access leaves the memory, or SLEIGH is not asked for the meaning."""
    machine = _Machine(lifter, {DATA: bytearray(data)})
    for name, value in values.items():
        machine.write_register(name, value)
    fields = [f"cr{n}" for n in range(8)] if lifter.isa is Isa.POWERPC else FLAGS
    each = 4 if lifter.isa is Isa.POWERPC else 1
    for name, place in zip(fields, range(32 - each, -1, -each), strict=False):
        machine.write_register(name, flags >> place & (1 << each) - 1)
    for name, place in SPECIAL if lifter.isa is Isa.POWERPC else ():
        machine.write_register(name, flags >> place & 1)
    machine.pc = instruction.address
    try:
        machine.compile(lifter.lift(instruction.address))()
    except (DecodeError, EmulationError):
        return None
    ((_, memory),) = machine.regions
    found = 0
    for name in fields:
        found = found << each | machine.read_register(name) & (1 << each) - 1
    for name, place in SPECIAL if lifter.isa is Isa.POWERPC else ():
        found |= machine.read_register(name) << place
    return {name: machine.read_register(name) for name in values}, found, bytes(memory)


def random_word(choose):
    inside = DATA + DATA_BYTES // 2 + (choose.getrandbits(11) & ~3)
    return choose.choice((inside, inside, choose.getrandbits(32), choose.getrandbits(8), 0, 1, 0xFFFFFFFF, 0x80000000))


def plain_instructions(target, encodings, besides=re.compile("(?!)")):
    """Those of ``encodings`` that go on to the next and need nothing of the system, each with its instruction.

    Those whose text matches ``besides`` as well, whatever they need.
    """
    for place, code in enumerate(encodings):
        decoded = decode_range(code, CODE + EACH * place, target.isa, big_endian=target.isa is Isa.POWERPC)
        instruction, *rest = with_timing_problems(decoded, target)
        timing_class = instruction.timing_class
        if rest or instruction.problem or instruction.control.name != "NEXT":
            continue
        if besides.match(instruction.text):
            yield code, instruction
        if timing_class in SYSTEM or besides.match(instruction.text):
            continue
        is_other = target.isa is Isa.POWERPC and OTHERWISE.match(instruction.text.split(" ")[0])
        if "float" not in timing_class and not is_other and is_predictable(target.isa, instruction, code):
            yield code, instruction


@pytest.mark.covering(0)
@pytest.mark.parametrize("codes", [2500, pytest.param(20_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("core", ["cortex-m4", "arm926ej-s", "cortex-r5", "mpc603e"])
def test_p_code_of_an_instruction_does_what_the_engine_does(core, codes):
    """It found that SLEIGH forgets the carry of ands, adds to the pc what is subtracted, and takes stm for push.

    And that it saturates to a bit more in ARM, shifts by no bit for 32 in Thumb, and stores whole words for stswi.
    """
    target, choose = load_target(core), random.Random(f"{core} {codes}")
    encodings = [random_code(target.isa, choose) for _ in range(codes)]
    engine = Engine(target, encodings)
    lifter = Lifter(target.pcode_language, target.isa, lambda address, size: encodings[(address - CODE) // EACH][:size])
    compared = 0
    for code, instruction in plain_instructions(target, encodings):
        for _ in range(3):
            values = {name: random_word(choose) & (~3 if name == "r13" else ~0) for name in engine.registers}
            flags = choose.getrandbits(35) & (~0 if target.isa is Isa.POWERPC else 0xF0000000)
            data = choose.randbytes(DATA_BYTES)
            ours = interpreted(lifter, instruction, values, flags, data)
            theirs = engine.run(instruction, values, flags, data) if ours else None
            if ours and theirs:
                assert ours == theirs, (code.hex(), instruction.text, values, hex(flags))
                compared += 1
    assert compared > 0.3 * codes
