# SPDX-License-Identifier: 0BSD
"""Following what holds from one place of the graph through a part of it: for counters of loops and excluded pairs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from heapq import heappop, heappush

from wcet_probe.certificate.kernel.coverage import Code, Coverage, edges_taken, run_block
from wcet_probe.certificate.kernel.records import LEAVE, Edge, Graph
from wcet_probe.certificate.kernel.shapes import arriving_edges, postorder
from wcet_probe.certificate.machines.machine import Machine
from wcet_probe.certificate.values.numbers import ANY, TOP, WORD, Value, clamped, within
from wcet_probe.certificate.values.state import Place, State, between_blocks, joined

_MOST_VISITS = 4


@dataclass(frozen=True)
class Covered:
    """A graph that covers the code, and what was checked of it.

    Attributes:
        code: the image.
        graph: of the certificate.
        invariants: what holds where its nodes begin.
        coverage: what holds on its edges.
    """

    code: Code
    graph: Graph
    invariants: Mapping[str, Mapping[Place, Value]]
    coverage: Coverage

    def machine(self) -> Machine:
        """A machine for what is executed once more."""
        return self.coverage.machine(self.code)

    @cached_property
    def arriving(self) -> Mapping[str, Sequence[Edge]]:
        """Edges by their target."""
        return arriving_edges(self.graph)

    @cached_property
    def taken(self) -> Mapping[str, Sequence[Edge]]:
        """Edges that are taken at all, by their target."""
        return {
            node: [edge for edge in edges if edge.name in self.coverage.taken] for node, edges in self.arriving.items()
        }

    def into(self, node: str) -> list[str]:
        """Names of the edges into ``node``, of which ``enter`` is one into the first."""
        return [edge.name for edge in self.arriving.get(node, ())] + ["enter"] * (node == self.graph.entry)

    def leave(self, machine: Machine, node: str, state: State) -> Iterator[tuple[Edge | None, State]]:
        """Execute ``node`` on ``state``: the edges, or None out of the function, and what then holds."""
        for outcome in run_block(self.code, machine, self.graph, node, state).outcomes:
            if outcome.address is None:
                yield None, outcome.state
            edges = edges_taken(self.graph, node, outcome, self.coverage.gone)
            yield from ((edge, outcome.state) for edge in edges)


def follow(
    covered: Covered,
    machine: Machine,
    first: str,
    start: State,
    inside: Collection[str],
    known: Mapping[str, Mapping[Place, Value]],
    *,
    stop: str | None,
) -> dict[str, State]:
    """What holds on each edge that is reached from ``first`` within ``inside``, without entering ``stop`` again.

    The way out of the function from a node that is reached is ``leave:NODE``, for which what held last is told.

    Args:
        covered: the graph.
        machine: executes.
        first: where it begins.
        start: what holds there.
        inside: nodes that are followed.
        known: what holds at nodes besides, whatever way control took; numbers of it replace what is wider.
        stop: a header whose edges end the way.
    """
    states = {first: between_blocks(start)}
    leading = {
        node: [edge.target for edge in covered.graph.leading[node] if edge.target in inside and edge.target != stop]
        for node in {*inside, first}
    }
    # Each node behind those that lead to it, but for loops: so most are executed once.
    nodes = postorder(leading, first)[::-1]
    places = {node: place for place, node in enumerate(nodes)}
    waiting, visits, found = [0], {first: 0}, dict[str, State]()
    while waiting:
        node = nodes[heappop(waiting)]
        for edge, state in covered.leave(machine, node, narrowed(states[node], known.get(node, {}))):
            if edge is None:
                found[f"{LEAVE}{node}"] = state
                continue
            earlier = found.get(edge.name)
            found[edge.name] = state if earlier is None else joined(earlier, state)
            if edge.target == stop or edge.target not in inside:
                continue
            new, old = between_blocks(state), states.get(edge.target)
            new = new if old is None else replace(joined(old, new), names={})
            if new == old:
                continue
            visits[edge.target] = visits.get(edge.target, 0) + 1
            is_few = visits[edge.target] <= _MOST_VISITS
            states[edge.target] = new if old is None or is_few else _settled(old, new, start)
            if places[edge.target] not in waiting:
                heappush(waiting, places[edge.target])
    return found


def narrowed(state: State, known: Mapping[Place, Value]) -> State:
    """``state`` where ``known`` holds as well, for what executes a node: what has a base of its own keeps it."""
    found = State(dict(state.values), {}, dict(state.flags))
    for place, value in known.items():
        own = state.read(place)
        if own != value and not own.base.startswith("@") and not within(own, value):
            found.values[place] = _both(own, value)
    return found


def _both(own: Value, value: Value) -> Value:
    """What is in both, where both are words from 0 on; else ``value``."""
    are_words = all(one.is_plain and 0 <= one.low <= one.high < WORD for one in (own, value))
    return (clamped(value, own.low, own.high) if are_words else None) or value


def _settled(old: State, new: State, start: State) -> State:
    firsts = start.values
    return State(
        {place: _dropped(old.values.get(place), value, firsts.get(place)) for place, value in new.values.items()}
    )


def _dropped(old: Value | None, new: Value, first: Value | None) -> Value:
    """A value that keeps changing is not followed any more: it is as where this began, or anything."""
    if old is None or new == old:
        return new
    if first is not None and within(new, first):
        return first
    return ANY if new.may_be_stack or old.may_be_stack else TOP
