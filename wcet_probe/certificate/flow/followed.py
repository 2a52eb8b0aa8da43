# SPDX-License-Identifier: 0BSD
"""Nests of loops that are followed round by round: how often each node of one is executed for each entry of it.

What holds where the nest is entered is followed from node to node. What comes to a node in the same round of all loops
around it is taken up together: joined at first, and where that tells too little once more, each by itself (a few: two
ends of a range that halves are known by each other). What comes in different rounds stays apart. A loop whose bound is
shown elsewhere, or told, is followed no further than that.

Each step of an execution is part of something that is taken up, and the step behind it of something that is taken up
later. So no two steps of an execution are part of the same, in whichever order that is done, and an execution passes a
node no more often than something was taken up there. The order decides only how much comes together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property, reduce
from heapq import heappop, heappush
from typing import NamedTuple

from wcet_probe.certificate.flow.walk import Covered, narrowed
from wcet_probe.certificate.kernel.records import Edge, LoopRecord
from wcet_probe.certificate.kernel.shapes import natural_loop, postorder
from wcet_probe.certificate.machines.machine import Machine
from wcet_probe.certificate.values.state import State, between_blocks, joined

_MOST_INSTRUCTIONS = 40_000
"""So many are executed at most, in all nests of one graph; in each no more than half of those that are left."""
_APART = (1, 16)
"""So many states are followed by themselves that come together; of more their join. Each has a budget of its own."""

Rounds = tuple[int, ...]
"""The number of the round in each loop around a node, the outermost first."""


class _Nest(NamedTuple):
    """Most executions of each node for each entry of the nest, and of each header for each entry of its own loop."""

    counts: dict[str, int]
    rounds: dict[str, int]


class Followed:
    """Answers about nests of one graph; each is followed once, and once more with ways apart.

    Args:
        covered: the graph.
        loops: of it.
    """

    def __init__(self, covered: Covered, loops: Sequence[LoopRecord]) -> None:
        self._covered, self._graph, self._coverage = covered, covered.graph, covered.coverage
        self._entering = {loop.header: tuple(loop.entering) for loop in loops}
        self._back = {loop.header: frozenset(loop.back) for loop in loops}
        self._edges = {edge.name: edge for edge in covered.graph.edges}
        self._inside: dict[str, set[str]] = {}
        self._nests: dict[tuple[str, int], _Nest | None] = {}
        self._left = dict.fromkeys(_APART, _MOST_INSTRUCTIONS)
        self.bounds: dict[str, int] = {}
        """By header, most executions of it for each entry, of the loops whose bounds are shown or told."""

    def most_executions(self, header: str) -> int | None:
        """Most executions of a loop's header for each entry of the loop; None where following a nest tells none."""
        return min(self._executions(header), default=None)

    def ends(self, loop: LoopRecord) -> bool:
        """Whether following a nest tells that the header is executed ``loop.most`` + 1 times at most for each entry."""
        return any(found <= loop.most + 1 for found in self._executions(loop.header))

    def _executions(self, header: str) -> Iterator[int]:
        """Executions of a loop's header for each entry of the loop, as following each nest around it tells."""
        firsts = sorted(self._around.get(header, ()), key=lambda one: -len(self._nodes_of(one)))
        found = (self._nest_of(first, most) for most in _APART for first in firsts)
        yield from (nest.rounds.get(header, 0) for nest in found if nest is not None)

    def limits(self, factors: Mapping[str, int], constant: int) -> bool:
        """Whether ``sum of factors <= constant`` says no more than how often a node is executed for each entry."""
        nodes = {self._edges[name].target for name, factor in factors.items() if factor > 0 and name in self._edges}
        if constant < 0 or len(nodes) != 1 or any(f > 0 and name not in self._edges for name, f in factors.items()):
            return False
        (node,) = nodes
        headers = self._around.get(node, ())
        return any(self._is_limit(header, most, node, factors) for most in _APART for header in headers)

    def _is_limit(self, header: str, most_apart: int, node: str, factors: Mapping[str, int]) -> bool:
        entering = self._entering[header]
        if not all(factors.get(name, 0) < (node == header) for name in entering):
            return False  # nothing is paid for an entry
        nest = self._nest_of(header, most_apart)
        if nest is None:
            return False
        allowed = dict.fromkeys(self._covered.into(node), 1)
        for name in entering:
            allowed[name] = allowed.get(name, 0) - nest.counts.get(node, 0)
        return all(factors.get(name, 0) <= allowed.get(name, 0) for name in {*factors, *allowed})

    @cached_property
    def _around(self) -> Mapping[str, Sequence[str]]:
        """The headers of the loops around each node."""
        found: dict[str, list[str]] = {}
        for header in self._entering:
            for node in self._nodes_of(header):
                found.setdefault(node, []).append(header)
        return found

    def _nodes_of(self, header: str) -> set[str]:
        """All nodes of a loop, over the edges that are taken."""
        if header not in self._inside:
            self._inside[header] = natural_loop(header, self._back[header], self._covered.taken)
        return self._inside[header]

    def _nest_of(self, header: str, most_apart: int) -> _Nest | None:
        key = header, most_apart
        if key not in self._nests:
            self._nests[key] = self._follow(*key)
        return self._nests[key]

    # ------------------------------------------------------------------------------------------------------ following

    def _follow(self, first: str, most_apart: int) -> _Nest | None:
        """What following a nest tells; None where it takes too long."""
        inside = self._nodes_of(first)
        headers = sorted(inside & self._entering.keys(), key=lambda one: (-len(self._nodes_of(one)), one != first, one))
        around = {node: tuple(one for one in headers if node in self._nodes_of(one)) for node in inside}
        leading = {node: [e.target for e in self._graph.leading[node] if e.target in inside] for node in inside}
        place = {node: number for number, node in enumerate(postorder(leading, first)[::-1])}
        start = self._start(first)
        found = _Nest({}, {})
        if start is None:
            return found
        machine, least = self._covered.machine(), self._left[most_apart] // 2
        former: dict[str, list[State]] = {}
        pending = defaultdict[tuple[str, Rounds], list[State]](list, {(first, (1,)): [start]})
        waiting = [_order(place, around, first, (1,))]
        while waiting:
            *_, node, rounds = heappop(waiting)[1]
            found.counts[node] = found.counts.get(node, 0) + 1
            if node in self._entering:
                found.rounds[node] = max(found.rounds.get(node, 0), rounds[-1])
            states = pending.pop((node, rounds))
            states = states if len(states) <= most_apart else [reduce(joined, states)]
            self._left[most_apart] -= len(states) * len(self._coverage.instructions[node])
            is_endless = node in self._entering and node not in self.bounds and former.get(node) == states
            if self._left[most_apart] < least or is_endless:
                return None
            former[node] = states
            for edge, behind in self._leave(machine, node, states, inside):
                told = self._rounds_behind(edge, rounds, around)
                if told is None:
                    return None
                key, new = (edge.target, told), between_blocks(behind)
                if told and key not in pending:
                    heappush(waiting, _order(place, around, *key))
                if told and new not in pending[key]:
                    pending[key].append(new)
        return None if machine.is_refuted else found

    def _leave(
        self, machine: Machine, node: str, states: Sequence[State], inside: Collection[str]
    ) -> Iterator[tuple[Edge, State]]:
        """What each of ``states`` of ``node`` leaves on edges within the nest."""
        for state in states:
            here = narrowed(state, self._covered.invariants[node])
            for edge, behind in self._covered.leave(machine, node, here):
                if edge is not None and edge.target in inside and edge.name in self._coverage.taken:
                    yield edge, behind

    def _start(self, first: str) -> State | None:
        """What holds where a loop is entered; None if it never is."""
        names = self._entering[first]
        if "enter" in names:
            return State(dict(self._covered.invariants[first]))
        states = [between_blocks(self._coverage.taken[name]) for name in names if name in self._coverage.taken]
        return reduce(joined, states) if states else None

    def _rounds_behind(self, edge: Edge, rounds: Rounds, around: Mapping[str, Sequence[str]]) -> Rounds | None:
        """The rounds behind an edge; none where a loop has no such round, None where it is entered past its header."""
        before = dict(zip(around[edge.source], rounds, strict=True))
        found = []
        for header in around[edge.target]:
            number = before.get(header)
            if edge.target == header:
                number = 1 if number is None or edge.name not in self._back[header] else number + 1
                if number > self.bounds.get(header, number):
                    return ()
            if number is None:
                return None
            found.append(number)
        return tuple(found)


def _order(
    place: Mapping[str, int], around: Mapping[str, Sequence[str]], node: str, rounds: Rounds
) -> tuple[tuple[int, ...], tuple[str, Rounds]]:
    """Where a node in some rounds stands in the order of execution: a loop's rounds before what is behind the loop."""
    key = [part for header, number in zip(around[node], rounds, strict=True) for part in (place[header], number)]
    return (*key, place[node]), (node, rounds)
