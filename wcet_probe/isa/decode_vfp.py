"""Meaning of a floating-point instruction of ARM (VFP; A32 and Thumb-2 encode them alike), read from its encoding.

ARM DDI 0406C, chapters A7.5 to A7.8; those of ARMv8 (VSEL, VMAXNM, VRINT, VCVTA …) from DDI 0487, F1. A double register
stands for its two single ones: `d1` for `s2` and `s3`; what a comparison leaves behind is called `fpscr`.
"""

from __future__ import annotations

from typing import NamedTuple

from wcet_probe.isa.decode_record import Record
from wcet_probe.model.instruction import Access, AccessKind
from wcet_probe.model.target import Isa

_PC, _STATUS = 15, "fpscr"
_NONE: frozenset[str] = frozenset()
_THREE_OPERANDS = {
    0b000: "multiply_add",
    0b001: "multiply_add",
    0b010: "multiply",
    0b011: "add",
    0b100: "divide",
    0b101: "multiply_add",
    0b110: "multiply_add",
}
_ARITHMETIC = ("add", "multiply", "multiply_add", "divide", "square_root", "compare", "move", "convert")
TIMING_CLASSES = frozenset(f"float_{name}{width}" for name in _ARITHMETIC for width in ("", "_double")).union(
    f"float_{name}" for name in ("to_core", "from_core", "status_read", "status_write", "load", "load_double",
                                 "load_multiple", "store", "store_double", "store_multiple")
)  # fmt: skip
"""All timing classes of floating point."""


class Float(NamedTuple):
    """A floating-point instruction; ``words`` are those that a load or store multiple transfers, else 0."""

    timing_class: str
    reads: frozenset[str]
    writes: frozenset[str]
    accesses: tuple[Access, ...] = ()
    words: int = 0


def interpret_float(record: Record) -> Float | None:
    """The meaning of ``record``; None if it is no floating-point instruction of 32 or 64 bits."""
    if record.size_bytes != 4 or record.bits(11, 9) != 0b101:
        return None
    if record.isa is Isa.THUMB and record.bits(31, 29) != 0b111:
        return None
    unconditional = record.bits(31, 28) == 0b1111
    group = record.bits(27, 24)
    if group in {0b1100, 0b1101} and not unconditional:
        return _transfer_two(record) if record.bits(27, 21) == 0b1100010 else _memory(record)
    if group != 0b1110:
        return None
    if record.bit(4):
        return None if unconditional else _transfer(record)
    return _unconditional(record) if unconditional else _arithmetic(record)


def _register(record: Record, low: int, extra: int, double: bool) -> frozenset[str]:  # noqa: FBT001  a width of two
    """The register whose number is in four bits from ``low`` and the bit ``extra``."""
    number, bit = record.bits(low + 3, low), record.bits(extra, extra)
    return _singles(2 * (bit << 4 | number), 2) if double else _singles(number << 1 | bit, 1)


def _singles(first: int, count: int) -> frozenset[str]:
    return frozenset(f"s{first + i}" for i in range(count))


def _memory(record: Record) -> Float | None:
    """VLDR, VSTR, and the multiple ones, VPUSH and VPOP among them."""
    before, up, update, load = record.bit(24), record.bit(23), record.bit(21), record.bit(20)
    double, words, base = record.bit(8), record.bits(7, 0), record.bits(19, 16)
    kind, name = (AccessKind.LOAD, "load") if load else (AccessKind.STORE, "store")
    address = _NONE if base == _PC else frozenset({f"r{base}"})
    if before and not update:
        offset = 4 * words if up else -4 * words
        if base == _PC:
            offset += (record.address + 8) if record.isa is Isa.ARM else (record.address + 4) & ~3
        access = Access(kind, None if base == _PC else f"r{base}", offset, 8 if double else 4)
        data = _register(record, 12, 22, double)
        timing_class = f"float_{name}{'_double' if double else ''}"
        return Float(timing_class, address | (_NONE if load else data), data if load else _NONE, (access,))
    if before == up or not words or base == _PC or (double and words & 1):
        return None
    four, one = record.bits(15, 12), record.bits(22, 22)
    data = _singles(2 * (one << 4 | four) if double else four << 1 | one, words)
    each = 8 if double else 4
    access = Access(kind, f"r{base}", 0 if up else -4 * words, each, 4 * words // each)
    updated = address if update else _NONE
    reads, writes = address | (_NONE if load else data), (data if load else _NONE) | updated
    return Float(f"float_{name}_multiple", reads, writes, (access,), words)


def _transfer_two(record: Record) -> Float:
    """VMOV between two core registers and a double register or two single ones."""
    core = frozenset({record.register(12), record.register(16)})
    double = record.bit(8)
    unit = _register(record, 0, 5, double=True) if double else _singles(record.bits(3, 0) << 1 | record.bits(5, 5), 2)
    return Float("float_to_core", unit, core) if record.bit(20) else Float("float_from_core", core, unit)


def _transfer(record: Record) -> Float | None:
    """VMOV between a core register and a register or half of a double one; VMRS and VMSR."""
    core = frozenset({record.register(12)}) if record.bits(15, 12) != _PC else _NONE
    status = record.bits(23, 21) == 0b111
    if status and not record.bit(8):
        if record.bit(20):
            return Float("float_status_read", frozenset({_STATUS}), core)
        return Float("float_status_write", core, frozenset({_STATUS}))
    double = record.bit(8)
    if (not double and record.bits(23, 21)) or (double and record.bits(22, 22) | record.bits(6, 5)):
        return None
    unit = _register(record, 16, 7, double)
    if double:
        unit = _singles(2 * (record.bits(7, 7) << 4 | record.bits(19, 16)) + record.bits(21, 21), 1)
    return Float("float_to_core", unit, core) if record.bit(20) else Float("float_from_core", core, unit)


def _arithmetic(record: Record) -> Float | None:
    double = record.bit(8)
    width = "_double" if double else ""
    result, second = _register(record, 12, 22, double), _register(record, 0, 5, double)
    operation = record.bits(23, 23) << 2 | record.bits(21, 20)
    if operation in _THREE_OPERANDS:
        name = _THREE_OPERANDS[operation]
        first = _register(record, 16, 7, double)
        own = result if name == "multiply_add" else _NONE
        return Float(f"float_{name}{width}", first | second | own, result)
    if not record.bit(6):
        return Float(f"float_move{width}", _NONE, result)
    kind = record.bits(19, 16)
    if kind in {4, 5}:
        return Float(f"float_compare{width}", result | (second if kind == 4 else _NONE), frozenset({_STATUS}))
    if kind < 2:
        name = "square_root" if kind == 1 and record.bit(7) else "move"
        return Float(f"float_{name}{width}", second, result)
    return _conversion(record, kind)


def _conversion(record: Record, kind: int) -> Float | None:
    """VCVT, whose result can be of another width than its operand, and VRINT."""
    double = record.bit(8)
    from_double = to_double = double
    width = "_double" if double else ""
    if kind in {2, 3}:  # half precision: to it with the lowest bit
        from_double, to_double = double and kind == 3, double and kind == 2
    elif kind == 7 and record.bit(7):
        from_double, to_double, width = double, not double, "_double"
    elif kind == 8:
        from_double = False
    elif kind in {12, 13}:
        to_double = False
    elif kind not in {6, 7, 10, 11, 14, 15}:
        return None
    result = _register(record, 12, 22, to_double)
    operand = result if kind in {10, 11, 14, 15} else _register(record, 0, 5, from_double)
    kept = result if kind in {2, 3} else _NONE
    return Float(f"float_convert{width}", operand | kept, result)


def _unconditional(record: Record) -> Float | None:
    """VSEL, VMAXNM and VMINNM, and the roundings and conversions of ARMv8."""
    double = record.bit(8)
    width = "_double" if double else ""
    first, second = _register(record, 16, 7, double), _register(record, 0, 5, double)
    result = _register(record, 12, 22, double)
    if not record.bit(23):
        return Float(f"float_move{width}", first | second, result)
    if record.bits(21, 20) == 0:
        return Float(f"float_compare{width}", first | second, result)
    if record.bits(21, 20) != 0b11 or not record.bit(6) or not record.bit(19):
        return None
    integer = record.bits(18, 18) == 1
    return Float(f"float_convert{width}", second, _register(record, 12, 22, double and not integer))
