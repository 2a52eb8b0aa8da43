"""The same bound of a graph with more ways: those that only the analysis excludes, where they cost nothing more.

A way out of a copy of a block that the checker cannot exclude is added to the flow problem, as another copy of it
has it: with its costs, and its place in loops and constraints. If the bound is the same, that is its proof. No way is
added by which a loop would be entered past its header, of which the checker would know no loop.

Words: flow problem, dual, certificate (docs/explanation/glossary.md).

*Soundness:* what is solved has all executions of the flow problem, and more, so a bound of it is one of this one. The
checker tests the result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from wcet_probe.analyzer.ipet.checkable import flow_graph
from wcet_probe.analyzer.ipet.flow_system import FlowEdge, FlowProblem, Solution, flow_system, solve
from wcet_probe.certificate.kernel.contexts import context_of
from wcet_probe.certificate.kernel.shapes import arriving_edges, natural_loop
from wcet_probe.errors import AnalysisError

Ways = Mapping[str, Sequence[int | None]]


def with_ways(problem: FlowProblem, ways: Ways) -> FlowProblem | None:
    """``problem`` with ``ways`` out of nodes, to addresses; None where no copy of a node has one of them.

    *Soundness:* as said of the module.
    """
    arriving = arriving_edges(flow_graph(problem))
    targets = {edge.name: edge.target for edge in problem.edges}
    headers = [(targets.get(loop.back_edges[0], ""), loop.back_edges) for loop in problem.loops]
    loops = [(header, natural_loop(header, back, arriving)) for header, back in headers]
    added: dict[FlowEdge, FlowEdge] = {}
    for node, addresses in ways.items():
        for address in addresses:
            like = _alike(problem, loops, node, address)
            if like is None:
                return None
            name = node + like.name.removeprefix(like.source)
            added[replace(like, name=name, source=node)] = like
    others: dict[str, list[str]] = {}
    for new, like in added.items():
        others.setdefault(like.name, []).append(new.name)

    def with_others(names: Sequence[str]) -> tuple[str, ...]:
        return (*names, *(new for name in names for new in others.get(name, ())))

    return replace(
        problem,
        edges=(*problem.edges, *added),
        loops=tuple(
            replace(one, entry_edges=with_others(one.entry_edges), back_edges=with_others(one.back_edges))
            for one in problem.loops
        ),
        constraints=tuple(
            replace(one, coefficients={new: n for name, n in one.coefficients.items() for new in with_others([name])})
            for one in problem.constraints
        ),
    )


def _alike(
    problem: FlowProblem, loops: Sequence[tuple[str, set[str]]], node: str, address: int | None
) -> FlowEdge | None:
    """An edge from another copy of ``node`` in its context to ``address``, which is of the same loops from there."""
    places = {one.name: one.address for one in problem.nodes}
    found = (
        edge for edge in problem.edges
        if places[edge.source] == places[node] and places[edge.target] == address
        and context_of(edge.source) == context_of(node) == context_of(edge.target)
        and all(_is_as_from(node, edge, header, inside) for header, inside in loops if edge.target in inside)
    )  # fmt: skip
    return next(found, None)


def _is_as_from(node: str, edge: FlowEdge, header: str, inside: set[str]) -> bool:
    """Whether ``edge``, which leads into a loop, would be the same from ``node``: within it, or to its header."""
    return (node in inside) == (edge.source in inside) and (node in inside or edge.target == header)


def solved_with_ways(problem: FlowProblem, solution: Solution, ways: Ways) -> tuple[FlowProblem, Solution] | None:
    """``problem`` with ``ways``, and ``solution`` with a dual vector of it; None where the bound is greater.

    *Soundness:* as said of the module.
    """
    more = with_ways(problem, ways)
    if more is None:
        return None
    try:
        found = solve(flow_system(more), counted=False)
    except (AnalysisError, ValueError):
        return None
    return None if found.certified != solution.certified else (more, replace(solution, dual=found.dual))
