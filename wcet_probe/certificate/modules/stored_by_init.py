# SPDX-License-Identifier: 0BSD
"""Words of static data that init surely stores: behind it they hold no more what the image does.

Init is called, and returns 0, before any other operation (*init-first*). A word that each of its ways to there stores
as a whole was stored before any other operation loads it; where a node of init begins, so was one that each way to it
stores. It is asked of the code alone. A way out of which the result is known not to be 0 need not store anything; where
several meet before it, or before the node before it, each edge is asked by itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from wcet_probe.certificate.kernel.coverage import Code, Coverage, Said, edges_taken, run_block
from wcet_probe.certificate.kernel.records import Edge, Graph
from wcet_probe.certificate.machines.machine import Machine, Outcome
from wcet_probe.certificate.machines.operands import may_be_skipped
from wcet_probe.certificate.values.numbers import WORD, Value
from wcet_probe.certificate.values.state import Place, State
from wcet_probe.model.image import Image
from wcet_probe.model.instruction import Instruction

_STORE = re.compile(r"stwu?x?|str(\.w)?|strd|stm(ia)?(\.w)?")
"""Instructions that store words whenever they are executed."""


class Stored(NamedTuple):
    """Addresses of words.

    Attributes:
        before: stored on each way to a node, by node.
        behind: stored on each way out on which 0 may be returned.
    """

    before: Mapping[str, frozenset[int]]
    behind: frozenset[int]


def surely_stored(code: Code, graph: Graph, said: Said, coverage: Coverage, result: Place) -> Stored:
    """The words of static data that init stores, whose ``graph`` it is.

    Args:
        code: the image.
        graph: of init.
        said: what holds where its nodes begin, of numbers.
        coverage: what was checked of the graph.
        result: where it returns whether it takes the arena.

    Raises:
        VerificationError: a node is not executed.
    """
    before = {graph.entry: frozenset[int]()}
    own = dict[str, frozenset[int]]()
    waiting = [graph.entry]
    while waiting:
        node = waiting.pop()
        machine = _Noting(code.image, coverage)
        state = State(dict(said.invariants[node]), {}, dict(said.flags.get(node, {})))
        outcomes = run_block(code, machine, graph, node, state).outcomes
        own[node] = machine.stored()
        edges = (edge for one in outcomes for edge in edges_taken(graph, node, one, coverage.gone))
        for target in {edge.target for edge in edges if edge.name in coverage.taken}:
            known = before[node] | own[node]
            common = before.get(target, known) & known
            if common != before.get(target):
                before[target] = common
                waiting.append(target)
    ends = [one for one in before if one in graph.exits]
    ways = _Ends(code, graph, said, coverage, result)
    found = [
        frozenset.union(before[way[0]], *(own[one] for one in (*way, end))) for end in ends for way in ways.ways_to(end)
    ]
    return Stored(before, frozenset.intersection(*found) if found else frozenset())


@dataclass(frozen=True, slots=True)
class _Ends:
    """Where init, whose ``graph`` it is, returns a ``result``; the rest is as `surely_stored` is given it."""

    code: Code
    graph: Graph
    said: Said
    coverage: Coverage
    result: Place

    def ways_to(self, end: str) -> Iterator[tuple[str, ...]]:
        """The nodes along which ``end`` is reached where it may return 0: the last one or two, or itself."""
        if end == self.graph.entry and self._returns(end, State(dict(self.said.invariants[end]))):
            yield (end,)
        for edge in self._into(end):
            if not self._returns(end, self._behind(edge)):
                continue
            if edge.source == self.graph.entry:
                yield (edge.source,)
            for first in self._into(edge.source):
                if any(self._returns(end, state) for state in self._along(first, edge)):
                    yield first.source, edge.source

    def _into(self, node: str) -> list[Edge]:
        return [edge for edge in self.graph.edges if edge.target == node and edge.name in self.coverage.taken]

    def _behind(self, edge: Edge) -> State:
        # What the edge tells alone may be less than what is said of the node, of which each way holds both.
        return State({**self.said.invariants[edge.target], **self.coverage.taken[edge.name].values})

    def _run(self, node: str, state: State) -> Iterable[Outcome]:
        return run_block(self.code, self.coverage.machine(self.code), self.graph, node, state).outcomes

    def _returns(self, node: str, state: State) -> bool:
        outcomes = self._run(node, state)
        return any(one.address is None and _may_be_zero(one.state.read(self.result)) for one in outcomes)

    def _along(self, first: Edge, edge: Edge) -> Iterator[State]:
        """What holds behind ``edge`` where its source was reached by the edge ``first``."""
        for one in self._run(edge.source, self._behind(first)):
            if any(edge.name == other.name for other in edges_taken(self.graph, edge.source, one, self.coverage.gone)):
                yield State({**self._behind(edge).values, **one.state.values})


def _may_be_zero(value: Value) -> bool:
    return not value.is_number or 0 in value.words() or WORD in value.words()


class _Noting(Machine):
    """A machine that notes which words are surely stored."""

    def __init__(self, image: Image, coverage: Coverage) -> None:
        super().__init__(image, coverage.escapes, on_stack=coverage.on_stack.again(), used=coverage.assumptions)
        self._noted: dict[tuple[int, int], set[int | None]] = {}
        self._next: tuple[int, int] | None = None

    def stored(self) -> frozenset[int]:
        """The addresses of words that are stored on each way through the conditional instructions of the block."""
        return frozenset(one for words in self._noted.values() if len(words) == 1 for one in words if one is not None)

    def begin(self, instruction: Instruction, state: State) -> None:
        """As a machine does."""
        super().begin(instruction, state)
        is_sure = _STORE.fullmatch(instruction.text.partition(" ")[0]) and not may_be_skipped(instruction)
        self._next = (instruction.address, 0) if is_sure else None

    def store(self, address: Value, size_bytes: int, value: Value, name: object, state: State) -> None:
        """As a machine does; the word is noted, or that it is none that is known."""
        super().store(address, size_bytes, value, name, state)
        if self._next is not None:
            is_word = address.is_number and address.is_constant and size_bytes == 4
            self._noted.setdefault(self._next, set()).add(address.low % WORD if is_word else None)
            self._next = self._next[0], self._next[1] + 1
