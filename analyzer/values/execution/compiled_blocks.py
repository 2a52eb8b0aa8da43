"""Blocks on constants as Python functions: what `constant_execution` does, for a run of millions of instructions.

What is told of an instruction without a state, its operations, operands and which of them overlap, is written into a
function of its block once. Operations on numbers are arithmetic there; all others are asked of `ConstantExecution`.
A predicated instruction, which a condition skips all or some operations of, is an `if` of the function.

Words: constant propagation, P-code (docs/explanation/glossary.md).

*Soundness:* each operation has the result that `ConstantExecution` gives it, in the same order: of two numbers by the
same formula (`pcode.semantics`), else by its own methods. A place that overlaps what is written is not known behind it.
Behind an `if` each place that something was written to on its way holds that, or what it held before, as the condition
was; where the condition is no number, the block is not told.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

from wcet_probe.analyzer.pcode.operations import LiftedInstruction, PcodeOp
from wcet_probe.analyzer.values.execution.block_functions import (
    Accessed,
    Places,
    Straight,
    Told,
    UndecidedError,
    function_of,
    predicated,
)
from wcet_probe.analyzer.values.execution.constant_arithmetic import Value, placed
from wcet_probe.analyzer.values.execution.constant_execution import (
    ConstantExecution,
    Constants,
    Leaving,
    forget_registers,
)
from wcet_probe.analyzer.values.execution.needed_operations import Needed
from wcet_probe.analyzer.values.execution.prepared_operations import PreparedInstruction, PreparedOp
from wcet_probe.analyzer.values.symbolic.locations import Location, part_of


class Ending(NamedTuple):
    """An instruction whose only branch is its last operation.

    Attributes:
        function: executes what stands before it, and returns what decides it: a condition, or where it goes.
        opcode: of the branch.
        address: where it goes, but for an indirect one.
        following: address of the next instruction.
    """

    function: Straight
    opcode: str
    address: int | None
    following: int


class CompiledBlock(NamedTuple):
    """A block: functions, and instructions with branches inside, as they are prepared.

    Attributes:
        parts: in order.
        is_varied: whether it may make other accesses at another time, as predicated instructions do.
    """

    parts: tuple[Straight | Ending | PreparedInstruction, ...]
    following: int
    dead: tuple[Location, ...]
    is_varied: bool


class CompiledExecution(ConstantExecution):
    """An execution that tells the data accesses and whether all was decided.

    Attributes:
        accesses: since they were last taken away.
        is_forked: whether a condition in an instruction was not known.
        tells_stack_pointer: whether something that was executed rests on where the stack is.
        stack_reach: something that was executed rests on the stack pointer being at least so many bytes from both ends
            of the address space.
    """

    def __init__(self, execution: ConstantExecution, stack_pointer: int | None = None) -> None:
        vars(self).update(vars(execution))
        self._prepared, self.tells_alignment = {}, False
        self.accesses: list[Accessed] = []
        self.is_forked = self.tells_stack_pointer = False
        self.stack_reach = 0
        self._stack_pointer = stack_pointer
        self._at = 0

    def compiled(self, instructions: Sequence[LiftedInstruction], needed: Needed) -> CompiledBlock:
        """What executes a block."""
        parts: list[Straight | Ending | PreparedInstruction] = []
        straight: list[Told] = []
        is_varied = False
        for number, instruction in enumerate(instructions):
            prepared = self._of(instruction, needed.operations[number])
            if prepared.branch is None:
                straight.append((instruction.address, prepared.straight))
                continue
            rest = prepared.ops[prepared.branch :]
            is_varied |= any(one is not None and _may_access(one.op) for one in rest)
            own = predicated(prepared)
            if own is not None:
                straight.append(own)
                continue
            straight.append((instruction.address, prepared.straight))
            ending = self._ending(prepared, straight)
            parts += [self._function(straight, prepared.temporaries), prepared] if ending is None else [ending]
            straight = []
        if straight:
            parts.append(self._function(straight, ()))
        last = instructions[-1]
        return CompiledBlock(tuple(parts), last.address + last.size_bytes, needed.dead, is_varied)

    def _function(
        self,
        straight: Sequence[Told],
        kept: Sequence[Location],
        branch: PreparedOp | None = None,
        number: int | None = None,
    ) -> Straight:
        asked = {"load": self.plain_load, "store": self.plain_store, "result": self.result}
        places = Places(self.overlapping, partial(part_of, lifter=self._lifter))
        return function_of(straight, kept, branch, number, places, asked)

    def _ending(self, prepared: PreparedInstruction, straight: Sequence[Told]) -> Ending | None:
        """The end of a block, where a branch is the last operation of the instruction that is ``prepared``."""
        instruction, ops = prepared.instruction, prepared.ops
        one = ops[-1]
        if prepared.branch != len(ops) - 1 or one is None or one.op.opcode not in _DECIDING:
            return None
        number, following = _DECIDING[one.op.opcode], instruction.address + instruction.size_bytes
        target = None if one.op.opcode in _INDIRECT else one.op.inputs[0]
        if target is not None and (target.space != "ram" or target.offset == following):
            return None
        function = self._function(straight, (), one, number)
        return Ending(function, one.op.opcode, target.offset if target is not None else None, following)

    def _ended(self, ending: Ending, state: Constants) -> Leaving | None:
        """How control leaves at the end of a block; None where that is not known."""
        decided = ending.function(state, self.accesses)
        if ending.opcode == "CBRANCH":
            if not isinstance(decided, int):
                return None
            if not decided:
                return Leaving("fall", ending.following, False, None, state)
        way = "call" if ending.opcode in {"CALL", "CALLIND"} else "jump"
        is_indirect = ending.address is None
        return Leaving(way, ending.address, is_indirect, decided if is_indirect else None, state)

    def execute(self, block: CompiledBlock, state: Constants) -> Leaving | None:
        """The one way in which control leaves ``block``, entered in ``state``; None where it is not known for certain.

        *Soundness:* as of `ConstantExecution.block`.
        """
        with suppress(UndecidedError):
            return self._executed(block, state)
        return None

    def _executed(self, block: CompiledBlock, state: Constants) -> Leaving | None:
        for part in block.parts:
            if isinstance(part, Ending):
                ended = self._ended(part, state)
                forget_registers(block.dead, state)
                return ended
            if not isinstance(part, PreparedInstruction):
                part(state, self.accesses)
                continue
            self._at = part.instruction.address
            leaving = self._leaving(part, part.branch or 0, state, (self._at, ()))
            if len(leaving) != 1 or self.is_forked:
                return None
            (way,) = leaving
            forget_registers(part.temporaries, way.state)
            state = way.state
            if way.way != "fall":
                forget_registers(block.dead, state)
                return way
        forget_registers(block.dead, state)
        return Leaving("fall", block.following, False, None, state)

    def _result(self, one: PreparedOp, values: Sequence[Value | None]) -> Value | None:
        """As of the class above; an address in the stack is compared as the number that it is, where that is known.

        *Soundness:* only flags are made of it, so that no number is an address in the stack. Where it is not known
        where the stack is, as of `placed`.
        """
        found = super()._result(one, values)
        if found is not None or one.op.opcode not in _COMPARISONS:
            return found
        if self._stack_pointer is None:
            found, reach = placed(one.op.opcode, values) or (None, 0)
            self.stack_reach = max(self.stack_reach, reach)
            return found
        numbers = [number for value in values if (number := _number(value, self._stack_pointer)) is not None]
        if one.function is None or len(numbers) != len(values):
            return None
        self.tells_stack_pointer = True
        return int(one.function(*numbers))

    def plain_load(self, state: Constants, address: Value | None, size_bytes: int) -> Value | None:
        """What memory holds, untold."""
        return super()._load(state, address, size_bytes)

    def plain_store(
        self, state: Constants, address: Value | None, value: Value | None, size_bytes: int
    ) -> None:  # fmt: skip
        """A store, untold."""
        super()._store(state, address, value, size_bytes, (0, ()))

    def _steps(self, one: Any, current: Constants, told: Any) -> list[Any]:  # noqa: ANN401  as of the class above
        found = super()._steps(one, current, told)
        self.is_forked |= len(found) > 1
        return found

    def _load(self, state: Constants, address: Value | None, size_bytes: int) -> Value | None:
        self.accesses.append((self._at, False, address, size_bytes))
        return super()._load(state, address, size_bytes)

    def _store(self, state: Constants, address: Value | None, value: Value | None, size_bytes: int, told: Any) -> None:  # noqa: ANN401
        self.accesses.append((self._at, True, address, size_bytes))
        super()._store(state, address, value, size_bytes, told)


def _may_access(op: PcodeOp) -> bool:
    places = (*op.inputs, *((op.output,) if op.output else ()))
    return op.opcode in {"LOAD", "STORE"} or any(one.space == "ram" for one in places if op.opcode not in _AWAY)


def _number(value: Value | None, stack_pointer: int) -> int | None:
    """The number that ``value`` is."""
    if value is None or isinstance(value, int):
        return value
    if len(value) == 1:
        return (stack_pointer + value[0]) % _WORD
    return (value[0] - stack_pointer) % _WORD if len(value) == 3 else None


_COMPARISONS = frozenset(
    {
        "INT_EQUAL",
        "INT_NOTEQUAL",
        "INT_LESS",
        "INT_LESSEQUAL",
        "INT_SLESS",
        "INT_SLESSEQUAL",
        "INT_CARRY",
        "INT_SCARRY",
        "INT_SBORROW",
    }
)
_WORD = 1 << 32
_DECIDING: dict[str, int | None] = {
    "BRANCH": None,
    "CALL": None,
    "CBRANCH": 1,
    "CALLIND": 0,
    "BRANCHIND": 0,
    "RETURN": 0,
}
"""Branches, and which operand decides where they go."""
_INDIRECT = frozenset({"CALLIND", "BRANCHIND", "RETURN"})
_AWAY = frozenset({"BRANCH", "CBRANCH", "CALL"})
