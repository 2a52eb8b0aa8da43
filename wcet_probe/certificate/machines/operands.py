# SPDX-License-Identifier: 0BSD
"""What an instruction computes from registers, as its text says: sums, differences, shifts and products."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from wcet_probe.certificate.values.congruences import (
    MOST_MODULUS,
    UNALIGNED,
    Congruence,
    difference,
    negative,
    residue_of,
    shifted,
    total,
)
from wcet_probe.certificate.values.numbers import Value, bare
from wcet_probe.certificate.values.state import Place, State
from wcet_probe.model.instruction import Access, Instruction, Shift

COMPUTES = re.compile(
    "(add|sub|rsb|lsl|lsr|asr|and|orr|eor|bic|mvn|mul|clz|uxtb|uxth|ubfx|subf|slwi|srwi|rlwinm|clrlwi|clrrwi|or|xor|andc|"
    r"slw|srw|sraw|srawi|cntlzw|neg|mullw|rotlwi|rotlw|ori|andi|addi|subfic)(?:(?<!i)s|\.w|s\.w|\.)? "
    r"([a-z]+[0-9]*(?:, (?:[a-z]+[0-9]*|#?-?(?:0x)?[0-9a-f]+))*)(?:, (lsl|lsr|asr|ror) #((?:0x)?[0-9a-f]+))?"
)
"""The text of a computation; an ``s`` behind an ``i`` is no suffix: ``addis`` and ``oris`` compute something else."""
NUMBER = re.compile("-?(?:[0-9]|0x)[0-9a-f]*")
_MULTIPLIES = re.compile(r"(mul|mla|mls|umul|smul|umla|smla|rlwinm\S* \S+ \S+ (?!0,))")
_WRITES_BACK = re.compile(
    r"(?:\[|ux r[0-9]+, )([a-z]+[0-9]*)\]?, (-?)([a-z]+[0-9]*)(?:, lsl #((?:0x)?[0-9a-f]+))?(?:\]!)?$"
)
"""A register that an access moves by another one: ``[r1], r2``, ``[r1, -r2, lsl #2]!``, ``lwzux r0, r1, r2``."""
_MOVES = re.compile(r"mov(?:eq|ne|[hl][si]|lo|cs|cc|mi|pl|v[sc]|g[te]|l[te])(?:\.w)? ([a-z]+[0-9]*), #?(\S+)")
ALIASES = {"sb": "r9", "sl": "r10", "fp": "r11", "ip": "r12", "sp": "r13", "lr": "r14", "pc": "r15"}
ALWAYS = 14


def may_be_skipped(instruction: Instruction) -> bool:
    """Whether an instruction of ARM or Thumb is executed on a condition."""
    return instruction.in_it_block or instruction.condition != ALWAYS


def register_named(text: str) -> str:
    """The register that is called ``text``; of anything else, that."""
    return ALIASES.get(text, text)


class Computation(NamedTuple):
    """What an instruction computes: its name, its operands, and how the last of them is shifted, and how far."""

    name: str
    operands: list[str]
    shift: str
    bits: int


def computation(instruction: Instruction, place: Place) -> Computation | None:
    """What is computed, if it is on registers and constants alone."""
    found = COMPUTES.fullmatch(instruction.text)
    if found is None or may_be_skipped(instruction) or instruction.accesses or place not in instruction.writes:
        return None
    operands = [register_named(word) for word in found[2].replace("#", "").split(", ")]
    if operands[0] != place:
        return None
    if operands[0] not in instruction.reads or len(operands) > 2:
        del operands[0]
    return Computation(found[1], operands, found[3] or Shift.LSL.value, int(found[4] or "0", 0)) if operands else None


def operands_of(instruction: Instruction, place: Place) -> tuple[str, list[str], int | None] | None:
    """What a sum, difference or product in ``place`` is of: its name, operands, and how far the last is shifted left.

    None of anything else. Facts about pointers speak of what is added once to an address, and not of a multiple of it.
    """
    if _MULTIPLIES.match(instruction.text):
        return "mul", [], None
    moves = _WRITES_BACK.search(instruction.text) if place in instruction.writes - instruction.loaded else None
    if moves is not None and instruction.accesses and register_named(moves[1]) == place:
        words = [register_named(word) for word in (moves[1], moves[3])]
        return None if may_be_skipped(instruction) else ("sub" if moves[2] else "add", words, int(moves[4] or "0", 0))
    found = computation(instruction, place)
    if found is None or found.name not in {"add", "sub", "rsb", "subf", "neg", "lsl", "slwi"}:
        return None
    *before, last = found.operands
    if found.name in {"lsl", "slwi"}:
        return ("lsl", before, int(last, 0)) if re.fullmatch(NUMBER, last) else None
    bits = found.bits if found.shift == Shift.LSL.value else None
    return found.name, [last] if found.name == "neg" else found.operands, bits


def moved_if(instruction: Instruction, place: Place) -> str | None:
    """What a conditional instruction of Arm puts into ``place`` if it is executed, a register or a constant."""
    found = _MOVES.fullmatch(instruction.text)
    is_moved = found and may_be_skipped(instruction) and register_named(found[1]) == place
    return register_named(found[2]) if found and is_moved else None


def class_of(alignments: Mapping[str, Congruence], before: State, word: str) -> Congruence:
    """What is known of an operand modulo a power of two."""
    if re.fullmatch(NUMBER, word):
        return Congruence(MOST_MODULUS, int(word, 0) % MOST_MODULUS)
    value = bare(before.read(word))
    if value.base.startswith("@"):
        known = alignments.get(value.base, UNALIGNED)
        return (known if value.is_constant else known.coarser(value.stride & -value.stride)).moved(value.low)
    return residue_of(value)


def class_of_sum(
    classes: Mapping[str, Congruence], before: State, found: tuple[str, list[str], int | None], number: Value
) -> Congruence:
    """The class of what `operands_of` ``found``, by ``classes`` of names; ``number`` is what it comes to."""
    name, words, bits = found
    values = [class_of(classes, before, word) for word in words]
    values[-1:] = [shifted(one, bits, number) for one in values[-1:]]
    if len(values) == 1:
        return negative(values[0]) if name == "neg" else values[0]
    if len(values) != 2:
        return UNALIGNED
    one, other = values if name not in {"rsb", "subf"} else values[::-1]
    return total(one, other) if name == "add" else difference(one, other)


def class_of_address(classes: Mapping[str, Congruence], named: State, access: Access, number: Value) -> Congruence:
    """The class of base and index of ``access``, by ``classes`` of names; ``number`` is what the index is."""
    one, other = (class_of(classes, named, str(part)) for part in (access.base, access.index))
    other = shifted(other, access.shift_bits, number) if access.shift is Shift.LSL else UNALIGNED
    return difference(one, other) if access.subtract_index else total(one, other)
