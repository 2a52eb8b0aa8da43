"""Instructions that a condition may leave without any effect, as predicated ones.

Words: predicated instruction (docs/explanation/glossary.md).
"""

from __future__ import annotations

from wcet_probe.analyzer.pcode.operations import LiftedInstruction


def may_be_skipped(instruction: LiftedInstruction) -> bool:
    """Whether a condition decides if the instruction has any effect; no branch to elsewhere is meant.

    *Soundness:* a skipped instruction's p-code jumps to what follows it, or over the rest of its own.
    """
    following = instruction.address + instruction.size_bytes
    jumps = (op.inputs[0] for op in instruction.ops if op.opcode == "CBRANCH")
    return any(target.space == "const" or target.offset == following for target in jumps)
