"""Which functions may return in a caller's stead, as far as their code alone tells it.

Behind a call of a function that never comes back there need be no code, or none that returns. A routine that pops the
frame of its caller comes back all the same, further out; ``longjmp`` is one. What leads to such a call is not left out
with what cannot return.

Words: calling convention, dead end (docs/explanation/glossary.md).

*Soundness:* the address and the stack pointer of each return are followed through registers and the function's own
frame. Where they are not known to be those that the function was entered with, it may return for a caller. Callees are
taken to give back the registers that the convention keeps; what lies behind an indirect jump whose targets are not
known, and what an indirect call may go to, is not seen, nor what a store changes whose address is not a known place of
the stack.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple
from weakref import WeakKeyDictionary

from wcet_probe.analyzer.graph.cfg import FALLING, IndirectTargets, is_return, outflow_at
from wcet_probe.analyzer.pcode.lift import Lifter
from wcet_probe.analyzer.pcode.operations import LiftedInstruction, PcodeOp, Varnode
from wcet_probe.analyzer.pcode.semantics import signed
from wcet_probe.errors import DecodeError
from wcet_probe.model.target import Isa

_AWAY = frozenset({"CALL", "CALLIND", "BRANCHIND", "RETURN"})
_ENDS = frozenset({"BRANCH", "TRAP", *_AWAY})
_WITHOUT_LOW_BITS = frozenset({0xFFFF_FFFE, 0xFFFF_FFFC})
_STACK_MASK: Mapping[Isa, int] = {Isa.THUMB: 0xFFFF_FFFC}
"""Of the bits that a stack pointer may have: bits 0 and 1 are 0 in Thumb at any time (ARM DDI 0403E, B1.4.1)."""
_FOLLOWED = frozenset({"COPY", "LOAD", "INT_ADD", "INT_SUB", "INT_AND"})
_MOST_RETURNS = 8
_WORD_BYTES = 4
_KEPT: Mapping[Isa, Sequence[str]] = {
    Isa.ARM: ("r13", *(f"r{number}" for number in range(4, 12))),
    Isa.THUMB: ("r13", *(f"r{number}" for number in range(4, 12))),
    Isa.POWERPC: ("r1", *(f"r{number}" for number in range(14, 32))),
}


class Held(NamedTuple):
    """What a register or a word of the stack holds, by ``kind``.

    ``stack``: the stack pointer at entry plus ``offset``; ``number``: ``offset``; ``word``: what the word there held
    at entry; ``link``: the return address; ``unknown``: in a word above the stack pointer at entry, something else
    than it held then.
    """

    kind: str
    offset: int = 0


_LINK = Held("link")
_Place = tuple[str, int]
_State = dict[_Place, Held]


class Left(NamedTuple):
    """How a function returns in a caller's stead: both are measured from its stack pointer at entry.

    ``stack_pointer`` is what the stack pointer then is, ``link`` where the return address was; None where that is not
    known.
    """

    stack_pointer: int | None
    link: int | None


UNKNOWN = Left(None, None)


def returning_for_callers(
    lifter: Lifter, entry: int, indirect: IndirectTargets, returning: Collection[int]
) -> Mapping[int, frozenset[Left]]:
    """Of the function that starts at ``entry`` and all that it calls, those that may return for a caller, and how.

    Args:
        lifter: of the image.
        entry: address of a function.
        indirect: known targets of indirect branches and calls.
        returning: entries of the functions that may come back behind their calls.

    *Soundness:* as said of the module.
    """
    remembered = _remembered.setdefault(lifter, {})
    found: dict[int, frozenset[Left]] = {}
    callers: dict[int, set[int]] = {}
    todo = [entry]
    while todo:
        function = todo.pop()
        known = remembered.get(function)
        if known is None or not known.answers(indirect, returning, found):
            known = remembered[function] = _Walk(lifter, indirect, returning, found).returns(function)
        returns, called = known.returns, known.called
        before = found.get(function)
        returns |= before or frozenset()
        found[function] = frozenset({UNKNOWN}) if UNKNOWN in returns or len(returns) > _MOST_RETURNS else returns
        if found[function] != (before or frozenset()):
            todo += sorted(callers.get(function, ()))
        for callee in sorted(called):
            callers.setdefault(callee, set()).add(function)
            if callee not in found:
                todo.append(callee)
    return {function: returns for function, returns in found.items() if returns}


class _Walked(NamedTuple):
    """How a function may return in a caller's stead, what it calls, and all that this was told from.

    ``targets`` are those of its calls, returns and indirect jumps, by address; ``callees`` are told with how they
    return for a caller and whether they come back.
    """

    returns: frozenset[Left]
    targets: Mapping[int, Sequence[int]]
    callees: Mapping[int, tuple[frozenset[Left], bool]]

    @property
    def called(self) -> Collection[int]:
        """The functions that it calls."""
        return self.callees.keys()

    def answers(
        self, indirect: IndirectTargets, returning: Collection[int], found: Mapping[int, frozenset[Left]]
    ) -> bool:
        """Whether it is the answer to these, too: they say of all that was asked what they said."""
        return all(indirect.get(at, ()) == targets for at, targets in self.targets.items()) and all(
            (found.get(callee, frozenset()), callee in returning) == told for callee, told in self.callees.items()
        )


_remembered: WeakKeyDictionary[Lifter, dict[int, _Walked]] = WeakKeyDictionary()
"""The last answer for each function: the code around it is looked at again and again while targets are looked for."""


class _Walk:
    """The states at each instruction of one function, and of what it jumps to at its end."""

    def __init__(
        self,
        lifter: Lifter,
        indirect: IndirectTargets,
        returning: Collection[int],
        found: Mapping[int, frozenset[Left]],
    ) -> None:
        self._lifter, self._indirect, self._returning, self._found = lifter, indirect, returning, found
        self._stack_pointer = self._register(lifter.isa.stack_pointer)
        self._link = self._register("lr")
        self._stack_mask = _STACK_MASK.get(lifter.isa)
        self._kept = {self._register(name) for name in _KEPT[lifter.isa]}
        self._states: dict[int, _State] = {}
        self._todo: list[int] = []
        self._returns: set[Left] = set()
        self._targets: dict[int, Sequence[int]] = {}
        self._callees: dict[int, tuple[frozenset[Left], bool]] = {}

    def _register(self, name: str) -> _Place:
        return "register", self._lifter.registers[name].offset

    def returns(self, entry: int) -> _Walked:
        """How the function may return in a caller's stead, and what it calls."""
        self._arrive(entry, {self._stack_pointer: Held("stack"), self._link: _LINK})
        while self._todo:
            address = self._todo.pop()
            try:
                instruction = self._lifter.lift(address)
            except DecodeError:
                continue  # executed, it would be a trap
            state = dict(self._states[address])
            if outflow_at(self._lifter, address) is FALLING:
                self._pass(instruction, state)
            else:
                self._step(instruction, state)
        return _Walked(frozenset(self._returns), self._targets, self._callees)

    def _arrive(self, address: int, state: _State) -> None:
        before = self._states.get(address)
        merged = state if before is None else _met(before, state)
        if merged != before:
            self._states[address] = merged
            self._todo.append(address)

    def _pass(self, instruction: LiftedInstruction, state: _State) -> None:
        """Execute an instruction that has no other way than to the next one; it changes ``state``."""
        for op in instruction.ops:
            self._compute(op, state)
        self._arrive(instruction.address + instruction.size_bytes, _lasting(state))

    def _step(self, instruction: LiftedInstruction, first: _State) -> None:
        pending: dict[int, _State] = {0: first}
        behind = len(instruction.ops)
        for index, op in enumerate(instruction.ops):
            state = pending.pop(index, None)
            if state is None:
                continue
            if op.opcode in ("BRANCH", "CBRANCH"):
                to = self._jump(op, index, state)
                if to is not None and to > index:
                    _add(pending, min(to, behind), dict(state))
            elif op.opcode in _AWAY:
                self._leave(instruction, op, state)
            elif op.opcode != "TRAP":
                self._compute(op, state)
            if op.opcode not in _ENDS:
                _add(pending, index + 1, state)
        if behind in pending:
            self._arrive(instruction.address + instruction.size_bytes, _lasting(pending[behind]))

    def _jump(self, op: PcodeOp, index: int, state: _State) -> int | None:
        """The operation of the same instruction that a branch goes to; None where it leaves the instruction."""
        target = op.inputs[0]
        if target.space == "const":
            return index + signed(8 * target.size_bytes, target.offset)
        self._arrive(target.offset, _lasting(state))
        return None

    def _leave(self, instruction: LiftedInstruction, op: PcodeOp, state: _State) -> None:
        """A call, a return, or an indirect jump."""
        targets = self._targets[instruction.address] = self._indirect.get(instruction.address, ())
        if op.opcode in ("CALL", "CALLIND"):
            if outflow_at(self._lifter, instruction.address).resumes:  # it pops no frame but its own
                for target in targets:
                    self._arrive(target, self._behind_call(state))
                return
            callees = (op.inputs[0].offset,) if op.opcode == "CALL" else targets
            for callee in callees:
                self._call(callee, state)
            if any(self._callees[callee][1] for callee in callees) or not callees:
                self._arrive(instruction.address + instruction.size_bytes, self._behind_call(state))
            return
        held = self._read(op.inputs[0], state)
        # What pops its target, and is not known to be a jump elsewhere, may be a return that was overwritten.
        pops = not targets and any(self._is_stack_pointer(one.output) for one in instruction.ops)
        if is_return(op, self._lifter.registers["lr"]) or held is not None or pops:
            self._return(held, state.get(self._stack_pointer))
        for target in targets:
            self._arrive(target, _lasting(state))

    def _is_stack_pointer(self, output: Varnode | None) -> bool:
        return output is not None and (output.space, output.offset) == self._stack_pointer

    def _behind_call(self, state: _State) -> _State:
        """What a callee does not change: what lies below the stack pointer is its own."""
        pointer = state.get(self._stack_pointer)
        low = pointer.offset if pointer is not None and pointer.kind == "stack" else 0
        return {at: one for at, one in state.items() if at in self._kept or (at[0] == "stack" and at[1] >= low)}

    def _call(self, callee: int, state: _State) -> None:
        told = self._found.get(callee, frozenset()), callee in self._returning
        self._callees[callee] = told
        pointer = state.get(self._stack_pointer)
        for left in told[0]:
            if pointer is None or pointer.kind != "stack" or left.stack_pointer is None or left.link is None:
                self._returns.add(UNKNOWN)
                continue
            link = self._word(pointer.offset + left.link, state)
            self._return(link, Held("stack", pointer.offset + left.stack_pointer))

    def _return(self, address: Held | None, pointer: Held | None) -> None:
        """A return to ``address`` with the stack pointer ``pointer``."""
        if address == _LINK and pointer == Held("stack"):
            return
        known = pointer is not None and pointer.kind == "stack" and address is not None and address.kind == "word"
        self._returns.add(Left(pointer.offset, address.offset) if known and pointer and address else UNKNOWN)

    def _word(self, offset: int, state: _State) -> Held | None:
        """What the word of the stack at ``offset`` holds: above the stack pointer at entry, what it held then."""
        return state.get(("stack", offset), Held("word", offset) if offset >= 0 else None)

    def _read(self, varnode: Varnode, state: _State) -> Held | None:
        if varnode.space == "const":
            return Held("number", varnode.offset)
        return state.get((varnode.space, varnode.offset)) if varnode.space in ("register", "unique") else None

    def _compute(self, op: PcodeOp, state: _State) -> None:
        """What ``op`` makes of ``state``, which it changes."""
        if op.opcode == "STORE":
            place = self._read(op.inputs[0], state)
            if place is not None and place.kind == "stack":
                _overwrite(state, place.offset, op.inputs[1].size_bytes, self._read(op.inputs[1], state))
            return
        if op.output is None:
            return
        computed = self._computed(op, state) if op.opcode in _FOLLOWED else None
        _put(state, (op.output.space, op.output.offset), computed)

    def _computed(self, op: PcodeOp, state: _State) -> Held | None:
        held = [self._read(one, state) for one in op.inputs]
        match op.opcode, held:
            case "COPY", [one]:
                return one
            case "LOAD", [Held("stack", offset)] if op.output is not None and op.output.size_bytes == _WORD_BYTES:
                return self._word(offset, state)
            case "INT_ADD", [Held("stack", offset), Held("number", number)] | [
                Held("number", number),
                Held("stack", offset),
            ]:
                return Held("stack", signed(32, (offset + number) & 0xFFFF_FFFF))
            case "INT_SUB", [Held("stack", offset), Held("number", number)]:
                return Held("stack", signed(32, (offset - number) & 0xFFFF_FFFF))
            case "INT_AND", [Held() as one, Held("number", mask)]:
                return self._masked(one, mask)
        return None

    def _masked(self, one: Held, mask: int) -> Held | None:
        """What ``one`` is without the bits that are not in ``mask``."""
        if one.kind in {"link", "word"} and mask in _WITHOUT_LOW_BITS:
            return one
        if one.kind == "stack" and mask == self._stack_mask:
            return Held("stack", one.offset & -_WORD_BYTES)
        return None


def _add(pending: dict[int, _State], index: int, state: _State) -> None:
    pending[index] = _met(pending[index], state) if index in pending else state


def _overwrite(state: _State, offset: int, size_bytes: int, held: Held | None) -> None:
    """A store: words that it changes in part are not what they were."""
    for at in range(offset - _WORD_BYTES + 1, offset + size_bytes):
        if at >= 0 or ("stack", at) in state:
            _put(state, ("stack", at), None)
    _put(state, ("stack", offset), held if size_bytes == _WORD_BYTES else None)


def _put(state: _State, place: _Place, held: Held | None) -> None:
    if held is None:
        if place[0] == "stack" and place[1] >= 0:
            state[place] = Held("unknown")  # not what it held at entry
        else:
            state.pop(place, None)
    else:
        state[place] = held


def _met(one: _State, other: _State) -> _State:
    """What both hold."""
    found = {at: held for at, held in one.items() if other.get(at) == held}
    for at in one.keys() | other.keys():
        if at[0] == "stack" and at[1] >= 0 and at not in found:
            found[at] = Held("unknown")
    return found


def _lasting(state: _State) -> _State:
    """``state`` without temporaries of one instruction."""
    return {at: held for at, held in state.items() if at[0] != "unique"}
