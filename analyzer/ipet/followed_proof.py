"""The same bound by less: a proof that rests on nothing that the checker cannot follow.

Of all dual vectors that prove a bound the solver gives one. It may use pairs of edges, limits of misses, or cheap nodes
that only the analysis can show, where others that the checker follows would do. So the flow problem is solved again
without the former, and at the costs that the checker asks for; if the bound is the same, that is its proof.

What is said beside the bound stays as it was: the counts of the solution are not looked for again, and costs are raised
only where the solution does not pass.

Words: dual, certificate (docs/explanation/glossary.md).

*Soundness:* what is solved has a constraint less, or costs more, than the flow problem, so each execution that this one
counts is counted, and a bound of it is one of this one. The checker tests the result.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from wcet_probe.analyzer.ipet.flow_system import (
    Constraint,
    FlowProblem,
    Solution,
    flow_system,
    into,
    leave,
    solve,
)
from wcet_probe.certificate.flow.pairs import Pair, PairReader, excluded_pairs
from wcet_probe.certificate.flow.walk import Covered
from wcet_probe.certificate.kernel.coverage import Code, Coverage
from wcet_probe.certificate.kernel.records import Graph
from wcet_probe.certificate.values.numbers import Value
from wcet_probe.certificate.values.state import Place
from wcet_probe.errors import AnalysisError

_MOST_ROUNDS = 6
PAIR = "conflict:"
"""What the names of pairs of edges that exclude each other begin with."""


@dataclass(slots=True)
class FollowedPairs:
    """Which pairs of edges the checker can exclude; each is asked once.

    What was found stays where another graph is put in place of this one that differs in costs alone.

    Attributes:
        code: the image.
        graph: of the flow problem.
        invariants: of its nodes.
        coverage: of the graph, by the checker.
    """

    code: Code
    graph: Graph
    invariants: Mapping[str, Mapping[Place, Value]]
    coverage: Coverage
    _known: dict[Pair, bool] = field(default_factory=dict)

    def unfollowed(self, constraints: Iterable[Constraint]) -> set[str]:
        """The names of those of ``constraints`` that are pairs which the checker cannot exclude.

        *Soundness:* none is claimed.
        """
        reader = PairReader(self.graph)
        asked: dict[str, Pair | None] = {}
        for one in constraints:
            if one.name.startswith(PAIR):
                factors = {name: factor for name, factor in one.coefficients.items() if factor}
                asked[one.name] = reader.pair_of(factors, one.constant)
        new = {pair for pair in asked.values() if pair is not None and pair not in self._known}
        if new:
            covered = Covered(self.code, self.graph, self.invariants, self.coverage)
            found = excluded_pairs(covered, sorted(new, key=str))
            self._known |= {pair: pair in found for pair in new}
        return {name for name, pair in asked.items() if pair is None or not self._known[pair]}


def followed_solution(
    problem: FlowProblem, solution: Solution, unfollowed: Callable[[Sequence[Constraint]], Collection[str]]
) -> Solution | None:
    """``solution`` with a dual vector that uses no constraint which is ``unfollowed``; None where none is found.

    Args:
        problem: the flow problem, or one that has the same counts and costs more.
        solution: of it, as far as its counts and its bound go.
        unfollowed: of the constraints that it is given, the names of those that the checker cannot show.

    *Soundness:* as said of the module.
    """
    dual, dropped = solution.dual, set[str]()
    for _ in range(_MOST_ROUNDS):
        wrong = unfollowed([one for one in problem.constraints if dual.get(one.name)])
        if not wrong:
            return replace(solution, dual=dual)
        dropped |= set(wrong)
        left = tuple(one for one in problem.constraints if one.name not in dropped)
        try:
            found = solve(flow_system(replace(problem, constraints=left)), counted=False)
        except AnalysisError:  # what was dropped is all that limits something
            return None
        if found.certified != solution.certified:
            return None
        dual = found.dual
    return None


def at_costs(
    problem: FlowProblem,
    solution: Solution,
    *,
    nodes: Mapping[str, int],
    edges: Mapping[str, int],
    exits: Mapping[str, int],
) -> FlowProblem | None:
    """``problem`` with costs that are at least the given ones; None where ``solution`` passes what becomes dearer.

    *Soundness:* as said of the module.
    """
    dearer = {one.name for one in problem.nodes if nodes.get(one.name, 0) > one.cost}
    counts = solution.counts
    raised = {edge.name for edge in problem.edges if edges.get(edge.name, 0) > edge.extra_cost}
    raised |= {leave(name) for name in problem.exits if exits.get(name, 0) > problem.exit_costs.get(name, 0)}
    raised |= {name for node in dearer for name in into(problem, node)}
    if any(counts.get(name) for name in raised):
        return None
    return replace(
        problem,
        nodes=tuple(replace(one, cost=max(one.cost, nodes.get(one.name, 0))) for one in problem.nodes),
        edges=tuple(replace(one, extra_cost=max(one.extra_cost, edges.get(one.name, 0))) for one in problem.edges),
        exit_costs={
            name: max(problem.exit_costs.get(name, 0), exits.get(name, 0)) for name in problem.exits
        },
    )  # fmt: skip


def with_credits(problem: FlowProblem, name: str, credits_of: Mapping[str, int]) -> FlowProblem:
    """``problem`` whose constraint ``name`` gives at least so many credits for each edge.

    *Soundness:* as said of the module.
    """

    def changed(one: Constraint) -> Constraint:
        if one.name != name:
            return one
        own = {edge: min(one.coefficients.get(edge, 0), -count) for edge, count in credits_of.items() if count > 0}
        return replace(one, coefficients={**one.coefficients, **own})

    return replace(problem, constraints=tuple(map(changed, problem.constraints)))
