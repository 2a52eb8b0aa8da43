"""Decoding an image's instructions, through Capstone. No other file imports Capstone, and no type of it leaves here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache, lru_cache
from typing import Any, Literal

import capstone
from capstone import arm_const

from wcet_probe.errors import DecodeError
from wcet_probe.isa import decode_arm, decode_powerpc
from wcet_probe.isa.decode_record import Record
from wcet_probe.model.image import Image, Segment
from wcet_probe.model.instruction import Instruction
from wcet_probe.model.target import Isa, MemoryRange

_Order = Literal["big", "little"]
_Capstone = Any  # Capstone has no types

TIMING_CLASSES = {
    Isa.ARM: decode_arm.TIMING_CLASSES,
    Isa.THUMB: decode_arm.TIMING_CLASSES,
    Isa.POWERPC: decode_powerpc.TIMING_CLASSES,
}
"""All timing classes that decoding can give, by instruction set; "unknown" apart."""

_ALIASES = {"sb": "r9", "sl": "r10", "fp": "r11", "ip": "r12", "sp": "r13", "lr": "r14", "pc": "r15"}
_CANONICAL = frozenset(f"r{number}" for number in range(32))


def decode(image: Image) -> tuple[Instruction, ...]:
    """All instructions of ``image``'s code ranges, in address order.

    What is no instruction, cannot be followed, or has no timing class is in the result with its ``problem`` set, so
    that only executing it is an error.

    Raises:
        DecodeError: the image's code lies outside of its segments.
    """
    return _decoded(image.segments, image.code, image.isa, image.big_endian)


@lru_cache(maxsize=32)
def _decoded(
    segments: tuple[Segment, ...],
    ranges: tuple[MemoryRange, ...],
    isa: Isa,
    big_endian: bool,  # noqa: FBT001  as of `decode_range`
) -> tuple[Instruction, ...]:
    """The instructions of ``ranges``; remembered, for the same program is made ready again and again."""
    decoded: list[Instruction] = []
    for code in ranges:
        segment = next((s for s in segments if s.address <= code.base_address < s.address + len(s.data)), None)
        if segment is None:
            raise DecodeError(f"no segment holds the code at {code.base_address:#010x}; link the image again.")
        start = code.base_address - segment.address
        data = segment.data[start : start + code.size_bytes]
        decoded += decode_range(data, code.base_address, isa, big_endian)
    return tuple(sorted(decoded, key=lambda instruction: instruction.address))


def decode_range(
    code: bytes,
    address: int,
    isa: Isa,
    big_endian: bool,  # noqa: FBT001  a byte order is a truth value in the model
) -> tuple[Instruction, ...]:
    """The instructions of ``code``, whose first byte is at ``address``.

    Parameters:
        code: machine code without data in it.
        address: guest address of the first byte.
        isa: the instruction set.
        big_endian: byte order of the instructions.
    """
    result: list[Instruction] = []
    predicated = 0
    for record in _records(code, address, isa, "big" if big_endian else "little"):
        instruction = _interpret(record)
        result.append(replace(instruction, in_it_block=True) if predicated else instruction)
        predicated = _it_length(record) or max(0, predicated - 1)
    return tuple(result)


def _interpret(record: Record) -> Instruction:
    if record.name:
        return decode_powerpc.interpret(record) if record.isa is Isa.POWERPC else decode_arm.interpret(record)
    problem = f"{record.address:#010x}: {record.text}: not supported: no instruction known"
    return Instruction(record.address, record.size_bytes, record.text, "unknown", problem=problem)


def _it_length(record: Record) -> int:
    """Number of instructions that a Thumb IT instruction predicates; 0 for all others."""
    mask = record.encoding & 0xF
    if record.isa is not Isa.THUMB or record.size_bytes != 2 or record.encoding >> 8 != 0xBF or mask == 0:
        return 0
    return 4 - ((mask & -mask).bit_length() - 1)


def _records(code: bytes, address: int, isa: Isa, order: _Order) -> Iterator[Record]:
    """Disassemble; a record without name stands for what Capstone does not know."""
    engine = _engine(isa, order)
    offset = 0
    while offset < len(code):
        if isa is Isa.POWERPC:  # its decoder reads the encoding, and needs no operands
            for at, size, name, operands in engine.disasm_lite(code[offset:], address + offset):
                encoding = _encoding(code[offset : offset + size], isa, order)
                yield Record(isa, at, size, encoding, name, f"{name} {operands}".strip())
                offset += size
        else:
            for found in engine.disasm(code[offset:], address + offset):
                yield _record(engine, found, isa, order)
                offset += found.size
        if offset < len(code):
            data = code[offset : offset + _unit_bytes(code[offset : offset + 2], isa, order)]
            encoding = _encoding(data, isa, order)
            yield Record(isa, address + offset, len(data), encoding, "", f".word {encoding:#0{2 + 2 * len(data)}x}")
            offset += len(data)


def _unit_bytes(first: bytes, isa: Isa, order: _Order) -> int:
    """Size of the instruction that starts with the halfword ``first``."""
    return 2 if isa is Isa.THUMB and int.from_bytes(first, order) >> 11 < 0b11101 else 4


def _encoding(data: bytes, isa: Isa, order: _Order) -> int:
    """The instruction's bits as one number; Thumb's first halfword on top."""
    if isa is Isa.THUMB and len(data) == 4:
        return int.from_bytes(data[:2], order) << 16 | int.from_bytes(data[2:], order)
    return int.from_bytes(data, order)


@cache
def _engine(isa: Isa, order: _Order) -> _Capstone:
    architecture, mode = {
        Isa.ARM: (capstone.CS_ARCH_ARM, capstone.CS_MODE_ARM),
        Isa.THUMB: (capstone.CS_ARCH_ARM, capstone.CS_MODE_THUMB | capstone.CS_MODE_MCLASS),
        Isa.POWERPC: (capstone.CS_ARCH_PPC, capstone.CS_MODE_32),
    }[isa]
    engine = capstone.Cs(architecture, mode | (capstone.CS_MODE_BIG_ENDIAN if order == "big" else 0))
    engine.detail = isa is not Isa.POWERPC
    return engine


def _record(engine: _Capstone, found: _Capstone, isa: Isa, order: _Order) -> Record:
    """Capstone's instruction ``found`` as plain data."""
    text = f"{found.mnemonic} {found.op_str}".strip()
    encoding = _encoding(bytes(found.bytes), isa, order)
    reads, writes = found.regs_access()
    operands = found.operands
    immediates = [operand.imm for operand in operands if operand.type == arm_const.ARM_OP_IMM]
    return Record(
        isa=isa,
        address=found.address,
        size_bytes=found.size,
        encoding=encoding,
        name=_name(engine, found.id),
        text=text,
        sets_flags=found.update_flags,
        operands=_names(engine, [register for operand in operands for register in _registers(operand)]),
        immediate=immediates[-1] & 0xFFFFFFFF if immediates else None,
        reads=frozenset(_names(engine, reads)),
        writes=frozenset(_names(engine, writes)),
        shifted=frozenset(_names(engine, [r for o in operands if o.shift.type for r in _registers(o)])),
    )


def _registers(operand: _Capstone) -> list[int]:
    """The registers of an operand: itself, or base and index of an address, and the register that shifts it."""
    registers = []
    if operand.type == arm_const.ARM_OP_REG:
        registers = [operand.reg]
    elif operand.type == arm_const.ARM_OP_MEM:
        registers = [operand.mem.base, operand.mem.index]
    if operand.shift.type >= arm_const.ARM_SFT_ASR_REG:
        registers.append(operand.shift.value)
    return registers


def _names(engine: _Capstone, registers: list[int]) -> tuple[str, ...]:
    """Canonical names of the general-purpose registers among ``registers``."""
    names = [_register_name(engine, register) for register in registers if register]
    return tuple([name for name in names if name in _CANONICAL])


@cache
def _register_name(engine: _Capstone, register: int) -> str:
    name = str(engine.reg_name(register))
    return _ALIASES.get(name, name)


@cache
def _name(engine: _Capstone, instruction: int) -> str:
    return str(engine.insn_name(instruction) or "")
