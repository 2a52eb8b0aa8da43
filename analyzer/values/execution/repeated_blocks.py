"""Blocks on constants that are executed again and again, as those of a nest that is followed: with functions of them.

To make them takes as long as some executions, which a block has had before.

Words: abstract execution, constant propagation (docs/explanation/glossary.md).

*Soundness:* what stands between the branches of a block is executed by the function that `block_functions` makes of it,
which asks `ConstantExecution` for results that are not of two numbers, for loads and for stores; all else is executed
by that. A store of unknown address forgets what the value analysis found of its instruction, which the function tells.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from wcet_probe.analyzer.pcode.lift import Lifter
from wcet_probe.analyzer.pcode.operations import LiftedInstruction
from wcet_probe.analyzer.values.execution.accesses import Access
from wcet_probe.analyzer.values.execution.block_functions import Accessed, Places, Straight, Told, function_of
from wcet_probe.analyzer.values.execution.constant_arithmetic import Value
from wcet_probe.analyzer.values.execution.constant_execution import (
    ConstantExecution,
    Constants,
    Leaving,
    forget_registers,
)
from wcet_probe.analyzer.values.execution.needed_operations import Needed
from wcet_probe.analyzer.values.execution.prepared_operations import PreparedInstruction
from wcet_probe.analyzer.values.states.memory import Memory
from wcet_probe.analyzer.values.symbolic.locations import Location, part_of

_REPEATED = 24
"""So often a block is executed before its functions are made."""


class _Block(NamedTuple):
    """What a block is executed by: functions, and instructions with branches."""

    instructions: Sequence[LiftedInstruction]
    needed: Needed
    parts: tuple[Straight | PreparedInstruction, ...]


class RepeatedExecution(ConstantExecution):
    """As the class above, and faster where blocks are executed again and again."""

    def __init__(self, memory: Memory, lifter: Lifter, content: Iterable[tuple[int, bytes]] = ()) -> None:
        super().__init__(memory, lifter, content)
        self._times: dict[tuple[int, int], int] = {}
        self._blocks: dict[tuple[int, int], _Block] = {}
        self._seen: list[Accessed] = []
        self._accesses: Sequence[Access] = ()

    def without_memory(self) -> ConstantExecution:
        """As of the class above."""
        return RepeatedExecution(self._memory, self._lifter) if self._pages else self

    def block(
        self,
        instructions: Sequence[LiftedInstruction],
        state: Constants,
        accesses: Sequence[Access],
        needed: Needed | None = None,
    ) -> list[Leaving]:
        """As of the class above."""
        if needed is None or (block := self._repeated(instructions, needed)) is None:
            return super().block(instructions, state, accesses, needed)
        found: list[Leaving] = []
        self._accesses = accesses
        for part in block.parts:
            if not isinstance(part, PreparedInstruction):
                self._seen.clear()
                part(state, self._seen)
                continue
            falling = self._behind(part, state, (part.instruction.address, accesses), found)
            if falling is None:
                break
            state = falling
        else:
            last = instructions[-1]
            found.append(Leaving("fall", last.address + last.size_bytes, False, None, state))
        for way in found:
            forget_registers(needed.dead, way.state)
        return found

    def _repeated(self, instructions: Sequence[LiftedInstruction], needed: Needed) -> _Block | None:
        """What executes a block that was executed often enough."""
        key = id(instructions), id(needed)
        found = self._blocks.get(key)
        if found is not None and found.instructions is instructions and found.needed is needed:
            return found
        times = self._times[key] = self._times.get(key, 0) + 1
        if times < _REPEATED:
            return None
        found = self._blocks[key] = _Block(instructions, needed, tuple(self._parts(instructions, needed)))
        return found

    def _parts(self, instructions: Sequence[LiftedInstruction], needed: Needed) -> list[Straight | PreparedInstruction]:
        parts: list[Straight | PreparedInstruction] = []
        straight: list[Told] = []
        for number, instruction in enumerate(instructions):
            prepared = self._of(instruction, needed.operations[number])
            if prepared.branch is None:
                straight.append((instruction.address, prepared.straight))
                continue
            parts += [*self._functions(straight), prepared]
            straight = []
        return [*parts, *self._functions(straight)]

    def _functions(self, straight: Sequence[Told]) -> list[Straight]:
        """The function of ``straight`` instructions, if there are any."""
        if not straight:
            return []
        asked = {"load": self._load, "store": self._store_told, "result": self.result}
        return [function_of(straight, (), None, None, Places(self.overlapping, self._part_of), asked)]

    def _part_of(self, place: Location) -> tuple[Location, int] | None:
        return part_of(place, self._lifter)

    def _store_told(self, state: Constants, address: Value | None, value: Value | None, size_bytes: int) -> None:
        """A store of the instruction whose access was seen last."""
        self._store(state, address, value, size_bytes, (self._seen[-1][0], self._accesses))
