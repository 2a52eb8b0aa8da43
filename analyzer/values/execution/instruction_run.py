"""What the operations of an instruction do to a state, and how control leaves it.

Words: transfer function, abstract state, stack separation (docs/explanation/glossary.md).

*Soundness:* each operation is over-approximated by the domain (`analyzer.strided`) or, where it is not known to change
registers only in its output, refused. A store changes everything that it may overlap; a store through a number does
not reach the call's stack (assumption ``stack-separation``). A location that is not tracked may hold anything; it may
hold a stack address only after one was stored outside the stack, which then holds for the whole analysis, and one of
the stack only where one was stored, see `held_addresses`. What is told
of words that registers were saved in rests on ``saved-registers``, see `saved_words`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce

from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.domains.strided import StridedInterval
from wcet_probe.analyzer.graph.cfg import is_return
from wcet_probe.analyzer.pcode.lift import Lifter
from wcet_probe.analyzer.pcode.operations import FLOAT_OPERATION, SPECIAL_REGISTER, PcodeOp, Varnode
from wcet_probe.analyzer.pcode.semantics import NO_EFFECT, signed
from wcet_probe.analyzer.pcode.status_registers import INTERRUPT_MASK, PROCESS_STACK, WRITES_STACK_OR_MODE
from wcet_probe.analyzer.values.execution.accesses import Access, WordTransfer
from wcet_probe.analyzer.values.execution.prepared_instruction import PreparedInstruction
from wcet_probe.analyzer.values.execution.saved_words import note_store, still_saved
from wcet_probe.analyzer.values.states.aligned_addresses import aligned_address
from wcet_probe.analyzer.values.states.argument_pointers import least_on_stack, pointed_by
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.analyzer.values.states.held_addresses import WHOLE_STACK, register_at_entry
from wcet_probe.analyzer.values.states.learning import assume
from wcet_probe.analyzer.values.states.memory import MOST_READ, Memory
from wcet_probe.analyzer.values.states.plain_numbers import plain_number
from wcet_probe.analyzer.values.states.state import State
from wcet_probe.analyzer.values.states.unknown_numbers import is_unknown
from wcet_probe.analyzer.values.symbolic.locations import Location
from wcet_probe.analyzer.values.symbolic.symbol_names import is_defined_before
from wcet_probe.analyzer.values.symbolic.term_table import SymbolName, Term
from wcet_probe.analyzer.values.symbolic.terms import Terms
from wcet_probe.errors import AnalysisError

_WORD_BYTES, _DOUBLE_BYTES = 4, 8
"""A double word, of registers of floating point, is held as two words."""
_MOST_PLACES = 16
"""Most places of the stack that one load is followed to."""


@dataclass(slots=True)
class Flow:
    """Control leaves an instruction in ``state``: ``way`` and ``address`` as in `supergraph.Edge`.

    ``conditions`` are the truth values that were learnt on the way, as (term, holds); ``target`` is the term of an
    indirect branch's, call's or return's destination.
    """

    way: str
    address: int | None
    state: State
    conditions: tuple[tuple[Term, bool], ...] = ()
    target: Term | None = None


class InstructionRun:
    """One instruction under abstract execution.

    Args:
        context: the terms, the memory and the lifter that it works with.
        place: the point; symbols that are defined in it carry its number.
        prepared: the instruction.
        accesses: is told of each data access.
        transfers: is told of each load and store, with the state before it.
    """

    def __init__(
        self,
        context: tuple[Terms, Memory, Lifter],
        place: int,
        prepared: PreparedInstruction,
        *,
        accesses: Callable[[Access], None] | None,
        transfers: Callable[[WordTransfer], None] | None,
    ) -> None:
        self.prepared = prepared
        self._terms, self._memory, self._lifter = context
        self._place, self._instruction = place, prepared.instruction
        self._accesses, self._transfers = accesses, transfers
        self._following = prepared.following
        self.place_behind = (place, *prepared.end)

    def operation(self, index: int, flow: Flow) -> list[tuple[int | None, Flow]]:
        """Execute operation ``index``: where to go within the instruction (None: out of it), and how."""
        op = self._instruction.ops[index]
        state = flow.state
        match op.opcode:
            case "BRANCH":
                return [self._jump(op.inputs[0], index, flow)]
            case "CBRANCH":
                return self._conditional(op, index, flow)
            case "CALL":
                return [(None, Flow("call", op.inputs[0].offset, state, flow.conditions))]
            case "CALLIND" | "BRANCHIND" | "RETURN":
                way = "call" if op.opcode == "CALLIND" else "jump"
                way = "return" if is_return(op, self._lifter.registers["lr"]) else way
                target = self._read(state, index, 0)
                return [(None, Flow(way, None, state, flow.conditions, target))]
            case "TRAP":
                return []
        self.straight(index, state)
        return [(index + 1, flow)]

    def straight(self, index: int, state: State) -> None:
        """Execute operation ``index``, which is no branch, call, return or trap."""
        op = self._instruction.ops[index]
        match op.opcode:
            case "STORE":
                pointer, value = self._read(state, index, 0), self._read(state, index, 1)
                self._store(state, pointer, value, op.inputs[1].size_bytes, index)
            case "LOAD":
                self._read_memory(state, op, index)
            case "CALLOTHER":
                self._user_operation(state, op, index)
            case _:
                self._compute(state, op, op.opcode, index)

    def _read_memory(self, state: State, op: PcodeOp, index: int) -> None:
        if op.output is not None:
            pointer = self._read(state, index, 0)
            self._write(state, op.output, self._load(state, pointer, op.output.size_bytes, index), index)

    def _jump(self, target: Varnode, index: int, flow: Flow) -> tuple[int | None, Flow]:
        if target.space == "const":
            return index + signed(8 * target.size_bytes, target.offset), flow
        if target.offset == self._following:
            return None, Flow("fall", self._following, flow.state, flow.conditions)
        return None, Flow("jump", target.offset, flow.state, flow.conditions)

    def _conditional(self, op: PcodeOp, index: int, flow: Flow) -> list[tuple[int | None, Flow]]:
        condition = self._read(flow.state, index, 1)
        successors: list[tuple[int | None, Flow]] = []
        other = flow.state.copy()
        if assume(flow.state, condition, holds=True):
            taken = Flow("fall", flow.address, flow.state, (*flow.conditions, (condition, True)))
            successors.append(self._jump(op.inputs[0], index, taken))
        if assume(other, condition, holds=False):
            successors.append((index + 1, Flow("fall", flow.address, other, (*flow.conditions, (condition, False)))))
        return successors

    def _user_operation(self, state: State, op: PcodeOp, index: int) -> None:
        if op.output is not None and op.user_op.endswith("Saturate"):
            self._compute(state, op, op.user_op, index)
        elif op.user_op == SPECIAL_REGISTER or self._is_float(op):
            if op.output is not None:
                self._write(state, op.output, self._unknown(state, op.output, index), index)
        elif op.user_op not in NO_EFFECT and op.user_op not in {INTERRUPT_MASK, PROCESS_STACK, "setISAMode"}:
            where = self._memory.image.location(self._instruction.address)
            if op.user_op in WRITES_STACK_OR_MODE:
                raise AnalysisError(
                    f"the instruction at {where} writes MSP or CONTROL (msr), and whether that stack is "
                    "the one in use is not known: bound what stands before and behind it as functions of their own."
                )
            raise AnalysisError(
                f"the effect of {op.user_op or 'an operation'} of the instruction at {where} is not known to the "
                "analysis: system instructions are not analysed; bound what stands before and behind it as functions "
                "of their own."
            )

    def _is_float(self, op: PcodeOp) -> bool:
        """Whether ``op`` stands for arithmetic of floating-point registers, which writes nothing but its output."""
        return op.user_op == FLOAT_OPERATION or (op.output is not None and op.user_op.startswith("Vector"))

    def _unknown(self, state: State, varnode: Varnode, index: int) -> Term:
        """A value of which nothing is known, not even whether it is an address."""
        key = (self._place, self._instruction.address, index, "unknown", varnode.space, varnode.offset)
        return state.define(key, 8 * varnode.size_bytes, base=Base.ANY)

    def _compute(self, state: State, op: PcodeOp, name: str, index: int) -> None:
        if name.startswith("FLOAT_") and op.output is not None:
            self._write(state, op.output, self._unknown(state, op.output, index), index)
            return
        if op.output is None or not self.prepared.is_computed[index]:
            raise AnalysisError(
                f"{name} of the instruction at {self._memory.image.location(self._instruction.address)} is not known "
                "to the analysis: system instructions are not analysed."
            )
        operands = tuple([self._read(state, index, number) for number in range(len(op.inputs))])
        bits = 8 * op.output.size_bytes
        term = self._terms.apply(name, operands, bits)
        term = self._opaque(state, name, operands, bits, index) if term is None else term
        term = aligned_address(state, term) if name == "INT_AND" else term
        self._write(state, op.output, term, index)

    def _opaque(self, state: State, name: str, operands: tuple[Term, ...], bits: int, index: int) -> Term:
        """A symbol for a term that would be too deep."""
        bases = [state.base(operand) for operand in operands]
        if any(bases) or any(state.has_low_part(operand) for operand in operands):
            return state.define((self._place, self._instruction.address, index), bits, base=Base.ANY)
        value = strided.apply(name, tuple(state.value(operand) for operand in operands), bits)
        return state.define((self._place, self._instruction.address, index), bits, value)

    # ------------------------------------------------------------------------------------------------------- memory

    def _read(self, state: State, index: int, number: int) -> Term:
        """What operand ``number`` of operation ``index`` holds."""
        location = self.prepared.inputs[index][number]
        varnode = self._instruction.ops[index].inputs[number]
        bits = 8 * varnode.size_bytes
        if location is None:
            if varnode.space == "const":
                return self._terms.constant(varnode.offset, bits)
            if varnode.space == "ram":
                return self._load(state, self._terms.constant(varnode.offset, 32), varnode.size_bytes, index)
            return self._unknown(state, varnode, index)
        term = state.read(location)
        if term is None:
            term = state.define((self._place, self._instruction.address, index, location), bits, base=Base.ANY)
            if not state.overlapping(location):
                state.set_location(location, term)
        return term

    def _write(self, state: State, varnode: Varnode, term: Term, index: int) -> None:
        location = self.prepared.outputs[index]
        if location is not None:
            state.write(location, term)
        elif varnode.space == "ram":
            self._store(state, self._terms.constant(varnode.offset, 32), term, varnode.size_bytes, index)

    def _place_of(self, state: State, pointer: Term, size_bytes: int) -> Location | None:
        """The one location that ``pointer`` can mean."""
        offset, base = state.value(pointer), state.base(pointer)
        if base is Base.ANY or not offset.is_constant:
            return None
        if base is Base.STACK:
            return Location("stack", signed(offset.bits, offset.value), size_bytes)
        return Location("static", offset.value, size_bytes) if self._memory.is_static(offset.value) else None

    def _tell(self, state: State, pointer: Term, size_bytes: int, index: int, *, is_store: bool) -> None:
        if self._accesses:
            base, offset = self._changed(state, pointer, size_bytes, is_store=is_store)
            lasting = pointer if self._is_lasting(pointer, index) else None
            is_certain, is_leaving = self.prepared.is_certain(index), self.prepared.is_leaving(index)
            form = self._terms.linear(pointer)
            parts = tuple(
                (factor, part if self._is_unknown(state, part) else None, state.value(part))
                for part, factor in form.coefficients.items()
            )
            has_stack_part = base is Base.STACK or any(state.base(part) is Base.STACK for part in form.coefficients)
            place = self._instruction.address, is_store, base, offset, size_bytes
            through = pointed_by(state, pointer) if is_store and base is Base.ANY else None
            told = is_certain, is_leaving, has_stack_part
            self._accesses(Access(*place, lasting, form.constant, parts, *told, through=through))

    def _changed(self, state: State, pointer: Term, size_bytes: int, *, is_store: bool) -> tuple[Base, StridedInterval]:
        """Where an access goes, and what else of memory a store may change."""
        base, offset = state.base(pointer), state.value(pointer)
        if is_store and base is Base.NUMBER and not offset.is_bottom:
            low, high = offset.unsigned_range()
            if self._memory.changes_a_bit(low, high + size_bytes - 1):
                return base, strided.top(offset.bits)
        return base, offset

    def _tell_transfer(self, state: State, pointer: Term, value: Term | None, size_bytes: int, index: int) -> None:
        if self._transfers:
            place = self._place, self._instruction.address, index
            self._transfers(WordTransfer(*place, pointer, value, size_bytes, state.copy()))

    def _is_unknown(self, state: State, term: Term) -> bool:
        """Whether nothing is known of what ``term`` chooses from, constants apart."""
        if self._terms[term].opcode != "GAMMA":
            return True
        parts = [part for one in self._terms.operands(term)[1:] for part in self._terms.linear(one).coefficients]
        return all(is_unknown(1, state.value(part)) and self._is_unknown(state, part) for part in parts)

    def _is_lasting(self, pointer: Term, index: int) -> bool:
        """Whether each symbol of ``pointer`` is defined elsewhere, or was in this execution of the block."""
        now = (self._instruction.address, index)
        return all(
            is_defined_before(self._terms[symbol].arguments, self._place, now)
            for symbol in self._terms.symbols(pointer)
        )

    def _load(self, state: State, pointer: Term, size_bytes: int, index: int) -> Term:
        self._tell(state, pointer, size_bytes, index, is_store=False)
        self._tell_transfer(state, pointer, None, size_bytes, index)
        name = (self._place, self._instruction.address, index)
        if size_bytes != _DOUBLE_BYTES:
            return self._content(state, pointer, size_bytes, name)
        words = [
            self._content(state, self._behind(state, pointer, distance, name), _WORD_BYTES, (*name, distance))
            for distance in (0, _WORD_BYTES)
        ]
        high, low = words if self._lifter.big_endian else words[::-1]
        whole = self._terms.apply("PIECE", (high, low), 8 * size_bytes)
        return state.define((*name, "whole"), 8 * size_bytes, base=Base.ANY) if whole is None else whole

    def _behind(self, state: State, pointer: Term, distance: int, name: SymbolName) -> Term:
        """``pointer`` and ``distance`` more."""
        if not distance:
            return pointer
        found = self._terms.apply("INT_ADD", (pointer, self._terms.constant(distance, 32)), 32)
        return state.define((*name, "behind"), 32, base=Base.ANY) if found is None else found

    def _content(self, state: State, pointer: Term, size_bytes: int, name: SymbolName) -> Term:
        """What memory holds at ``pointer``; ``name`` is that of a symbol for what is not known."""
        place = self._place_of(state, pointer, size_bytes)
        bits = 8 * size_bytes
        if place is not None:
            if place.space == "static":
                content = self._memory.constant(place.offset, size_bytes)
                if content is not None:
                    return self._terms.constant(content, bits)
            held = state.read(place)
            held = still_saved(state, place) if held is None and self._memory.saving else held
            held = state.part(place) if held is None else held
            if held is not None:
                return held
        asserted = (
            self._memory.words.get(place.offset) if place and place.space == "static" and size_bytes == 4 else None
        )
        if asserted is not None:
            symbol = state.define(name, bits, asserted)
            if place is not None and not state.overlapping(place):
                state.set_location(place, symbol)
            return symbol
        value = self._table_value(state, pointer, size_bytes)
        if value is not None:
            # Read-only memory is a function of the address, and its content can be looked up for each of them.
            looked_up = self._terms.apply("TABLE", (pointer,), bits)
            if looked_up is not None:
                state.set_known(looked_up, value)
                return looked_up
        value = self._held_value(state, pointer, size_bytes) if value is None else value
        base = Base.ANY if value is None and self._may_be_address(state, pointer, size_bytes) else Base.NUMBER
        symbol = state.define(name, bits, value, base)
        if place is not None and not state.overlapping(place):
            state.set_location(place, symbol)
        return symbol

    def _may_be_address(self, state: State, pointer: Term, size_bytes: int) -> bool:
        """Whether what is loaded, of which nothing is known, may be an address of the stack."""
        base = state.base(pointer)
        if self._memory.stack_escapes and base is not Base.STACK:
            return True
        is_plain = self._memory.assumes_plain_frames and not self._memory.stack_escapes
        if base is Base.NUMBER or (base is Base.STACK and is_plain):
            return False
        if places := self._few_places(state, pointer, size_bytes):
            unknown = (one.offset for one in places if _number_at(state, one) is None)
            return any(self._memory.held.may_hold(low, low + size_bytes - 1) for low in unknown)
        low, high = state.value(pointer).signed_range() if base is Base.STACK else WHOLE_STACK
        return self._memory.held.may_hold(low, high + size_bytes - 1)

    @staticmethod
    def _few_places(state: State, pointer: Term, size_bytes: int) -> list[Location]:
        """The places of the stack that ``pointer`` can mean, where these are few."""
        offsets = state.value(pointer)
        if state.base(pointer) is not Base.STACK or offsets.size > _MOST_PLACES:
            return []
        return [Location("stack", signed(32, offset), size_bytes) for offset in offsets.values()]

    def _held_value(self, state: State, pointer: Term, size_bytes: int) -> StridedInterval | None:
        """What a load of one of a few places of the stack gives, where each of them holds a number."""
        found = [_number_at(state, place) for place in self._few_places(state, pointer, size_bytes)]
        numbers = [state.value(one) for one in found if one is not None]
        return reduce(strided.join, numbers) if found and len(numbers) == len(found) else None

    def _table_value(self, state: State, pointer: Term, size_bytes: int) -> StridedInterval | None:
        """What a load from a read-only table gives, where its addresses are few."""
        base = state.base(pointer)
        # Of most words that may be addresses nothing is known as of numbers: ask only where a table may start.
        is_far = base is Base.ANY and self._memory.constant(self._terms.linear(pointer).constant, 1) is None
        if base is Base.STACK or is_far:
            return None
        addresses = plain_number(state, pointer)
        if addresses.size > MOST_READ:
            return None
        return self._memory.table(addresses, size_bytes)

    def _store(self, state: State, pointer: Term, value: Term, size_bytes: int, index: int) -> None:
        self._tell(state, pointer, size_bytes, index, is_store=True)
        self._tell_transfer(state, pointer, value, size_bytes, index)
        base, offset = self._changed(state, pointer, size_bytes, is_store=True)
        if state.base(value) is not Base.NUMBER or state.has_low_part(value):
            self._note_address(pointer, value, size_bytes, state)
        place = self._place_of(state, pointer, size_bytes)
        if self._memory.saving:
            is_saving = (self._instruction.address, index) in self._memory.saving
            note_store(state, place, value, is_saving=is_saving)
        if place is not None:
            # Written as a whole and not through `write`: what is overlapped in part holds nothing known.
            state.forget(state.overlapping(place))
            for part, content in self._words(place, value) if size_bytes == _DOUBLE_BYTES else ((place, value),):
                state.set_location(part, content)
            return
        if offset.is_bottom:
            return  # no execution comes here
        if base is not Base.NUMBER:
            low, high = offset.signed_range() if base is Base.STACK else (self._least(state, pointer), (1 << 31) - 1)
            state.forget_range("stack", low, high + size_bytes - 1)
        if base is not Base.STACK:
            low, high = offset.unsigned_range() if base is Base.NUMBER else (0, (1 << 32) - 1)
            state.forget_range("static", low, high + size_bytes - 1)

    def _note_address(self, pointer: Term, value: Term, size_bytes: int, state: State) -> None:
        """What may be an address of the stack, or a part of one, is stored."""
        base, offset = state.base(pointer), state.value(pointer)
        self._memory.stack_escapes |= base is not Base.STACK
        if base is Base.NUMBER or offset.is_bottom:
            return
        low, high = offset.signed_range() if base is Base.STACK else WHOLE_STACK
        self._memory.held.note(low, high + size_bytes - 1, register_at_entry(state, value))

    def _words(self, place: Location, value: Term) -> Iterator[tuple[Location, Term]]:
        """The words of a double word at ``place``, those that would be too deep left out."""
        for distance in (0, _WORD_BYTES):
            skipped = self._terms.constant(_WORD_BYTES - distance if self._lifter.big_endian else distance, 32)
            part = self._terms.apply("SUBPIECE", (value, skipped), 8 * _WORD_BYTES)
            if part is not None:
                yield Location(place.space, place.offset + distance, _WORD_BYTES), part

    def _least(self, state: State, pointer: Term) -> int:
        """The lowest offset on the stack where a store through ``pointer`` may go, of which nothing is known."""
        above = self._memory.above
        pointed = pointed_by(state, pointer) if above else None
        return -(1 << 31) if pointed is None else least_on_stack(pointed, above)


def _number_at(state: State, place: Location) -> Term | None:
    """What ``place`` holds, if that surely is a number.

    *Soundness:* the state speaks of what was stored there last, on all ways: no other word is found there.
    """
    held = state.read(place)
    return None if held is None or state.base(held) is not Base.NUMBER or state.has_low_part(held) else held
