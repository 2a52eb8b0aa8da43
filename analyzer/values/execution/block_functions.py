"""The Python function of a block's instructions, whose values are variables: what `compiled_blocks` executes.

Words: constant propagation, P-code (docs/explanation/glossary.md).

*Soundness:* operations are written in their order, and each result goes by the name of its place, so that what reads
the place reads it; a place that overlaps what is written has no value from there on. Behind an `if` each place that was
written to on its way has a name of its own, that of what was written, or else that of what it held before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from wcet_probe.analyzer.pcode.operations import PcodeOp, Varnode
from wcet_probe.analyzer.pcode.semantics import signed
from wcet_probe.analyzer.values.execution.constant_arithmetic import Value
from wcet_probe.analyzer.values.execution.constant_execution import Constants
from wcet_probe.analyzer.values.execution.prepared_operations import PreparedInstruction, PreparedOp
from wcet_probe.analyzer.values.symbolic.locations import Location

Accessed = tuple[int, bool, Value | None, int]
"""A data access that was executed: address of the instruction, whether it stores, where, and how many bytes."""
Straight = Callable[[Constants, list[Accessed]], Value | None]
"""Executes instructions that are no branches, tells their accesses, and returns what decides the branch behind them."""


class Places(NamedTuple):
    """Who shares bytes with whom.

    Attributes:
        overlapping: the places that overlap one, with itself; the list grows.
        part_of: the register of a word that a place is a part of, and how far its bits are shifted there.
    """

    overlapping: Callable[[Location], Sequence[Location]]
    part_of: Callable[[Location], tuple[Location, int] | None]


class UndecidedError(Exception):
    """The condition of a predicated instruction is not known."""


class Predicated(NamedTuple):
    """An instruction whose only branch is a condition that skips operations of its own.

    Attributes:
        address: of it.
        before: operations that decide the condition.
        condition: the branch.
        skipped: operations that are executed where the condition is 0.
        behind: operations that are executed in any case.
    """

    address: int
    before: Sequence[PreparedOp]
    condition: PreparedOp
    skipped: Sequence[PreparedOp]
    behind: Sequence[PreparedOp]


Told = Predicated | tuple[int, Sequence[PreparedOp]]
"""An instruction that a function executes: predicated, or its address and operations."""


def predicated(prepared: PreparedInstruction) -> Predicated | None:
    """The instruction that is ``prepared`` as a predicated one; None where it has another branch."""
    instruction, ops, first = prepared.instruction, prepared.ops, prepared.branch
    if first is None or (condition := ops[first]) is None or condition.op.opcode != "CBRANCH":
        return None
    target, following = condition.op.inputs[0], instruction.address + instruction.size_bytes
    if any(op.opcode in BRANCHES for op in instruction.ops[first + 1 :]):
        return None
    if target.space == "ram" and target.offset == following:
        place = len(ops)
    elif target.space == "const" and (ahead := signed(8 * target.size_bytes, target.offset)) > 0:
        place = min(first + ahead, len(ops))
    else:
        return None
    skipped, behind = ([one for one in part if one is not None] for part in (ops[first + 1 : place], ops[place:]))
    return Predicated(instruction.address, prepared.straight, condition, skipped, behind)


BRANCHES = frozenset({"BRANCH", "CALL", "CBRANCH", "CALLIND", "BRANCHIND", "RETURN", "TRAP"})

FORMULAS: dict[str, str] = {
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
    found = FORMULAS.get(op.opcode)
    if found is None or op.output is None or (op.output.size_bytes < op.inputs[0].size_bytes and "else" not in found):
        return None
    sign = 1 << 8 * op.inputs[0].size_bytes - 1
    numbers = {"{mask}": (1 << 8 * op.output.size_bytes) - 1, "{sign}": sign, "{most}": 2 * sign - 1}
    for name, number in numbers.items():
        found = found.replace(name, str(number))
    return found


def function_of(  # noqa: PLR0917  what is written, what is told behind it, and who is asked
    straight: Sequence[Told],
    kept: Sequence[Location],
    branch: PreparedOp | None,
    number: int | None,
    places: Places,
    asked: Mapping[str, Any],
) -> Straight:
    """The function of instructions; the temporaries of the last one that are ``kept`` are held behind it.

    It returns the operand of that ``number`` of the ``branch``.

    Args:
        straight: the instructions, in order.
        kept: temporaries.
        branch: behind them, if it is asked for.
        number: of its operand.
        places: who shares bytes with whom.
        asked: ``load`` and ``store`` of memory, and the ``result`` of operations that are not on two numbers.

    Raises:
        UndecidedError: by the function, where the condition of a predicated instruction is no number.
    """
    writer = _Writer(places)
    for told in straight:
        if isinstance(told, Predicated):
            writer.predicated(told)
            continue
        address, ops = told
        writer.begin(address)
        for one in ops:
            writer.operation(one)
    returned = "None" if branch is None or number is None else writer.operand(branch, number)
    return writer.function(kept, returned, asked)


class _Writer:
    """Writes the function: a variable for each place, read where it is first used and held at the end."""

    def __init__(self, places: Places) -> None:
        self._overlapping, self._part_of = places
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

    def predicated(self, one: Predicated) -> None:
        """One instruction that a condition skips operations of."""
        self.begin(one.address)
        for each in one.before:
            self.operation(each)
        condition = self.operand(one.condition, 1)
        self._lines.append(f"if type({condition}) is not int: raise undecided")
        for each in one.skipped:
            for place in self._read_by(each):
                self._read(place)
        around, held = self._lines, dict(self._names)
        self._lines = []
        for each in one.skipped:
            self.operation(each)
        body, changed = self._lines, {at: name for at, name in self._names.items() if held.get(at) != name}
        self._lines, self._names = around, held
        merged = {place: (self._name(place), self._new("m"), name) for place, name in changed.items()}
        self._lines += [f"{new} = {old}" for old, new, _ in merged.values()]
        body += [f"{new} = {name}" for _, new, name in merged.values()]
        self._lines += [f"if not {condition}:", *(f" {line}" for line in body or ["pass"])]
        for place, (_, new, _) in merged.items():
            self._names[place] = new
            self._written[place] = None
        for each in one.behind:
            self.operation(each)

    @staticmethod
    def _read_by(one: PreparedOp) -> list[Location]:
        return [operand for operand in one.inputs if isinstance(operand, Location)]

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
            if not one.tells_in_part:
                unknown = " or ".join(f"{each} is None" for each in dict.fromkeys(operands) if not each.isdigit())
                asked = f"None if {unknown} else {asked}"
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
        return self._read(operand)

    def _read(self, place: Location) -> str:
        """The name of what a place holds, or else the register of a word that it is a part of."""
        name, part = self._name(place), self._part_of(place)
        if part is None:
            return name
        word, found = self._name(part[0]), self._new("t")
        bits = f"{word} >> {part[1]} & {(1 << 8 * place.size_bytes) - 1} if type({word}) is int else None"
        self._lines.append(
            f"{found} = {bits}" if name == "None" else f"{found} = ({bits}) if {name} is None else {name}"
        )
        return found

    def _name(self, place: Location) -> str:
        """The name of what a place holds."""
        if place not in self._names:
            self._overlapping(place)
            name = self._names[place] = self._new("v")
            self._lines.append(f"{name} = get({self._constant(place)})")
        return self._names[place]

    def _write(self, place: Location, name: str) -> None:
        for other in self._overlapping(place):
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

    def function(self, kept: Sequence[Location], returned: str, asked: Mapping[str, Any]) -> Straight:
        """The function of what was written, and what it returns."""
        held = [place for place in self._written if place.space != "unique" or place in kept]
        for place in held:
            overlapping = self._constant(self._overlapping(place))
            self._lines += [f"if len({overlapping}) > 1:", f" for one in {overlapping}: pop(one, None)"]
        for place in held:
            name, key = self._names[place], self._constant(place)
            if name == "None":
                self._lines.append(f"pop({key}, None)")
            else:
                self._lines += [f"if {name} is None: pop({key}, None)", f"else: registers[{key}] = {name}"]
        self._known |= {**asked, "undecided": UndecidedError}
        body = "".join(f" {line}\n" for line in self._lines)
        head = "def function(state, accesses):\n registers, told = state.registers, accesses.append\n"
        text = f"{head} get, pop = registers.get, registers.pop\n{body} return {returned}\n"
        exec(text, self._known)  # noqa: S102  of the lines above
        found: Straight = self._known["function"]
        return found
