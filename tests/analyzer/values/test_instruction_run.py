"""Abstract execution of single instructions against the interpreter: on random states, whatever happens is allowed."""

import random
import re
from functools import cache
from types import SimpleNamespace

import pytest

from tests.analyzer.natural_loops import program
from tests.analyzer.values.test_terms import CORNERS
from tests.support import TARGETS
from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.pcode.interpreter import _Machine
from wcet_probe.analyzer.pcode.lift import Lifter, code_reader
from wcet_probe.analyzer.values.bases import Base
from wcet_probe.analyzer.values.locations import Location
from wcet_probe.analyzer.values.memory import Memory
from wcet_probe.analyzer.values.state import State
from wcet_probe.analyzer.values.terms import Terms
from wcet_probe.analyzer.values.transfer import Transfer
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

    def __init__(self, lifter, seed):
        self.draw, self.lifter, self.terms = random.Random(seed), lifter, Terms()
        is_powerpc = lifter.isa is Isa.POWERPC
        self.stack_register = "r1" if is_powerpc else "r13"
        general = [f"r{number}" for number in range(32 if is_powerpc else 15)]
        self.names = [*general, *FLAGS[lifter.isa], *(["ctr", "lr"] if is_powerpc else [])]
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
        value = {1: draw.getrandbits(1), 4: draw.choice((draw.choice(CORNERS), draw.getrandbits(32), DATA + 0x800))}[
            varnode.size_bytes
        ]
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
    image = SimpleNamespace(segments=(), big_endian=lifter.big_endian, location=hex)
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


@pytest.mark.parametrize(("chosen", "states"), [(distinct, 2), pytest.param(forms, 8, marks=pytest.mark.slow)])
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
