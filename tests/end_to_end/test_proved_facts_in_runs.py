"""What the induction says of words is held against calls of the second engine, whose caller scribbles on its blocks.

So the lemmas are looked at, too: a word of the caller that an operation took for one of its own would be none of those.
"""

import random

import pytest

from tests.support import images_dir
from wcet_probe.analyzer.invariants.kinds import MODULUS, Kind
from wcet_probe.analyzer.pcode.interpreter import interpret_call
from wcet_probe.analyzer.pcode.lift import Lifter, code_reader
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.answer.facts.proved_facts import typed_module
from wcet_probe.build.program import load_program
from wcet_probe.catalog.lookup import load_allocator, load_target
from wcet_probe.model.target import Isa

HEAP_BYTES = 5000
ROLES = ("init", "malloc", "free")
PROVED = (
    "kingsley", "first-fit", "tlsf", "djgpp-quarters", "buddy-binary", "best-fit", "buddy-fibonacci", "djgpp-sbrk",
    "djgpp-carve", "djgpp-tags", "djgpp-cached", "quick-fit", "avl-best-fit", "budgeted:tlsf",
)  # fmt: skip
ADDRESSES = {"arena": {Kind.ARENA, Kind.ANY}, "static": {Kind.STATIC, Kind.ANY}}
NUMBERS = {Kind.NULL, Kind.NEAR, Kind.NUMBER, Kind.INDEX, Kind.CONSTANT, Kind.MIXED, Kind.ANY}


class Caller:
    """Calls the operations of an allocator, and writes into its blocks."""

    def __init__(self, program, seed):
        image, target = program.image, program.target
        self.program, self.random = program, random.Random(seed)
        self.lifter = Lifter(target.pcode_language, target.isa, code_reader(image.segments))
        self.heap, self.stack = target.memory_map.heap_address, target.memory_map.stack
        self.regions = {
            segment.address: bytearray(segment.data.ljust(segment.size_bytes, b"\0"))
            if segment.writable
            else bytes(segment.data.ljust(segment.size_bytes, b"\0"))
            for segment in image.segments
        }
        self.regions[self.heap] = bytearray(self.random.randbytes(HEAP_BYTES))
        self.regions[self.stack.base_address] = bytearray(self.stack.size_bytes)
        names = ("r3", "r4", "r1") if target.isa is Isa.POWERPC else ("r0", "r1", "r13")
        self.first, self.second, self.pointer = names

    def call(self, role, *arguments):
        top = self.stack.base_address + self.stack.size_bytes - 64
        registers = {self.pointer: top} | dict(zip((self.first, self.second), arguments, strict=False))
        entry = self.program.image.symbols[self.program.allocator.entry_points[role]].address
        done = interpret_call(
            self.lifter, self.regions, registers, entry_address=entry, return_address=0xFFF0, step_limit=100_000
        )
        for base, content in done.memory.items():
            if isinstance(self.regions[base], bytearray):
                self.regions[base] = bytearray(content)
        return done

    def scribble(self, block, size_bytes):
        start = block - self.heap
        self.regions[self.heap][start : start + size_bytes] = self.random.randbytes(size_bytes)

    def where(self, value):
        if self.heap <= value < self.heap + HEAP_BYTES:
            return "arena"
        writable = (s for s in self.program.image.segments if s.writable)
        return "static" if any(s.address <= value < s.address + s.size_bytes for s in writable) else "number"


def told(module):
    """By operation, instruction and whether it is of the address: what is said, joined over all call paths."""
    found = {}
    for index, one in enumerate(module.operations):
        for access in one.accesses:
            if access.access.base is not Base.NUMBER:
                continue
            transfer = access.transfer
            address = module.evaluator.word(index, transfer.state, transfer.pointer, module.memory.found)
            key = ROLES[index], transfer.instruction_address
            found.setdefault((*key, "address"), []).append(address)
            if access.symbol is not None:
                found.setdefault((*key, "word"), []).append(module.memory.found.get((index, access.symbol), ()))
    return found


def is_among(value, where, words):
    kinds = ADDRESSES.get(where, NUMBERS)
    if where == "static" and not any(part.kind in kinds for parts in words for part in parts):
        kinds = NUMBERS  # a bitmap, whose bits happen to be those of an address
    bits = value.bit_length()
    return any(
        part.kind in kinds and part.residues >> value % MODULUS & 1 and part.least <= bits <= part.most
        for parts in words
        for part in parts
    )


def hold(caller, done, role, said):
    held = 0
    for access in done.accesses:
        key = role, access.instruction_address
        if caller.stack.base_address <= access.address < caller.stack.base_address + caller.stack.size_bytes:
            continue
        place = caller.program.image.location(access.instruction_address)
        if (*key, "address") in said:
            assert is_among(access.address, caller.where(access.address), said[*key, "address"]), place
            held += 1
        if (*key, "word") in said and not access.is_store and access.size_bytes == 4 and access.value is not None:
            assert is_among(access.value, caller.where(access.value), said[*key, "word"]), (place, hex(access.value))
            held += 1
    return held


@pytest.mark.parametrize(
    "name", [name if name == "first-fit" else pytest.param(name, marks=pytest.mark.slow) for name in PROVED]
)
def test_words_and_addresses_of_calls_are_those_that_the_induction_tells(name):
    program = load_program(load_allocator(name), load_target("mpc603e"), "zig", images_dir())
    said = told(typed_module(program, HEAP_BYTES))
    caller = Caller(program, seed=1)
    start = caller.call("init", caller.heap, HEAP_BYTES // 16 * 16)
    assert start.result == 0
    held, blocks = hold(caller, start, "init", said), {}
    for _ in range(150):
        if blocks and caller.random.random() < 0.45:
            block = caller.random.choice(sorted(blocks))
            caller.scribble(block, blocks.pop(block))
            held += hold(caller, caller.call("free", block), "free", said)
            continue
        size_bytes = caller.random.choice((1, 7, 12, 24, 40, 100, 300, 900))
        done = caller.call("malloc", size_bytes)
        held += hold(caller, done, "malloc", said)
        if done.result:
            blocks[done.result] = size_bytes
            caller.scribble(done.result, size_bytes)
    assert held > 300
