"""What is told of an instruction without a state, once for all its executions.

Words: P-code, predicated instruction (docs/explanation/glossary.md).

*Soundness:* it decides nothing of values; the status of floating point has no location, so nothing is known of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache
from typing import NamedTuple

from wcet_probe.analyzer.pcode.lift import Lifter
from wcet_probe.analyzer.pcode.operations import LiftedInstruction, PcodeOp, Varnode
from wcet_probe.analyzer.pcode.semantics import is_operation
from wcet_probe.analyzer.values.symbolic.locations import Location
from wcet_probe.identity import Same

_BRANCHES = frozenset({"BRANCH", "CBRANCH"})
_AWAY = frozenset({"RETURN", "BRANCHIND"})
_CONTROL = _BRANCHES | _AWAY | {"CALL", "CALLIND", "TRAP"}
_MOST_REMEMBERED = 1 << 14


class PreparedInstruction(NamedTuple):
    """What is told of an instruction without a state, once.

    Attributes:
        instruction: that it is told of.
        inputs: of each operation the locations of its operands; None for a constant, memory, or the status
            of floating point.
        outputs: so of its results.
        temporaries: the locations that the instruction writes or reads for itself alone.
        is_computed: of each operation, whether it is a pure integer function of its operands.
        is_straight: whether control falls through it, and goes no other way.
        written: the registers that it may write.
        guard: of a predicated instruction, the registers that its condition is made of; else none.
    """

    instruction: LiftedInstruction
    inputs: tuple[tuple[Location | None, ...], ...]
    outputs: tuple[Location | None, ...]
    temporaries: tuple[Location, ...]
    is_computed: tuple[bool, ...]
    is_straight: bool
    written: frozenset[Location]
    guard: frozenset[Location]

    @property
    def following(self) -> int:
        """The address of the next instruction."""
        return self.instruction.address + self.instruction.size_bytes

    @property
    def end(self) -> tuple[int, int]:
        """What names the place behind all its operations: its address, and their number."""
        return self.instruction.address, len(self.instruction.ops)

    def is_certain(self, index: int) -> bool:
        """Whether operation ``index`` is executed whenever the instruction is."""
        return not any(op.opcode in _BRANCHES for op in self.instruction.ops[:index])

    def is_leaving(self, index: int) -> bool:
        """Whether operation ``index`` is executed only where control then goes elsewhere than to the next instruction.

        One branch, over everything, to the next instruction; then the operation, and then away.
        """
        ops = self.instruction.ops
        branches = [number for number, op in enumerate(ops) if op.opcode in _BRANCHES]
        if len(branches) != 1 or branches[0] >= index or ops[-1].opcode not in _AWAY:
            return False
        branch = ops[branches[0]]
        target = branch.inputs[0]
        return branch.opcode == "CBRANCH" and (target.space, target.offset) == ("ram", self.following)

    def is_under_the_condition_of(self, other: PreparedInstruction) -> bool:
        """Whether ``other``, if it comes next, has the same condition, the opposite one, or one of the same flags."""
        return bool(self.guard) and self.guard == other.guard and self.guard.isdisjoint(self.written)

    @classmethod
    def of(cls, instruction: LiftedInstruction, lifter: Lifter) -> PreparedInstruction:
        """What is told of ``instruction``, which each analysis of its image asks for."""
        return _prepared(Same(instruction), lifter.float_status)


@lru_cache(_MOST_REMEMBERED)
def _prepared(of: Same[LiftedInstruction], unknown: frozenset[int]) -> PreparedInstruction:
    instruction = of.value
    operations = _operations(Same(instruction.ops), unknown)
    guard = frozenset[Location]() if operations.is_straight else _guard(instruction, operations.inputs)
    return PreparedInstruction(instruction, *operations, guard)


class _Operations(NamedTuple):
    """What is told of the p-code of an instruction, wherever that is; see `PreparedInstruction`."""

    inputs: tuple[tuple[Location | None, ...], ...]
    outputs: tuple[Location | None, ...]
    temporaries: tuple[Location, ...]
    is_computed: tuple[bool, ...]
    is_straight: bool
    written: frozenset[Location]


@lru_cache(_MOST_REMEMBERED)
def _operations(of: Same[tuple[PcodeOp, ...]], unknown: frozenset[int]) -> _Operations:
    ops = of.value
    inputs = tuple([tuple([_location(one, unknown) for one in op.inputs]) for op in ops])
    outputs = tuple([None if op.output is None else _location(op.output, unknown) for op in ops])
    places = dict.fromkeys(place for places in (*inputs, outputs) for place in places if place is not None)
    return _Operations(
        inputs,
        outputs,
        tuple(place for place in places if place.space == "unique"),
        tuple([op.output is not None and is_operation(op.user_op or op.opcode) for op in ops]),
        not any(op.opcode in _CONTROL for op in ops),
        frozenset(place for place in outputs if place is not None and place.space == "register"),
    )


def _guard(instruction: LiftedInstruction, inputs: Sequence[Sequence[Location | None]]) -> frozenset[Location]:
    """The registers that decide whether ``instruction`` is skipped; none where that is not all that it may do."""
    control = [index for index, op in enumerate(instruction.ops) if op.opcode in _CONTROL]
    if len(control) != 1 or instruction.ops[control[0]].opcode != "CBRANCH":
        return frozenset()
    target = instruction.ops[control[0]].inputs[0]
    if (target.space, target.offset) != ("ram", instruction.address + instruction.size_bytes):
        return frozenset()
    read = (place for places in inputs[: control[0] + 1] for place in places if place is not None)
    return frozenset(place for place in read if place.space == "register")


@cache
def _location(varnode: Varnode, unknown: frozenset[int]) -> Location | None:
    """The location that ``varnode`` is; of the status of floating point nothing is ever known."""
    if varnode.space in {"const", "ram"} or (varnode.space == "register" and varnode.offset in unknown):
        return None
    return Location(varnode.space, varnode.offset, varnode.size_bytes)
