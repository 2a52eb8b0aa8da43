# SPDX-License-Identifier: 0BSD
"""Following what holds from one place of the graph through a part of it: for counters of loops and excluded pairs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from heapq import heappop, heappush

from wcet_probe.certificate.coverage import Code, edges_taken, run_block
from wcet_probe.certificate.machine import Machine
from wcet_probe.certificate.numbers import ANY, TOP, Value, within
from wcet_probe.certificate.records import Graph
from wcet_probe.certificate.shapes import postorder
from wcet_probe.certificate.state import Place, State, joined

_MOST_VISITS = 4


def follow(
    code: Code,
    machine: Machine,
    graph: Graph,
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
        code: the image.
        machine: executes.
        graph: of the certificate.
        first: where it begins.
        start: what holds there.
        inside: nodes that are followed.
        known: what holds at nodes besides, whatever way control took; numbers of it replace what is wider.
        stop: a header whose edges end the way.
    """
    states = {first: between_blocks(start)}
    leading = {
        node: [edge.target for edge in graph.leading[node] if edge.target in inside and edge.target != stop]
        for node in {*inside, first}
    }
    # Each node behind those that lead to it, but for loops: so most are executed once.
    nodes = postorder(leading, first)[::-1]
    places = {node: place for place, node in enumerate(nodes)}
    waiting, visits, found = [0], {first: 0}, dict[str, State]()
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
            for edge in edges_taken(graph, node, outcome):
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


def between_blocks(state: State) -> State:
    """``state`` with values named by their places, and flags that speak of these."""
    places = {state.name(place): place for place in state.values}

    def renamed(name: object) -> object:
        if name is None or (isinstance(name, str | int) and state.name(name) == name):
            return name
        return places.get(name, object())

    flags = {
        key: one._replace(left=renamed(one.left), right=renamed(one.right), difference=renamed(one.difference))
        for key, one in state.flags.items()
    }
    return State(dict(state.values), {}, flags)


def _settled(old: State, new: State) -> State:
    return State({place: _dropped(old.values.get(place), value) for place, value in new.values.items()})


def _dropped(old: Value | None, new: Value) -> Value:
    """A value that keeps changing is not followed any more."""
    if old is None or new == old:
        return new
    return ANY if new.may_be_stack or old.may_be_stack else TOP
