"""What floating-point instructions do to registers: loads, stores and moves copy bits, other results are unknown.

Compilers keep integers and addresses in registers of floating point where core registers are short. A move there and
back is an exact copy, of words on Arm, of double words on PowerPC:

>>> def spilled():  # vmov s14, r3; …; vmov r2, s14
...     "r2 holds what r3 held"

On Arm, SLEIGH pushes single registers in the reverse order, forgets the accesses of a transfer of 32 of them and ends
the process at one of 31, masks 16 bits of what is moved to half of a double register, and leaves the results of some
instructions out or elsewhere. So here all that an instruction does is told by its encoding (ARM DDI 0406C, A7.5 to
A7.8; of ARMv8 DDI 0487, F1), and by words: a double register is its two halves, so that no two of them overlap.
Conditions and the status stay SLEIGH's. On PowerPC an ``lfs`` or ``stfs`` converts, and is no copy (Programming
Environments Manual, MPCFPE32B, 3.1 and 4.2.4).

Words: lifting, P-code, varnode (docs/explanation/glossary.md).

*Soundness:* of an instruction that is not known here as a copy the register of its field for results is unknown, and on
PowerPC what SLEIGH writes. All other instructions that write such registers, of vectors, leave them unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import NamedTuple

from wcet_probe.analyzer.pcode.operations import FLOAT_OPERATION, PcodeOp, Varnode
from wcet_probe.errors import DecodeError

_ALWAYS, _OF_THUMB = 0b1111, 0b1110
_PC, _LOADS = 15, 1 << 20
_CORES = (*(f"r{number}" for number in range(13)), "sp", "lr", "pc")
_COPY, _EITHER, _COMPARES, _OTHER_PRECISION, _INTEGERS = 0, {2, 3, 9}, {4, 5}, 7, {12, 13}
"""Values of the field ``opc2`` of instructions with one operand: what they make of it."""
_TO_INTEGER = 0x00BC_0040
"""Bits of VCVTA and its kin: a conversion to an integer, of an instruction without a condition."""
_SINGLES, _MOVES, _FMR = 59, 63, 72
"""Primary opcodes of PowerPC's arithmetic, and of ``fmr`` in the second the extended one."""
_POWERPC_TRANSFERS = frozenset({31, *range(48, 56)})
"""Primary opcodes of loads and stores of floating point."""
_COPIES = frozenset({"COPY", "LOAD"})


class FloatCode(NamedTuple):
    """An instruction that may be one of floating point.

    Attributes:
        address: of the instruction.
        word: the instruction; in Thumb its first halfword is the upper one.
        registers: of the language, by lower-case name.
        floats: the bytes of registers of floating point, in the space ``register``; of some languages there are none.
        is_thumb: whether it is of Thumb.
        big_endian: byte order.
    """

    address: int
    word: int
    registers: Mapping[str, Varnode]
    floats: frozenset[int]
    is_thumb: bool
    big_endian: bool


def arm_float(at: FloatCode, ops: list[PcodeOp], behind_guard: int) -> list[PcodeOp]:
    """``ops`` of an instruction of Arm, with what it does to registers of floating point.

    Args:
        at: the instruction.
        ops: what SLEIGH makes of it.
        behind_guard: how many of them are its condition.

    Raises:
        DecodeError: of its registers it is UNPREDICTABLE.

    *Soundness:* as said of the module.
    """
    if _is_float(at):
        group, guard = at.word >> 24 & 15, ops[:behind_guard]
        if at.word >> 21 & 0x7F == 0b1100010:
            return [*guard, *_two_words(at)]
        transfer = arm_transfer(at)
        if transfer is not None:
            return [*guard, *transfer]
        if group == 0b1110 and not at.word & 0x10:
            return [*guard, *_computed(at)]
        moved = _one_word(at) if group == 0b1110 else None
        if moved is not None:
            return [*guard, moved]
    return [_unknown(at, op) for op in ops]


def unconditional_float(at: FloatCode) -> list[PcodeOp] | None:
    """What VSEL, VMAXNM, VRINT or the like of ARMv8 does, which SLEIGH's languages do not know; None of others.

    *Soundness:* they write their result in the width of their operands, but for conversions to integers, of a word.
    """
    if at.word >> 24 != 0xFE or at.word >> 9 & 7 != 0b101 or at.word & 0x10 or not at.floats:
        return None
    is_conversion = at.word & _TO_INTEGER == _TO_INTEGER
    return _unknown_results(at, (bool(at.word & 0x100) and not is_conversion,))


def powerpc_float(at: FloatCode, ops: list[PcodeOp]) -> list[PcodeOp]:
    """``ops`` of an instruction of PowerPC: what ``fmr`` and loads of double words write, and that all else is unknown.

    *Soundness:* as said of the module; a comparison takes what its field for results names along, which it does not
    write.
    """
    primary, is_move = at.word >> 26, at.word >> 26 == _MOVES and at.word >> 1 & 0x3FF == _FMR
    if primary in {_SINGLES, _MOVES} and not is_move:
        result = PcodeOp("CALLOTHER", at.registers[f"f{at.word >> 21 & 31}"], (), FLOAT_OPERATION)
        return [*(_unknown(at, op) for op in ops), result]
    return [_unknown(at, op, _COPIES if is_move or primary in _POWERPC_TRANSFERS else frozenset()) for op in ops]


def _is_float(at: FloatCode) -> bool:
    """Whether it is an instruction of coprocessors 10 and 11 with a condition."""
    condition, group = at.word >> 28, at.word >> 24 & 15
    has_condition = condition == _OF_THUMB if at.is_thumb else condition != _ALWAYS
    return bool(at.floats) and has_condition and group in {0b1100, 0b1101, 0b1110} and at.word >> 9 & 7 == 0b101


def _unknown(at: FloatCode, op: PcodeOp, copies: frozenset[str] = frozenset()) -> PcodeOp:
    """``op``, or that its result is unknown, where that is a register of floating point and ``op`` no copy."""
    output = op.output
    if output is None or output.space != "register" or output.offset not in at.floats or op.opcode in copies:
        return op
    return PcodeOp("CALLOTHER", output, (), FLOAT_OPERATION)


def _words(at: FloatCode, number: int, *, double: bool) -> list[Varnode]:
    """The words of a register, the lower one first."""
    if not double:
        return [at.registers[f"s{number}"]]
    if number < 16:
        return [at.registers[f"s{2 * number}"], at.registers[f"s{2 * number + 1}"]]
    whole = at.registers[f"d{number}"]
    halves = [Varnode(whole.space, whole.offset + distance, 4) for distance in (0, 4)]
    return halves[::-1] if at.big_endian else halves


def _number(word: int, low: int, extra: int, *, double: bool) -> int:
    """The number of the register in four bits from ``low`` and the bit ``extra``."""
    number, bit = word >> low & 15, word >> extra & 1
    return bit << 4 | number if double else number << 1 | bit


def _two_words(at: FloatCode) -> list[PcodeOp]:
    """VMOV between two core registers and a double register or two single ones."""
    word = at.word
    double = bool(word & 0x100)
    first = _number(word, 0, 5, double=double)
    if double:
        unit = _words(at, first, double=True)
    else:
        if first == 31:
            raise DecodeError(f"the instruction at {at.address:#010x} moves a register that there is not: correct it.")
        unit = [*_words(at, first, double=False), *_words(at, first + 1, double=False)]
    core = [at.registers[_CORES[word >> place & 15]] for place in (12, 16)]
    pairs = zip(core, unit, strict=True) if word & _LOADS else zip(unit, core, strict=True)
    return [PcodeOp("COPY", to, (source,)) for to, source in pairs]


def _one_word(at: FloatCode) -> PcodeOp | None:
    """VMOV between a core register and a single register or half of a double one; None of other transfers."""
    word = at.word
    double = bool(word & 0x100)
    if double and not word & 0x0040_0060 and not (word & 1 << 23):
        unit = _words(at, _number(word, 16, 7, double=True), double=True)[word >> 21 & 1]
    elif not double and word >> 21 & 7 == 0:
        (unit,) = _words(at, _number(word, 16, 7, double=False), double=False)
    else:
        return None
    core = at.registers[_CORES[word >> 12 & 15]]
    return PcodeOp("COPY", *((core, (unit,)) if word & _LOADS else (unit, (core,))))


def _computed(at: FloatCode) -> Iterator[PcodeOp]:
    """What has operands of floating point only: a copy, a comparison, which has no result there, or all else."""
    word, double = at.word, bool(at.word & 0x100)
    kind = word >> 16 & 15 if word >> 20 & 0b1011 == 0b1011 and word & 0x40 else None
    if kind == _COPY and not word & 0x80:
        result, source = _number(word, 12, 22, double=double), _number(word, 0, 5, double=double)
        pairs = zip(_words(at, result, double=double), _words(at, source, double=double), strict=True)
        yield from (PcodeOp("COPY", to, (one,)) for to, one in pairs)
    elif kind in _COMPARES:
        yield PcodeOp("CALLOTHER", None, (), FLOAT_OPERATION)
    elif kind == _OTHER_PRECISION and word & 0x80:
        yield from _unknown_results(at, (not double,))
    elif kind in _EITHER:
        yield from _unknown_results(at, (False, True))
    else:
        yield from _unknown_results(at, (double and kind not in _INTEGERS,))


def _unknown_results(at: FloatCode, widths: Sequence[bool]) -> list[PcodeOp]:
    """That the register of the field for results is unknown; ``widths`` are those that it may have."""
    results = [one for width in widths for one in _words(at, _number(at.word, 12, 22, double=width), double=width)]
    return [PcodeOp("CALLOTHER", one, (), FLOAT_OPERATION) for one in dict.fromkeys(results)]


def arm_transfer(at: FloatCode) -> list[PcodeOp] | None:
    """What VLDR, VSTR, VLDM, VSTM, VPUSH or VPOP does, but for its condition; None of others.

    Raises:
        DecodeError: of its registers or its base it is UNPREDICTABLE.

    *Soundness:* written from the encoding (ARM DDI 0406C, A8.8.332, A8.8.333, A8.8.412 and A8.8.413).
    """
    word = at.word
    if not _is_float(at) or word >> 24 & 15 == 0b1110 or word >> 21 & 0x7F == 0b1100010:
        return None
    before, up, update, double = (bool(word >> place & 1) for place in (24, 23, 21, 8))
    base, size_bytes, step = word >> 16 & 15, 4 * (word & 0xFF), 8 if double else 4
    is_of_one = before and not update
    if not is_of_one and (before == up or (double and word & 1)):
        raise DecodeError(f"the transfer of registers at {at.address:#010x} is not known: correct it.")
    if base == _PC and not (is_of_one and word & _LOADS):
        raise DecodeError(f"the instruction at {at.address:#010x} transfers to where it stands: correct it.")
    first = _number(word, 12, 22, double=double)
    if is_of_one:
        return _accesses(at, _address(at, size_bytes if up else -size_bytes), [first])
    pointer, total = at.registers[_CORES[base]], Varnode("const", size_bytes, 4)
    moved = [PcodeOp("INT_ADD" if up else "INT_SUB", pointer, (pointer, total))] if update else []
    accesses = _accesses(at, (pointer, []), range(first, first + size_bytes // step))
    return [*accesses, *moved] if up else [*moved, *accesses]


def _address(at: FloatCode, distance: int) -> tuple[Varnode, list[PcodeOp]]:
    """Where VLDR or VSTR goes, and the operation that computes it."""
    base = at.word >> 16 & 15
    if base == _PC:
        here = at.address + 4 & ~3 if at.is_thumb else at.address + 8
        return Varnode("const", here + distance & 0xFFFF_FFFF, 4), []
    opcode, by = "INT_ADD" if distance >= 0 else "INT_SUB", Varnode("const", abs(distance), 4)
    found = Varnode("unique", 0, 4)
    return found, [PcodeOp(opcode, found, (at.registers[_CORES[base]], by))]


def _accesses(at: FloatCode, address: tuple[Varnode, list[PcodeOp]], numbers: Iterable[int]) -> list[PcodeOp]:
    """Loads or stores of the registers of these numbers, one behind the other from an address on."""
    pointer, found = address
    double, temporaries = bool(at.word & 0x100), count(8, 8)
    for place, number in enumerate(numbers):
        words, there = _words(at, number, double=double), pointer
        if place:
            there = Varnode("unique", next(temporaries), 4)
            found.append(PcodeOp("INT_ADD", there, (pointer, Varnode("const", place * 4 * len(words), 4))))
        whole = Varnode("unique", next(temporaries), 8) if double else words[0]
        if at.word & _LOADS:
            found.append(PcodeOp("LOAD", whole, (there,)))
            parts = enumerate(words) if double else ()
            found += [PcodeOp("SUBPIECE", one, (whole, Varnode("const", 4 * each, 4))) for each, one in parts]
        else:
            found += [PcodeOp("PIECE", whole, (words[1], words[0]))] if double else []
            found.append(PcodeOp("STORE", None, (there, whole)))
    return found
