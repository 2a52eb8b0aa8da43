# SPDX-License-Identifier: 0BSD
"""What the compilers of both instruction sets write: lines of Python on the list ``R`` of registers."""

from __future__ import annotations

from collections.abc import Iterable

from wcet_probe.certificate.runs.words import LostError
from wcet_probe.certificate.values.numbers import WORD
from wcet_probe.model.instruction import Access, AccessKind, Instruction, Shift

ALL, SIGN = WORD - 1, WORD // 2
Lines = list[str]


def unknown_instruction(instruction: Instruction) -> LostError:
    """That it has no semantics here."""
    return LostError(f"nothing is known of {instruction.text!r}")


def signed(text: str, bits: int = 32) -> str:
    """The expression of a number of so many bits with its sign."""
    return f"(({text} ^ {1 << bits - 1}) - {1 << bits - 1})"


def extended(text: str, bits: int) -> str:
    """The expression of a number of so many bits whose sign is extended to a word."""
    return f"{signed(text, bits)} & {ALL}"


def address_of(access: Access, number_of: dict[str, int]) -> str:
    """The expression of where the first access of ``access`` goes."""
    if access.align_mask != ALL:
        raise LostError("nothing is known of what a whole line is made")
    if access.base is None and access.index is None:
        return str(access.displacement % WORD)
    terms = f"R[{number_of[access.base]}]" if access.base else "0"
    if access.index is not None:
        index = f"R[{number_of[access.index]}]"
        if access.shift_bits or access.shift is not Shift.LSL:
            shifts = {Shift.LSL: "<<", Shift.LSR: ">>"}
            if access.shift not in shifts:
                raise LostError("nothing is known of the shift of an index")
            index = f"({index} {shifts[access.shift]} {access.shift_bits})"
        terms += f" {'-' if access.subtract_index else '+'} {index}"
    if access.displacement:
        terms += f" + {access.displacement}"
    return f"({terms}) & {ALL}" if terms != f"R[{number_of.get(access.base or '')}]" else terms


def opaque(instruction: Instruction, number_of: dict[str, int], forgotten: Iterable[int]) -> Lines:
    """An instruction of floating point: its accesses, and that nothing is known of what it writes.

    Args:
        instruction: it.
        number_of: of each register.
        forgotten: other places that it may write.
    """
    lines: Lines = []
    bases = {access.base for access in instruction.accesses}
    written = [number_of[one] for one in instruction.writes - bases if one in number_of]
    for access in instruction.accesses:
        lines.append(f"e = {address_of(access, number_of)}")
        if access.base in instruction.writes:  # a list moves it by what is transferred, anything else to the address
            is_above = "{" in instruction.text and access.displacement >= 0
            size = access.count * access.bytes_each if is_above else 0
            lines.append(f"R[{number_of[access.base]}] = e + {size} & {ALL}")
        for each in range(access.count):
            place, what = f"e + {each * access.bytes_each} & {ALL}", f"{access.bytes_each}"
            is_load, kind = access.kind is AccessKind.LOAD, instruction.timing_class
            lines.append(
                f"load({place}, {what}, {kind!r})" if is_load else f"store({place}, {what}, NOTHING, {kind!r})"
            )
    return [*lines, *(f"R[{place}] = NOTHING" for place in (*written, *forgotten))]
