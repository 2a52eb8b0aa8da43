"""Abstract execution of single instructions against the interpreter: on random states, whatever happens is allowed."""

import contextlib
import random
import re
from functools import cache
from types import SimpleNamespace

import pytest

from tests.analyzer.natural_loops import program
from tests.analyzer.small_functions import of_text
from tests.analyzer.values.symbolic.test_terms import CORNERS
from tests.support import TARGETS
from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.graph.supergraph import EXIT
from wcet_probe.analyzer.pcode.interpreter import _Machine
from wcet_probe.analyzer.pcode.lift import Lifter, code_reader
from wcet_probe.analyzer.pcode.operations import FLOAT_OPERATION
from wcet_probe.analyzer.values.execution.transfer import Transfer
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.analyzer.values.states.memory import Memory
from wcet_probe.analyzer.values.states.state import State
from wcet_probe.analyzer.values.symbolic.locations import Location
from wcet_probe.analyzer.values.symbolic.terms import Terms
from wcet_probe.catalog.lookup import allocator_names, load_target
from wcet_probe.errors import AnalysisError, DecodeError, EmulationError
from wcet_probe.model.target import Isa

CODE, DATA, STACK = 0x10000, 0x20000000, 0x30000000
REGION_BYTES = 0x1000
APART, OF_A_LIFTER = 64, 25
"""Random encodings that one lifter lifts, and the bytes from one to the next: what one says of the code behind it does
not reach the next. A lifter of its own for each would take most of the time."""
POINTER = STACK + REGION_BYTES // 2
FLAGS = {
    Isa.POWERPC: (*(f"cr{number}" for number in range(8)), "xer_ca", "xer_ov", "xer_so"),
    Isa.ARM: ("ng", "zr", "cy", "ov"),
    Isa.THUMB: ("ng", "zr", "cy", "ov"),
}


class Sample:
    """A concrete machine and an abstract state that admits it."""

    def __init__(self, lifter, seed, floats=()):
        self.draw, self.lifter, self.terms = random.Random(seed), lifter, Terms()
        is_powerpc = lifter.isa is Isa.POWERPC
        self.stack_register = "r1" if is_powerpc else "r13"
        general = [f"r{number}" for number in range(32 if is_powerpc else 15)]
        self.names = [*general, *FLAGS[lifter.isa], *(["ctr", "lr"] if is_powerpc else []), *floats]
        data = bytes(self.draw.getrandbits(8) for _ in range(REGION_BYTES))
        self.machine = _Machine(lifter, {DATA: bytearray(data), STACK: bytearray(data)})
        self.state = State(self.terms, big_endian=lifter.big_endian)
        for name in self.names:
            self.register(name)
        for offset in range(-64, 64, 4):
            if self.draw.random() < 0.5:
                word = int.from_bytes(data[POINTER - STACK + offset :][:4], "big" if lifter.big_endian else "little")
                symbol = self.terms.symbol(("slot", offset), 32)
                self.state.set_known(symbol, self.around(word, 32))
                self.state.set_location(Location("stack", offset, 4), symbol)

    def register(self, name):
        varnode, draw = self.lifter.registers[name], self.draw
        bits = 8 * varnode.size_bytes
        location = Location("register", varnode.offset, varnode.size_bytes)
        value = {
            1: draw.getrandbits(1),
            4: draw.choice((draw.choice(CORNERS), draw.getrandbits(32), DATA + 0x800)),
            8: draw.getrandbits(64),
        }[varnode.size_bytes]
        if name.startswith("cr"):
            value = draw.choice((8, 4, 2))
        symbol = self.terms.symbol(("in", location), bits)
        if name == "ctr":
            value = draw.choice((0, 1, 2, 7))
        if name == self.stack_register:
            value = POINTER
            self.state.set_base(symbol, Base.STACK)
            self.state.set_known(symbol, strided.constant(bits, 0))
        elif draw.random() < 0.6:
            self.state.set_known(symbol, self.around(value, bits))
        self.state.set_location(location, symbol)
        self.machine.write_register(name, value)

    def around(self, value, bits):
        if self.draw.random() < 0.4:
            return strided.constant(bits, value)
        stride, before, behind = self.draw.choice((1, 2, 4, 8)), self.draw.randrange(6), self.draw.randrange(6)
        low = value - stride * before
        return strided.between(bits, low, low + stride * (before + behind), stride)

    def admits(self, state, term, value):
        base, found = state.base(term), state.value(term)
        if base is Base.ANY:
            return True
        return (value - (POINTER if base is Base.STACK else 0)) % (1 << found.bits) in found


def check(lifter, address, seed):
    """Whether the instruction was executed; it fails where the abstract result does not admit the concrete one."""
    instruction = lifter.lift(address)
    sample = Sample(lifter, seed)
    machine = sample.machine
    try:
        step = machine.compile(instruction)
        machine.pc = address
        step()
    except (EmulationError, OverflowError):
        return False
    accesses = []
    image = SimpleNamespace(segments=(), big_endian=lifter.big_endian, isa=lifter.isa, location=hex)
    transfer = Transfer(lifter, sample.terms, Memory(image))
    try:
        flows = transfer.block(0, (instruction,), sample.state, accesses.append)
    except AnalysisError:
        return False
    mask = ~1 if lifter.isa is Isa.THUMB else ~0
    taken = [
        flow
        for flow in flows
        if flow.address == machine.next_pc
        or (
            flow.target is not None
            and any(sample.admits(flow.state, flow.target, machine.next_pc | bit) for bit in (0, 1 & ~mask))
        )
    ]
    assert taken, f"{instruction} went to {machine.next_pc:#x}"
    assert any(holds(sample, flow) for flow in taken), instruction
    for one in machine.accesses:
        assert any(
            each.is_store == one.is_store and (each.base is Base.ANY or contains(each, one.address))
            for each in accesses
        ), instruction
    return True


def contains(access, address):
    return (address - (POINTER if access.base is Base.STACK else 0)) % (1 << 32) in access.offset


def holds(sample, flow):
    for name in sample.names:
        varnode = sample.lifter.registers[name]
        term = flow.state.read(Location("register", varnode.offset, varnode.size_bytes))
        if term is not None and not sample.admits(flow.state, term, sample.machine.read_register(name)):
            return False
    order = "big" if sample.lifter.big_endian else "little"
    regions = dict(sample.machine.regions)
    for location, term in flow.state.locations.items():
        if location.space == "stack":
            at = POINTER - STACK + location.offset
            word = int.from_bytes(regions[STACK][at : at + location.size_bytes], order)
            if not sample.admits(flow.state, term, word):
                return False
    return True


def on_one_core(target):
    """Allocators of which the ordinary run has an image for this core: each is built for one."""
    return allocator_names()[TARGETS.index(target) :: len(TARGETS)]


@cache
def forms(target, names=None):
    """An address for each form of instruction in the images of allocators: its mnemonic and kinds of operands."""
    found = {}
    for name in names or allocator_names():
        of = program(name, target)
        for instruction in of.instructions:
            form = "".join("0" if letter.isdigit() else letter for letter in instruction.text).replace("00", "0")
            found.setdefault(form, (of, instruction))
    return tuple(found.values())


@cache
def lifter_of(name, target):
    of = program(name, target)
    return Lifter(of.target.pcode_language, of.target.isa, code_reader(of.image.segments))


def distinct(target):
    """Forms that differ in more than numbers and how long these are, in the images of the ordinary run."""
    found = forms(target, on_one_core(target))
    return {re.sub(r"0x[0-9a-f]+|\d+", "0", one.text): (of, one) for of, one in found}.values()


@pytest.mark.covering(0)
@pytest.mark.parametrize(("chosen", "states"), [(distinct, 1), pytest.param(forms, 8, marks=pytest.mark.slow)])
@pytest.mark.parametrize("target", TARGETS)
def test_each_form_of_instruction_of_the_allocators(target, chosen, states):
    executed = total = 0
    for of, instruction in chosen(target):
        if instruction.problem or instruction.in_it_block:
            continue
        lifter = lifter_of(of.allocator.name, target)
        total += 1
        executed += sum(check(lifter, instruction.address, f"{target} {number}") for number in range(states)) > 0
    assert executed > 0.7 * total > 50


def random_instructions(target, count, seed, chosen):
    """Lifters and addresses of random encodings; half of them differ from an allocator's in a few bits only."""
    isa, draw = load_target(target), random.Random(f"{target} {seed}")
    known = [of.image.elf[:0] + code_reader(of.image.segments)(i.address, 4) for of, i in chosen(target)]
    codes: list[bytes] = []
    while len(codes) < count:
        word = bytearray(draw.choice(known).ljust(4, b"\0")) if draw.random() < 0.7 else bytearray(draw.randbytes(4))
        for _ in range(draw.randrange(4)):
            word[draw.randrange(4)] ^= 1 << draw.randrange(8)
        code = bytes(word)
        if isa.isa is Isa.THUMB and code[1] == 0xBF and code[0] & 15:
            continue
        codes.append(code)
    for first in range(0, count, OF_A_LIFTER):
        own = {CODE + APART * place: code for place, code in enumerate(codes[first : first + OF_A_LIFTER])}
        lifter = Lifter(isa.pcode_language, isa.isa, lambda at, size, own=own: own.get(at, b"")[:size])
        yield from ((lifter, address) for address in own)


def attack(target, count, seed, chosen=forms):
    executed = 0
    for number, (lifter, address) in enumerate(random_instructions(target, count, seed, chosen)):
        try:
            lifter.lift(address)
        except DecodeError:
            continue
        executed += check(lifter, address, f"{target} {seed} {number}")
    return executed


@pytest.mark.parametrize("target", TARGETS)
def test_random_encodings(target):
    assert attack(target, 75, 0, distinct) > 30


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 9))
@pytest.mark.parametrize("target", TARGETS)
def test_many_random_encodings(target, seed):
    assert attack(target, 4000, seed) > 800


def moves_of(isa, draw):
    """A few instructions that move registers of floating point, most of the stack, and one that computes."""
    codes = []
    while len(codes) < 6:
        if isa is Isa.POWERPC:
            base, offset, register = draw.choice((1, 1, 9)), 8 * draw.randrange(-3, 4), draw.randrange(4)
            word = draw.choice((50, 54, 50, 54, 48, 52)) << 26 | register << 21 | base << 16 | offset & 0xFFFF
            if draw.random() < 0.4:
                word = 63 << 26 | register << 21 | draw.randrange(4) << 11 | draw.choice((72, 72, 40)) << 1
            codes.append(word.to_bytes(4, "big"))
            continue
        four, bit, double, load = draw.randrange(4), draw.getrandbits(1), draw.getrandbits(1), draw.getrandbits(1)
        unit = four << 12 | bit << 22 | double << 8 | 0xA << 8
        core, other = draw.randrange(4), draw.randrange(4, 8)
        forms = (
            0xED000000 | draw.getrandbits(1) << 23 | load << 20 | 13 << 16 | draw.randrange(4) | unit,  # vldr, vstr
            0xEC800000 | 13 << 16 | load << 20 | draw.getrandbits(1) << 21 | 2 | unit,  # vldm, vstm
            0xED200000 | 13 << 16 | load << 20 | 2 | unit,
            0xEE000A10 | load << 20 | four << 16 | bit << 7 | core << 12,  # vmov of a word
            0xEC400A10 | double << 8 | load << 20 | other << 16 | core << 12 | four | bit << 5,  # of two
            0xEE000B10 | load << 20 | draw.getrandbits(1) << 21 | four << 16 | core << 12,  # of half of a double one
            0xEEB00A40 | unit | draw.randrange(4) | draw.getrandbits(1) << 5,  # vmov of registers
            0xEE300A00 | unit | four << 16,  # vadd
        )
        word = draw.choice(forms)
        if word & 0x0F00_0D00 == 0x0D00_0900 and bit and double:
            word &= ~(1 << 22)
        halves = (word >> 16, word & 0xFFFF) if isa is Isa.THUMB else (word & 0xFFFF, word >> 16)
        codes.append(b"".join(half.to_bytes(2, "little") for half in halves))
    return b"".join(codes)


def lifted_moves(of, count):
    """The instructions of some codes, each with its number and lifter, but for those that are refused."""
    codes = [moves_of(of.isa, random.Random(f"{of.name} {seed}")) for seed in range(count)]
    for first in range(0, count, OF_A_LIFTER):
        own = {CODE + APART * place: code for place, code in enumerate(codes[first : first + OF_A_LIFTER])}

        def read(at, size, own=own):
            start = at - (at - CODE) % APART
            return own.get(start, b"")[at - start : at - start + size]

        lifter = Lifter(of.pcode_language, of.isa, read)
        for place, (start, code) in enumerate(own.items(), first):
            with contextlib.suppress(DecodeError):
                yield place, lifter, tuple(lifter.lift(start + at) for at in range(0, len(code), 4))


@pytest.mark.covering(0)
@pytest.mark.parametrize("count", [150, pytest.param(10_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("target", ["cortex-m7", "cortex-r5", "mpc603e"])
def test_what_is_known_of_moves_of_floating_point_is_so(target, count):
    """Of arithmetic the machine leaves its result as it was, which the state must allow as anything else."""
    of, executed, told = load_target(target), 0, 0
    for seed, lifter, instructions in lifted_moves(of, count):
        names = [f"f{n}" for n in range(8)] if of.isa is Isa.POWERPC else [f"s{n}" for n in range(16)]
        sample = Sample(lifter, seed, names)
        image = SimpleNamespace(segments=(), big_endian=lifter.big_endian, isa=lifter.isa, location=hex)
        transfer, before = Transfer(lifter, sample.terms, Memory(image)), sample.state.copy()
        flows = transfer.block(0, instructions, sample.state)
        try:
            for one in instructions:
                known = tuple(op for op in one.ops if op.user_op != FLOAT_OPERATION and "FLOAT" not in op.opcode)
                sample.machine.pc = one.address
                sample.machine.compile(type(one)(one.address, one.size_bytes, known))()
        except (EmulationError, OverflowError):
            continue
        assert len(flows) == 1
        assert holds(sample, flows[0]), seed
        executed += 1
        places = [Location("register", lifter.registers[n].offset, lifter.registers[n].size_bytes) for n in names]
        moved = [at for at in places if flows[0].state.read(at) != before.read(at)]
        told += any(not flows[0].state.value(flows[0].state.read(at)).is_top for at in moved)
    assert executed > 0.5 * count
    assert told > 0.1 * count


PARTS_OF_A_WORD = {
    "cortex-m4": "movw r1, #0x1234\nmovt r1, #0x5678\nstr r1, [sp, #-8]!\nldrb r0, [sp, #1]\nldrsh r2, [sp, #2]\n"
    "strb r0, [sp, #2]\nldrb r3, [sp, #1]\nadd sp, #8\nbx lr",
    "mpc603e": "stwu 1, -16(1)\nlis 4, 0x5678\nori 4, 4, 0x1234\nstw 4, 8(1)\nlbz 3, 10(1)\nlha 5, 8(1)\n"
    "stb 3, 9(1)\nlbz 6, 10(1)\naddi 1, 1, 16\nblr",
}


@pytest.mark.parametrize("target", PARTS_OF_A_WORD)
def test_a_part_of_a_word_that_is_known_is_loaded_and_is_not_known_behind_a_store_into_the_word(target):
    _, values = of_text(PARTS_OF_A_WORD[target], load_target(target))
    (state,) = (edge.state for edge in values.edges.values() if edge.edge.target == EXIT)
    byte, half, behind = (f"r{number}" for number in ((3, 5, 6) if target == "mpc603e" else (0, 2, 3)))
    of = {name: state.value(state.read(values.registers[name])) for name in (byte, half, behind)}
    assert (of[byte].value, of[half].value) == (0x12, 0x5678)
    assert not of[behind].is_constant
