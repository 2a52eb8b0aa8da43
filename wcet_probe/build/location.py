"""Locations of variables as sums of registers: DWARF expressions (DWARF 5, §2.5) that are no more than that."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction

Sum = tuple[tuple[tuple[int, Fraction], ...], Fraction]
"""Numbers of registers with their factors, and what is added."""

_CONSTANTS = re.compile(r"DW_OP_const(?:[1248][us]|u|s)")
_NUMBERED = re.compile(r"DW_OP_(reg|breg|lit)([0-9]+)")


def linear_location(operations: Sequence[tuple[str, tuple[object, ...]]]) -> Sum | None:
    """The value of a variable whose location ``operations`` describe, by name and arguments; None if it is no such sum.

    What a division leaves is not taken off, and ``or`` with a constant is a sum: compilers divide where nothing is
    left, and set bits so that are not set.
    """
    if len(operations) == 1 and (found := _NUMBERED.fullmatch(operations[0][0])) and found[1] == "reg":
        return ((int(found[2]), Fraction(1)),), Fraction(0)
    if not operations or operations[-1][0] != "DW_OP_stack_value":
        return None  # it is in memory, or in pieces
    stack: list[dict[int, Fraction]] = []
    for name, arguments in operations[:-1]:
        if not _execute(stack, name, arguments):
            return None
    if len(stack) != 1:
        return None
    constant = stack[0].pop(_CONSTANT, Fraction(0))
    return tuple(sorted((register, factor) for register, factor in stack[0].items() if factor)), constant


_CONSTANT = -1
"""The place of the constant among the registers' numbers."""


def _execute(stack: list[dict[int, Fraction]], name: str, arguments: tuple[object, ...]) -> bool:
    """Carry out one operation; False where the result is no sum."""
    first = Fraction(arguments[0]) if arguments and isinstance(arguments[0], int) else None
    numbered = _NUMBERED.fullmatch(name)
    if numbered and numbered[1] == "breg" and first is not None:
        stack.append({int(numbered[2]): Fraction(1), _CONSTANT: first})
    elif numbered and numbered[1] == "lit":
        stack.append({_CONSTANT: Fraction(int(numbered[2]))})
    elif _CONSTANTS.fullmatch(name) and first is not None:
        stack.append({_CONSTANT: first})
    elif name == "DW_OP_plus_uconst" and first is not None and stack:
        stack.append(_sum(stack.pop(), {_CONSTANT: first}, Fraction(1)))
    elif name == "DW_OP_neg" and stack:
        stack.append(_sum({}, stack.pop(), Fraction(-1)))
    elif name in {"DW_OP_plus", "DW_OP_minus", "DW_OP_or"} and len(stack) > 1:
        right, left = stack.pop(), stack.pop()
        if name == "DW_OP_or" and right.keys() - {_CONSTANT}:
            return False
        stack.append(_sum(left, right, Fraction(-1 if name == "DW_OP_minus" else 1)))
    elif name in {"DW_OP_mul", "DW_OP_div", "DW_OP_shl"} and len(stack) > 1:
        return _scale(stack, name)
    else:
        return False
    return True


def _scale(stack: list[dict[int, Fraction]], name: str) -> bool:
    right, left = stack.pop(), stack.pop()
    if name == "DW_OP_mul" and not left.keys() - {_CONSTANT}:
        left, right = right, left
    if right.keys() - {_CONSTANT}:
        return False
    factor = right.get(_CONSTANT, Fraction(0))
    if name == "DW_OP_div":
        if not factor:
            return False
        factor = 1 / factor
    elif name == "DW_OP_shl":
        if not 0 <= factor <= 31 or factor.denominator != 1:
            return False
        factor = Fraction(1 << int(factor))
    stack.append(_sum({}, left, factor))
    return True


def _sum(one: dict[int, Fraction], other: dict[int, Fraction], factor: Fraction) -> dict[int, Fraction]:
    return {
        each: one.get(each, Fraction(0)) + factor * other.get(each, Fraction(0)) for each in one.keys() | other.keys()
    }
