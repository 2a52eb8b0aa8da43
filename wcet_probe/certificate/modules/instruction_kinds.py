# SPDX-License-Identifier: 0BSD
"""What sums, multiples and instructions on a condition make of words that are known by what they are made of."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from itertools import product
from operator import and_, or_, xor
from typing import NamedTuple

from wcet_probe.certificate.machines import arm, powerpc
from wcet_probe.certificate.machines.operands import ALWAYS, Computation, may_be_skipped
from wcet_probe.certificate.machines.operands import NUMBER as DIGITS
from wcet_probe.certificate.values.congruences import Congruence
from wcet_probe.certificate.values.kinds import ANYTHING, NUMBER, Part, Word, added, computed, multiples, scaled
from wcet_probe.certificate.values.numbers import WORD, opposite, signed
from wcet_probe.certificate.values.residues import MODULUS, of_class, residue
from wcet_probe.certificate.values.state import Comparison, State
from wcet_probe.model.instruction import Instruction
from wcet_probe.model.target import Isa

BITWISE: Mapping[str, Callable[[int, int], int]] = {
    "and": and_,
    "or": or_,
    "ori": or_,
    "orr": or_,
    "eor": xor,
    "xor": xor,
    "bic": lambda a, b: a & ~b,
    "andc": lambda a, b: a & ~b,
}
"""Instructions that compute bit by bit."""
_SUMS = {"add", "addi", "sub", "rsb", "subf", "subfic", "neg"}
_UPPER = ("addis", "oris", "xoris", "movt")
"""Instructions whose constant is the upper half of a word."""
_NO_NUMBER: Word = (Part(NUMBER, False, residue(0)),)


def unconditional(instruction: Instruction, isa: Isa) -> Instruction:
    """What an instruction of ARM or Thumb is where it is executed."""
    if isa is Isa.POWERPC or not may_be_skipped(instruction):
        return instruction
    name, sets_flags, _ = arm.mnemonic(instruction)
    _, blank, operands = instruction.text.partition(" ")
    text = f"{name}{'s' * sets_flags}{blank}{operands}"
    return replace(instruction, text=text, condition=ALWAYS, in_it_block=False)


class Combined(NamedTuple):
    """In the place of what flags compare: a bit of a condition field was computed from two others, of these fields."""

    compute: Callable[[bool, bool], bool]
    bit: int
    operands: tuple[int, int]
    fields: tuple[Comparison | None, Comparison | None]


Operand = tuple[Word, int | None]
"""What an operand is made of, and what it is if that is known, as a signed number."""


def flags_set(before: State, behind: State) -> Comparison | None:
    """What Arm's flags tell ``behind`` an instruction that has set them; None where it was skipped.

    They are those ``before`` it then, of which its condition may have been found to hold or not.
    """
    flags = behind.flags.get("nzcv")
    return None if flags is None or flags.holding or flags is before.flags.get("nzcv") else flags


def is_sum(name: str) -> bool:
    """Whether an instruction adds or subtracts."""
    return name in _SUMS


def leaves_number(found: Computation, *, is_known: bool) -> bool:
    """Whether what an instruction leaves is of what it was made, though it may look like an address.

    So is what is shifted by a register, and that, or what else ``is_known``, less or plus a few bytes. Halves of an
    address that are put together are not.
    """
    last = found.operands[-1]
    if not re.fullmatch(DIGITS, last):
        return found.name in {"lsl", "slw"}
    return is_known and is_sum(found.name) and not found.bits and abs(signed(int(last, 0) % WORD)) < MODULUS


def summed(name: str, each: list[Operand]) -> Word | None:
    """A sum or difference; None of another computation."""
    match name, each:
        case ("add", [(a, int(known)), (b, None)]) | (("add" | "addi"), [(b, _), (a, known)]):
            return added(b, a, constant=known)
        case ("sub", [(a, _), (b, known)]) | (("rsb" | "subf" | "subfic"), [(b, known), (a, _)]):
            return added(a, b, sign=-1, constant=known)
        case ("neg", [(a, known)]):
            return added(_NO_NUMBER, a, sign=-1, constant=known)
    return ANYTHING if name in _SUMS else None


def multiplied(name: str, each: list[Operand]) -> Word | None:
    """A multiple, or what is shifted to the left; None of another computation."""
    match name, each:
        case (("lsl" | "slwi"), [(a, _), (_, int(known))]) if 0 <= known < 32:
            return scaled(a, 1 << known)
        case (("mul" | "mullw"), [(a, _), (_, int(known))]):
            return scaled(a, known)
        case (("lsl" | "slw" | "mul" | "mullw"), [(a, _), (b, _)]):
            return computed([a, b], multiples(a))
        case ("rlwinm", [(a, _), _, (_, int(first)), (_, int(last))]) if 0 <= first <= last < 32:
            return computed([a], of_class(Congruence(1 << 31 - last, 0)))
    return None


def otherwise(words: list[Word]) -> Word:
    """What an instruction that is not known computes from ``words``: of numbers a number, but perhaps a sum."""
    return computed(words) if words and all(part.is_number for one in words for part in one) else ANYTHING


def constants_of(instruction: Instruction) -> Iterator[int]:
    """The constants that an instruction names, which may be addresses: `addis` adds the upper half of one."""
    name, _, operands = instruction.text.partition(" ")
    for one in operands.split(", "):
        if re.fullmatch(DIGITS, one.removeprefix("#")):
            yield (int(one.removeprefix("#"), 0) << 16 * name.startswith(_UPPER)) % WORD


def learn_bits(state: State, combined: Combined, relations: Collection[str]) -> None:
    """What two bits tell of which another was computed, where that is known by the ``relations`` that hold."""
    relation = powerpc.RELATIONS[combined.bit % 4] if combined.bit % 4 != 3 else ""
    if relation not in {*relations, *map(opposite, relations)}:
        return
    found = relation in relations
    pairs = [pair for pair in product((False, True), repeat=2) if combined.compute(*pair) == found]
    for number, (operand, field) in enumerate(zip(combined.operands, combined.fields, strict=True)):
        known = {pair[number] for pair in pairs}
        if len(known) == 1 and field is not None and state.flags.get(f"cr{operand // 4}") == field:
            told = powerpc.tested(state, operand, 8 * known.pop())
            if told is not None:
                state.values, state.flags = told.values, told.flags
