"""Random broken binaries: an allocator's image with an instruction or two of one operation changed, as a bug may be.

A bit or two of the instruction are flipped, which makes it one of another register, number, condition, width, target or
kind; it is dropped; it takes the place of its neighbour; or it is another one of the same operation. What comes of it
is decoded, and leads nowhere out of its function. The same number gives the same binary.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from wcet_probe.build.image import read_image
from wcet_probe.build.program import Program, program_of
from wcet_probe.isa.decode import decode_range
from wcet_probe.model.image import Image, Symbol
from wcet_probe.model.instruction import Instruction
from wcet_probe.model.target import Isa

HOW = ("one bit", "one bit", "one bit", "one bit", "two bits", "dropped", "swapped", "another")
"""How an instruction is changed, as often as it stands here."""
_SHARE_OF_TWO = 0.2
"""So many binaries have two changes."""
_NOPS = {
    (Isa.POWERPC, 4): "60000000",
    (Isa.ARM, 4): "0000a0e1",
    (Isa.THUMB, 2): "00bf",
    (Isa.THUMB, 4): "aff30080",
}


@dataclass(frozen=True, slots=True)
class Change:
    """A change of code: the bytes at an address, the instructions that they change, and what it is in words."""

    address: int
    code: bytes
    text: str
    changed: frozenset[int]


@dataclass(frozen=True, slots=True)
class Broken:
    """A broken binary.

    Attributes:
        program: ready to run.
        changes: what was changed.
    """

    program: Program
    changes: tuple[Change, ...]

    @property
    def text(self) -> str:
        """What was changed, in words."""
        return " and ".join(f"{self.program.image.place(one.address)}: {one.text}" for one in self.changes)

    @property
    def changed(self) -> frozenset[int]:
        """The addresses of the instructions that were changed."""
        return frozenset[int]().union(*(one.changed for one in self.changes))


def broken(program: Program, role: str, number: int) -> Broken:
    """The broken binary ``number`` of the operation ``role``, which has one change, or two."""
    draw = random.Random(f"{program.allocator.name} {program.target.name} {role} {number}")
    changes = [next(_changes(program, role, draw))]
    if draw.random() < _SHARE_OF_TWO:
        changes += (one for one in [next(_changes(program, role, draw))] if not one.changed & changes[0].changed)
    return Broken(patched(program, *changes), tuple(changes))


def patched(program: Program, *changes: Change) -> Program:
    """``program`` with other code."""
    image = program.image
    elf = bytearray(image.elf)
    for one in changes:
        segment = next(each for each in image.segments if 0 <= one.address - each.address < len(each.data))
        at = image.elf.index(segment.data) + one.address - segment.address
        elf[at : at + len(one.code)] = one.code
    changed = read_image(bytes(elf), program.target.isa, image.compiler, image.flags)
    return program_of(program.allocator, program.target, changed)


def dropped(program: Program, address: int) -> Change:
    """That the instruction at ``address`` is not there."""
    one = next(one for one in program.instructions if one.address == address)
    nop = bytes.fromhex(_NOPS[program.image.isa, one.size_bytes])
    return Change(address, nop, f"{one.text} -> nop", frozenset({address}))


def function_of(program: Program, role: str) -> Symbol:
    """The function of an operation."""
    return program.image.symbols[program.allocator.entry_points[role]]


def instructions_of(program: Program, role: str) -> list[Instruction]:
    """The instructions of an operation's function, without those that it calls."""
    function = function_of(program, role)
    return [one for one in program.instructions if function.address <= one.address < _end(function)]


def _end(function: Symbol) -> int:
    return function.address + function.size_bytes


def _changes(program: Program, role: str, draw: random.Random) -> Iterator[Change]:
    """Changes of an operation, without end."""
    image, own = program.image, instructions_of(program, role)
    while True:
        index, how = draw.randrange(len(own)), draw.choice(HOW)
        one, behind = own[index], own[(index + 1) % len(own)]
        old, changed = _bytes(image, one), {one.address}
        if how == "dropped":
            yield dropped(program, one.address)
            continue
        if how == "swapped":
            if behind.address != one.address + one.size_bytes or one.branch_target or behind.branch_target:
                continue
            new, old = _bytes(image, behind) + old, old + _bytes(image, behind)
            changed.add(behind.address)
        elif how == "another":
            other = draw.choice(own)
            new = old if other.size_bytes != one.size_bytes or other.branch_target else _bytes(image, other)
        else:
            bits = draw.sample(range(8 * len(old)), 2 if how == "two bits" else 1)
            number = int.from_bytes(old, "little") ^ sum(1 << bit for bit in bits)
            new = number.to_bytes(len(old), "little")
        found = decode_range(new, one.address, image.isa, image.big_endian)
        before = decode_range(old, one.address, image.isa, image.big_endian)
        is_plausible = len(found) == len(before) and [each.text for each in found] != [each.text for each in before]
        if is_plausible and all(_stays(function_of(program, role), each) for each in found):
            texts = ("; ".join(each.text for each in each_of) for each_of in (before, found))
            yield Change(one.address, new, " -> ".join(texts), frozenset(changed))


def _stays(function: Symbol, one: Instruction) -> bool:
    """Whether an instruction is known, and leads nowhere out of its function."""
    return one.problem is None and (one.branch_target is None or function.address <= one.branch_target < _end(function))


def _bytes(image: Image, one: Instruction) -> bytes:
    segment = next(each for each in image.segments if 0 <= one.address - each.address < len(each.data))
    return segment.data[one.address - segment.address :][: one.size_bytes]
