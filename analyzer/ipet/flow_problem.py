"""From values and loop bounds to the flow problem of IPET: names, costs, loop and flow constraints.

Words: flow problem, loop bound, linear constraint (docs/explanation/glossary.md).

*Soundness:* all points and edges that the value analysis could not exclude are in the problem.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from wcet_probe.analyzer.graph.supergraph import EXIT, Context, Edge, Point
from wcet_probe.analyzer.ipet.flow_system import (
    ENTER,
    AuxiliaryVariable,
    Constraint,
    FlowEdge,
    FlowLoop,
    FlowNode,
    FlowProblem,
    leave,
)
from wcet_probe.analyzer.values.result import Values

Unit = Literal["instructions", "cycles"]
UNITS: tuple[Unit, ...] = ("instructions", "cycles")


@dataclass(frozen=True, slots=True)
class BoundedLoop:
    """A loop of the flow problem: ``max_header`` executions of the header for each entry."""

    header: int
    entry_edges: tuple[Edge, ...]
    back_edges: tuple[Edge, ...]
    max_header: int


@dataclass(frozen=True, slots=True)
class LinearConstraint:
    """``sum of coefficients * counts <= constant``: points, edges (entering is ``None``), auxiliary variables."""

    name: str
    points: tuple[tuple[int, int], ...] = ()
    edges: tuple[tuple[Edge | None, int], ...] = ()
    constant: int = 0
    auxiliaries: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Subject:
    """What a flow problem is about."""

    image_sha256: str
    target: str
    unit: Unit


def flow_problem(
    values: Values,
    loops: Sequence[BoundedLoop],
    constraints: Sequence[LinearConstraint],
    subject: Subject,
    *,
    cost: Callable[[Point], int],
    edge_cost: Callable[[Edge], int],
    auxiliaries: Sequence[AuxiliaryVariable] = (),
) -> FlowProblem:
    """The flow problem of ``values``.

    Args:
        values: points, edges and states.
        loops: every loop of the graph.
        constraints: what flow facts say besides.
        subject: what the certificate speaks of.
        cost: of one execution of a point's block.
        edge_cost: of taking an edge, beside the blocks.
        auxiliaries: what happens besides, as often as ``constraints`` allow.

    *Soundness:* as said of the module; ``loops`` and ``constraints`` are for the caller to prove or to assume.
    """
    points = {index: values.graph.points[index] for index in sorted(values.states)}
    names = {index: point_name(point) for index, point in points.items()}
    arriving: dict[int, list[Edge]] = {index: [] for index in points}
    edges, exits = [], []
    for edge in values.edges:
        if edge.target == EXIT:
            exits.append(edge)
            continue
        arriving[edge.target].append(edge)
        edges.append(FlowEdge(edge_name(names, edge), names[edge.source], names[edge.target], edge_cost(edge)))
    flow_loops = [_flow_loop(loop, names) for loop in loops if loop.max_header >= 1]
    never = [
        LinearConstraint(f"never:{names[loop.header]}", edges=tuple((edge, 1) for edge in loop.entry_edges))
        for loop in loops
        if loop.max_header < 1
    ]
    flow_loops += [_flow_loop(loop, names) for loop in loops if loop.max_header < 1]
    return FlowProblem(
        image_sha256=subject.image_sha256,
        entry_function=values.graph.entry.name,
        target=subject.target,
        unit=subject.unit,
        nodes=tuple(FlowNode(names[index], point.block.address, cost(point)) for index, point in points.items()),
        edges=tuple(sorted(edges, key=lambda edge: edge.name)),
        entry=names[0],
        exits=tuple(dict.fromkeys(names[edge.source] for edge in exits)),
        loops=tuple(flow_loops),
        auxiliaries=tuple(auxiliaries),
        exit_costs={names[index]: cycles for index, cycles in _exit_costs(exits, edge_cost).items()},
        constraints=tuple(_constraint(constraint, names, arriving) for constraint in (*constraints, *never)),
    )


def point_name(point: Point) -> str:
    """A point's name in certificates: the calls that lead to it, function, and offset."""
    offset = point.block.address - point.function.address
    return context_name(point.context) + f"{point.function.name}+{offset:#x}" + "'" * point.copy


def context_name(context: Context) -> str:
    """The addresses of the calls that lead to a context, as a prefix."""
    return "".join(f"{site:#x}/" for site in context)


def edge_name(names: Mapping[int, str], edge: Edge) -> str:
    """An edge's name in certificates; the ways out of the function from one point have one name."""
    if edge.target == EXIT:
        return leave(names[edge.source])
    suffix = "" if edge.address is None else f":{edge.address:#x}"
    return f"{names[edge.source]}>{names[edge.target]}:{edge.way}{suffix}"


def _exit_costs(exits: Iterable[Edge], edge_cost: Callable[[Edge], int]) -> dict[int, int]:
    """What leaving from each point costs at most."""
    costs: dict[int, int] = {}
    for edge in exits:
        costs[edge.source] = max(costs.get(edge.source, 0), edge_cost(edge))
    return costs


def _flow_loop(loop: BoundedLoop, names: Mapping[int, str]) -> FlowLoop:
    entering = tuple(edge_name(names, edge) for edge in loop.entry_edges)
    return FlowLoop(
        name=names[loop.header],
        entry_edges=(ENTER, *entering) if loop.header == 0 else entering,
        back_edges=tuple(edge_name(names, edge) for edge in loop.back_edges),
        max_back_edges=max(0, loop.max_header - 1),
    )


def _constraint(
    constraint: LinearConstraint, names: Mapping[int, str], arriving: Mapping[int, Sequence[Edge]]
) -> Constraint:
    coefficients: dict[str, int] = {}
    for index, coefficient in constraint.points:
        into: list[Edge | None] = list(arriving[index])
        for edge in [*into, None] if index == 0 else into:
            _add(coefficients, names, edge, coefficient)
    for edge, coefficient in constraint.edges:
        _add(coefficients, names, edge, coefficient)
    coefficients.update(constraint.auxiliaries)
    return Constraint(constraint.name, coefficients, "<=", constraint.constant)


def _add(coefficients: dict[str, int], names: Mapping[int, str], edge: Edge | None, coefficient: int) -> None:
    name = ENTER if edge is None else edge_name(names, edge)
    coefficients[name] = coefficients.get(name, 0) + coefficient
