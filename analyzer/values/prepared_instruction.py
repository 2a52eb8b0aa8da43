"""What is told of an instruction without a state, once for all its executions.

*Soundness:* it decides nothing of values; floating-point registers have no location, so nothing is known of them.
"""

from __future__ import annotations

from dataclasses import dataclass

from wcet_probe.analyzer.pcode.lift import LiftedInstruction, Lifter, Varnode
from wcet_probe.analyzer.pcode.semantics import operation
from wcet_probe.analyzer.values.locations import Location

_CONTROL = frozenset({"CALL", "CALLIND", "TRAP", "BRANCH", "CBRANCH", "RETURN", "BRANCHIND"})


@dataclass(frozen=True, slots=True)
class PreparedInstruction:
    """What is told of an instruction without a state, once.

    Attributes:
        instruction: that it is told of.
        inputs: of each operation the locations of its operands; None for a constant, memory, or a floating-point
            register.
        outputs: so of its results.
        temporaries: the locations that the instruction writes or reads for itself alone.
        is_computed: of each operation, whether it is a pure integer function of its operands.
        is_straight: whether control falls through it, and goes no other way.
    """

    instruction: LiftedInstruction
    inputs: tuple[tuple[Location | None, ...], ...]
    outputs: tuple[Location | None, ...]
    temporaries: tuple[Location, ...]
    is_computed: tuple[bool, ...]
    is_straight: bool

    @classmethod
    def of(cls, instruction: LiftedInstruction, lifter: Lifter) -> PreparedInstruction:
        """What is told of ``instruction``."""
        inputs = tuple(tuple(_location(one, lifter) for one in op.inputs) for op in instruction.ops)
        outputs = tuple(None if op.output is None else _location(op.output, lifter) for op in instruction.ops)
        places = dict.fromkeys(place for places in (*inputs, outputs) for place in places if place is not None)
        return cls(
            instruction,
            inputs,
            outputs,
            tuple(place for place in places if place.space == "unique"),
            tuple(
                op.output is not None
                and operation(op.user_op or op.opcode, tuple(v.size_bytes for v in op.inputs), op.output.size_bytes)
                is not None
                for op in instruction.ops
            ),
            not any(op.opcode in _CONTROL for op in instruction.ops),
        )


def _location(varnode: Varnode, lifter: Lifter) -> Location | None:
    """The location that ``varnode`` is; of floating-point registers and their status nothing is ever known."""
    if varnode.space in {"const", "ram"} or (varnode.space == "register" and varnode.offset in lifter.float_bytes):
        return None
    return Location(varnode.space, varnode.offset, varnode.size_bytes)
