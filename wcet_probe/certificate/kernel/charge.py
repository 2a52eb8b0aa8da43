# SPDX-License-Identifier: 0BSD
"""What an execution of a node and of an edge costs at least, by the target's table: the one place that charges.

Instructions come with their costs, from `wcet_probe.isa.timing`, which the emulator asks as well: the table is trusted,
and its reading. A conditional instruction costs the dearer of executed and skipped. Without a data cache each access
waits for memory; what caches cost is charged by `misses`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wcet_probe.certificate.machines.operands import may_be_skipped
from wcet_probe.model.instruction import AccessKind, Control, Instruction, InstructionCost
from wcet_probe.model.target import Target

Costs = Mapping[int, InstructionCost]


def node_cost(instructions: Sequence[Instruction], costs: Costs, target: Target, unit: str) -> int:
    """The least that a node must charge for ``instructions``."""
    if unit == "instructions":
        return len(instructions)
    return sum(instruction_cycles(one, costs[one.address]) + _waiting(one, target) for one in instructions)


def edge_cost(
    instruction: Instruction, target_address: int | None, costs: Costs, unit: str, *, is_gone: bool = False
) -> int:
    """The least that leaving a node behind ``instruction`` must charge besides; to None is out of the function.

    An indirect jump to the next instruction that ``is_gone`` is executed, and not skipped; if it is conditional, taken.
    """
    is_indirect = _may_fall_through(instruction) or (
        instruction.control is Control.CONDITIONAL_BRANCH and instruction.branch_target is None
    )
    is_next = target_address == instruction.address + instruction.size_bytes
    if unit == "instructions" or (is_next and not (is_gone and is_indirect)):
        return 0
    cost = costs[instruction.address]
    if _may_fall_through(instruction):
        return max(0, cost.executed_cycles - cost.skipped_cycles)
    return cost.taken_cycles if instruction.control is Control.CONDITIONAL_BRANCH else 0


def not_charged(target: Target, unit: str) -> tuple[str, ...]:
    """What of a cost in ``unit`` is not charged here, in words; nothing where there is no cache and one memory."""
    if unit == "instructions":
        return ()
    slower = any(region.read_cycles.value or region.write_cycles.value for region in target.memory.regions)
    return ("waiting for uncached regions",) if slower and target.dcache is None else ()


def instruction_cycles(instruction: Instruction, cost: InstructionCost) -> int:
    """What an execution of ``instruction`` costs at least, whether it is skipped or not, but for waiting."""
    if _may_fall_through(instruction):
        return cost.skipped_cycles
    if may_be_skipped(instruction):
        return max(cost.executed_cycles, cost.skipped_cycles)
    return cost.executed_cycles


def _waiting(instruction: Instruction, target: Target) -> int:
    """Cycles of the accesses where no cache is: each costs what the dearest memory costs that it may go to."""
    if target.dcache is not None:
        return 0
    cycles = 0
    for access in instruction.accesses:
        kinds = {AccessKind.LOAD, AccessKind.STORE} if access.kind is AccessKind.LOAD_STORE else {access.kind}
        cycles += access.count * len(kinds) * target.memory.single_cycles
    return cycles


def _may_fall_through(instruction: Instruction) -> bool:
    return instruction.control is Control.INDIRECT and may_be_skipped(instruction)
