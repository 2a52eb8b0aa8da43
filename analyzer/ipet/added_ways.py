"""The same bound of a graph with more ways: those that only the analysis excludes, where they cost nothing more.

A way out of a copy of a block that the checker cannot exclude is added to the flow problem, as another copy of it
has it: with its costs, and its place in loops and constraints. If the bound is the same, that is its proof.

Words: flow problem, dual, certificate (docs/explanation/glossary.md).

*Soundness:* what is solved has all executions of the flow problem, and more, so a bound of it is one of this one. The
checker tests the result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from wcet_probe.analyzer.ipet.flow_system import FlowEdge, FlowProblem, Solution, flow_system, solve
from wcet_probe.certificate.kernel.contexts import context_of
from wcet_probe.errors import AnalysisError

Ways = Mapping[str, Sequence[int | None]]


def with_ways(problem: FlowProblem, ways: Ways) -> FlowProblem | None:
    """``problem`` with ``ways`` out of nodes, to addresses; None where no copy of a node has one of them.

    *Soundness:* as said of the module.
    """
    added: dict[FlowEdge, FlowEdge] = {}
    for node, addresses in ways.items():
        for address in addresses:
            like = _alike(problem, node, address)
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


def _alike(problem: FlowProblem, node: str, address: int | None) -> FlowEdge | None:
    """An edge from another copy of ``node`` in its context to ``address``."""
    places = {one.name: one.address for one in problem.nodes}
    found = (
        edge for edge in problem.edges
        if places[edge.source] == places[node] and places[edge.target] == address
        and context_of(edge.source) == context_of(node) == context_of(edge.target)
    )  # fmt: skip
    return next(found, None)


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
