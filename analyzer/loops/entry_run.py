"""The one run of a function that memory at entry decides, followed through its calls on the code alone.

`followed_run` follows what the value analysis found, in which each call has its own blocks, so that a recursion of
unknown depth, or too many calls, have no end there. Here control goes where each instruction leads: a call puts its
return address into a register and the callee jumps back to it, however deep. Nothing has to be known before.

Words: abstract execution, basic block (docs/explanation/glossary.md).

*Soundness:* as said of `values.constant_execution`: a state stands for all executions that begin with this memory.
Where each way out of each block is the only one that is open, all executions take it. What is not decided, or is not
followed for certain (a return elsewhere than behind the call, code of the other instruction set, an instruction that
may trap or whose effect is not known), is told as no run. Code needs no symbol, as linkers leave out those of local
functions; only what the image says to be executable is decoded. How much was followed is told for the choice
of what else is worth while; no bound rests on it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import NamedTuple

from wcet_probe.analyzer.graph.cfg import Block, Outflow, instruction_at, outflow_at
from wcet_probe.analyzer.graph.supergraph import EXIT
from wcet_probe.analyzer.pcode.lift import Lifter
from wcet_probe.analyzer.pcode.operations import FLOAT_OPERATION, SPECIAL_REGISTER, LiftedInstruction, PcodeOp
from wcet_probe.analyzer.pcode.semantics import NO_EFFECT, is_operation
from wcet_probe.analyzer.pcode.status_registers import INTERRUPT_MASK, PROCESS_STACK
from wcet_probe.analyzer.values.execution.block_functions import Accessed
from wcet_probe.analyzer.values.execution.compiled_blocks import CompiledBlock, CompiledExecution
from wcet_probe.analyzer.values.execution.constant_arithmetic import LINK
from wcet_probe.analyzer.values.execution.constant_execution import ConstantExecution, Leaving
from wcet_probe.analyzer.values.execution.needed_operations import needed_of_block
from wcet_probe.analyzer.values.symbolic.locations import Location
from wcet_probe.errors import AnalysisError, DecodeError
from wcet_probe.model.image import Symbol
from wcet_probe.model.target import Isa

_LONGEST_BLOCK = 10_000
"""Most instructions of a block that is followed."""
_SET_MODE = "setISAMode"
_FOLLOWED = NO_EFFECT | {INTERRUPT_MASK, PROCESS_STACK, _SET_MODE}
"""User operations that change no register and no memory; of the instruction set it is seen where control goes."""
_UNKNOWN_RESULT = frozenset({SPECIAL_REGISTER, FLOAT_OPERATION})


@dataclass(frozen=True, slots=True, order=True)
class Passage:
    """Control goes from a block to another, or to ``EXIT``; its ``kind`` is fall, jump, call or return."""

    source: int
    target: int
    kind: str


@dataclass(frozen=True, slots=True)
class EntryRun:
    """What is executed: blocks by address, and how often control goes from one to another; entered is the first one.

    It may rest on the stack's alignment, on where it is, or on being so many bytes from the ends of the address space.
    """

    blocks: Mapping[int, Block]
    passages: Mapping[Passage, int]
    instructions: int
    tells_alignment: bool
    tells_stack_pointer: bool = False
    stack_reach: int = 0

    def executions(self) -> Mapping[int, int]:
        """How often each block is executed."""
        found = Counter({next(iter(self.blocks)): 1})
        for passage, count in self.passages.items():
            if passage.target != EXIT:
                found[passage.target] += count
        return found


class Followed(NamedTuple):
    """What was followed.

    Attributes:
        run: all of it; None where it is not decided, is longer than is followed, or was left.
        decided: so many instructions, from the entry on, are executed by all executions that begin with this memory.
    """

    run: EntryRun | None
    decided: int


@dataclass(frozen=True, slots=True)
class Part:
    """Code from an address up to the next instruction that may lead elsewhere, which is the ``last``.

    It ``is_varied`` if it may make other accesses at another time, as predicated instructions do.
    """

    instructions: tuple[LiftedInstruction, ...]
    last: Outflow
    is_varied: bool = False

    @property
    def end_address(self) -> int:
        """First address behind it."""
        return self.instructions[-1].address + self.instructions[-1].size_bytes


Take = Callable[[Part, Sequence[Accessed]], bool]
"""Told of each block that is executed and its accesses; whether the run may still be told."""


class UndecidedError(Exception):
    """It is not known for certain what is executed next."""


def entry_run(  # noqa: PLR0917  what executes the code, and who is told
    lifter: Lifter,
    execution: ConstantExecution,
    entry: Symbol,
    take: Take,
    most: int,
    stack_pointer: int | None = None,
    *,
    untold: int = 0,
) -> Followed:
    """The run of ``entry``, and how much of it was followed.

    Args:
        lifter: of the binary.
        execution: of its code, from what memory holds at entry.
        entry: the analysed function.
        take: of each block, in order, and the accesses of this execution, whether the run may still be told; where it
            may not, nothing more is taken.
        most: instructions that are followed.
        stack_pointer: at entry, if it is known.
        untold: instructions that are followed of a run that may not be told, as it may be told that it is so long.

    *Soundness:* as said of the module.
    """
    following = _Following(lifter, CompiledExecution(execution, stack_pointer), most, untold)
    with suppress(UndecidedError, AnalysisError, DecodeError):
        return Followed(following.run(entry, take), following.decided)
    return Followed(None, following.decided)


class _Following:
    def __init__(self, lifter: Lifter, execution: CompiledExecution, most: int, untold: int) -> None:
        self._lifter, self._execution = lifter, execution
        self._most, self._untold, self.decided = most, untold, 0
        self._parts: dict[int, Part] = {}
        self._compiled: dict[int, CompiledBlock] = {}
        self._passages: Counter[tuple[int, int, str]] = Counter()
        self._returning: list[int] = []

    def run(self, entry: Symbol, take: Take) -> EntryRun:
        execution, parts, passages, compiled = self._execution, self._parts, self._passages, self._compiled
        limit, address, state, is_told = self._most, entry.address, self._execution.entered(), True
        while address != EXIT:
            if self.decided >= limit:
                raise UndecidedError
            part = parts.get(address) or self._part(address)
            execution.accesses = []
            way = execution.execute(compiled[address], state)
            if way is None:
                raise UndecidedError
            if is_told and not take(part, execution.accesses):
                is_told, limit = False, min(limit, self._untold)
            target, kind = self._target(part, way)
            self.decided += len(part.instructions)
            passages[address, target, kind] += 1
            address, state = target, way.state
        if not is_told or self.decided > limit:
            raise UndecidedError
        told = execution.tells_alignment, execution.tells_stack_pointer, execution.stack_reach
        return assembled(entry, parts, passages, self.decided, *told)

    def _part(self, address: int) -> Part:
        part = part_at(self._lifter, address)
        compiled = self._execution.compiled(part.instructions, needed_of_block(part.instructions, self._lifter))
        self._compiled[address] = compiled
        part = self._parts[address] = replace(part, is_varied=compiled.is_varied)
        return part

    def _target(self, part: Part, way: Leaving) -> tuple[int, str]:
        """Where control goes, and how."""
        waiting, behind = self._returning, part.end_address
        if way.is_indirect and not self._stays_in_instruction_set(part, way):
            raise UndecidedError
        if way.is_indirect and way.target == LINK:
            if waiting or way.way != "jump":
                raise UndecidedError
            return EXIT, "return"
        target = way.target if way.is_indirect else way.address
        if not isinstance(target, int):
            raise UndecidedError
        target = target & ~1 if way.is_indirect else target
        if way.way == "call":
            waiting.append(behind)
            return target, "call"
        if way.is_indirect and (part.last.returns or (waiting and waiting[-1] == target)):
            if not waiting or waiting.pop() != target:
                raise UndecidedError
            return target, "return"
        return target, way.way

    def _stays_in_instruction_set(self, part: Part, way: Leaving) -> bool:
        """Whether a branch that may change it does not; the caller of the analysed function knows its own."""
        if way.target == LINK or not any(op.user_op == _SET_MODE for op in part.instructions[-1].ops):
            return True
        mode = self._lifter.registers["tb"]
        held = way.state.registers.get(Location("register", mode.offset, mode.size_bytes))
        return held == int(self._lifter.isa is Isa.THUMB)


def part_at(lifter: Lifter, address: int) -> Part:
    """The code from ``address`` on.

    Raises:
        AnalysisError, DecodeError: it cannot be lifted.
        UndecidedError: it has an instruction whose effect is not known.
    """
    instructions: list[LiftedInstruction] = []
    at = address
    while True:
        instruction, flow = instruction_at(lifter, at), outflow_at(lifter, at)
        instructions.append(instruction)
        at += instruction.size_bytes
        if not flow.goes_on:
            break
        if len(instructions) == _LONGEST_BLOCK:
            raise UndecidedError
    if not all(_has_known_effect(op) for one in instructions for op in one.ops):
        raise UndecidedError
    return Part(tuple(instructions), flow)


def assembled(  # noqa: PLR0917  what was followed, and what it rests on
    entry: Symbol,
    parts: Mapping[int, Part],
    passages: Mapping[tuple[int, int, str], int],
    instructions: int,
    tells_alignment: bool,  # noqa: FBT001
    tells_stack_pointer: bool,  # noqa: FBT001
    stack_reach: int = 0,
) -> EntryRun:
    """What was followed, code that several parts end with being a block of its own.

    Args:
        entry: the function.
        parts: of code, by address.
        passages: how often control went from one to another, and how.
        instructions: that were executed.
        tells_alignment: whether it rests on the stack's alignment.
        tells_stack_pointer: or on where the stack is.
        stack_reach: or on its pointer being so many bytes from both ends of the address space.

    Raises:
        UndecidedError: code overlaps.
    """
    ends = _ends(entry, parts)
    blocks = {at: _block(parts, at, ends[at]) for at in (entry.address, *sorted(ends))}
    found: Counter[Passage] = Counter()
    for (source, target, kind), count in passages.items():
        at = source
        while ends[at] != parts[source].end_address:
            found[Passage(at, ends[at], "fall")] += count
            at = ends[at]
        found[Passage(at, target, kind)] += count
    rests_on = tells_alignment, tells_stack_pointer, stack_reach
    return EntryRun(blocks, dict(sorted(found.items())), instructions, *rests_on)


def _ends(entry: Symbol, parts: Mapping[int, Part]) -> dict[int, int]:
    """Where each block ends: where another one begins, or its code leads elsewhere.

    *Soundness:* a block that begins within another one, but not where one of its instructions does, is no run.
    """
    ends: dict[int, int] = {}
    starts = parts.keys() | {entry.address}
    for at, part in parts.items():
        inside = {one.address for one in part.instructions}
        within = [one for one in starts if at < one < part.end_address]
        if not inside.issuperset(within):
            raise UndecidedError
        ends[at] = min(within, default=part.end_address)
    return ends


def _block(parts: Mapping[int, Part], at: int, end: int) -> Block:
    return Block(at, tuple(one for one in parts[at].instructions if one.address < end))


def _has_known_effect(op: PcodeOp) -> bool:
    """Whether ``op`` changes nothing but its output, or is one that is followed.

    *Soundness:* as the value analysis (`values.execution.instruction_run`), which refuses all others.
    """
    if op.opcode != "CALLOTHER" or op.user_op in _FOLLOWED:
        return True
    is_named = op.user_op in _UNKNOWN_RESULT or op.user_op.startswith("Vector") or is_operation(op.user_op)
    return op.output is not None and is_named
