"""The one run of a function of which memory at entry decides each step: its instructions and accesses, in order.

`abstract_execution` tells whether there is one, and counts its blocks. Here it is followed once more with all of its
operations, so that each access has its address.

Words: abstract execution (docs/explanation/glossary.md).

*Soundness:* as said of `values.constant_execution`: a state stands for all executions that reach it. As long as each
branch, each condition in an instruction, and each edge is decided, all executions are at the same place after as many
steps. What is not decided is told as no run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from wcet_probe.analyzer.graph.supergraph import EXIT
from wcet_probe.analyzer.loops.abstract_execution import edges_taken, is_followed, rests_on_stack_alignment
from wcet_probe.analyzer.values.execution.constant_arithmetic import Value, is_address
from wcet_probe.analyzer.values.execution.constant_execution import ConstantExecution, Constants
from wcet_probe.analyzer.values.result import Values

Place = int | tuple[int] | None
"""An address, an offset from the stack pointer at entry, or what is not known."""


@dataclass(slots=True)
class Step:
    """An instruction that was executed.

    Attributes:
        address: of the instruction.
        accesses: whether it stores, where, and how many bytes, of each access in the order of the p-code.
    """

    address: int
    accesses: list[tuple[bool, Place, int]] = field(default_factory=list)


def follow_run(values: Values, execution: ConstantExecution, take: Callable[[int, Sequence[Step]], bool]) -> bool:
    """Give ``take`` each block of the run with its steps until it is false; whether the run was followed to its end.

    Args:
        values: of the function.
        execution: of its code, from what memory holds at entry.
        take: of a point and what was executed of its block, whether to go on.

    *Soundness:* as said of the module. What rests on an assumption that following the function before did not is no
    run.
    """
    if not is_followed(values) or values.arriving.get(0):
        return False
    noted = NotedExecution(execution)
    state = noted.at_entry([values.states[0]])
    index = 0
    while index != EXIT:
        noted.steps = []
        block = values.graph.points[index].block
        leaving = noted.block(block.instructions, state, values.accesses.get(index, ()))
        edges = [(edge, way) for way in leaving for edge in edges_taken(values, index, way)]
        if len(edges) != 1 or noted.is_forked or not take(index, noted.steps):
            return False
        (edge, way) = edges[0]
        if values.edges[edge].calls or (noted.tells_alignment and not rests_on_stack_alignment(values)):
            return False
        index, state = edge.target, way.state
    return True


class NotedExecution(ConstantExecution):
    """An execution that tells which instructions are executed, and where they load and store.

    Attributes:
        steps: since they were last taken away.
        is_forked: whether a condition in an instruction was not known.
    """

    def __init__(self, execution: ConstantExecution) -> None:
        vars(self).update(vars(execution))
        self._prepared = {}
        self.tells_alignment = False
        self.steps: list[Step] = []
        self.is_forked = False

    def _all_straight(self, ops: Any, state: Constants, told: Any) -> None:  # noqa: ANN401  as of the class above
        self.steps.append(Step(told[0]))
        super()._all_straight(ops, state, told)

    def _steps(self, one: Any, current: Constants, told: Any) -> list[Any]:  # noqa: ANN401  as of the class above
        found = super()._steps(one, current, told)
        self.is_forked |= len(found) > 1
        return found

    def _load(self, state: Constants, address: Value | None, size_bytes: int) -> Value | None:
        self._note(address, size_bytes, is_store=False)
        return super()._load(state, address, size_bytes)

    def _store(self, state: Constants, address: Value | None, value: Value | None, size_bytes: int, told: Any) -> None:  # noqa: ANN401
        self._note(address, size_bytes, is_store=True)
        super()._store(state, address, value, size_bytes, told)

    def _note(self, address: Value | None, size_bytes: int, *, is_store: bool) -> None:
        place: Any = address if is_address(address) else None
        self.steps[-1].accesses.append((is_store, place, size_bytes))
