# SPDX-License-Identifier: 0BSD
"""Words of static data that init surely stores: behind it they hold no more what the image does.

Init is called, and returns 0, before any other operation (*init-first*). A word that each of its ways to there stores
as a whole was stored before any other operation loads it; where a node of init begins, so was one that each way to it
stores. It is asked of the code alone. A way out of which the result is known not to be 0 need not store anything; where
several meet before it, each edge is asked by itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from wcet_probe.certificate.kernel.coverage import Code, Coverage, Said, edges_taken, run_block
from wcet_probe.certificate.kernel.records import Graph
from wcet_probe.certificate.machines.machine import Machine
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
    ways = [
        before[one] | own[one] | own[end] for end in ends for one in _ways_to(code, graph, said, coverage, end, result)
    ]
    return Stored(before, frozenset.intersection(*ways) if ways else frozenset())


def _ways_to(  # noqa: PLR0917  (as above)
    code: Code, graph: Graph, said: Said, coverage: Coverage, end: str, result: Place
) -> Iterator[str]:
    """The nodes before ``end`` from which it may return 0; itself where the operation begins there."""
    ways = [(end, dict[Place, Value]())] if end == graph.entry else []
    into = (edge for edge in graph.edges if edge.target == end and edge.name in coverage.taken)
    ways += ((edge.source, dict(coverage.taken[edge.name].values)) for edge in into)
    for source, told in ways:
        # What the edge tells alone may be less than what is said of the node, of which each way holds both.
        state = State({**said.invariants[end], **told})
        for outcome in run_block(code, coverage.machine(code), graph, end, state).outcomes:
            if outcome.address is None and _may_be_zero(outcome.state.read(result)):
                yield source


def _may_be_zero(value: Value) -> bool:
    return not value.is_number or 0 in value.words() or WORD in value.words()


class _Noting(Machine):
    """A machine that notes which words are surely stored."""

    def __init__(self, image: Image, coverage: Coverage) -> None:
        super().__init__(image, coverage.escapes, used=coverage.assumptions)
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
