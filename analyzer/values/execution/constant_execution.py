"""Execution of blocks on states that know constants only: fast enough to follow a loop round by round.

A value is a number, an offset from the stack pointer at entry (a tuple of one), some bits of a byte (a tuple of two: a
condition register holds a bit of which nothing is known), a number less that pointer (a tuple of three), a distance
from a word that is not known (a tuple of five), or not known, which is not stored.
What the value analysis found is not found again: where a store of unknown address goes, and what calls do that are not
expanded, it tells.

Words: constant propagation, abstract execution, stack separation (docs/explanation/glossary.md).

*Soundness:* each operation is that of `pcode.semantics` where its operands are known, and else its result is not known.
A store of known address changes the bytes there; any other forgets all that the value analysis says it may change.
A condition that is not known lets control go both ways, and what meets agrees or is forgotten. So a state stands for
all executions that reach it, under the value analysis' assumptions (``stack-separation``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from wcet_probe.analyzer.graph.supergraph import Supergraph
from wcet_probe.analyzer.pcode.lift import Lifter
from wcet_probe.analyzer.pcode.operations import LiftedInstruction, PcodeOp, Varnode
from wcet_probe.analyzer.pcode.semantics import MAY_BE_UNDEFINED, UndefinedResultError, operation, signed
from wcet_probe.analyzer.values.execution import known_bytes
from wcet_probe.analyzer.values.execution.accesses import Access
from wcet_probe.analyzer.values.execution.call_effects import Effect, Summarised
from wcet_probe.analyzer.values.execution.constant_arithmetic import (
    LINK,
    Value,
    bits_known,
    computed,
    is_address,
    of_first,
    rests_on_alignment,
    tells_in_part,
)
from wcet_probe.analyzer.values.execution.known_bytes import WIDEST_BYTES, Pages, pages_of
from wcet_probe.analyzer.values.execution.known_places import forget_lone, held_in_word, known_value
from wcet_probe.analyzer.values.execution.needed_operations import Needed, needed_operations
from wcet_probe.analyzer.values.execution.prepared_operations import Operand, PreparedInstruction, PreparedOp
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.analyzer.values.states.memory import Memory
from wcet_probe.analyzer.values.states.state import State
from wcet_probe.analyzer.values.symbolic.locations import Location, Overlaps, part_of

_WORD, _WORD_BITS = 1 << 32, 32
_SIGNS = {"INT_ADD": 1, "INT_SUB": -1}
_MOST_WORDS = 512
"""Most words of memory that are remembered."""

_Cell = tuple[str, int]
_NO_PAGES: Mapping[str, Pages] = {}


class Constants(NamedTuple):
    """What is known: registers by location, and memory by space and offset, with size and value.

    Where it was known what memory held when execution began, ``pages`` hold numbers as bytes, by space; what is known
    otherwise, such as a place in the stack, is in ``memory``.
    """

    registers: dict[Location, Value]
    memory: dict[_Cell, tuple[int, Value]]
    pages: Mapping[str, Pages] = _NO_PAGES

    def copy(self) -> Constants:
        """An independent state with the same content."""
        pages = {space: own.copy() for space, own in self.pages.items()} if self.pages else _NO_PAGES
        return Constants(self.registers.copy(), self.memory.copy(), pages)

    def joined(self, other: Constants) -> Constants:
        """What both know."""
        registers, memory = other.registers, other.memory
        return Constants(
            {at: value for at, value in self.registers.items() if registers.get(at) == value},
            {at: held for at, held in self.memory.items() if memory.get(at) == held},
            {space: known_bytes.joined(own, other.pages.get(space, {})) for space, own in self.pages.items()},
        )


class Leaving(NamedTuple):
    """Control leaves a block: ``way`` and ``address`` as of `supergraph.Edge`; ``target`` of an indirect branch."""

    way: str
    address: int | None
    is_indirect: bool
    target: Value | None
    state: Constants


_Told = tuple[int, Sequence[Access]]
"""The address of the instruction that is executed, and the accesses that the value analysis found in its block."""


class ConstantExecution:
    """Executes the blocks of one analysed function.

    Args:
        memory: what the analysis knows of the image's memory.
        lifter: of the image.
        content: what writable memory is assumed to hold where the analysed function is entered, by address.

    Attributes:
        tells_alignment: whether something that was executed rests on assumption ``stack-alignment``.
    """

    def __init__(self, memory: Memory, lifter: Lifter, content: Iterable[tuple[int, bytes]] = ()) -> None:
        self._memory, self._lifter, self._pages = memory, lifter, pages_of(content)
        self._prepared: dict[tuple[int, tuple[int, ...] | None], PreparedInstruction] = {}
        self._results: dict[int, tuple[Effect, tuple[tuple[Location, Value | None], ...]]] = {}
        self._overlaps = Overlaps()
        self.tells_alignment = False
        self._order: Literal["big", "little"] = "big" if memory.image.big_endian else "little"

    def needed(self, graph: Supergraph) -> Mapping[int, Needed]:
        """Which operations of each point's block are to be executed."""
        return needed_operations(graph, self._lifter)

    def at(self, states: Iterable[State]) -> Constants:
        """The constants that all ``states`` know, and how far places are from words, as of `known_places`."""
        found: Constants | None = None
        for state in states:
            one = Constants({}, {})
            for location, term in state.locations.items():
                if (known := known_value(state, term)) is None:
                    continue
                if location.space in {"stack", "static"}:
                    if location.size_bytes <= WIDEST_BYTES:
                        one.memory[location.space, location.offset] = location.size_bytes, known
                elif location.space == "register":
                    self._overlaps.add(location)
                    one.registers[location] = known
            found = one if found is None else found.joined(one)
        found = Constants({}, {}) if found is None else found
        forget_lone(found.registers, found.memory)
        return found

    def at_entry(self, states: Iterable[State]) -> Constants:
        """The constants of ``states`` where the analysed function is entered, and what memory holds there.

        *Soundness:* what it holds is assumed (``initial-data``).
        """
        return self.at(states)._replace(pages={"static": self._pages.copy(), "stack": {}})

    def entered(self) -> Constants:
        """The constants where the analysed function is entered, of which nothing else was analysed.

        *Soundness:* the stack pointer is what offsets are measured from, and the link register holds where the caller
        waits, as calls do it; what memory holds is assumed (``initial-data``).
        """
        found = Constants({}, {}, {"static": self._pages.copy(), "stack": {}})
        for name, value in ((self._lifter.isa.stack_pointer, (0,)), ("lr", LINK)):
            one = self._lifter.registers[name]
            self._set(found, Location("register", one.offset, one.size_bytes), value)
        return found

    def without_memory(self) -> ConstantExecution:
        """The same where nothing is known of what writable memory holds."""
        return ConstantExecution(self._memory, self._lifter) if self._pages else self

    def overlapping(self, location: Location) -> Sequence[Location]:
        """The places that share a byte with ``location``, itself among them; the list grows."""
        return self._overlaps.add(location)

    @property
    def knows_memory(self) -> bool:
        """Whether something is known of what writable memory holds at entry."""
        return bool(self._pages)

    def after_call(self, state: Constants, effect: Effect, call: Summarised) -> None:
        """Make of ``state``, at ``call``, what holds behind it.

        *Soundness:* as of `call_effects.apply_effect`.
        """
        for one in call.written:
            if one.base is not Base.NUMBER:
                is_known = one.base is Base.STACK and one.high - one.low < _WORD // 2
                _forget(state, "stack", *((one.low, one.high) if is_known else (-_WORD, _WORD)))
            if one.base is not Base.STACK:
                low, high = (0, _WORD) if one.base is Base.ANY else (one.low, one.high)
                _forget(state, "static", low, high)
        if call.through:
            _forget(state, "stack", -_WORD, _WORD)
            _forget(state, "static", 0, _WORD)
        for location, known in self._results_of(effect):
            self._set(state, location, known)

    def _results_of(self, effect: Effect) -> tuple[tuple[Location, Value | None], ...]:
        """The registers that a call leaves, and what it leaves in them."""
        found = self._results.get(id(effect))
        if found is None or found[0] is not effect:
            results = tuple(
                (one.location, one.value.value if one.base is Base.NUMBER and one.value.is_constant else None)
                for one in effect.results
            )
            found = self._results[id(effect)] = effect, results
        return found[1]

    def block(
        self,
        instructions: Sequence[LiftedInstruction],
        state: Constants,
        accesses: Sequence[Access],
        needed: Needed | None = None,
    ) -> list[Leaving]:
        """How control leaves a block that is entered in ``state``, which is used up.

        Args:
            instructions: the block's.
            state: at its entry.
            accesses: those that the value analysis found in it.
            needed: which operations are; the others are not executed, and flags that nobody reads are not held.
        """
        found: list[Leaving] = []
        for part in self._parts(instructions, needed):
            falling = self._behind(part, state, accesses, found)
            if falling is None:
                break
            state = falling
        else:
            last = instructions[-1]
            found.append(Leaving("fall", last.address + last.size_bytes, False, None, state))
        dead = needed.dead if needed else ()
        for way in found:
            forget_registers(dead, way.state)
        return found

    def _parts(self, instructions: Sequence[LiftedInstruction], needed: Needed | None) -> Iterable[Any]:
        """What a block is executed by, in order: here its instructions; another class has more kinds of parts."""
        for number, instruction in enumerate(instructions):
            yield self._of(instruction, needed.operations[number] if needed else None)

    def _behind(
        self, part: PreparedInstruction, state: Constants, accesses: Sequence[Access], found: list[Leaving]
    ) -> Constants | None:
        """The state behind a part, None where control does not get there; other ways are added to ``found``."""
        told = part.instruction.address, accesses
        self._all_straight(part.straight, state, told)
        if part.branch is None:
            forget_registers(part.temporaries, state)
            return state
        leaving = self._leaving(part, part.branch, state, told)
        for way in leaving:
            forget_registers(part.temporaries, way.state)
        falling = [way.state for way in leaving if way.way == "fall"]
        found += [way for way in leaving if way.way != "fall"]
        if not falling:
            return None
        state = falling[0]
        for other in falling[1:]:
            state = state.joined(other)
        return state

    # ------------------------------------------------------------------------------------------------- instructions

    def _of(self, instruction: LiftedInstruction, needed: tuple[int, ...] | None) -> PreparedInstruction:
        key = instruction.address, needed
        known = self._prepared.get(key)
        if known is None or known.instruction is not instruction:
            wanted = range(len(instruction.ops)) if needed is None else needed
            ops = tuple(self._op(op) if number in wanted else None for number, op in enumerate(instruction.ops))
            branch = next((n for n, op in enumerate(instruction.ops) if op.opcode in _CONTROL), None)
            straight = tuple(one for one in ops[:branch] if one is not None)
            outputs = (one.output for one in ops if one is not None)
            temporaries = dict.fromkeys(place for place in outputs if place is not None and place.space == "unique")
            known = self._prepared[key] = PreparedInstruction(instruction, ops, straight, branch, tuple(temporaries))
        return known

    def _op(self, op: PcodeOp) -> PreparedOp:
        function = None
        if op.output is not None and not op.opcode.startswith("FLOAT_"):
            sizes = tuple(one.size_bytes for one in op.inputs)
            function = operation(op.user_op or op.opcode, sizes, op.output.size_bytes)
        output = op.output if op.output is not None and op.output.space != "ram" else None
        location = self._location(output) if output else None
        inputs = tuple(map(self._operand, op.inputs))
        is_partial = op.opcode in MAY_BE_UNDEFINED or any(
            isinstance(one, Location) and part_of(one, self._lifter) for one in inputs
        )
        if function is None or is_partial or location is None or None in inputs or len(inputs) not in {1, 2}:
            return PreparedOp(op, function, inputs, location, (), None, (None, None))
        plain = function if len(inputs) == 2 else of_first(function)
        operands = (inputs[0], inputs[1] if len(inputs) == 2 else 0)
        in_part = tells_in_part(op.opcode, len(inputs))
        return PreparedOp(op, function, inputs, location, self._overlaps.add(location), plain, operands, in_part)

    def _operand(self, varnode: Varnode) -> Operand:
        if varnode.space == "const":
            return varnode.offset & (1 << 8 * varnode.size_bytes) - 1
        return self._location(varnode)

    def _location(self, varnode: Varnode) -> Location | None:
        if varnode.space == "ram" or (varnode.space == "register" and varnode.offset in self._lifter.float_status):
            return None
        location = Location(varnode.space, varnode.offset, varnode.size_bytes)
        self._overlaps.add(location)
        part = part_of(location, self._lifter)
        if part is not None:
            self._overlaps.add(part[0])
        return location

    def _leaving(self, prepared: PreparedInstruction, first: int, state: Constants, told: _Told) -> list[Leaving]:
        """How control leaves an instruction from its ``first`` branch on; behind it it may go its own ways inside."""
        instruction, ops = prepared.instruction, prepared.ops
        following, count = instruction.address + instruction.size_bytes, len(ops)
        pending: dict[int, Constants] = {first: state}
        left: list[Leaving] = []
        for index in range(first, count):
            one, current = ops[index], pending.pop(index, None)
            if current is None:
                continue
            if one is None:
                pending[index + 1] = pending[index + 1].joined(current) if index + 1 in pending else current
                continue
            for to, new in self._steps(one, current, told):
                if isinstance(to, Leaving):
                    left.append(to)
                elif to.space == "ram" and to.offset != following:
                    left.append(Leaving("jump", to.offset, False, None, new))
                else:
                    inside = index + signed(8 * to.size_bytes, to.offset) if to.space == "const" else count
                    place = min(inside, count)
                    pending[place] = pending[place].joined(new) if place in pending else new
        if count in pending:
            left.append(Leaving("fall", following, False, None, pending[count]))
        return left

    def _steps(self, one: PreparedOp, current: Constants, told: _Told) -> list[tuple[Varnode | Leaving, Constants]]:
        """Where control goes behind an operation: out of the instruction, or to a place as of a branch."""
        op, ahead = one.op, Varnode("const", 1, 4)
        match op.opcode:
            case "BRANCH":
                return [(op.inputs[0], current)]
            case "CBRANCH":
                condition = self._read(one, 1, current)
                condition = condition if isinstance(condition, int) else None
                taken = [(op.inputs[0], current.copy() if condition is None else current)] if condition != 0 else []
                return [*taken, *([(ahead, current)] if condition in (None, 0) else [])]
            case "CALL":
                return [(Leaving("call", op.inputs[0].offset, False, None, current), current)]
            case "CALLIND" | "BRANCHIND" | "RETURN":
                way = "call" if op.opcode == "CALLIND" else "jump"
                return [(Leaving(way, None, True, self._read(one, 0, current), current), current)]
        if op.opcode == "TRAP":
            return []
        self._straight(one, current, told)
        return [(ahead, current)]

    def _all_straight(self, ops: Sequence[PreparedOp], state: Constants, told: _Told) -> None:
        """Execute operations that are no branches; those on known numbers, which most are, without a call for each."""
        registers = state.registers
        get = registers.get
        for one in ops:
            if one.plain is None:
                self._straight(one, state, told)
                continue
            first, second = one.operands
            if type(first) is not int:
                first = get(first)
            if type(second) is not int:
                second = get(second)
            value: Value | None
            if type(first) is int and type(second) is int:
                value = one.plain(first, second)
            elif not one.tells_in_part and (first is None or second is None):
                value = None
            else:
                value = self.result(one, (first, second)[: len(one.inputs)])
            if len(one.overlapping) > 1 or value is None:
                for other in one.overlapping:
                    registers.pop(other, None)
            if value is not None:
                registers[one.output] = value  # type: ignore[index]

    def result(self, one: PreparedOp, values: Sequence[Value | None]) -> Value | None:
        """What an operation makes of ``values`` that are not two numbers; most of them are addresses in the stack."""
        sign = _SIGNS.get(one.op.opcode)
        if sign is not None and one.plain is not None:
            first, second = values
            if type(second) is int and type(first) is tuple and len(first) == 1:
                return (signed(_WORD_BITS, (first[0] + sign * second) % _WORD),)
        return self._result(one, values)

    def _result(self, one: PreparedOp, values: Sequence[Value | None]) -> Value | None:
        """What an operation makes of ``values``, none where it is no function of integers."""
        if one.function is None:
            return None
        try:
            value = computed(one.op.opcode, one.function, values)
        except UndefinedResultError:
            return None
        if value is not None:
            self.tells_alignment |= rests_on_alignment(one.op.opcode, values)
        elif one.op.output is not None and one.op.output.size_bytes == one.op.inputs[0].size_bytes == 1:
            value = bits_known(one.op.opcode, values)
        return value

    def _straight(self, one: PreparedOp, state: Constants, told: _Told) -> None:
        op = one.op
        if op.opcode == "STORE":
            address, value = self._read(one, 0, state), self._read(one, 1, state)
            self._store(state, address, value, op.inputs[1].size_bytes, told)
            return
        if op.output is None:
            return
        if op.opcode == "LOAD":
            value = self._load(state, self._read(one, 0, state), op.output.size_bytes)
        else:
            value = self._result(one, [self._read(one, n, state) for n in range(len(one.inputs))])
        if one.output is not None:
            self._set(state, one.output, value)
        elif op.output.space == "ram":
            self._store(state, op.output.offset, value, op.output.size_bytes, told)

    def _read(self, one: PreparedOp, number: int, state: Constants) -> Value | None:
        operand = one.inputs[number]
        if type(operand) is int:
            return operand
        if operand is None:
            varnode = one.op.inputs[number]
            return self._load(state, varnode.offset, varnode.size_bytes) if varnode.space == "ram" else None
        value = state.registers.get(operand)  # type: ignore[arg-type]
        if value is None and isinstance(operand, Location):
            return held_in_word(state.registers, operand, self._lifter)
        return value

    def _set(self, state: Constants, location: Location, value: Value | None) -> None:
        registers = state.registers
        for other in self._overlaps.add(location):
            registers.pop(other, None)
        if value is not None:
            registers[location] = value

    # ------------------------------------------------------------------------------------------------------- memory

    def _load(self, state: Constants, address: Value | None, size_bytes: int) -> Value | None:
        if not is_address(address):
            return None
        if type(address) is int:
            content = self._memory.constant(address, size_bytes)
            if content is not None:
                return content
        space, offset = cell = _cell(address)
        data = known_bytes.load(state.pages[space], offset, size_bytes) if state.pages else None
        if data is not None:
            return int.from_bytes(data, self._order)
        held = state.memory.get(cell)
        return held[1] if held is not None and held[0] == size_bytes else None

    def _store(
        self, state: Constants, address: Value | None, value: Value | None, size_bytes: int, told: _Told
    ) -> None:
        is_bit = isinstance(address, int) and self._memory.changes_a_bit(address, address + size_bytes - 1)
        if is_address(address) and not is_bit:
            space, offset = cell = _cell(address)
            is_owned = space == "stack" or self._memory.is_static(offset)
            if state.pages and type(value) is int and is_owned:
                known_bytes.forget_cells(state.memory, space, offset, offset + size_bytes - 1)
                known_bytes.store(state.pages[space], offset, value.to_bytes(size_bytes, self._order))
                return
            _forget(state, space, offset, offset + size_bytes - 1)
            if value is not None and is_owned and size_bytes <= WIDEST_BYTES and len(state.memory) < _MOST_WORDS:
                state.memory[cell] = size_bytes, value
            return
        place, accesses = told
        stores = [one for one in accesses if one.is_store and one.instruction_address == place]
        if not stores:
            state.memory.clear()
            for pages in state.pages.values():
                pages.clear()
        for one in stores:
            if one.base is not Base.NUMBER:
                low, high = one.offset.signed_range() if one.base is Base.STACK else (-_WORD, _WORD)
                _forget(state, "stack", low, high + one.size_bytes - 1)
            if one.base is not Base.STACK:
                low, high = one.offset.unsigned_range() if one.base is Base.NUMBER else (0, _WORD)
                _forget(state, "static", low, high + one.size_bytes - 1)


_CONTROL = frozenset({"CALL", "CALLIND", "TRAP", "BRANCH", "CBRANCH", "RETURN", "BRANCHIND"})


def forget_registers(locations: Iterable[Location], state: Constants) -> None:
    """Hold nothing of ``locations`` any more."""
    for location in locations:
        state.registers.pop(location, None)


def _cell(address: Value) -> _Cell:
    return ("static", address) if isinstance(address, int) else ("stack", address[0])


def _forget(state: Constants, space: str, low: int, high: int) -> None:
    """Forget what is held of the bytes from ``low`` to ``high``."""
    if state.pages:
        known_bytes.forget(state.pages[space], low, high)
    known_bytes.forget_cells(state.memory, space, low, high)
