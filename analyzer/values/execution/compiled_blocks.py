"""Blocks on constants as Python functions: what `constant_execution` does, for a run of millions of instructions.

What is told of an instruction without a state, its operations, operands and which of them overlap, is written into a
function of its block once. Operations on numbers are arithmetic there; all others are asked of `ConstantExecution`.

Words: constant propagation, P-code (docs/explanation/glossary.md).

*Soundness:* each operation has the result that `ConstantExecution` gives it, in the same order: of two numbers by the
same formula (`pcode.semantics`), else by its own methods. A place that overlaps what is written is not known behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from wcet_probe.analyzer.pcode.operations import LiftedInstruction, PcodeOp, Varnode
from wcet_probe.analyzer.values.execution.constant_arithmetic import Value
from wcet_probe.analyzer.values.execution.constant_execution import (
    ConstantExecution,
    Constants,
    Leaving,
    PreparedInstruction,
    PreparedOp,
    forget_registers,
)
from wcet_probe.analyzer.values.execution.needed_operations import Needed
from wcet_probe.analyzer.values.symbolic.locations import Location

Accessed = tuple[int, bool, Value | None, int]
"""A data access that was executed: address of the instruction, whether it stores, where, and how many bytes."""
Straight = Callable[[Constants, list[Accessed]], Value | None]
"""Executes instructions that are no branches, tells their accesses, and returns what decides the branch behind them."""


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
    """

    def __init__(self, execution: ConstantExecution, stack_pointer: int | None = None) -> None:
        vars(self).update(vars(execution))
        self._prepared, self.tells_alignment = {}, False
        self.accesses: list[Accessed] = []
        self.is_forked = self.tells_stack_pointer = False
        self._stack_pointer = stack_pointer
        self._at = 0

    def compiled(self, instructions: Sequence[LiftedInstruction], needed: Needed) -> CompiledBlock:
        """What executes a block."""
        parts: list[Straight | Ending | PreparedInstruction] = []
        straight: list[tuple[int, Sequence[PreparedOp]]] = []
        is_varied = False
        for number, instruction in enumerate(instructions):
            prepared = self._of(instruction, needed.operations[number])
            straight.append((instruction.address, prepared.straight))
            if prepared.branch is None:
                continue
            ending = self._ending(prepared, straight)
            parts += [_function(self, straight, prepared.temporaries), prepared] if ending is None else [ending]
            straight, rest = [], prepared.ops[prepared.branch :]
            is_varied |= any(one is not None and _may_access(one.op) for one in rest)
        if straight:
            parts.append(_function(self, straight, ()))
        last = instructions[-1]
        return CompiledBlock(tuple(parts), last.address + last.size_bytes, needed.dead, is_varied)

    def _ending(
        self, prepared: PreparedInstruction, straight: Sequence[tuple[int, Sequence[PreparedOp]]]
    ) -> Ending | None:
        """The end of a block, where a branch is the last operation of the instruction that is ``prepared``."""
        instruction, ops = prepared.instruction, prepared.ops
        one = ops[-1]
        if prepared.branch != len(ops) - 1 or one is None or one.op.opcode not in _DECIDING:
            return None
        number, following = _DECIDING[one.op.opcode], instruction.address + instruction.size_bytes
        target = None if one.op.opcode in _INDIRECT else one.op.inputs[0]
        if target is not None and (target.space != "ram" or target.offset == following):
            return None
        function = _function(self, straight, (), one, number)
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

    def result(self, one: PreparedOp, values: Sequence[Value | None]) -> Value | None:
        """As of the class above, of what is not two numbers; most of it are addresses in the stack."""
        sign = _SIGNS.get(one.op.opcode)
        if sign is not None and one.plain is not None:
            first, second = values
            if type(second) is int and type(first) is tuple and len(first) == 1:
                return ((first[0] + sign * second + _HALF) % _WORD - _HALF,)
        return self._result(one, values)

    def _result(self, one: PreparedOp, values: Sequence[Value | None]) -> Value | None:
        """As of the class above; an address in the stack is compared as the number that it is, where that is known.

        *Soundness:* only flags are made of it, so that no number is an address in the stack.
        """
        found = super()._result(one, values)
        if found is not None or self._stack_pointer is None or one.op.opcode not in _COMPARISONS:
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
_SIGNS = {"INT_ADD": 1, "INT_SUB": -1}
_WORD, _HALF = 1 << 32, 1 << 31
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

_FORMULAS: dict[str, str] = {
    "INT_ADD": "({a} + {b}) & {mask}",
    "INT_SUB": "({a} - {b}) & {mask}",
    "INT_AND": "{a} & {b}",
    "INT_OR": "{a} | {b}",
    "INT_XOR": "{a} ^ {b}",
    "INT_EQUAL": "1 if {a} == {b} else 0",
    "INT_NOTEQUAL": "1 if {a} != {b} else 0",
    "INT_LESS": "1 if {a} < {b} else 0",
    "INT_LESSEQUAL": "1 if {a} <= {b} else 0",
    "INT_SLESS": "1 if ({a} ^ {sign}) < ({b} ^ {sign}) else 0",
    "INT_SLESSEQUAL": "1 if ({a} ^ {sign}) <= ({b} ^ {sign}) else 0",
    "INT_ZEXT": "{a}",
    "BOOL_NEGATE": "{a} ^ 1",
    "BOOL_AND": "{a} & {b}",
    "BOOL_OR": "{a} | {b}",
    "INT_CARRY": "1 if {a} + {b} > {most} else 0",
    "INT_SCARRY": "1 if ({a} ^ {a} + {b}) & ({b} ^ {a} + {b}) & {sign} else 0",
    "INT_SBORROW": "1 if ({a} ^ {b}) & ({a} ^ {a} - {b}) & {sign} else 0",
}
"""Of two numbers as `pcode.semantics` computes them, where the result is as wide as the first operand, or wider."""


def formula_of(op: PcodeOp) -> str | None:
    """A formula of ``a`` and ``b`` for what `pcode.semantics` makes of two numbers; None where it is asked itself."""
    found = _FORMULAS.get(op.opcode)
    if found is None or op.output is None or (op.output.size_bytes < op.inputs[0].size_bytes and "else" not in found):
        return None
    sign = 1 << 8 * op.inputs[0].size_bytes - 1
    numbers = {"{mask}": (1 << 8 * op.output.size_bytes) - 1, "{sign}": sign, "{most}": 2 * sign - 1}
    for name, number in numbers.items():
        found = found.replace(name, str(number))
    return found


def _function(
    execution: CompiledExecution,
    straight: Sequence[tuple[int, Sequence[PreparedOp]]],
    kept: Sequence[Location],
    branch: PreparedOp | None = None,
    number: int | None = None,
) -> Straight:
    """The function of instructions; the temporaries of the last one that are ``kept`` are held behind it.

    It returns the operand of that ``number`` of the ``branch``.
    """
    writer = _Writer(execution)
    for address, ops in straight:
        writer.begin(address)
        for one in ops:
            writer.operation(one)
    return writer.function(kept, "None" if branch is None or number is None else writer.operand(branch, number))


class _Writer:
    """Writes the function: a variable for each place, read where it is first used and held at the end."""

    def __init__(self, execution: CompiledExecution) -> None:
        self._execution = execution
        self._lines: list[str] = []
        self._names: dict[Location, str] = {}
        self._written: dict[Location, None] = {}
        self._known: dict[str, Any] = {}
        self._count = 0
        self._address = 0

    def begin(self, address: int) -> None:
        """The instruction at ``address``, whose temporaries are its own."""
        self._address = address
        for place in [one for one in self._names if one.space == "unique"]:
            del self._names[place]
            self._written.pop(place, None)

    def operation(self, one: PreparedOp) -> None:
        """One operation."""
        op: PcodeOp = one.op
        if op.opcode == "STORE":
            self._store(self.operand(one, 0), self.operand(one, 1), op.inputs[1].size_bytes)
            return
        if op.output is None:
            return
        name = self._value(one, op)
        if one.output is not None:
            self._write(one.output, name)
        elif op.output.space == "ram":
            self._store(str(op.output.offset), name, op.output.size_bytes)

    def _value(self, one: PreparedOp, op: PcodeOp) -> str:
        """The name of a new variable that holds the result."""
        operands = [self.operand(one, number) for number in range(len(op.inputs))]
        if op.opcode == "COPY" and one.function is not None and not operands[0].isdigit():
            return operands[0]
        name = self._new("t")
        if op.opcode == "LOAD" and op.output is not None:
            self._load(name, operands[0], op.output.size_bytes)
        elif op.opcode == "COPY" and one.function is not None:
            self._lines.append(f"{name} = {operands[0]}")
        else:
            asked = f"result({self._constant(one)}, ({''.join(f'{each}, ' for each in operands)}))"
            checks = " and ".join(f"type({each}) is int" for each in dict.fromkeys(operands) if not each.isdigit())
            if one.plain is None or (not checks and len(operands) != 2):
                self._lines.append(f"{name} = {asked}")
                return name
            formula = formula_of(op)
            if formula is None:
                second = operands[1] if len(operands) == 2 else "0"
                formula = f"{self._constant(one.plain)}({operands[0]}, {second})"
            else:
                formula = formula.format(a=operands[0], b=operands[-1])
            self._lines.append(f"{name} = ({formula}) if {checks} else {asked}" if checks else f"{name} = {formula}")
        return name

    def operand(self, one: PreparedOp, number: int) -> str:
        """The name of what an operation is given."""
        operand = one.inputs[number]
        if isinstance(operand, int):
            return str(operand)
        if operand is None:
            varnode: Varnode = one.op.inputs[number]
            if varnode.space != "ram":
                return "None"
            name = self._new("t")
            self._load(name, str(varnode.offset), varnode.size_bytes)
            return name
        if operand not in self._names:
            self._execution.overlapping(operand)
            name = self._names[operand] = self._new("v")
            self._lines.append(f"{name} = get({self._constant(operand)})")
        return self._names[operand]

    def _write(self, place: Location, name: str) -> None:
        for other in self._execution.overlapping(place):
            if other is not place and other != place:
                self._names[other] = "None"
        self._names[place] = name
        self._written[place] = None

    def _told(self, address: str, size_bytes: int, *, is_store: bool) -> None:
        self._lines.append(f"told(({self._address}, {is_store}, {address}, {size_bytes}))")

    def _load(self, name: str, address: str, size_bytes: int) -> None:
        self._told(address, size_bytes, is_store=False)
        self._lines.append(f"{name} = load(state, {address}, {size_bytes})")

    def _store(self, address: str, value: str, size_bytes: int) -> None:
        self._told(address, size_bytes, is_store=True)
        self._lines.append(f"store(state, {address}, {value}, {size_bytes})")

    def _new(self, kind: str) -> str:
        self._count += 1
        return f"{kind}{self._count}"

    def _constant(self, value: Any) -> str:  # noqa: ANN401
        name = self._new("k")
        self._known[name] = value
        return name

    def function(self, kept: Sequence[Location], returned: str) -> Straight:
        """The function of what was written, and what it returns."""
        held = [place for place in self._written if place.space != "unique" or place in kept]
        for place in held:
            overlapping = self._constant(self._execution.overlapping(place))
            self._lines += [f"if len({overlapping}) > 1:", f" for one in {overlapping}: pop(one, None)"]
        for place in held:
            name, key = self._names[place], self._constant(place)
            if name == "None":
                self._lines.append(f"pop({key}, None)")
            else:
                self._lines += [f"if {name} is None: pop({key}, None)", f"else: registers[{key}] = {name}"]
        execution = self._execution
        self._known |= {
            "load": execution.plain_load,
            "store": execution.plain_store,
            "result": execution.result,
        }
        body = "".join(f" {line}\n" for line in self._lines)
        head = "def function(state, accesses):\n registers, told = state.registers, accesses.append\n"
        text = f"{head} get, pop = registers.get, registers.pop\n{body} return {returned}\n"
        exec(text, self._known)  # noqa: S102  of the lines above
        found: Straight = self._known["function"]
        return found
