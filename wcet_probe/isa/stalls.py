"""Waits of an instruction for the result of another one just before it: the interlocks of a pipeline.

A core that issues in order starts an instruction when the one before has taken its cycles and when what it needs is
there. With `c` the cycles of each instruction and `w` the wait of a dependent one for a producer if it followed it
immediately, a run of instructions ends no later than at the sum of all `c` and, for each producer, of its longest wait
`max(0, w - cycles of the instructions in between)` over the instructions that depend on it. So the wait is charged to
the *producer*, once, and as the longest over all ways that control may take behind it: the successors of an instruction
are known where its predecessors are not, and the sum holds on every path, over the borders of blocks and functions.

*Soundness:* by induction over the run. Let T be the sum of the cycles and waits charged so far, an upper bound of the
start of each instruction. One that waits for nobody starts when its predecessor has ended, within T. One that waits for
a producer starts `w` behind the producer's end, which lies within the T of that moment without the producer's wait;
since then T has grown by that wait and by the cycles in between, together at least `w`. What is charged for an
instruction in between is what it is charged on this path: the least of executed, skipped and taken is taken off.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from wcet_probe.model.instruction import Control, Instruction
from wcet_probe.model.target import Basis, Need, Result, Stall, Target

_ALWAYS = 14
_LEAVES = (Control.BRANCH, Control.CALL, Control.INDIRECT)


@dataclass(frozen=True, slots=True)
class _Pending:
    """Registers that are there ``cycles`` after now, for the instructions that ``rule`` speaks of."""

    rule: Stall
    registers: frozenset[str]
    cycles: int


def waits_behind(instructions: Sequence[Instruction], target: Target) -> tuple[int, ...]:
    """For each of ``instructions`` the cycles that others may have to wait for it, at most, on any path behind it.

    Control that goes to an address where nothing is decoded, or where nobody knows, meets the dearest dependent
    instruction there. Behind the end of a piece of code, and where an instruction has a problem, nothing is executed.

    Parameters:
        instructions: the whole code, in address order.
        target: the core with its rules.
    """
    rules = _Rules(target, {one.address: one for one in instructions})
    return tuple(rules.longest_wait(one) for one in instructions)


class _Rules:
    """The rules of a target by the producer's timing class, and the code that they are asked about."""

    def __init__(self, target: Target, code: Mapping[int, Instruction]) -> None:
        self._target, self._code = target, code
        self._of: dict[str, list[Stall]] = {}
        every = tuple(sorted(target.timing))
        for name, timing in target.timing.items():
            own = [rule for rule in target.stalls if name in rule.producers]
            if timing.load_use_cycles:
                use = (Result.LOADED, Need.ANY, timing.load_use_cycles, Basis.ASSUMED, "")
                own.append(Stall("load-use", (name,), every, *use))
            self._of[name] = own

    def longest_wait(self, producer: Instruction) -> int:
        rules = () if producer.problem else self._of.get(producer.timing_class, ())
        results = ((rule, _results(producer, rule)) for rule in rules)
        pending = tuple(_Pending(rule, registers, rule.cycles) for rule, registers in results if registers)
        return max((self._from(to, pending, set()) for to in self._successors(producer)), default=0) if pending else 0

    def _from(self, address: int | None, pending: tuple[_Pending, ...], seen: set[object]) -> int:
        """The longest wait of the instruction at ``address`` and of those behind it."""
        if address is None:
            return max(one.cycles for one in pending)
        instruction = self._code.get(address)
        if instruction is None or instruction.problem or (address, pending) in seen:
            return 0
        seen.add((address, pending))
        waits = [one.cycles for one in pending if _depends(instruction, one)]
        overwritten = frozenset() if _is_predicated(instruction) else instruction.writes | instruction.loaded
        for to, cycles in self._ways(instruction):
            left = tuple(
                _Pending(one.rule, one.registers - overwritten, one.cycles - cycles)
                for one in pending
                if one.cycles > cycles and one.registers - overwritten
            )
            waits += [self._from(to, left, seen)] if left else []
        return max(waits, default=0)

    def _ways(self, instruction: Instruction) -> Iterator[tuple[int | None, int]]:
        """Where control may go, and the cycles that are charged at least for ``instruction`` if it goes there."""
        timing, skipped = self._target.timing[instruction.timing_class], self._target.condition_failed.cycles
        executed = timing.cycles + timing.per_register_cycles * instruction.registers
        least = min(executed, skipped) if _is_predicated(instruction) else executed
        following = instruction.address + instruction.size_bytes
        for to in self._successors(instruction):
            taken = instruction.control is Control.CONDITIONAL_BRANCH and to != following
            yield to, least + (timing.taken_cycles if taken else 0)

    def _successors(self, instruction: Instruction) -> Iterator[int | None]:
        """Addresses that are executed next; None where nobody knows."""
        following = instruction.address + instruction.size_bytes
        if instruction.control is not Control.NEXT:
            target = instruction.branch_target
            yield target if target in self._code else None
        if instruction.control not in _LEAVES or _is_predicated(instruction):
            yield following


def _results(producer: Instruction, rule: Stall) -> frozenset[str]:
    if rule.result is Result.LOADED:
        return producer.loaded
    if rule.result is Result.BASE:
        return (
            frozenset(access.base for access in producer.accesses if access.base in producer.writes) - producer.loaded
        )
    return producer.writes | producer.loaded


def _depends(consumer: Instruction, pending: _Pending) -> bool:
    if consumer.timing_class not in pending.rule.consumers:
        return False
    if pending.rule.need is Need.ADDRESS:
        needed = {name for access in consumer.accesses for name in (access.base, access.index) if name}
    else:
        needed = set(consumer.shifted if pending.rule.need is Need.SHIFT else consumer.reads)
    return not needed.isdisjoint(pending.registers)


def _is_predicated(instruction: Instruction) -> bool:
    return instruction.in_it_block or instruction.condition != _ALWAYS
