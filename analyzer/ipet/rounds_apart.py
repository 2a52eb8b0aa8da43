"""Graphs of certificates in which the rounds of a loop stand apart, where these are few and each tells something else.

A logarithm by binary search has variables that move together, and what it ends with is a number of all of them, which
is lost where rounds are joined. Here each node of such a loop is copied for each state that it is reached with, along
each way through a round, until all that follows is among what was followed before.

Words: certificate, header, trace partitioning (docs/explanation/glossary.md).

*Soundness:* none is claimed. The checker tests the graph and the values on it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from wcet_probe.analyzer.ipet.checkable import Checkable, checkable, flow_graph
from wcet_probe.analyzer.ipet.decided_flags import known_flags
from wcet_probe.analyzer.ipet.flow_system import FlowEdge, FlowProblem
from wcet_probe.analyzer.ipet.node_flow import NodeFlow
from wcet_probe.certificate.kernel.coverage import Code, edges_taken, outside, run_block
from wcet_probe.certificate.kernel.equalities import beginning
from wcet_probe.certificate.kernel.flags import lacking
from wcet_probe.certificate.kernel.records import Graph
from wcet_probe.certificate.machines.machine import Machine
from wcet_probe.certificate.values.numbers import Value
from wcet_probe.certificate.values.state import Comparison, Place, State
from wcet_probe.errors import VerificationError
from wcet_probe.model.image import Image
from wcet_probe.model.instruction import Instruction

_MOST_COPIES = 300
"""Of the nodes of one loop."""


Apart = dict[str, dict[Place, Value]]
"""What copies are there for, by name: see `checkable`."""


def with_rounds_apart(
    problem: FlowProblem, image: Image, instructions: Sequence[Instruction]
) -> tuple[FlowProblem, Apart]:
    """``problem`` with copies of the nodes of loops that have no other inside, if these are few; and what each is for.

    Args:
        problem: the graph; what limits its flow is left out.
        image: the binary.
        instructions: its code.

    *Soundness:* none is claimed.
    """
    found, apart = replace(problem, loops=(), constraints=(), auxiliaries=()), Apart()
    code = Code(image, {one.address: one for one in instructions})
    done, loops = set[str](), _innermost(flow_graph(found))
    while loops.keys() - done:
        graph, told = flow_graph(found), checkable(found, image, instructions, {}, apart=apart)
        for header in sorted(loops.keys() - done):
            done.add(header)
            copies = _followed(code, graph, told, header, loops[header])
            if copies is not None:
                found, named = _with_copies(found, loops[header], copies)
                apart |= named
                break
    return found, apart


def _innermost(graph: Graph) -> dict[str, frozenset[str]]:
    """The loops that have no other inside and do not begin with the graph, by header."""
    flow = NodeFlow(graph, graph.edges)
    loops = {flow.names[one.header]: frozenset(flow.names[node] for node in one.nodes) for one in flow.order.loops}
    return {
        header: nodes for header, nodes in loops.items() if header != graph.entry and len(nodes & loops.keys()) == 1
    }


@dataclass(slots=True)
class _Copies:
    """Copies of the nodes of a loop, by number, and the edges between them.

    Attributes:
        of: what each is a copy of.
        held: what is known where each begins.
        edges: an edge of the graph, its source and its target if that is in the loop, both by number; the source is
            None where the loop is entered.
    """

    of: list[str] = field(default_factory=list)
    held: list[tuple[Mapping[Place, Value], Mapping[str, Comparison]]] = field(default_factory=list)
    edges: dict[tuple[str, int | None, int | None], None] = field(default_factory=dict)
    _numbers: dict[str, list[int]] = field(default_factory=dict)

    def at(self, node: str, state: State) -> int:
        """The copy of ``node`` that is reached with ``state``: one of which that is known already, or a new one."""
        known = self._numbers.setdefault(node, [])
        for number in known:
            values, flags = self.held[number]
            if outside(state, values) is None and lacking(state, flags) is None:
                return number
        known.append(len(self.of))
        self.of.append(node)
        self.held.append((dict(state.values), known_flags(state)))
        return known[-1]


def _followed(code: Code, graph: Graph, told: Checkable, header: str, inside: Collection[str]) -> _Copies | None:
    """The copies of a loop's nodes; None where they are too many, or as many as before."""
    machine, copies = Machine(code.image), _Copies()

    def follow(node: str, number: int | None, state: State) -> None:
        for one in run_block(code, machine, graph, node, state).outcomes:
            for edge in edges_taken(graph, node, one):
                if edge.target in inside and (number is not None or edge.target == header):
                    copies.edges[edge.name, number, copies.at(edge.target, one.state)] = None
                elif number is not None:
                    copies.edges[edge.name, number, None] = None

    try:
        for source in sorted({edge.source for edge in graph.edges if edge.target == header} - set(inside)):
            follow(source, None, beginning(told.invariants[source], told.flags.get(source, {}), {}))
        done = 0
        while done < len(copies.of) <= _MOST_COPIES:
            values, flags = copies.held[done]
            follow(copies.of[done], done, beginning(values, flags, {}))
            done += 1
    except VerificationError:
        return None
    return copies if len(inside) < len(copies.of) <= _MOST_COPIES else None


def _with_copies(problem: FlowProblem, inside: Collection[str], copies: _Copies) -> tuple[FlowProblem, Apart]:
    """``problem`` with ``copies`` in the place of the nodes of a loop, and what they are there for."""
    nodes = {one.name: one for one in problem.nodes}
    edges = {one.name: one for one in problem.edges}
    used = {one.name for one in problem.nodes if one.name not in inside}
    names: list[str] = []
    for original in copies.of:
        place = original.rstrip("'")
        name = next(one for number in count() if (one := place + "'" * number) not in used)
        names.append(name)
        used.add(name)
    between: list[FlowEdge] = []
    for name, source, target in copies.edges:
        edge = edges[name]
        new = replace(
            edge,
            source=edge.source if source is None else names[source],
            target=edge.target if target is None else names[target],
        )
        suffix = name.removeprefix(f"{edge.source}>{edge.target}")
        between.append(replace(new, name=f"{new.source}>{new.target}{suffix}"))
    kept = [one for one in problem.edges if one.source not in inside and one.target not in inside]
    exits = [name for name in problem.exits if name not in inside]
    exits += [name for name, original in zip(names, copies.of, strict=True) if original in problem.exits]
    found = replace(
        problem,
        nodes=(
            *(one for one in problem.nodes if one.name not in inside),
            *(replace(nodes[original], name=name) for name, original in zip(names, copies.of, strict=True)),
        ),
        edges=(*kept, *between),
        exits=tuple(exits),
    )
    return found, {name: dict(values) for name, (values, _) in zip(names, copies.held, strict=True)}
