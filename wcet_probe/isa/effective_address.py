"""Effective addresses from register values: the plain twin of the native observer's address arithmetic."""

from __future__ import annotations

from collections.abc import Mapping

from wcet_probe.model.instruction import Access, Shift

_MASK = 0xFFFFFFFF


def evaluate(access: Access, registers: Mapping[str, int], *, carry: bool = False) -> list[tuple[int, int]]:
    """Address and size in bytes of each of the accesses that ``access`` stands for, upwards.

    Parameters:
        access: a decoded access.
        registers: unsigned 32-bit values by canonical name, before the instruction.
        carry: the carry flag before the instruction, which an RRX shift rotates in.
    """
    base = registers[access.base] if access.base else 0
    index = _shifted(registers[access.index], access.shift, access.shift_bits, carry=carry) if access.index else 0
    address = base + access.displacement + (-index if access.subtract_index else index)
    first = address & _MASK & access.align_mask
    return [((first + i * access.bytes_each) & _MASK, access.bytes_each) for i in range(access.count)]


def _shifted(value: int, shift: Shift, bits: int, *, carry: bool) -> int:
    match shift:
        case Shift.LSL:
            return value << bits & _MASK
        case Shift.LSR:
            return value >> bits
        case Shift.ASR:
            return (value - ((value >> 31) << 32)) >> bits & _MASK
        case Shift.ROR:
            return (value >> bits | value << (32 - bits)) & _MASK
        case Shift.RRX:
            return value >> 1 | int(carry) << 31
