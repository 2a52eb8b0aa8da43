"""Chains of random instructions against the engine: each lies in the checker's step, with flags, memory and taint.

Compilers use few of the forms that there are: record forms, masks that wrap, lists, bases that are written back, bits
of conditions. Each chain is run twice, the second time with the stack elsewhere: what then has another value is
derived from the stack pointer, and may not be called a number.

Tests: certificate.machines.arm, certificate.machines.arm_accesses, certificate.machines.powerpc,
certificate.machines.machine.
"""

import random
import re
from collections import Counter

import pytest
from unicorn import ppc_const

from tests.analyzer.pcode.test_encodings import (
    CODE,
    DATA,
    DATA_BYTES,
    EACH,
    Engine,
    plain_instructions,
    random_code,
)
from wcet_probe.catalog.lookup import load_target
from wcet_probe.certificate.machines import arm, powerpc
from wcet_probe.certificate.machines.machine import Machine
from wcet_probe.certificate.values.numbers import ANY, WORD, Value, constant, number, signed
from wcet_probe.certificate.values.state import STATIC, Comparison, State
from wcet_probe.isa.decode import decode_range
from wcet_probe.model.image import Image, LineTable, Segment
from wcet_probe.model.target import Isa

IMAGE_BYTES, STACKS = 0x1000, (DATA + 0x2000, DATA + 0x3000)
"""Bytes of the image that can be written; where the stack pointer was at entry, in each of the two runs."""
BESIDES = re.compile("ldrex|strex|clrex|lwarx|stwcx|m[tf](lr|ctr)|msr.* (cpsr_f|apsr_nzcv)|mrs.*(cpsr|apsr)")
"""Instructions that are held against p-code elsewhere, or by runs alone."""
NEAR = 0x400
"""So far around that place is the stack."""
LONGEST = 10
FLAGS = [one for one in range(16) if one & 0b1100 != 0b1100]
"""Of Arm, N to V: no result is both negative and zero, which the conditions of a comparison are told by."""
WORST = (0, 1, 2, 31, 32, 33, 0x7FFF_FFFF, 0x8000_0000, 0x8000_0001, 0xFFFF_FFFE, 0xFFFF_FFFF, 0xFFFF, 0x8000, 0x80)
OF_CONDITIONS = (0, *powerpc.CONDITION_BITS)
OF_ONE_REGISTER = (26, 104, 200, 202, 232, 234, 616, 712, 714, 744, 746, 922, 954)
SYSTEM_CODES = (0x0190_0F90, 0x0180_0F90, 0x01D0_0F90, 0x01C0_0F90, 0x010F_0000, 0x0128_F000, 0x0328_F000)
"""Of ARM: ldrex, strex, and of bytes; mrs; msr of a register and of a constant."""
OF_REGISTERS = (
    0, 8, 10, 11, 19, 20, 23, 24, 26, 28, 32, 40, 55, 60, 75, 87, 104, 119, 124, 136, 138, 144, 150, 151, 183, 200,
    202, 215, 232, 234, 235, 247, 266, 279, 284, 311, 316, 343, 375, 407, 412, 439, 444, 459, 476, 491, 520, 522, 534,
    536, 552, 616, 648, 650, 662, 712, 714, 744, 746, 747, 778, 790, 792, 824, 918, 922, 954, 971, 1003,
)  # fmt: skip
"""Extended opcodes of instructions of PowerPC on the condition register, and on general registers and memory."""


def conditions_met(n, z, c, v):
    """Which conditions of ARM hold, by the flags (ARM DDI 0406C, A8.3)."""
    found = {"eq": z, "hs": c, "mi": n, "vs": v, "hi": c and not z, "ge": n == v, "gt": not z and n == v}
    opposite = {"eq": "ne", "hs": "lo", "mi": "pl", "vs": "vc", "hi": "ls", "ge": "lt", "gt": "le"}
    return found | {opposite[name]: not is_met for name, is_met in found.items()}


def code_for(isa, choose):
    """A random encoding; of PowerPC mostly of instructions that there are."""
    if isa is not Isa.POWERPC:
        if isa is Isa.THUMB or choose.random() < 0.9:
            return random_code(isa, choose)
        word = choose.choice(SYSTEM_CODES) | choose.randrange(15) << 28 | choose.getrandbits(4)
        return (word | choose.getrandbits(8) << 12).to_bytes(4, "little")
    if choose.random() < 0.3:
        return random_code(isa, choose)
    if choose.random() < 0.05:
        to_or_from, special = choose.choice((339, 467)), choose.choice((8, 9))
        return (31 << 26 | choose.getrandbits(5) << 21 | special << 16 | to_or_from << 1).to_bytes(4, "big")
    if choose.random() < 0.2:
        return (19 << 26 | choose.getrandbits(15) << 11 | choose.choice(OF_CONDITIONS) << 1).to_bytes(4, "big")
    extended = choose.choice(OF_REGISTERS)
    fields = choose.getrandbits(15) & (~31 if extended in OF_ONE_REGISTER else ~0)
    return (31 << 26 | fields << 11 | extended << 1 | choose.getrandbits(1)).to_bytes(4, "big")


def known(choose, word):
    """What may be known of a number ``word``: it alone, some numbers around it, or nothing."""
    if choose.random() < 0.4:
        return number(word)
    low = word if word < WORD // 2 or choose.random() < 0.5 else word - WORD
    stride = choose.choice((1, 1, 2, 4, 8, 3))
    least, most = (0, WORD - 1) if low >= 0 else (-(WORD // 2), WORD // 2 - 1)
    first = low - stride * min(choose.choice((0, 1, 5, 100, 1 << 20)), (low - least) // stride)
    last = low + stride * min(choose.choice((0, 1, 5, 100, 1 << 20)), (most - low) // stride)
    found = number(first, last, stride)
    if found.high < 0:
        found = Value("number", found.low + WORD, found.high + WORD, found.stride)
    return found._replace(base=choose.choice(("number", "number", "number", "any")))


class Run:
    """A chain: two concrete states, that differ in where the stack is, and what the checker knows of both."""

    def __init__(self, world, choose):
        self.world, engine = world, world.engine
        self.flags = [choose.getrandbits(35) if world.is_powerpc else choose.choice(FLAGS) << 28] * 2
        self.registers, self.state = [{}, {}], State({})
        for name in engine.registers:
            kind = choose.random()
            if name == world.isa.SP or kind < 0.15:
                offset = choose.randrange(-64, 64) * 4 if name == world.isa.SP or kind < 0.1 else choose.randrange(99)
                for own, stack in zip(self.registers, STACKS, strict=True):
                    own[name] = (stack + offset) % WORD
                spread = choose.choice((0, 0, 0, 4, 8)) if name != world.isa.SP else 0
                value = Value("stack", offset - spread, offset + spread, 4 if spread else 0)
                self.state.values[name] = ANY if choose.random() < 0.1 and name != world.isa.SP else value
                continue
            inside = DATA + (choose.randrange(IMAGE_BYTES - 128) + 64 & ~3)
            word = choose.choice((inside, choose.choice(WORST), choose.getrandbits(32), choose.getrandbits(8)))
            for own in self.registers:
                own[name] = word
            self.state.values[name] = known(choose, word)
        static = bytearray(choose.randbytes(STACKS[0] - NEAR - DATA))
        self.memory = [bytearray(static.ljust(DATA_BYTES, b"\0")) for _ in STACKS]
        stack = choose.randbytes(2 * NEAR)
        for memory, at in zip(self.memory, STACKS, strict=True):
            memory[at - NEAR - DATA : at + NEAR - DATA] = stack
        for offset in choose.sample(range(-NEAR, NEAR, 4), 80):
            self.state.values[offset] = known(choose, self.word(0, STACKS[0] + offset))
        for address in choose.sample(range(DATA, DATA + IMAGE_BYTES, 4), 80):
            self.state.values[STATIC + address] = known(choose, self.word(0, address))

    def word(self, run, address):
        at = address - DATA
        return int.from_bytes(self.memory[run][at : at + 4], self.world.order)

    def is_assumed(self, instruction):
        """Whether accesses by stack addresses, and no others, are to the stack; of both runs alike."""
        for access in instruction.accesses:
            parts = [one for one in (access.base, access.index) if one is not None]
            is_stack = any(self.state.read(one).may_be_stack for one in parts)
            for run, stack in enumerate(STACKS):
                own = self.registers[run]
                at = access.displacement + (own[access.base] if access.base else 0)
                if access.index:
                    index = own[access.index] << access.shift_bits if access.shift.value == "lsl" else None
                    if index is None:
                        return False
                    at += -index if access.subtract_index else index
                low, high = at % WORD - 8, at % WORD + access.count * access.bytes_each + 8
                is_there = stack - NEAR <= low and high <= stack + NEAR
                if access.align_mask != WORD - 1 or (is_there if not is_stack else not is_there):
                    return False
                if not is_stack and not (low >= DATA and high <= STACKS[0] - NEAR):
                    return False
        return True

    def step(self, instruction, choose):
        """Execute ``instruction``; False where the core takes an exception, an assumption is not met, or runs part."""
        if not self.is_assumed(instruction):
            return False
        before, engine, met = self.state.copy(), self.world.engine, dict(self.conditions())
        found = [
            engine.run(instruction, self.registers[run], self.flags[run], bytes(self.memory[run])) for run in (0, 1)
        ]
        if None in found:
            return False
        self.registers = [registers for registers, _, _ in found]
        self.flags = [flags << (0 if self.world.is_powerpc else 28) for _, flags, _ in found]
        self.memory = [bytearray(memory) for _, _, memory in found]
        outcomes = self.world.outcomes_of(instruction, self.state, met)
        fitting = [one.state for one in outcomes if not list(self.wrong(one.state))]
        told = instruction.text, instruction.address, [list(self.wrong(one.state))[:4] for one in outcomes]
        assert fitting, (told, {one: before.read(one) for one in instruction.reads})
        self.state = choose.choice(fitting)
        # Where an address is compared the two runs may go different ways: then one state does not stand for both.
        return self.flags[0] == self.flags[1]

    def wrong(self, state):
        """What ``state`` does not tell of a register, a word or a condition, of all of these conditions together."""
        for place in [*self.registers[0], *(one for one in state.values if isinstance(one, int))]:
            value = state.read(place)
            words = [self.content(run, place) for run in (0, 1)]
            for word, stack in zip(words, STACKS, strict=True):
                if not holds(value, word, stack):
                    yield place, hex(word), value
        for name, is_met in self.conditions():
            tested = self.world.tested(state, name, is_met)
            if tested is None:
                yield name, is_met, state.flags
                continue
            for place in [one for one in tested.values if tested.values[one] != state.values.get(one)]:
                if not holds(tested.values[place], self.content(0, place), STACKS[0]):
                    yield name, is_met, place, hex(self.content(0, place)), tested.values[place]
            state = tested

    def content(self, run, place):
        if isinstance(place, str):
            return self.registers[run].get(place, 0)
        return self.word(run, place - STATIC if place >= STATIC // 2 else STACKS[run] + place)

    def conditions(self):
        flags = self.flags[0]
        if self.world.is_powerpc:
            return [(bit, bool(flags >> 31 - bit & 1)) for bit in range(32)]
        return list(conditions_met(*(bool(flags >> bit & 1) for bit in (31, 30, 29, 28))).items())


def holds(value, word, stack):
    """Whether ``word`` is one of ``value``, where the stack pointer was ``stack`` at entry."""
    if value.base == "link":
        return True
    offset = (word - (stack if value.base == "stack" else 0)) % WORD
    return any(one in value.words() for one in (offset, offset - WORD))


class World:
    """The engine with its codes, and the checker's machine."""

    def __init__(self, target, codes):
        self.engine, self.is_powerpc = Engine(target, codes), target.isa is Isa.POWERPC
        if self.is_powerpc:
            self.engine.registers |= {"lr": ppc_const.UC_PPC_REG_LR, "ctr": ppc_const.UC_PPC_REG_CTR}
        self.isa, self.order = (powerpc, "big") if self.is_powerpc else (arm, "little")
        code = b"".join(one.ljust(EACH, b"\0") for one in codes)
        segments = (
            Segment(CODE, code, len(code), writable=False, executable=True),
            Segment(DATA, b"", IMAGE_BYTES, writable=True, executable=False),
        )
        lines = LineTable((), (), ())
        image = Image(b"", "0" * 64, target.isa, self.is_powerpc, segments, {}, (), (), lines, "", ())
        self.machine = Machine(image, escapes=True)

    def outcomes_of(self, instruction, state, met):
        """The checker's outcomes of what happens where conditions are ``met`` or not; the last is that nothing does."""
        outcomes = self.isa.outcomes_of(self.machine, instruction, state)
        condition = None if self.is_powerpc else arm.mnemonic(instruction)[-1]
        if condition is None:
            return outcomes
        may_be_skipped = arm._assumed(state, condition, holds=False) is not None
        executed, skipped = (outcomes[:-1], outcomes[-1:]) if may_be_skipped else (outcomes, [])
        return executed if met[condition] else skipped

    def tested(self, state, condition, is_met):
        """``state`` where a condition holds, or does not."""
        if self.is_powerpc:
            return powerpc.tested(state, condition, 8 * is_met)
        return arm._assumed(state, condition, holds=is_met)


@pytest.mark.covering(0)
@pytest.mark.parametrize("codes", [75, pytest.param(1000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("core", ["cortex-m4", "arm926ej-s", "cortex-r5", "mpc603e"])
def test_what_the_engine_does_lies_in_the_checkers_step(core, codes):
    target, choose = load_target(core), random.Random(f"chains {core} {codes}")
    encodings = [code_for(target.isa, choose) for _ in range(codes)]
    world = World(target, encodings)
    instructions = [one for _, one in plain_instructions(target, encodings, BESIDES)]
    followed = Counter()
    for _ in range(codes):
        run = Run(world, choose)
        for instruction in choose.choices(instructions, k=LONGEST):
            if run.step(instruction, choose):
                followed[bool(instruction.accesses)] += 1
            else:
                break
    assert followed[False] > codes / 2


BRANCHES = ((16 << 26, 0x40), (19 << 26 | 16 << 1, 0), (19 << 26 | 528 << 1, 0))
"""bc by 64 bytes, bclr and bcctr."""


@pytest.mark.parametrize("draws", [2, pytest.param(6, marks=pytest.mark.slow)])
def test_a_branch_of_powerpc_goes_where_the_engine_goes(draws):
    """By each option, from numbers of the counter and fields of the condition register that are known or not."""
    target, choose = load_target("mpc603e"), random.Random("branches")
    cases = [(code, by, options) for code, by in BRANCHES for options in range(32) for _ in range(draws)]
    encodings = [
        (code | options << 21 | choose.getrandbits(5) << 16 | by | choose.getrandbits(1)).to_bytes(4, "big")
        for code, by, options in cases
    ]
    world, ways = World(target, encodings), Counter()
    engine = world.engine.engine
    for place, (code, _, options) in enumerate(cases):
        decoded = decode_range(encodings[place], CODE + EACH * place, target.isa, big_endian=True)
        is_invalid = (code >> 1 & 0x3FF == 528 and not options & 4) or len(decoded) != 1
        if is_invalid or decoded[0].problem:
            continue
        for _ in range(3):
            run = Run(world, choose)
            own = run.registers[0]
            own["lr"] = own["ctr"] = CODE + EACH * choose.randrange(9)
            if code != BRANCHES[-1][0]:
                own["ctr"] = choose.choice((0, 1, 2, 64, 0xFFFF_FFFF))
            run.state.values |= {name: known(choose, own[name]) for name in ("ctr", "lr")}
            for field in range(8):
                register = choose.choice([name for name in own if run.state.read(name).is_number])
                left, right = own[register], choose.choice((own[register], choose.getrandbits(32)))
                is_signed = choose.random() < 0.5
                told = Comparison(register, run.state.read(register), None, constant(right), is_signed=is_signed)
                run.state.flags |= {f"cr{field}": told} if choose.random() < 0.7 else {}
                one, other = map(signed, (left, right)) if is_signed else (left, right)
                bits = 8 * (one < other) + 4 * (one > other) + 2 * (one == other) + choose.getrandbits(1)
                run.flags[0] = run.flags[0] & ~(15 << 28 - 4 * field) | bits << 28 - 4 * field
            engine.reg_write(ppc_const.UC_PPC_REG_CR, run.flags[0] & 0xFFFF_FFFF)
            for name, value in own.items():
                engine.reg_write(world.engine.registers[name], value)
            engine.emu_start(decoded[0].address, 0, count=1)
            went = engine.reg_read(ppc_const.UC_PPC_REG_PC)
            run.registers[0] = {name: engine.reg_read(one) for name, one in world.engine.registers.items()}
            run.registers[1] |= {name: run.registers[0][name] for name in ("ctr", "lr")}
            outcomes = powerpc.outcomes_of(world.machine, decoded[0], run.state)
            fitting = [one for one in outcomes if one.is_assumed or one.address == went]
            fitting = [one for one in fitting if not list(run.wrong(one.state))]
            assert fitting, (decoded[0].text, hex(went), own, outcomes)
            ways[fitting[0].way, len(outcomes)] += 1
    assert {way for way, _ in ways} == {"fall", "jump", "call", "return"}
    assert {1, 2} <= {number for _, number in ways}
