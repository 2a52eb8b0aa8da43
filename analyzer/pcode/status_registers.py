"""Status registers and interrupt masks: what they hold is unknown, and to write a mask changes nothing that is counted.

SLEIGH asks user operations for the mode of execution and for each mask, of which nobody knows what they answer. The
stack pointers of other modes and the limits of stacks are no status: they stay what SLEIGH makes of them, and are
refused by who follows values.

Words: P-code (docs/explanation/glossary.md).

*Soundness:* a mask decides which interrupts are taken, and with the assumption ``no-interference`` there are none; no
other result depends on it, as whatever reads a mask has an unknown result. Code without privileges writes no mask,
which is the same. Source: ARM DDI 0403E, B1.4.3 and B5.2.1 to B5.2.3.
"""

from __future__ import annotations

from collections.abc import Mapping

from wcet_probe.analyzer.pcode.operations import SPECIAL_REGISTER, PcodeOp, Varnode

INTERRUPT_MASK = "interrupt_mask"
"""User operation of an instruction that writes a mask of interrupts, and no more."""

_MASKS = frozenset({0x10, 0x11, 0x12, 0x13})
"""Numbers of PRIMASK, BASEPRI, BASEPRI_MAX and FAULTMASK in ``msr`` and ``mrs`` of the M profile."""
_STATUS = frozenset({*range(8), *_MASKS, 0x14})
"""Numbers of registers that hold flags, the number of an exception, a mask, or CONTROL: no address."""
_CHANGES = frozenset(
    f"{what}{kind}interrupts" for what in ("enable", "disable") for kind in ("IRQ", "FIQ", "DataAbort")
) | {"WriteExternalEnable", "WriteExternalEnableImmediate"}
"""User operations of SLEIGH: ``cps`` of ARM, ``wrtee`` and ``wrteei`` of PowerPC."""
_MFMSR = 0x7C00_00A6
_NAMES = (*(f"r{number}" for number in range(13)), "sp", "lr", "pc")


def thumb_status(halves: tuple[int, int], ops: list[PcodeOp], registers: Mapping[str, Varnode]) -> list[PcodeOp]:
    """``ops`` of an instruction of Thumb, or what stands for them where it is ``msr`` or ``mrs`` of such a register.

    Parameters:
        halves: its halfwords.
        registers: of the language, by lower-case name.

    Soundness: as said of the module; the condition of an IT block stays.
    """
    first, second = halves
    if first & 0xFFF0 == 0xF380 and second & 0xFF00 == 0x8800 and second & 0xFF in _MASKS:
        return [*_condition(ops), PcodeOp("CALLOTHER", None, (), INTERRUPT_MASK)]
    if first == 0xF3EF and second & 0xF000 == 0x8000 and second & 0xFF in _STATUS:
        return [*_condition(ops), PcodeOp("CALLOTHER", registers[_NAMES[second >> 8 & 15]], (), SPECIAL_REGISTER)]
    return masked(ops)


def powerpc_status(word: int, ops: list[PcodeOp], registers: Mapping[str, Varnode]) -> list[PcodeOp]:
    """``ops`` of an instruction of PowerPC, whose ``mfmsr`` reads what ``wrtee`` writes: its result is unknown.

    Soundness: as said of the module.
    """
    if word & 0xFC1F_FFFF == _MFMSR:
        return [PcodeOp("CALLOTHER", registers[f"r{word >> 21 & 31}"], (), SPECIAL_REGISTER)]
    return masked(ops)


def masked(ops: list[PcodeOp]) -> list[PcodeOp]:
    """``ops`` with one name for all operations that write a mask.

    Soundness: as said of the module.
    """
    return [PcodeOp("CALLOTHER", None, (), INTERRUPT_MASK) if _is_change(op) else op for op in ops]


def _is_change(op: PcodeOp) -> bool:
    return op.opcode == "CALLOTHER" and op.output is None and op.user_op in _CHANGES


def _condition(ops: list[PcodeOp]) -> list[PcodeOp]:
    """What stands before the instruction in an IT block: it goes on behind it if the condition does not hold."""
    asked = next((index for index, op in enumerate(ops) if op.opcode == "CALLOTHER"), 0)
    branches = [index for index, op in enumerate(ops[:asked]) if op.opcode == "CBRANCH"]
    return ops[: branches[0] + 1] if branches else []
