"""A decoded machine instruction: control flow, data accesses, registers, and what it costs."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

ALWAYS = 14
"""The condition code of ARM that holds on all flags."""


class Control(StrEnum):
    """What an instruction does to the flow of control."""

    NEXT = "next"
    BRANCH = "branch"
    CONDITIONAL_BRANCH = "conditional-branch"
    CALL = "call"
    INDIRECT = "indirect"


class AccessKind(StrEnum):
    """Direction of a memory access."""

    LOAD = "load"
    STORE = "store"
    LOAD_STORE = "load-store"


class Shift(StrEnum):
    """Shift of an index register."""

    LSL = "lsl"
    LSR = "lsr"
    ASR = "asr"
    ROR = "ror"
    RRX = "rrx"


@dataclass(frozen=True, slots=True)
class Access:
    """A data access of an instruction, its effective address computed from the registers before the instruction.

    The address is ``base + displacement ± (index shifted)``; ``count`` accesses of ``bytes_each`` bytes follow each
    other upwards from there. A missing ``base`` is 0 (an absolute address, a literal load resolved by the decoder).
    ``align_mask`` is applied to the sum last: a ``dcbz`` clears the whole line that holds its address.
    """

    kind: AccessKind
    base: str | None
    displacement: int
    bytes_each: int
    count: int = 1
    index: str | None = None
    subtract_index: bool = False
    shift: Shift = Shift.LSL
    shift_bits: int = 0
    align_mask: int = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class Instruction:
    """A decoded machine instruction with all that the observer and the analyzer charge it for.

    Attributes:
        address: where it is.
        size_bytes: 2 or 4.
        text: mnemonic and operands.
        timing_class: key of ``Target.timing``.
        registers: number of registers transferred by a load/store multiple, else 0.
        condition: ARM condition code 0..14 that is to be evaluated on the flags (14: always). Only for A32; in
            Thumb-2 an IT block sets ``in_it_block`` instead.
        in_it_block: predicated by a Thumb-2 IT instruction.
        control: what it does to the flow of control.
        branch_target: target of a direct branch or call.
        accesses: data accesses, in order.
        reads, writes: registers by canonical name (``r0`` … ``r15``; ``sp`` is ``r13`` on ARM and ``r1`` on PowerPC),
            on PowerPC with ``lr``, ``ctr`` and the fields ``cr0`` … ``cr7`` of the condition register.
        loaded: registers that receive loaded data.
        shifted: registers that are shifted, or whose bits are reversed or extracted, and those that say how far (ARM).
        literal: whether its data lie at an address that is relative to the program counter (ARM).
        problem: why it cannot be charged or followed, or None. Executing such an instruction is an error.
    """

    address: int
    size_bytes: int
    text: str
    timing_class: str
    registers: int = 0
    condition: int = ALWAYS
    in_it_block: bool = False
    control: Control = Control.NEXT
    branch_target: int | None = None
    accesses: tuple[Access, ...] = ()
    reads: frozenset[str] = frozenset()
    writes: frozenset[str] = frozenset()
    loaded: frozenset[str] = frozenset()
    shifted: frozenset[str] = frozenset()
    literal: bool = False
    problem: str | None = None

    @property
    def jumps_to_itself(self) -> bool:
        """Whether nothing else is ever executed behind it, unless an interrupt comes."""
        is_always = self.condition == ALWAYS and not self.in_it_block
        return is_always and self.control is Control.BRANCH and self.branch_target == self.address


@dataclass(frozen=True, slots=True)
class InstructionCost:
    """Cycles of one instruction at one address under a target's timing table, cache and memory stalls apart.

    ``executed_cycles`` includes the longest wait of an instruction behind it for its result; ``skipped_cycles`` is
    charged instead when the condition fails; ``taken_cycles`` is added when a conditional branch is taken.
    """

    executed_cycles: int
    skipped_cycles: int
    taken_cycles: int
