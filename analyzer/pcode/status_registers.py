"""Status registers and interrupt masks: what they hold is unknown, and to write a mask changes nothing that is counted.

SLEIGH asks user operations for the mode of execution and for each mask, of which nobody knows what they answer. So it
does for the stack pointers of the M profile, and does not know their limits, nor the registers of the non-secure state:
what is read of them is unknown. A limit that is written changes nothing, but that a store beyond it traps, and what the
secure state writes of the other one's (``CONTROL_NS``, masks, stacks) changes nothing here. PSP is written by what
switches contexts, as handlers do, which run on the other stack: with the assumption ``main-stack`` nothing changes that
is counted. Where MSP or CONTROL is written another stack may come into use: that stays what SLEIGH makes of it, and is
refused by who follows values. Flags that
``msr`` writes are bits of the register that it reads, where SLEIGH only ever sets them.

Words: P-code (docs/explanation/glossary.md).

*Soundness:* a mask decides which interrupts are taken, and with the assumption ``no-interference`` there are none; no
other result depends on it, as whatever reads a mask has an unknown result. Code without privileges writes no mask,
which is the same. Handlers run on the main stack always. A stack that grows beyond its limit is a fault, which does not
come back. Source: ARM DDI 0403E, B1.4.1, B1.4.3 and B5.2.1 to B5.2.3; ARM DDI 0553B, D1.2 (``MSPLIM``, ``PSPLIM``), and
its ``MSR`` (register).
"""

from __future__ import annotations

from collections.abc import Mapping

from wcet_probe.analyzer.pcode.operations import SPECIAL_REGISTER, PcodeOp, Varnode

PROCESS_STACK = "process_stack"
"""User operation of an instruction that writes PSP, and no more: assumption ``main-stack``."""
INTERRUPT_MASK = "interrupt_mask"
"""User operation of an instruction that writes a mask of interrupts, and no more."""

WRITES_STACK_OR_MODE = frozenset(
    {
        "isCurrentModePrivileged",
        "setMainStackPointer",
        "setStackMode",
        "setThreadModePrivileged",
    }
)
"""User operations that SLEIGH has for ``msr`` of MSP and CONTROL, as this module leaves them."""
_MASKS = frozenset({0x10, 0x11, 0x12, 0x13})
"""Numbers of PRIMASK, BASEPRI, BASEPRI_MAX and FAULTMASK in ``msr`` and ``mrs`` of the M profile."""
_PSP = 0x09
_POINTERS = frozenset({0x08, _PSP})
"""Numbers of MSP and PSP."""
_LIMITS = frozenset({0x0A, 0x0B, *range(0x88, 0x8C), 0x90, 0x91, 0x93, 0x94, 0x98})
"""Numbers of their limits, and of what the non-secure state has: stacks, limits, masks, CONTROL, SP."""
_READ = frozenset({*range(8), *_MASKS, 0x14, *_POINTERS, *_LIMITS})
"""Numbers of registers of which an ``mrs`` is known: of flags, the number of an exception, a mask, CONTROL, stacks."""
_FLAGS = ("ng", "zr", "cy", "ov", "q")
"""What ``msr`` writes of the flags, from bit 31 downwards."""
_CHANGES = frozenset(
    f"{what}{kind}interrupts" for what in ("enable", "disable") for kind in ("IRQ", "FIQ", "DataAbort")
) | {"WriteExternalEnable", "WriteExternalEnableImmediate"}
"""User operations of SLEIGH: ``cps`` of ARM, ``wrtee`` and ``wrteei`` of PowerPC."""
_MFMSR = 0x7C00_00A6
_MSRS = ((0xFFF0_FFFC, 0xF380_8800), (0x0FFF_FFF0, 0x0128_F000))
"""Mask and value of an ``msr`` of the flags from a register: of Thumb, by APSR, IAPSR, EAPSR or XPSR; of A32."""
_NAMES = (*(f"r{number}" for number in range(13)), "sp", "lr", "pc")


def thumb_status(halves: tuple[int, int], ops: list[PcodeOp], registers: Mapping[str, Varnode]) -> list[PcodeOp]:
    """``ops`` of an instruction of Thumb, or what stands for them where it is ``msr`` or ``mrs`` of such a register.

    Parameters:
        halves: its halfwords.
        registers: of the language, by lower-case name.

    Soundness: as said of the module; the condition of an IT block stays.
    """
    first, second = halves
    if first & 0xFFF0 == 0xF380 and second & 0xFF00 == 0x8800 and second & 0xFF in _MASKS | _LIMITS:
        return [*_condition(ops), PcodeOp("CALLOTHER", None, (), INTERRUPT_MASK)]
    if first & 0xFFF0 == 0xF380 and second & 0xFFFF == 0x8800 | _PSP:
        return [*_condition(ops), PcodeOp("CALLOTHER", None, (), PROCESS_STACK)]
    if first == 0xF3EF and second & 0xF000 == 0x8000 and second & 0xFF in _READ:
        return [*_condition(ops), PcodeOp("CALLOTHER", registers[_NAMES[second >> 8 & 15]], (), SPECIAL_REGISTER)]
    return masked(ops)


def stack_limit(halves: tuple[int, int], registers: Mapping[str, Varnode]) -> list[PcodeOp] | None:
    """What ``msr`` or ``mrs`` of a limit of a stack does, or of a non-secure register; None of other instructions.

    Parameters:
        halves: its halfwords.
        registers: of the language, by lower-case name.

    Soundness: as said of the module.
    """
    _, second = halves
    return None if second & 0xFF not in _LIMITS else thumb_status(halves, [], registers) or None


def written_flags(word: int, ops: list[PcodeOp], registers: Mapping[str, Varnode], *, is_thumb: bool) -> list[PcodeOp]:
    """``ops`` of an instruction of ARM, or what stands for them where it is an ``msr`` of the flags N, Z, C, V and Q.

    Parameters:
        word: the instruction; in Thumb its first halfword is the upper one.
        ops: SLEIGH's, of which the condition stays.
        registers: of the language, by lower-case name.
        is_thumb: whether it is of Thumb, else of A32.

    Soundness: of A32 it writes the flags alone (``msr CPSR_f``); what also writes GE or the mode stays as it is.
    """
    mask, value = _MSRS[not is_thumb]
    number = word >> 16 & 15 if is_thumb else word & 15
    if word & mask != value or number in {13, 15}:
        return ops
    branches = [index for index, op in enumerate(ops) if op.opcode == "CBRANCH"]
    source, shifted = registers[_NAMES[number]], Varnode("unique", 0, 4)
    found = ops[: branches[0] + 1] if branches else []
    for place, name in zip(range(31, 0, -1), _FLAGS, strict=False):
        found += [
            PcodeOp("INT_RIGHT", shifted, (source, Varnode("const", place, 4))),
            PcodeOp("INT_AND", shifted, (shifted, Varnode("const", 1, 4))),
            PcodeOp("INT_NOTEQUAL", registers[name], (shifted, Varnode("const", 0, 4))),
        ]
    return found


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
