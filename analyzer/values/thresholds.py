"""Where values that grow in a loop are likely to stop.

Words: threshold, widening (docs/explanation/glossary.md).

*Soundness:* none is needed: a threshold decides where a widening stops first, and the fixpoint is checked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property

from wcet_probe.analyzer.graph.loop_forest import Loop
from wcet_probe.analyzer.graph.supergraph import Supergraph
from wcet_probe.analyzer.pcode.truths import RELATIONS
from wcet_probe.analyzer.values.state import State

_BITS = 32
_COMPARING = RELATIONS | {"INT_SUB", "INT_SBORROW", "INT_CARRY", "INT_SCARRY"}


class Thresholds:
    """Where widening stops in the loops of a graph.

    Args:
        graph: the graph.
        loops: its loops.
    """

    def __init__(self, graph: Supergraph, loops: Iterable[Loop]) -> None:
        self._graph = graph
        self._nodes = {loop.header: loop.nodes for loop in loops}
        self._own: dict[int, frozenset[int]] = {}

    @cached_property
    def all(self) -> tuple[int, ...]:
        """The constants of all code, and their neighbours."""
        return _with_neighbours(self._constants(range(len(self._graph.points)), lambda _: True))

    def of(self, header: int, state: State) -> tuple[int, ...]:
        """What a loop's code compares with and what ``state`` holds of constants at its header, and their neighbours.

        Among all constants of the code are the small ones, and a counter would stop at each of them.
        """
        if header not in self._own:
            self._own[header] = self._constants(self._nodes[header], lambda opcode: opcode in _COMPARING)
        held = {state.terms.value(term) for term in state.locations.values() if state.terms[term].bits == _BITS}
        return _with_neighbours(self._own[header].union(value for value in held if value is not None))

    def _constants(self, nodes: Iterable[int], is_asked: Callable[[str], bool]) -> frozenset[int]:
        blocks = {id(block): block for block in (self._graph.points[node].block for node in nodes)}
        return frozenset(
            varnode.offset
            for block in blocks.values()
            for instruction in block.instructions
            for op in instruction.ops
            if is_asked(op.opcode)
            for varnode in op.inputs
            if varnode.space == "const" and varnode.size_bytes == _BITS // 8
        )


def _with_neighbours(constants: Iterable[int]) -> tuple[int, ...]:
    last = (1 << _BITS) - 1
    found = {0, 1 << (_BITS - 1), last}
    for constant in constants:
        found.update(((constant - 1) & last, constant, (constant + 1) & last))
    return tuple(sorted(found))
