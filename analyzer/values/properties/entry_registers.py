"""Which registers at entry take part in what a function does: those that it reads, or gives back on some ways only.

Two callers that differ in other registers alone are told the same by one analysis of the function.

Words: liveness, summary (docs/explanation/glossary.md).

*Soundness:* a must-analysis of writes over the edges that the values say can be taken. A byte of a register counts
unless each way writes it before reading it, and it is written on each way to a return or on none. Take two executions
that begin with states that differ in bytes that do not count: instruction by instruction they read the same, go the
same ways, and return in states that are the same but in bytes that neither has written. So what is proved of the one
holds of the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from wcet_probe.analyzer.domains.lattice import Subsets
from wcet_probe.analyzer.graph.fixpoint import least
from wcet_probe.analyzer.graph.flow_order import FlowOrder
from wcet_probe.analyzer.graph.supergraph import EXIT, Edge
from wcet_probe.analyzer.pcode.operations import LiftedInstruction, Varnode
from wcet_probe.analyzer.values.result import Values
from wcet_probe.analyzer.values.symbolic.locations import Location

RegisterBytes = frozenset[int]
"""Offsets in the space of registers."""

_BRANCHES = frozenset({"BRANCH", "CBRANCH"})


@dataclass(slots=True)
class _Touched:
    """What is read before it is surely written, what is surely written, and what may be."""

    read: set[int] = field(default_factory=set)
    surely: set[int] = field(default_factory=set)
    written: set[int] = field(default_factory=set)

    def follow(self, instruction: LiftedInstruction) -> None:
        """Then comes ``instruction``; what it does behind a branch of its own it may not do."""
        is_sure = True
        for op in instruction.ops:
            for varnode in op.inputs:
                self.read |= _bytes(varnode) - self.surely
            is_sure = is_sure and op.opcode not in _BRANCHES
            if op.output is not None:
                self.written |= _bytes(op.output)
                if is_sure:
                    self.surely |= _bytes(op.output)


def _bytes(varnode: Varnode) -> set[int]:
    if varnode.space != "register":
        return set()
    return set(range(varnode.offset, varnode.offset + varnode.size_bytes))


def register_bytes(locations: Iterable[Location]) -> RegisterBytes:
    """The bytes of registers."""
    return frozenset(at for one in locations for at in range(one.offset, one.offset + one.size_bytes))


def deciding_registers(
    values: Values, called: Callable[[Edge], Iterable[tuple[RegisterBytes, Iterable[Location]]]]
) -> RegisterBytes:
    """The bytes of registers at entry that take part in what the function of ``values`` does.

    Args:
        values: of the function.
        called: of an edge, for each call on it that is not expanded: the bytes that take part in what the callee does,
            and the registers that it does not surely give back.

    *Soundness:* as said of the module.
    """
    blocks = {index: _Touched() for index in values.states}
    for index, touched in blocks.items():
        for instruction in values.graph.points[index].block.instructions:
            touched.follow(instruction)
    calls = {edge: _called(called(edge)) for edge in values.edges}
    written = frozenset().union(*(one.written for one in (*blocks.values(), *calls.values())))
    every = written.union(*(one.read for one in (*blocks.values(), *calls.values())))
    order = FlowOrder(sorted(values.states), values.edges)
    untouched = least(
        order,
        Subsets(every),
        {0: every},
        lambda index, bytes_: bytes_ - blocks[index].surely,
        lambda edge, bytes_: bytes_ - calls[edge].surely,
    )
    found: set[int] = set()
    for index, touched in blocks.items():
        found |= untouched[index] & touched.read
    for edge, touched in calls.items():
        before = untouched[edge.source] - blocks[edge.source].surely
        found |= before & touched.read
        if edge.target == EXIT:
            found |= (before - touched.surely) & written
    return frozenset(found)


def _called(calls: Iterable[tuple[RegisterBytes, Iterable[Location]]]) -> _Touched:
    """What one of several calls does: what all surely write is written."""
    found = _Touched()
    sure: list[set[int]] = []
    for deciding, results in calls:
        changed = register_bytes(results)
        found.read |= deciding
        found.written |= changed
        sure.append(set(changed - deciding))
    found.surely = set.intersection(*sure) if sure else set()
    return found
