"""The words that functions save registers in, under the assumption that no other store changes them.

A function that needs a register which its caller keeps something in saves it first, and gives it back in the end. One
store of which nobody knows where it goes, by an index into an array of the frame say, may change the saved word; then
the frame pointer that a GCC's -O0 code gives back is not known, and with it the caller's whole frame:

>>> def saved_by_a_prologue():  # push {r7, lr}; sub sp, #40; add r7, sp, #0; ...; strb r3, [r7, r2]; ...
...     "the words at -8 (r7) and -4 (lr) from the stack pointer at entry"

Where the assumption ``saved-registers`` is made, a state has two locations for such a word: that of the stack, which
all stores may change, and one in the space ``saved``, which only a store to a known place does. The word is saved until
the stack pointer is above it.

Words: calling convention, abstract location, saved word (docs/explanation/glossary.md).

*Soundness:* a location of the space ``saved`` is made by a store to one known place of the stack, of the same word.
Each later store to a known place that overlaps it takes it away, and so does a saving store whose place is not known.
All other stores do not change the word as long as it is saved, which is what is assumed. Behind each instruction that
moves the stack pointer the locations go that may be below it, so that what lies there then is not taken for what was.
That stores are found which save registers makes the assumption one that compilers keep; nothing else rests on it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from wcet_probe.analyzer.graph.supergraph import Point, Supergraph
from wcet_probe.analyzer.pcode.lift import Lifter
from wcet_probe.analyzer.pcode.operations import LiftedInstruction, PcodeOp, Varnode
from wcet_probe.analyzer.pcode.semantics import signed
from wcet_probe.analyzer.values.execution.call_effects import saved_registers
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.analyzer.values.states.state import State
from wcet_probe.analyzer.values.symbolic.locations import SAVED, Location
from wcet_probe.analyzer.values.symbolic.term_table import Term

_WORD_BYTES = 4
_CONTROL = frozenset({"BRANCH", "CBRANCH", "CALL", "CALLIND", "BRANCHIND", "RETURN", "TRAP"})


Saving = Mapping[tuple[int, int], int]
"""Operations that save a register, by the address of the instruction and their number: which of the instruction's
stores it is, by address."""


def saving_stores(graph: Supergraph, lifter: Lifter) -> Saving:
    """The operations by which functions save registers.

    They stand where a function is entered, before control goes elsewhere, and store to a place at a known distance from
    the stack pointer, in the function's own frame, what a register of `call_effects.saved_registers`, or the link
    register, held at entry. And the function loads that register somewhere, as it must to give it back: a compiler that
    makes room on the stack pushes registers of which it never takes any back, and uses their words as it likes.
    """
    called = {edge.target for edge in graph.edges if edge.way == "call"}
    loaded: dict[int, set[Location]] = {}
    entries: dict[int, Point] = {}
    for point in graph.points:
        own = loaded.setdefault(point.function.address, set())
        own.update(one for each in point.block.instructions for one in _loaded(each, lifter))
        if point.index == 0 or point.index in called or point.block.address == point.function.address:
            entries[point.block.address] = point
    found: dict[tuple[int, int], int] = {}
    for point in entries.values():
        found.update(_saving(point.block.instructions, lifter, loaded[point.function.address]))
    return found


def _loaded(instruction: LiftedInstruction, lifter: Lifter) -> Iterator[Location]:
    """The registers that ``instruction`` loads; with the program counter the link register, which held what it gets."""
    codes = {op.opcode for op in instruction.ops}
    if "LOAD" in codes:
        yield from (_location(op.output) for op in instruction.ops if op.output is not None)
        if codes & {"BRANCHIND", "RETURN"}:
            yield _link(lifter)


class _Number(NamedTuple):
    """A number, from the stack pointer where the function is entered, or from 0."""

    value: int
    from_stack: bool = False


def _saving(
    instructions: Iterable[LiftedInstruction], lifter: Lifter, loaded: Collection[Location]
) -> Iterator[tuple[tuple[int, int], int]]:
    kept = {one for one in (*saved_registers(lifter), _link(lifter)) if one in loaded}
    held = {stack_pointer(lifter): _Number(0, from_stack=True)}
    for instruction in instructions:
        stores: dict[int, tuple[_Number | None, bool]] = {}
        for number, op in enumerate(instruction.ops):
            if op.opcode in _CONTROL:
                return
            if op.opcode == "STORE":
                stores[number] = held.get(_location(op.inputs[0])), _location(op.inputs[1]) in kept
            if op.output is not None:
                _write(op, _location(op.output), kept, held)
        places = sorted({place.value for place, _ in stores.values() if place is not None and place.from_stack})
        if len(places) == len(stores):
            for number, (place, is_saving) in stores.items():
                if is_saving and place is not None and place.value < 0 and place.value % _WORD_BYTES == 0:
                    yield (instruction.address, number), places.index(place.value)


def _write(op: PcodeOp, output: Location, kept: set[Location], held: dict[Location, _Number]) -> None:
    """Note what ``op`` makes of its output: a copy of what a register held at entry, a number."""
    is_kept = op.opcode == "COPY" and _location(op.inputs[0]) in kept
    inputs = [_Number(one.offset) if one.space == "const" else held.get(_location(one)) for one in op.inputs]
    kept.difference_update([one for one in kept if one.overlaps(output)])
    kept.update([output] if is_kept else ())
    for one in [one for one in held if one.overlaps(output)]:
        del held[one]
    match op.opcode, inputs:
        case "COPY", [_Number() as same]:
            held[output] = same
        case "INT_AND", [_Number() as same, _Number(0xFFFF_FFFC, False)]:
            held[output] = same  # a stack pointer of Thumb, which is aligned
        case "INT_ADD" | "INT_SUB", [_Number() as base, _Number(by, False)]:
            value = base.value + by if op.opcode == "INT_ADD" else base.value - by
            held[output] = _Number(signed(32, value & 0xFFFF_FFFF), base.from_stack)


def _link(lifter: Lifter) -> Location:
    return _location(lifter.registers["lr"])


def stack_pointer(lifter: Lifter) -> Location:
    """The stack pointer's location."""
    return _location(lifter.registers[lifter.isa.stack_pointer])


def _location(varnode: Varnode) -> Location:
    return Location(varnode.space, varnode.offset, varnode.size_bytes)


def moves(instruction: LiftedInstruction, pointer: Location) -> bool:
    """Whether ``instruction`` may write the stack pointer."""
    outputs = (op.output for op in instruction.ops if op.output is not None)
    return any(_location(one).overlaps(pointer) for one in outputs)


def note_store(state: State, place: Location | None, value: Term, *, is_saving: bool) -> None:
    """A store to ``place``, None where that is not known, has changed ``state``; ``is_saving`` if it saves a register.

    *Soundness:* as said of the module.
    """
    if place is None:
        if is_saving:
            state.forget(_saved(state))
        return
    if place.space != "stack":
        return
    known = Location(SAVED, place.offset, place.size_bytes)
    state.forget(state.overlapping(known))
    if is_saving and place.size_bytes == _WORD_BYTES:
        state.set_location(known, value)


def still_saved(state: State, place: Location) -> Term | None:
    """What the word at ``place`` of the stack holds that was saved there; None where none was."""
    return state.locations.get(Location(SAVED, place.offset, place.size_bytes)) if place.space == "stack" else None


def release(state: State, pointer: Location) -> None:
    """What may be below the stack pointer, which has moved, is saved no more."""
    saved = _saved(state)
    if not saved:
        return
    term = state.read(pointer)
    if term is None or state.base(term) is not Base.STACK:
        state.forget(saved)
        return
    _, high = state.value(term).signed_range()
    state.forget([one for one in saved if one.offset < high])


def _saved(state: State) -> list[Location]:
    return [one for one in state.locations if one.space == SAVED]
