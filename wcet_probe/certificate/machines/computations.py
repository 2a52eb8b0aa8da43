# SPDX-License-Identifier: 0BSD
"""What an instruction that computes on registers leaves, by name: a sum, a shift, what it was, or something else."""

from __future__ import annotations

import re
from collections.abc import Sequence

from wcet_probe.certificate.machines.operands import NUMBER, Computation, computation
from wcet_probe.certificate.values.numbers import WORD, Value, constant, unsigned
from wcet_probe.certificate.values.state import Place, State
from wcet_probe.certificate.values.terms import Terms, is_named, text_of
from wcet_probe.model.instruction import Instruction

_SUMS = {"add": (1, 1), "sub": (1, -1), "rsb": (-1, 1), "subf": (-1, 1)}
_SHIFTS = {"lsl": "lsl", "lsr": "lsr", "asr": "asr", "slwi": "lsl", "srwi": "lsr", "srawi": "asr"}


def name_of(terms: Terms, instruction: Instruction, place: Place, before: State) -> Value | None:
    """The name of what a computation on registers leaves in ``place``; None for any other instruction."""
    found = computation(instruction, place)
    if found is None:
        return None
    name, operands, shift, bits = found
    values = {register: before.read(register) for register in instruction.reads}
    if not values.keys() <= set(operands) or not all(map(is_named, values.values())):
        return None
    linear = _linear(terms, found, [values.get(one) for one in operands])
    if linear is not None:
        return linear
    text = ", ".join(text_of(values[one]) if one in values else one for one in operands)
    return terms.other(f"{name} {text} {shift} {bits}", list(values.values()))


def kept(instruction: Instruction, place: Place, before: State, numbers: State) -> Value | None:
    """The name of a register that ``instruction`` leaves in ``place`` as it was: the bits that it clears are clear.

    Args:
        instruction: it.
        place: that it writes.
        before: what is known before it, by name.
        numbers: as numbers.
    """
    found = computation(instruction, place)
    if found is None or len(instruction.reads) != 1 or found.bits or not instruction.reads <= {found.operands[0]}:
        return None
    name, operands, *_ = found
    mask, value = mask_of(name, operands[1:]), before.read(operands[0])
    return value if mask is not None and is_named(value) and _keeps(numbers.read(operands[0]), mask) else None


def _linear(terms: Terms, found: Computation, values: Sequence[Value | None]) -> Value | None:
    """The name of a sum or difference, of a register that is shifted by a constant, or negated."""
    name, operands, shift, bits = found
    match values:
        case [Value() as one, Value() as other] if name in _SUMS:
            last, factors = terms.shifted(other, shift, bits), _SUMS[name]
            return terms.sum_of([(one, factors[0]), (last, factors[1])]) if last is not None else None
        case [Value() as one, None] if name in _SHIFTS and re.fullmatch(NUMBER, operands[1]):
            return terms.shifted(one, _SHIFTS[name], int(operands[1], 0))
        case [Value() as one, None] if name in {"rsb", "subfic"} and re.fullmatch(NUMBER, operands[1]):
            return terms.sum_of([(constant(int(operands[1], 0)), 1), (one, -1)])
        case [Value() as one] | [_, Value() as one] if name == "neg":
            return terms.sum_of([(one, -1)])
    return None


def mask_of(name: str, words: Sequence[str]) -> int | None:
    """The bits of a register that an instruction keeps, if it clears the others; ``words`` are behind the register."""
    numbers = [int(word, 0) for word in words if re.fullmatch(NUMBER, word)]
    mask: int | None = None
    match name, numbers:
        case (("and" | "andi"), [bits]):
            mask = bits
        case ("bic", [bits]):
            mask = ~bits
        case ("clrlwi", [bits]):
            mask = (1 << 32 - bits % 32) - 1
        case ("clrrwi", [bits]):
            mask = WORD - (1 << bits % 32)
        case ("rlwinm", [0, first, last]) if first <= last < 32:
            mask = (1 << 32 - first) - (1 << 31 - last)
        case (("uxtb" | "uxth"), []):
            mask = (1 << 8 * (1 + (name == "uxth"))) - 1
    return None if mask is None else mask % WORD


def _keeps(value: Value, mask: int) -> bool:
    """Whether clearing all bits but those of ``mask``, which are one field, leaves ``value`` as it is."""
    unit = mask & -mask
    if not value.is_plain or not unit or mask & mask + unit:
        return False
    word = unsigned(value)
    return word.high <= mask and word.low % unit == 0 and word.stride % unit == 0
