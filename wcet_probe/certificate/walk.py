# SPDX-License-Identifier: 0BSD
"""Following what holds from one place of the graph through a part of it: for counters of loops and excluded pairs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from heapq import heappop, heappush

from wcet_probe.certificate.coverage import Code, edges_of, run_block
from wcet_probe.certificate.machine import Machine, Outcome, Place, State, joined
from wcet_probe.certificate.numbers import ANY, TOP, Value, within
from wcet_probe.certificate.records import Edge, Graph

_MOST_VISITS = 4


def natural_loop(header: str, back: Iterable[Edge], arriving: Mapping[str, list[Edge]]) -> set[str]:
    """The header and all nodes from which a back edge is reached without it."""
    found, waiting = {header}, [edge.source for edge in back]
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting += [edge.source for edge in arriving.get(node, ())]
    return found


def arriving_edges(graph: Graph) -> dict[str, list[Edge]]:
    """Edges by their target."""
    found: dict[str, list[Edge]] = {}
    for edge in graph.edges:
        found.setdefault(edge.target, []).append(edge)
    return found


def follow(
    code: Code,
    machine: Machine,
    graph: Graph,
    start: Mapping[str, State],
    inside: Collection[str],
    known: Mapping[str, Mapping[Place, Value]],
    *,
    stop: str | None,
) -> dict[str, State]:
    """What holds on each edge that is reached from ``start`` within ``inside``, without entering ``stop`` again.

    The way out of the function from a node that is reached is ``leave:NODE``, for which what held last is told.

    Args:
        code: the image.
        machine: executes.
        graph: of the certificate.
        start: nodes and what holds there.
        inside: nodes that are followed.
        known: what holds at nodes besides, whatever way control took; numbers of it replace what is wider.
        stop: a header whose edges end the way.
    """
    states = {node: between_blocks(state) for node, state in start.items()}
    places = {node: place for place, node in enumerate(_order(graph, start, inside, stop))}
    waiting, visits = sorted(places[node] for node in states), dict.fromkeys(states, 0)
    nodes = list(places)
    found: dict[str, State] = {}
    while waiting:
        node = nodes[heappop(waiting)]
        values = dict(states[node].values)
        for place, value in known.get(node, {}).items():
            own = values.get(place, TOP if isinstance(place, str) else ANY)
            if not own.base.startswith("@") and not within(own, value):
                values[place] = value
        block = run_block(code, machine, graph, node, State(values, {}, dict(states[node].flags)))
        for outcome in block.outcomes:
            if outcome.address is None:
                found[f"leave:{node}"] = outcome.state
            for edge in _edges_taken(graph, node, outcome):
                earlier = found.get(edge.name)
                found[edge.name] = outcome.state if earlier is None else joined(earlier, outcome.state)
                if edge.target == stop or edge.target not in inside:
                    continue
                new, old = between_blocks(outcome.state), states.get(edge.target)
                new = new if old is None else replace(joined(old, new), names={})
                if new == old:
                    continue
                visits[edge.target] = visits.get(edge.target, 0) + 1
                is_few = visits[edge.target] <= _MOST_VISITS
                states[edge.target] = new if old is None or is_few else _settled(old, new)
                if places[edge.target] not in waiting:
                    heappush(waiting, places[edge.target])
    return found


def _order(graph: Graph, start: Iterable[str], inside: Collection[str], stop: str | None) -> list[str]:
    """The nodes that are followed, each behind those that lead to it, but for loops: so most are executed once."""
    found: list[str] = []
    seen: set[str] = set()
    for first in start:
        stack = [] if first in seen else [(first, iter(graph.leading[first]))]
        seen.add(first)
        while stack:
            node, edges = stack[-1]
            following = next((e.target for e in edges if e.target not in seen and e.target in inside), None)
            if following is None:
                found.append(node)
                stack.pop()
            elif following != stop:
                seen.add(following)
                stack.append((following, iter(graph.leading[following])))
            else:
                seen.add(following)
    return found[::-1]


def _edges_taken(graph: Graph, node: str, outcome: Outcome) -> Sequence[Edge]:
    if outcome.is_assumed:
        return graph.leading[node]
    return () if outcome.address is None else edges_of(graph, node, outcome)


def between_blocks(state: State) -> State:
    """``state`` with values named by their places, and flags that speak of these."""
    places = {state.name(place): place for place in state.values}

    def renamed(name: object) -> object:
        if name is None or (isinstance(name, str | int) and state.name(name) == name):
            return name
        return places.get(name, object())

    flags = {
        key: replace(
            one, left=renamed(one.left), right=renamed(one.right), difference=renamed(one.difference)
        )
        for key, one in state.flags.items()
    }  # fmt: skip
    return State(dict(state.values), {}, flags)


def _settled(old: State, new: State) -> State:
    return State({place: _dropped(old.values.get(place), value) for place, value in new.values.items()})


def _dropped(old: Value | None, new: Value) -> Value:
    """A value that keeps changing is not followed any more."""
    if old is None or new == old:
        return new
    return ANY if new.may_be_stack or old.may_be_stack else TOP
