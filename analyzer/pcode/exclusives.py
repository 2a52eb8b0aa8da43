"""Exclusive and ordered accesses: ``ldrex`` and ``strex``, ``lda`` and ``stl`` of Thumb, ``lwarx`` and ``stwcx.``.

An exclusive store stores and answers 0 if its core is still alone with the word, else it leaves memory as it is and
answers 1. Which of both is left open here, so a loop that tries again wants a flow fact: where nothing interferes it is
done in the first round. An ordered access is an access: what it orders are those of other cores and devices.

>>> def increment():  # retry: ldrex r1, [r0]; add r1, #1; strex r2, r1, [r0]; cbnz r2, retry
...     "one round, or none that a value tells"

SLEIGH knows no ordered access of a core without its profile, keeps the flags of a ``stwcx.`` that does not store, and
has one reservation for all code. Source: ARM DDI 0553B (ARMv8-M), C2.4 (LDA, LDAEX, STL, STLEX and their kin); ARM DDI
0406C, A3.4; Power ISA 2.07, book II, section 4.6.2.

Words: lifting, P-code (docs/explanation/glossary.md).

*Soundness:* each exclusive store is followed as one that stores and as one that does not, and its answer is of either
way. Whether a core may do only one of them takes nothing away.
"""

from __future__ import annotations

from collections.abc import Mapping

from wcet_probe.analyzer.pcode.operations import SPECIAL_REGISTER, PcodeOp, Varnode
from wcet_probe.errors import DecodeError

_ORDERED, _ORDERED_KIND = (0xFFE0_0F80, 0xE8C0_0F80), (0b10, 0b11)
"""Mask and value of ``lda``, ``stl``, ``ldaex`` and ``stlex`` in Thumb; bits 6 and 5: 00 or 10, by kind and size."""
_LOADS, _EXCLUSIVE = 1 << 20, 1 << 6
_SIZES = {0b00: 1, 0b01: 2, 0b10: 4}
_NAMES = (*(f"r{number}" for number in range(13)), "sp", "lr", "pc")
_ASKS = "hasExclusiveAccess"
_MARKS = frozenset({"ExclusiveAccess", "ClearExclusiveLocal"})
_STWCX = 0x7C00_012D
_STORED = 2
"""The bit EQ of the field CR0."""


def ordered_access(address: int, word: int, registers: Mapping[str, Varnode]) -> list[PcodeOp] | None:
    """What ``lda``, ``stl``, ``ldaex``, ``stlex`` of Thumb or one of a byte or halfword does; None of others.

    Parameters:
        address: of the instruction.
        word: the instruction, its first halfword in the upper half.
        registers: of the language, by lower-case name.

    Raises:
        DecodeError: of its registers it is UNPREDICTABLE.

    *Soundness:* written from the encoding; the answer of ``stlex`` as of ``strex``.
    """
    mask, value = _ORDERED
    size_bytes = _SIZES.get(word >> 4 & 3)
    if word & mask != value or size_bytes is None:
        return None
    base, moved, answer = word >> 16 & 15, word >> 12 & 15, word & 15
    loads, exclusive = bool(word & _LOADS), bool(word & _EXCLUSIVE)
    is_store = exclusive and not loads
    if base == 15 or moved in {13, 15} or (answer in {13, 15, base, moved} if is_store else answer != 15):
        raise DecodeError(f"the instruction at {address:#010x} is UNPREDICTABLE: access by other registers.")
    pointer, register = registers[_NAMES[base]], registers[_NAMES[moved]]
    part = register if size_bytes == 4 else Varnode("unique", 0, size_bytes)
    if loads:
        widened = [] if size_bytes == 4 else [PcodeOp("INT_ZEXT", register, (part,))]
        return [PcodeOp("LOAD", part, (pointer,)), *widened]
    cut = [] if size_bytes == 4 else [PcodeOp("SUBPIECE", part, (register, Varnode("const", 0, 4)))]
    stored = [*cut, PcodeOp("STORE", None, (pointer, part))]
    return _perhaps(address + 4, registers[_NAMES[answer]], stored) if is_store else stored


def _perhaps(following: int, answer: Varnode, stored: list[PcodeOp]) -> list[PcodeOp]:
    """``stored`` and the answer 0, or nothing and the answer 1; ``following`` is the next instruction's address."""
    fails = Varnode("unique", 8, 1)
    return [
        *_unknown_bit(fails),
        PcodeOp("COPY", answer, (Varnode("const", 1, 4),)),
        PcodeOp("CBRANCH", None, (Varnode("ram", following, 4), fails)),
        PcodeOp("COPY", answer, (Varnode("const", 0, 4),)),
        *stored,
    ]


def exclusive(ops: list[PcodeOp]) -> list[PcodeOp]:
    """``ops`` of an instruction of ARM, with what SLEIGH asks of the exclusive monitor as an unknown bit.

    *Soundness:* as said of the module.
    """
    found: list[PcodeOp] = []
    for op in ops:
        if op.user_op == _ASKS and op.output is not None:
            found += _unknown_bit(op.output)
        elif op.user_op not in _MARKS:
            found.append(op)
    return found


def _unknown_bit(output: Varnode) -> list[PcodeOp]:
    one = Varnode("const", 1, output.size_bytes)
    return [PcodeOp("CALLOTHER", output, (), SPECIAL_REGISTER), PcodeOp("INT_AND", output, (output, one))]


def conditional_store(address: int, word: int, ops: list[PcodeOp], registers: Mapping[str, Varnode]) -> list[PcodeOp]:
    """``ops`` of an instruction of PowerPC, or what stands for them where it is ``stwcx.``.

    Parameters:
        address: of the instruction.
        word: the instruction.
        ops: SLEIGH's, of which the address stays.
        registers: of the language, by lower-case name.

    *Soundness:* as said of the module; CR0 is 0, whether it has stored, and the summary of overflows.
    """
    if word & 0xFC00_07FF != _STWCX:
        return ops
    end = next(index for index, op in enumerate(ops) if op.opcode == "CBRANCH")
    pointer = next(op.inputs[0] for op in ops if op.opcode == "STORE")
    field, fails, source = registers["cr0"], Varnode("unique", 8, 1), registers[f"r{word >> 21 & 31}"]
    return [
        *(op for op in ops[:end] if op.output == pointer),
        *_unknown_bit(fails),
        PcodeOp("INT_AND", field, (registers["xer_so"], Varnode("const", 1, 1))),
        PcodeOp("CBRANCH", None, (Varnode("ram", address + 4, 4), fails)),
        PcodeOp("INT_OR", field, (field, Varnode("const", _STORED, 1))),
        PcodeOp("STORE", None, (pointer, source)),
    ]
