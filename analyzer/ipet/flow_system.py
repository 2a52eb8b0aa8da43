"""Implicit path enumeration: the longest execution of a flow graph as an integer linear program.

Li and Malik, "Performance Analysis of Embedded Software Using Implicit Path Enumeration", DAC 1995. A variable counts
how often an edge is taken in one call; the flow into a node is the flow out of it, and loop bounds limit back edges.

The solver is not trusted. It proposes a basis of the linear relaxation; the dual vector of that basis is computed and
checked in exact arithmetic (`analyzer.exact_lp`). By weak duality every feasible dual vector gives a bound of every
feasible solution, whoever found it (Schrijver, "Theory of Linear and Integer Programming", 1986, section 7.4).

Words: IPET, linear relaxation, dual (docs/explanation/glossary.md).

*Soundness:* each execution of the entry function is a path of the graph from ``entry`` to one of ``exits``, and it
meets each loop bound and each constraint; both are the analysis' to prove. Nodes cost at most ``cost``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import floor
from typing import Literal

from wcet_probe.analyzer.ipet import exact_lp, solver
from wcet_probe.analyzer.ipet.exact_lp import Constraint, FlowSystem
from wcet_probe.errors import AnalysisError

__all__ = [
    "ENTER",
    "AuxiliaryVariable",
    "Constraint",
    "FlowEdge",
    "FlowLoop",
    "FlowNode",
    "FlowProblem",
    "FlowSystem",
    "Solution",
]

ENTER = "enter"
"""Name of the edge from outside into the entry node: it is taken once."""

_SMALL_COUNT = 1 << 20
_LARGEST_COUNT = 1 << 45
_NEAR = 16
"""So far from the solution of the relaxation an integer solution is looked for first."""


@dataclass(frozen=True, slots=True)
class FlowNode:
    """A basic block in one context.

    Attributes:
        name: without white space and ``|``, as all names here.
        address: of the first instruction.
        cost: of one execution, in the unit of the problem.
    """

    name: str
    address: int
    cost: int


@dataclass(frozen=True, slots=True)
class FlowEdge:
    """A transfer of control between nodes; ``extra_cost`` is charged each time besides the costs of the nodes."""

    name: str
    source: str
    target: str
    extra_cost: int = 0


@dataclass(frozen=True, slots=True)
class FlowLoop:
    """A loop: for each time it is entered, its back edges are taken at most ``max_back_edges`` times in sum.

    The entry edges and the back edges are together all the edges into the header. Loops with a common header are one.
    """

    name: str
    entry_edges: tuple[str, ...]
    back_edges: tuple[str, ...]
    max_back_edges: int


@dataclass(frozen=True, slots=True)
class AuxiliaryVariable:
    """Something that happens beside the flow, a cache miss for instance; constraints limit how often."""

    name: str
    cost: int


@dataclass(frozen=True, slots=True)
class FlowProblem:
    """What a bound is computed from, and what a certificate says: a graph, its costs and what limits the flow.

    Attributes:
        image_sha256: of the ELF file, 64 hexadecimal digits.
        entry_function, target: names.
        unit: of all costs.
        nodes, edges: the graph; edges may be parallel.
        entry: name of the first node. The edge `ENTER` leads into it.
        exits: names of the nodes after which the call may be over. The edge ``leave(node)`` leads out of each.
        loops: every cycle of the graph must pass a back edge of one of them, unless a constraint limits it.
        constraints: further limits on the numbers of times that edges are taken, `ENTER` and ``leave(…)`` among them,
            and that auxiliary variables happen.
        auxiliaries: what happens besides.
        exit_costs: of leaving after a node, besides its own cost, where that is not 0.
    """

    image_sha256: str
    entry_function: str
    target: str
    unit: Literal["instructions", "cycles"]
    nodes: tuple[FlowNode, ...]
    edges: tuple[FlowEdge, ...]
    entry: str
    exits: tuple[str, ...]
    loops: tuple[FlowLoop, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    auxiliaries: tuple[AuxiliaryVariable, ...] = ()
    exit_costs: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Solution:
    """The answer of `solve`.

    Attributes:
        optimum: the value of ``counts``: the most that an integer solution reaches, near that of the relaxation and as
            far as the solver can tell.
        counts: an integer solution by variable, edge or auxiliary variable, checked exactly against all constraints.
            Where the solver finds none that stands the check (the counts are huge, and no solution of the relaxation is
            integral), there are no counts and the optimum is None; the bound is none the less proved.
        dual: a feasible dual vector by the name of the constraint: exact.
        certified: the bound that ``dual`` proves, rounded down; at least the optimum. This is the number to print.
    """

    optimum: int | None
    counts: Mapping[str, int]
    dual: Mapping[str, Fraction]
    certified: int


def leave(node: str) -> str:
    """The name of the edge by which the call ends after ``node``."""
    return f"leave:{node}"


def into(problem: FlowProblem, node: str) -> tuple[str, ...]:
    """The names of the edges into ``node``: their sum is how often it is executed."""
    names = [ENTER] if node == problem.entry else []
    return (*names, *(edge.name for edge in problem.edges if edge.target == node))


def flow_system(problem: FlowProblem) -> FlowSystem:
    """The integer program of a flow problem.

    Its variables are the edges with `ENTER` and ``leave(…)``, and the auxiliary variables; its constraints are named
    ``enter``, ``flow:NODE`` (the flow in, less the flow out, is 0), ``loop:LOOP``, and as the problem names them.

    Raises:
        ValueError: a name is unknown, not unique or has white space, a bound is negative, or a loop lacks an edge.

    Soundness: as said of the module.
    """
    costs = {node.name: node.cost for node in problem.nodes}
    _check_names(problem, costs)
    _check_loops(problem)
    objective = {ENTER: costs[problem.entry]}
    flows: dict[str, dict[str, int]] = {name: {} for name in costs}
    flows[problem.entry][ENTER] = 1
    for edge in problem.edges:
        objective[edge.name] = costs[edge.target] + edge.extra_cost
        if edge.source != edge.target:
            flows[edge.target][edge.name] = 1
            flows[edge.source][edge.name] = -1
    for name in problem.exits:
        objective[leave(name)] = problem.exit_costs.get(name, 0)
        flows[name][leave(name)] = -1
    objective |= {auxiliary.name: auxiliary.cost for auxiliary in problem.auxiliaries}
    constraints = [Constraint("enter", {ENTER: 1}, "=", 1)]
    constraints += [Constraint(f"flow:{name}", flow, "=", 0) for name, flow in flows.items()]
    for loop in problem.loops:
        coefficients = dict.fromkeys(loop.entry_edges, -loop.max_back_edges) | dict.fromkeys(loop.back_edges, 1)
        constraints.append(Constraint(f"loop:{loop.name}", coefficients, "<=", 0))
    return FlowSystem(tuple(objective), objective, (*constraints, *problem.constraints), _magnitudes(problem))


def _magnitudes(problem: FlowProblem) -> dict[str, int]:
    """For each edge of a loop, the product of the bounds of all loops around it."""
    edges = {edge.name: edge for edge in problem.edges}
    leading: dict[str, list[FlowEdge]] = {}
    for edge in problem.edges:
        leading.setdefault(edge.target, []).append(edge)
    times = {node.name: 1 for node in problem.nodes}
    for loop in problem.loops:
        body = {edges[name].target for name in loop.back_edges}
        waiting = [edges[name].source for name in loop.back_edges]
        while waiting:
            node = waiting.pop()
            if node not in body:
                body.add(node)
                waiting += (edge.source for edge in leading.get(node, ()))
        for node in body:
            times[node] *= max(loop.max_back_edges, 1)
    found = {edge.name: min(times[edge.source], times[edge.target]) for edge in problem.edges}
    return {name: count for name, count in found.items() if count > 1}


def solve(system: FlowSystem, *, counted: bool = True) -> Solution:
    """The largest value of an integer program, with an exact proof that there is no larger one.

    Where it is not to be ``counted``, no integer solution is looked for: the bound is the same.

    The linear relaxation is solved by the solver and then exactly, from the solver's basis on. Where its solution is
    integral, it is the integer optimum as well; else the solver looks for one. The same system gives the same answer.

    Raises:
        AnalysisError: the constraints contradict each other, or nothing limits some variables; it names them.

    Soundness: ``certified`` is at least the value of every solution, by weak duality; no number of the solver enters
    unchecked.
    """
    relaxed = _relaxation(system)
    certified = floor(sum(constraint.constant * relaxed.dual[constraint.name] for constraint in system.constraints))
    solution: Mapping[str, Fraction] | None = relaxed.primal
    if not _is_solution(system, relaxed.primal):
        solution = _integer_solution(system, relaxed.primal) if counted else None
    if solution is None:
        return Solution(None, {}, relaxed.dual, certified)
    counts = {name: int(solution.get(name, 0)) for name in system.variables}
    return Solution(_value(system, counts), counts, relaxed.dual, certified)


def _value(system: FlowSystem, counts: Mapping[str, int]) -> int:
    return sum(cost * counts[name] for name, cost in system.objective.items())


def _relaxation(system: FlowSystem) -> exact_lp.Vertex:
    """An optimal vertex of the linear relaxation."""
    vertex = exact_lp.optimise(system, solver.basis(system))
    if vertex.ray:
        names = ", ".join(vertex.ray)
        raise AnalysisError(f"nothing limits how often {names} are taken: bound the loop that they belong to.")
    if vertex.contradicting:
        names = ", ".join(vertex.contradicting)
        raise AnalysisError(f"no path meets all of {names}: correct the flow facts among them.")
    return vertex


def _integer_solution(system: FlowSystem, relaxed: Mapping[str, Fraction]) -> Mapping[str, Fraction] | None:
    """The solver's integer solution, made exact; None where it has none that stands the exact check.

    Large counts may be off by the solver's rounding: the small ones are then fixed, and the large ones follow exactly.
    """
    # Beyond what floating point counts exactly, the solver may search for ever.
    if max(relaxed.values(), default=0) >= _LARGEST_COUNT:
        return None
    found = solver.integer(system, relaxed, _NEAR) or solver.integer(system)
    solution = {name: Fraction(count) for name, count in found.items()}
    if not found or _is_solution(system, solution):
        return solution or None
    small = {name: count for name, count in found.items() if count < _SMALL_COUNT}
    fixed = (Constraint(f"fixed:{name}", {name: 1}, "=", count) for name, count in small.items())
    try:
        solution = dict(_relaxation(replace(system, constraints=(*system.constraints, *fixed))).primal)
    except AnalysisError:
        return None
    return solution if _is_solution(system, solution) else None


def _is_solution(system: FlowSystem, solution: Mapping[str, Fraction]) -> bool:
    """Whether it is an integer solution, exactly."""
    if any(value < 0 or value.denominator != 1 for value in solution.values()):
        return False
    counts = {name: value.numerator for name, value in solution.items()}
    for constraint in system.constraints:
        value = sum(factor * counts.get(name, 0) for name, factor in constraint.coefficients.items())
        if value > constraint.constant or (constraint.relation == "=" and value != constraint.constant):
            return False
    return True


def _check_names(problem: FlowProblem, costs: Mapping[str, int]) -> None:
    """Raise ValueError where the problem is not well-formed."""
    edges = [ENTER, *map(leave, problem.exits), *(edge.name for edge in problem.edges)]
    edges += [auxiliary.name for auxiliary in problem.auxiliaries]
    constraints = ["enter", *(f"flow:{name}" for name in costs), *(f"loop:{loop.name}" for loop in problem.loops)]
    constraints += [constraint.name for constraint in problem.constraints]
    for kind, names in (("node", [node.name for node in problem.nodes]), ("edge", edges), ("constraint", constraints)):
        if len(set(names)) < len(names):
            raise ValueError(f"two {kind}s of the flow problem have one name.")
        for name in names:
            if "|" in name or [name] != name.split():
                raise ValueError(f"{name!r} is no name of a {kind}.")
    for edge in problem.edges:
        if edge.source not in costs or edge.target not in costs:
            raise ValueError(f"edge {edge.name} leads from or to an unknown node.")
    known = set(edges)
    for constraint in problem.constraints:
        if not constraint.coefficients.keys() <= known:
            raise ValueError(f"constraint {constraint.name} speaks of an unknown edge or event.")


def _check_loops(problem: FlowProblem) -> None:
    """Raise ValueError where a loop is not what `FlowLoop` says."""
    heads = {edge.name: edge.target for edge in problem.edges} | {ENTER: problem.entry}
    arriving: dict[str, list[str]] = {}
    for name, head in heads.items():
        arriving.setdefault(head, []).append(name)
    for loop in problem.loops:
        if not loop.back_edges or loop.max_back_edges < 0:
            raise ValueError(f"loop {loop.name} has no back edge, or a negative bound.")
        both = sorted((*loop.entry_edges, *loop.back_edges))
        if both != sorted(arriving.get(heads.get(loop.back_edges[0], ""), [])):
            raise ValueError(f"the edges of loop {loop.name} are not all the edges into one header.")
