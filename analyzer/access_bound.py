"""How many data accesses a call makes at most, in all and to each set of the data cache: IPET that counts accesses.

The flow problem is that of the bound in instructions; a block costs as many as it has accesses that may go to the set.
Sets that the same accesses may go to have one bound, so that there are few problems to solve.

Words: IPET, flow problem, set (docs/explanation/glossary.md).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from wcet_probe.analyzer.bound import prepare
from wcet_probe.analyzer.dcache.symbolic_blocks import SymbolicBlocks
from wcet_probe.analyzer.ipet.flow_problem import Subject, flow_problem
from wcet_probe.analyzer.ipet.flow_system import flow_system, solve
from wcet_probe.analyzer.prepared import Bounded, Prepared
from wcet_probe.analyzer.request import BoundRequest
from wcet_probe.analyzer.values.result import Values
from wcet_probe.errors import UsageError


@dataclass(frozen=True, slots=True)
class AccessBound:
    """Most data accesses of one call.

    Attributes:
        accesses: in all.
        by_set: to each set of the data cache, from set 0 on; an access of which the set is not known counts in each.
    """

    accesses: int
    by_set: tuple[int, ...]


def most_accesses(request: BoundRequest, progress: Callable[[str], None] = lambda _: None) -> AccessBound:
    """Most data accesses of one call of ``request.entry``; ``progress`` is told in words what is being done.

    Raises:
        AnalysisError: no bound can be proved; the message names what stands in the way.
        UsageError: the target has no data cache, there is no such function, or a flow fact is wrong.

    *Soundness:* as said of `analyzer.bound`, under the same assumptions; a predicated access counts as executed, and
    one that may go to several lines counts for each.
    """
    if request.target.dcache is None:
        raise UsageError(f"{request.target.name} has no data cache, and so no sets; choose another target.")
    return most_accesses_of(prepare(request, progress), progress)


def most_accesses_of(
    prepared: Prepared,
    progress: Callable[[str], None] = lambda _: None,
    shown: Mapping[int, frozenset[int]] | None = None,
) -> AccessBound:
    """As `most_accesses`, of what is prepared.

    Parameters:
        shown: of instructions, by their addresses, the sets that all of their accesses were shown to be to otherwise.

    Raises:
        AnalysisError, UsageError: as `most_accesses`.

    *Soundness:* as said of `most_accesses`; whoever tells what is ``shown`` is believed.
    """
    request, cache = prepared.request, prepared.request.target.dcache
    if cache is None:
        raise UsageError(f"{request.target.name} has no data cache, and so no sets; choose another target.")
    stage = prepared.bounded(request.parameters)
    values, lines = prepared.values, prepared.data.lines
    found = {point: _sets(values, lines, point, shown or {}) for point in values.states}
    progress("counting accesses")
    total = _solved(stage, {point: len(each) for point, each in found.items()})
    by_costs: dict[tuple[int, ...], int] = {}
    by_set = []
    for index in range(cache.sets):
        costs = {point: sum(sets is None or index in sets for sets in each) for point, each in found.items()}
        key = tuple(costs.values())
        if key not in by_costs:
            by_costs[key] = _solved(stage, costs)
        by_set.append(by_costs[key])
    return AccessBound(total, tuple(by_set))


def _sets(
    values: Values, lines: SymbolicBlocks | None, point: int, shown: Mapping[int, frozenset[int]]
) -> list[frozenset[int] | None]:
    """The sets that each access at ``point`` may be to; one that may go to two lines counts as two."""
    if lines is None:
        return [shown.get(access.instruction_address) for access in values.accesses[point]]
    known = ((lines.places.sets_of(access), shown.get(access.instruction_address)) for access in lines.accesses(point))
    return [own if other is None else other if own is None else own & other for own, other in known]


def _solved(stage: Bounded, costs: dict[int, int]) -> int:
    """The most that executions of the points cost in one call."""
    request = stage.request
    problem = flow_problem(
        stage.prepared.values,
        stage.loops.flow,
        (*stage.loops.constraints, *stage.asserted.constraints, *stage.prepared.infeasible_pairs),
        Subject(request.image.sha256, request.target.name, "instructions"),
        cost=lambda point: costs[point.index],
        edge_cost=lambda _: 0,
    )
    return solve(flow_system(problem)).certified
