"""Tables for the native core: what each instruction costs, where it accesses memory, in the core's layout."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from wcet_probe.emu.engine import register_id
from wcet_probe.emu.memory import GuestMemory
from wcet_probe.emu.native import (
    CLEARS_STACK_POINTER,
    CONDITIONAL_BRANCH,
    IN_IT_BLOCK,
    JUMPS_TO_ITSELF,
    LOAD,
    PROBLEM,
    STORE,
    WRITES_STACK_POINTER,
    AccessLayout,
    InstructionLayout,
)
from wcet_probe.errors import UsageError
from wcet_probe.identity import Same
from wcet_probe.model.instruction import ALWAYS, Access, AccessKind, Control, Instruction, InstructionCost, Shift
from wcet_probe.model.target import Isa, UnalignedAccess
from wcet_probe.model.unaligned_access import unaligned_cycles

_KIND = {AccessKind.LOAD: LOAD, AccessKind.STORE: STORE, AccessKind.LOAD_STORE: LOAD | STORE}
_SHIFT = {Shift.LSL: 0, Shift.LSR: 1, Shift.ASR: 2, Shift.ROR: 3, Shift.RRX: 4}
_ALIGNMENTS = (1, 2, 4)

HALFWORD_BYTES = 2
"""A row of the table speaks of one halfword of code."""

_FARTHEST_BYTES = 64 << 20
"""Of code that is in one table, which has a row for each halfword between its ends: 1.2 GB of them."""


@dataclass(frozen=True, slots=True)
class CodeTable:
    """Decoded code in the native core's layout.

    Code that is far from most of the code, as a function that is copied to RAM, is in no table, and a run that goes
    there is stopped.

    Attributes:
        base_address: address of row 0.
        size_bytes: extent of the code; there are ``size_bytes / 2 + 1`` rows.
        instructions: the instruction of each row that one starts at.
        rows: the table of the native core.
        quiet: for each row, 1 where nothing is to be done when the instruction runs.
        accesses: the access descriptors.
        far: where instructions start that are in no table.
    """

    base_address: int
    size_bytes: int
    instructions: dict[int, Instruction]
    rows: object
    quiet: object
    accesses: object
    far: frozenset[int] = frozenset()

    @property
    def row_count(self) -> int:
        """Number of rows, the one behind the last halfword included."""
        return self.size_bytes // HALFWORD_BYTES + 1

    def address(self, row: int) -> int:
        """Address that ``row`` speaks of."""
        return self.base_address + HALFWORD_BYTES * row

    def instruction_at(self, address: int) -> Instruction | None:
        """The instruction that begins at ``address``."""
        return self.instructions.get((address - self.base_address) // HALFWORD_BYTES)

    def instruction_before(self, address: int) -> Instruction | None:
        """The instruction that ends at ``address``."""
        found = (self.instruction_at(address - size_bytes) for size_bytes in (2, 4))
        return next((one for one in found if one and one.address + one.size_bytes == address), None)

    def row(self, address: int) -> int:
        """The row of the instruction at ``address``.

        Raises:
            UsageError: no instruction starts there.
        """
        row, rest = divmod(address - self.base_address, HALFWORD_BYTES)
        if rest or row not in self.instructions:
            message = f"no instruction starts at {address:#010x}; name the first byte of one, without the Thumb bit."
            if address in self.far:
                message = (
                    f"code at {address:#010x} is too far from that at {self.base_address:#010x} to be emulated with "
                    "it; bound it without a run, or link both closer together."
                )
            raise UsageError(message)
        return row


@lru_cache(maxsize=32)
def code_table(
    instructions: Same[tuple[Instruction, ...]],
    costs: Same[tuple[InstructionCost, ...]],
    isa: Isa,
    stack_pointer: str,
    unaligned: tuple[UnalignedAccess, ...],
) -> CodeTable:
    """The table of ``instructions``, each at ``costs``; all machines of a program share it, and nobody writes to it.

    Parameters:
        instructions: in address order.
        costs: cycles of each.
        isa: instruction set of the code.
        stack_pointer: name of the stack pointer.
        unaligned: what unaligned accesses take longer.
    """
    writes = WRITES_STACK_POINTER | (CLEARS_STACK_POINTER if isa is Isa.THUMB else 0)
    pointer = stack_pointer, writes
    return _table(instructions.value, costs.value, lambda name: register_id(isa, name), pointer, unaligned)


def _table(
    instructions: Sequence[Instruction],
    costs: Sequence[InstructionCost],
    id_of: Callable[[str], int],
    stack_pointer: tuple[str, int],
    unaligned: Sequence[UnalignedAccess],
) -> CodeTable:
    addresses = {one.address for one in instructions}
    instructions, costs = zip(*_near(tuple(zip(instructions, costs, strict=True))), strict=True)
    far = frozenset(addresses - {one.address for one in instructions})
    base = instructions[0].address
    size_bytes = instructions[-1].address + instructions[-1].size_bytes - base
    rows = (InstructionLayout * (size_bytes // HALFWORD_BYTES + 1))()
    quiet = (ctypes.c_uint8 * len(rows))()
    descriptors: list[AccessLayout] = []
    by_row: dict[int, Instruction] = {}
    for instruction, cost in zip(instructions, costs, strict=True):
        start = (instruction.address - base) // HALFWORD_BYTES
        by_row[start] = instruction
        row = rows[start]
        row.executed_cycles, row.skipped_cycles, row.taken_cycles = (
            cost.executed_cycles,
            cost.skipped_cycles,
            cost.taken_cycles,
        )
        row.size_bytes = instruction.size_bytes
        row.flags = _flags(instruction, stack_pointer)
        row.condition = instruction.condition
        marks = row.flags & ~(CONDITIONAL_BRANCH | JUMPS_TO_ITSELF)  # both are looked at where a block begins or ends
        quiet[start] = not (marks or instruction.accesses or instruction.condition != ALWAYS)
        row.first_access, row.access_count = len(descriptors), len(instruction.accesses)
        descriptors.extend(
            _descriptor(access, id_of, _longer(instruction, access, unaligned)) for access in instruction.accesses
        )
        rows[start + instruction.size_bytes // HALFWORD_BYTES].previous_bytes = instruction.size_bytes
    _sum_up(rows)
    return CodeTable(
        base, size_bytes, by_row, rows, quiet, (AccessLayout * max(1, len(descriptors)))(*descriptors), far
    )


def _near(
    code: tuple[tuple[Instruction, InstructionCost], ...],
) -> tuple[tuple[Instruction, InstructionCost], ...]:
    """Most of ``code``, and what is not far from it."""
    parts: list[list[tuple[Instruction, InstructionCost]]] = []
    for one in code:
        if not parts or one[0].address - parts[-1][-1][0].address > _FARTHEST_BYTES:
            parts.append([])
        parts[-1].append(one)
    largest = max(parts, key=len)
    first = largest[0][0].address
    return tuple(one for one in largest if one[0].address - first < _FARTHEST_BYTES)


def it_state(table: CodeTable, memory: GuestMemory, pc: int) -> int:
    """The state of the IT block that the instruction at ``pc`` is in, 0: it is in none (ARMv7-M ARM, A7.3.3)."""
    one = table.instruction_at(pc)
    steps = 0
    while one is not None and one.in_it_block:
        steps += 1
        one = table.instruction_before(one.address)
    if one is None or not steps:
        return 0
    state = memory.read(one.address, 1)[0]
    for _ in range(steps - 1):
        state = state & 0xE0 | state << 1 & 0x1F
    return state


def _sum_up(rows: Iterable[InstructionLayout]) -> None:
    """Running sums: an instruction counts from the row behind its first; a predicated one is charged as skipped."""
    instructions = cycles = 0
    for row in rows:
        row.instructions_before, row.cycles_before = instructions, cycles
        if row.size_bytes:
            predicated = row.condition != ALWAYS or row.flags & IN_IT_BLOCK
            instructions += 1
            cycles += row.skipped_cycles if predicated else row.executed_cycles


def _flags(instruction: Instruction, stack_pointer: tuple[str, int]) -> int:
    """Its flags; those of who writes the stack pointer are told with its name."""
    flags = 0
    if instruction.control is Control.CONDITIONAL_BRANCH:
        flags |= CONDITIONAL_BRANCH
    if instruction.in_it_block:
        flags |= IN_IT_BLOCK
    if stack_pointer[0] in instruction.writes:
        flags |= stack_pointer[1]
    if instruction.problem:
        flags |= PROBLEM
    if instruction.jumps_to_itself:
        flags |= JUMPS_TO_ITSELF
    return flags


def _longer(instruction: Instruction, access: Access, unaligned: Sequence[UnalignedAccess]) -> tuple[int, ...]:
    """Cycles that ``access`` takes longer at an address that is a multiple of 1, 2 and 4 bytes, and of no more."""
    return tuple(
        unaligned_cycles(unaligned, instruction.timing_class, access.bytes_each, 2 * alignment, alignment).most
        for alignment in _ALIGNMENTS
    )


def _descriptor(access: Access, id_of: Callable[[str], int], longer: tuple[int, ...]) -> AccessLayout:
    return AccessLayout(
        displacement=access.displacement & 0xFFFFFFFF,
        align_mask=access.align_mask,
        base=id_of(access.base) if access.base else 0,
        index=id_of(access.index) if access.index else 0,
        count=access.count,
        kind=_KIND[access.kind],
        bytes_each=access.bytes_each,
        subtract_index=access.subtract_index,
        shift=_SHIFT[access.shift],
        shift_bits=access.shift_bits,
        unaligned_cycles=longer,
    )
