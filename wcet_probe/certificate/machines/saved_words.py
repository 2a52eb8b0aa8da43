# SPDX-License-Identifier: 0BSD
"""The instructions that save registers: where a function begins, before control goes elsewhere.

What they store are registers that the calling convention lets a function change only for a while, or the address to
return to, each as it was where the function was entered; they store it by way of the stack pointer, in the function's
own frame; and the function loads the register somewhere, as it must to give it back. A compiler that makes room on the
stack pushes registers of which it never takes any back, and uses their words as it likes.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from itertools import count
from typing import TypeAlias

from wcet_probe.certificate.machines.operands import may_be_skipped, register_named
from wcet_probe.model.image import Image
from wcet_probe.model.instruction import AccessKind, Control, Instruction
from wcet_probe.model.target import Isa

Saving: TypeAlias = Mapping[int, Collection[int]]
"""By the address of an instruction, which of its stores save a register, in the order of their addresses."""
_MOST_INSTRUCTIONS = 64
_WORD_BYTES = 4
_MADE_ROOM = re.compile(r"sub(?:\.w|w)? sp, (?:sp, )?#(0x[0-9a-f]+|[0-9]+)")
_WRITTEN_BACK = re.compile(r"push|stwu|.*!")
_STORED = re.compile(r"(?:str|strd|stw|stwu)(?:\.w)? (.*?), (?:\[|-?[0-9a-fx]+\()")


def saving_stores(image: Image, instructions: Mapping[int, Instruction]) -> Saving:
    """The instructions of ``image`` that save registers, of functions with a symbol, or that are called by address.

    Args:
        image: the binary. Where functions begin it says, and no certificate: what is stored elsewhere saves nothing.
        instructions: of it, by address.
    """
    entries = {one.address for one in image.functions}
    entries |= {one.branch_target for one in instructions.values() if one.control is Control.CALL and one.branch_target}
    found: dict[int, frozenset[int]] = {}
    for entry in sorted(entries):
        function = image.function_at(entry)
        if function is not None:
            extent = range(function.address, function.address + function.size_bytes)
            own = (instructions[address] for address in extent if address in instructions)
            loaded = {register for one in own for register in one.loaded}
            found.update(_saved_by(image.isa, entry, instructions, loaded))
    return found


def _saved_by(
    isa: Isa, entry: int, instructions: Mapping[int, Instruction], loaded: Collection[str]
) -> Iterator[tuple[int, frozenset[int]]]:
    """The instructions that save registers from ``entry`` on, and which of their stores do."""
    pointer, numbers = ("r1", range(14, 32)) if isa is Isa.POWERPC else ("r13", range(4, 12))
    kept = {f"r{number}" for number in numbers if f"r{number}" in loaded}
    kept |= {"r14"} if isa is not Isa.POWERPC and not {"r14", "r15"}.isdisjoint(loaded) else set()
    address, moved = entry, 0
    for _ in range(_MOST_INSTRUCTIONS):
        one = instructions.get(address)
        if one is None or one.control is not Control.NEXT or may_be_skipped(one):
            return
        stored = _stored_registers(one, pointer)
        first = moved + one.accesses[0].displacement if stored else 0
        places = enumerate(zip(count(first, _WORD_BYTES), stored, strict=False))
        saving = frozenset(number for number, (place, register) in places if place < 0 and register in kept)
        if saving:
            yield one.address, saving
        if pointer in one.writes:
            made_room = _MADE_ROOM.fullmatch(one.text)
            if made_room is None and not (stored and _WRITTEN_BACK.match(one.text)):
                return
            moved = moved - int(made_room[1], 0) if made_room else first
        kept -= one.writes
        address += one.size_bytes


def _stored_registers(one: Instruction, pointer: str) -> list[str]:
    """The registers that ``one`` stores by way of the stack pointer, in the order of their addresses."""
    if len(one.accesses) != 1:
        return []
    (access,) = one.accesses
    is_plain = access.kind is AccessKind.STORE and access.bytes_each == _WORD_BYTES and access.index is None
    if not is_plain or access.base != pointer:
        return []
    name, _, operands = one.text.partition(" ")
    if "{" in operands:
        braced = operands.partition("{")[2].partition("}")[0]
        return sorted((register_named(text) for text in braced.split(", ")), key=lambda text: int(text[1:]))
    if name == "stmw":
        first = int(operands.partition(",")[0].removeprefix("r"))
        return [f"r{number}" for number in range(first, first + access.count)]
    found = _STORED.match(one.text)
    registers = [register_named(text) for text in found[1].split(", ")] if found else []
    return registers if len(registers) == access.count else []
