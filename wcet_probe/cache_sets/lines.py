"""Accesses that are a known number of bytes from an earlier one of the same straight piece of code, by the code alone.

Compilers give no source line to what they have merged, so that no flow fact of a function speaks of it. Where the code
has surely accessed memory by the same value of the same register before, what is known of that address tells this one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from wcet_probe.model.instruction import Access, Control, Instruction

_ALWAYS = 14


@dataclass(frozen=True, slots=True)
class Mate:
    """An earlier instruction of the same piece of code that surely accesses memory, once.

    Attributes:
        address: of the instruction.
        ahead_bytes: from its first byte accessed to the first byte of the instruction in question.
    """

    address: int
    ahead_bytes: int


def line_mates(instructions: Iterable[Instruction], starts: Collection[int]) -> Mapping[int, tuple[Mate, ...]]:
    """By address of an instruction that accesses memory by a base register and a displacement, its mates.

    Parameters:
        instructions: in order of addresses.
        starts: where control may come from elsewhere than from the instruction before: pieces begin there.
    """
    found: dict[int, tuple[Mate, ...]] = {}
    for piece in _pieces(instructions, starts):
        for accesses in _by_base(piece).values():
            for instruction, access in accesses:
                found[instruction.address] = tuple(
                    Mate(other.address, access.displacement - by.displacement)
                    for other, by in accesses
                    if other.address < instruction.address and by.count == 1 and _is_certain(other)
                )
    return found


def _pieces(instructions: Iterable[Instruction], starts: Collection[int]) -> Iterator[list[Instruction]]:
    piece: list[Instruction] = []
    for instruction in instructions:
        if piece and (instruction.address in starts or not _goes_on(piece[-1], instruction)):
            yield piece
            piece = []
        piece.append(instruction)
    yield piece


def _goes_on(before: Instruction, instruction: Instruction) -> bool:
    is_next = before.address + before.size_bytes == instruction.address
    return is_next and before.control in {Control.NEXT, Control.CONDITIONAL_BRANCH}


def _by_base(piece: Iterable[Instruction]) -> Mapping[tuple[str, int], list[tuple[Instruction, Access]]]:
    """Accesses by base register and number of the value that it has."""
    numbers: dict[str, int] = {}
    found: dict[tuple[str, int], list[tuple[Instruction, Access]]] = {}
    for instruction in piece:
        if len(instruction.accesses) == 1:
            access = instruction.accesses[0]
            if access.base is not None and access.index is None and access.align_mask == 0xFFFFFFFF:
                key = access.base, numbers.get(access.base, 0)
                found.setdefault(key, []).append((instruction, access))
        for register in instruction.writes:
            numbers[register] = numbers.get(register, 0) + 1
    return found


def _is_certain(instruction: Instruction) -> bool:
    return instruction.condition == _ALWAYS and not instruction.in_it_block
