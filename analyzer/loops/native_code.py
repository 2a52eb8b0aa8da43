"""A block's p-code as the native core executes it: operations on slots, in the order of `compiled_blocks`.

A place of values, a constant, and what is never known each have a slot. An operand in memory is loaded into a slot of
its own before, as a result goes to memory behind.

Words: P-code, varnode (docs/explanation/glossary.md).

*Soundness:* each needed operation is there, in order, with its operands and its result, and a branch inside an
instruction goes ahead to the operation that it names. A temporary that an instruction may read before it has written it
is forgotten where the instruction begins. What the core has no operation for is refused (`UntranslatableError`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple

from wcet_probe.analyzer.pcode.operations import LiftedInstruction, PcodeOp, Varnode
from wcet_probe.analyzer.pcode.semantics import signed
from wcet_probe.analyzer.values.execution.needed_operations import Needed
from wcet_probe.analyzer.values.symbolic.locations import Location

FUNCTIONS = (
    *("COPY", "INT_ZEXT", "INT_SEXT", "INT_2COMP", "INT_NEGATE", "BOOL_NEGATE", "POPCOUNT", "LZCOUNT"),
    *("INT_ADD", "INT_SUB", "INT_MULT", "INT_AND", "INT_OR", "INT_XOR", "BOOL_AND", "BOOL_OR", "BOOL_XOR"),
    *(
        "INT_LEFT",
        "INT_RIGHT",
        "INT_SRIGHT",
        "INT_DIV",
        "DEFINED_DIV",
        "DEFINED_SDIV",
        "INT_REM",
        "INT_SDIV",
        "INT_SREM",
    ),
    *("INT_EQUAL", "INT_NOTEQUAL", "INT_LESS", "INT_LESSEQUAL", "INT_SLESS", "INT_SLESSEQUAL"),
    *("INT_CARRY", "INT_SCARRY", "INT_SBORROW", "PIECE", "SUBPIECE"),
    *("SignedSaturate", "SignedDoesSaturate", "UnsignedSaturate", "UnsignedDoesSaturate"),
)
"""Integer operations, of a ``CALLOTHER`` its ``user_op``, in the core's order."""
_NUMBERS = {name: number for number, name in enumerate(FUNCTIONS)}
(FORGET, PART, LOAD, STORE, SKIP, GO, JUMP, CALL, JUMP_IF, JUMP_TO, CALL_TO, FALL, STOP) = range(
    len(FUNCTIONS), len(FUNCTIONS) + 13
)
_WIDEST_BYTES = 8
_NOBODY = -1
_INDIRECT = {"CALLIND": CALL_TO, "BRANCHIND": JUMP_TO, "RETURN": JUMP_TO}
_DIRECT = frozenset({"BRANCH", "CBRANCH", "CALL"})
_LEAVING = _DIRECT | _INDIRECT.keys() | {"TRAP"}
_SET_MODE = "setISAMode"


class UntranslatableError(Exception):
    """The native core has no operation for something."""


class Operation(NamedTuple):
    """An operation of the core, as ``struct wp_op``."""

    code: int
    from_bytes: int = 0
    to_bytes: int = 0
    out: int = _NOBODY
    first: int = _NOBODY
    second: int = _NOBODY
    place: int = 0


class Slots(NamedTuple):
    """Who knows the slots.

    Attributes:
        of: the slot of a place.
        number: of a constant.
        unknown: of what is never known.
        scratch: of what is in memory, by the number of the operand.
        part_of: the register of a word that a place is a part of, and how far its bits are shifted there.
        access: the number of an access: address of the instruction, whether it stores, its bytes.
        float_status: offsets of registers of which nothing is known.
        mode: the place that holds the core's state, if branches may change it.
    """

    of: Callable[[Location], int]
    number: Callable[[int], int]
    unknown: int
    scratch: Callable[[int], int]
    part_of: Callable[[Location], tuple[Location, int] | None]
    access: Callable[[int, bool, int], int]
    float_status: Collection[int]
    mode: Location | None


def encoded(instructions: Sequence[LiftedInstruction], needed: Needed, slots: Slots) -> list[Operation]:
    """The operations of a block, with what control does behind it.

    Args:
        instructions: of the block.
        needed: which of their operations are.
        slots: of places.

    Raises:
        UntranslatableError: as its name says.

    *Soundness:* as said of the module.
    """
    if needed.dead:
        raise UntranslatableError
    writer = _Writer(slots)
    for one, own in zip(instructions, needed.operations, strict=True):
        writer.instruction(one, own)
    return [*writer.found, Operation(FALL)]


def accesses_of(one: LiftedInstruction) -> frozenset[int]:
    """How many data accesses an instruction may make, on each way through it."""
    ops, found = one.ops, set[int]()
    arriving: list[set[int]] = [set() for _ in range(len(ops) + 1)]
    arriving[0].add(0)
    for index, op in enumerate(ops):
        counts = {count + _accesses(op) for count in arriving[index]}
        inside = _inside(one, index)
        if inside is not None:
            arriving[inside] |= counts
        elif op.opcode in _LEAVING:
            found |= counts
        if op.opcode == "CBRANCH" or op.opcode not in _LEAVING:
            arriving[index + 1] |= counts
    return frozenset(found | arriving[-1])


def _accesses(op: PcodeOp) -> int:
    operands = (*op.inputs[op.opcode in _DIRECT :], *((op.output,) if op.output else ()))
    if op.opcode == "CALLOTHER" and op.output is None:
        return 0
    return int(op.opcode in {"LOAD", "STORE"}) + [each.space for each in operands].count("ram")


def _inside(one: LiftedInstruction, index: int) -> int | None:
    """The operation ahead that a direct branch within the instruction, or to the next one, goes to."""
    op = one.ops[index]
    if op.opcode not in {"BRANCH", "CBRANCH"}:
        return None
    target = op.inputs[0]
    if target.space == "ram":
        return len(one.ops) if target.offset == one.address + one.size_bytes else None
    place = index + signed(8 * target.size_bytes, target.offset)
    if not index < place <= len(one.ops):
        raise UntranslatableError
    return place


class _Writer:
    def __init__(self, slots: Slots) -> None:
        self._slots, self.found = slots, list[Operation]()

    def instruction(self, one: LiftedInstruction, needed: Collection[int]) -> None:
        self.found += [Operation(FORGET, out=self._slots.of(place)) for place in sorted(set(_unwritten(one, needed)))]
        starts, skips = list[int](), dict[int, int]()
        for index, op in enumerate(one.ops):
            starts.append(len(self.found))
            if index in needed:
                inside = _inside(one, index)
                if inside is not None:
                    condition = self._operand(one, op, 1) if op.opcode == "CBRANCH" else _NOBODY
                    skips[len(self.found)] = inside
                    self.found.append(Operation(SKIP if op.opcode == "CBRANCH" else GO, first=condition))
                else:
                    self._operation(one, op)
        starts.append(len(self.found))
        for at, inside in skips.items():
            self.found[at] = self.found[at]._replace(place=starts[inside])

    def _operation(self, one: LiftedInstruction, op: PcodeOp) -> None:
        if op.opcode in _LEAVING:
            self._leaving(one, op)
            return
        if op.opcode == "STORE":
            address, value = self._operand(one, op, 0), self._operand(one, op, 1)
            self._store(one, address, value, op.inputs[1].size_bytes)
            return
        if op.output is None:
            return
        operands = [self._operand(one, op, number) for number in range(len(op.inputs))]
        to_memory = op.output.space == "ram"
        out = self._slots.scratch(len(operands)) if to_memory else self._out(op.output)
        size = _checked(op.output)
        function = _NUMBERS.get(op.user_op or op.opcode)
        if op.opcode == "LOAD":
            self._load(one, out, operands[0], size)
        elif function is None:
            if op.opcode != "CALLOTHER" and not op.opcode.startswith("FLOAT_"):
                raise UntranslatableError
            self.found.append(Operation(FORGET, out=out))
        else:
            from_bytes = op.inputs[-1 if op.opcode == "PIECE" else 0].size_bytes
            self.found.append(Operation(function, from_bytes, size, out, operands[0], operands[-1]))
        if to_memory:
            self._store(one, self._slots.number(op.output.offset), out, size)

    def _leaving(self, one: LiftedInstruction, op: PcodeOp) -> None:
        if op.opcode == "TRAP":
            self.found.append(Operation(STOP))
        elif op.opcode in _INDIRECT:
            may_change = self._slots.mode is not None and any(each.user_op == _SET_MODE for each in one.ops)
            mode = self._slots.of(self._slots.mode) if may_change and self._slots.mode else _NOBODY
            self.found.append(Operation(_INDIRECT[op.opcode], first=self._operand(one, op, 0), second=mode))
        else:
            condition = self._operand(one, op, 1) if op.opcode == "CBRANCH" else _NOBODY
            code = {"BRANCH": JUMP, "CBRANCH": JUMP_IF, "CALL": CALL}[op.opcode]
            self.found.append(Operation(code, first=condition, place=op.inputs[0].offset))

    def _load(self, one: LiftedInstruction, out: int, address: int, size_bytes: int) -> None:
        access = self._slots.access(one.address, False, size_bytes)
        self.found.append(Operation(LOAD, to_bytes=size_bytes, out=out, first=address, place=access))

    def _store(self, one: LiftedInstruction, address: int, value: int, size_bytes: int) -> None:
        access = self._slots.access(one.address, True, size_bytes)
        self.found.append(Operation(STORE, from_bytes=size_bytes, first=address, second=value, place=access))

    def _operand(self, one: LiftedInstruction, op: PcodeOp, number: int) -> int:
        varnode, slots = op.inputs[number], self._slots
        size = _checked(varnode)
        if varnode.space == "const":
            return slots.number(varnode.offset & (1 << 8 * size) - 1)
        if varnode.space == "ram":
            out = slots.scratch(number)
            self._load(one, out, slots.number(varnode.offset), size)
            return out
        if self._is_unknown(varnode):
            return slots.unknown
        place = Location(*varnode)
        part = slots.part_of(place)
        if part is None:
            return slots.of(place)
        out = slots.scratch(number)
        self.found.append(Operation(PART, 0, size, out, slots.of(place), slots.of(part[0]), part[1]))
        return out

    def _out(self, varnode: Varnode) -> int:
        _checked(varnode)
        return _NOBODY if self._is_unknown(varnode) else self._slots.of(Location(*varnode))

    def _is_unknown(self, varnode: Varnode) -> bool:
        return varnode.space == "register" and varnode.offset in self._slots.float_status


def _checked(varnode: Varnode) -> int:
    """The bytes of a value that the core can hold."""
    if varnode.size_bytes > _WIDEST_BYTES:
        raise UntranslatableError
    return varnode.size_bytes


def _unwritten(one: LiftedInstruction, needed: Collection[int]) -> Iterator[Location]:
    """Temporaries that are read where they were not surely written before, by this instruction."""
    arriving: list[frozenset[Varnode] | None] = [None] * (len(one.ops) + 1)
    arriving[0] = frozenset()
    for index, op in enumerate(one.ops):
        before = arriving[index]
        if before is None:
            continue
        if index in needed:
            yield from (Location(*each) for each in op.inputs if each.space == "unique" and each not in before)
        written = index in needed and op.output is not None and op.output.space == "unique"
        behind = before | {op.output} if written and op.output is not None else before
        inside = _inside(one, index)
        goes_on = op.opcode == "CBRANCH" or op.opcode not in _LEAVING
        for place in {*((inside,) if inside is not None else ()), *((index + 1,) if goes_on else ())}:
            known = arriving[place]
            arriving[place] = behind if known is None else known & behind
