"""The worst cost of a basic block under a target's timing table, without the waiting for memory.

Words: basic block, predicated instruction (docs/explanation/glossary.md).

*Soundness:* the emulator and this module charge by the same table (`wcet_probe.isa.timing`). A predicated
instruction costs the dearer of executed and skipped. Misses are counted by `analyzer.icache` and `analyzer.dcache`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from wcet_probe.analyzer.graph.cfg import Block
from wcet_probe.errors import AnalysisError
from wcet_probe.model.image import Image
from wcet_probe.model.instruction import Control, Instruction, InstructionCost
from wcet_probe.model.target import Target

Costs = Mapping[int, tuple[Instruction, InstructionCost]]
"""Instruction and cycles by address."""


def cost_table(instructions: Sequence[Instruction], costs: Sequence[InstructionCost]) -> Costs:
    """Instruction and cost by address."""
    return {instruction.address: (instruction, cost) for instruction, cost in zip(instructions, costs, strict=True)}


def check_chargeable(blocks: Iterable[Block], costs: Costs, image: Image) -> None:
    """Raise AnalysisError where the timing table or the decoder does not know an instruction of ``blocks``."""
    for lifted in (instruction for block in blocks for instruction in block.instructions):
        found = costs.get(lifted.address)
        if found is None or found[0].size_bytes != lifted.size_bytes:
            raise AnalysisError(
                f"the instruction at {image.location(lifted.address)} is not decoded as it is lifted: "
                "give the function its size in the ELF, and keep data out of its code."
            )
        if found[0].problem:
            raise AnalysisError(f"{image.location(lifted.address)} has no known cost: {found[0].problem}")


def block_cycles(block: Block, costs: Costs) -> int:
    """Most cycles of one execution of ``block``, a taken conditional branch at its end and all waiting apart.

    *Soundness:* as said of the module.
    """
    cycles = 0
    for lifted in block.instructions:
        instruction, cost = costs[lifted.address]
        if _may_fall_through(instruction):
            cycles += cost.skipped_cycles
        elif _is_predicated(instruction):
            cycles += max(cost.executed_cycles, cost.skipped_cycles)
        else:
            cycles += cost.executed_cycles
    return cycles


def taken_cycles(block: Block, way: str, costs: Costs) -> int:
    """Cycles of leaving ``block`` by an edge of that ``way`` (`supergraph.Edge`) beside those of the block.

    *Soundness:* a direct branch to the next instruction falls into it; an indirect one that goes there is executed.
    """
    instruction, cost = costs[block.last_address]
    if way == "fall":
        return 0
    if _may_fall_through(instruction):
        return max(0, cost.executed_cycles - cost.skipped_cycles)
    return cost.taken_cycles if instruction.control is Control.CONDITIONAL_BRANCH else 0


def _is_predicated(instruction: Instruction) -> bool:
    return instruction.in_it_block or instruction.condition != 14


def _may_fall_through(instruction: Instruction) -> bool:
    """Whether it is a predicated return or indirect jump: if it is skipped the block is left for the next one."""
    return instruction.control is Control.INDIRECT and _is_predicated(instruction)


def fetch_cycles(misses: int, target: Target) -> int:
    """Cycles that the core waits for ``misses`` of an instruction cache of its own."""
    return misses * target.memory.line_cycles(target.icache.line_bytes) if target.icache else 0
