"""Blocks on constants that are executed again and again, as those of a nest that is followed: with functions of them.

To make them takes as long as some executions, which a block has had before.

Words: abstract execution, constant propagation (docs/explanation/glossary.md).

*Soundness:* what stands between the branches of a block is executed by the function that `block_functions` makes of it,
which asks `ConstantExecution` for results that are not of two numbers, for loads and for stores; all else is executed
by that. A store of unknown address forgets what the value analysis found of its instruction, which the function tells.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

from wcet_probe.analyzer.pcode.lift import Lifter
from wcet_probe.analyzer.pcode.operations import LiftedInstruction
from wcet_probe.analyzer.values.execution.accesses import Access
from wcet_probe.analyzer.values.execution.block_functions import Accessed, Places, Straight, Told, function_of
from wcet_probe.analyzer.values.execution.constant_arithmetic import Value
from wcet_probe.analyzer.values.execution.constant_execution import ConstantExecution, Constants, Leaving
from wcet_probe.analyzer.values.execution.needed_operations import Needed
from wcet_probe.analyzer.values.execution.prepared_operations import PreparedInstruction
from wcet_probe.analyzer.values.states.memory import Memory
from wcet_probe.analyzer.values.symbolic.locations import part_of

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

    def _parts(self, instructions: Sequence[LiftedInstruction], needed: Needed | None) -> Iterable[Any]:
        """As of the class above; functions as well of a block that was executed often enough."""
        if needed is None:
            return super()._parts(instructions, needed)
        key = id(instructions), id(needed)
        found = self._blocks.get(key)
        if found is not None and found.instructions is instructions and found.needed is needed:
            return found.parts
        times = self._times[key] = self._times.get(key, 0) + 1
        if times < _REPEATED:
            return super()._parts(instructions, needed)
        found = self._blocks[key] = _Block(instructions, needed, tuple(self._with_functions(instructions, needed)))
        return found.parts

    def _behind(
        self, part: Straight | PreparedInstruction, state: Constants, accesses: Sequence[Access], found: list[Leaving]
    ) -> Constants | None:
        """As of the class above."""
        if isinstance(part, PreparedInstruction):
            return super()._behind(part, state, accesses, found)
        self._accesses = accesses
        self._seen.clear()
        part(state, self._seen)
        return state

    def _with_functions(
        self, instructions: Sequence[LiftedInstruction], needed: Needed
    ) -> Iterator[Straight | PreparedInstruction]:
        """Functions of what is straight, and the instructions with branches between them."""
        straight: list[Told] = []
        for prepared in super()._parts(instructions, needed):
            if prepared.branch is None:
                straight.append((prepared.instruction.address, prepared.straight))
                continue
            yield from self._functions(straight)
            yield prepared
            straight = []
        yield from self._functions(straight)

    def _functions(self, straight: Sequence[Told]) -> list[Straight]:
        """The function of ``straight`` instructions, if there are any."""
        if not straight:
            return []
        asked = {"load": self._load, "store": self._store_told, "result": self.result}
        places = Places(self.overlapping, partial(part_of, lifter=self._lifter))
        return [function_of(straight, (), None, None, places, asked)]

    def _store_told(self, state: Constants, address: Value | None, value: Value | None, size_bytes: int) -> None:
        """A store of the instruction whose access was seen last."""
        self._store(state, address, value, size_bytes, (self._seen[-1][0], self._accesses))
