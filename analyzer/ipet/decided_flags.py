"""What flags tell where nodes begin, for the checker to test: branches that were decided by the ways that lead to them.

Words: decided flags, certificate (docs/explanation/glossary.md).

*Soundness:* none is claimed. The checker tests the result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from wcet_probe.analyzer.ipet.node_flow import NodeFlow
from wcet_probe.certificate.kernel.coverage import Code, edges_taken, run_block
from wcet_probe.certificate.kernel.equalities import Equalities, beginning
from wcet_probe.certificate.kernel.flags import Flags, lacking, ranges_of
from wcet_probe.certificate.kernel.records import Edge, Graph
from wcet_probe.certificate.machines.machine import Machine, Outcome
from wcet_probe.certificate.values.numbers import Value, join
from wcet_probe.certificate.values.state import Comparison, Place, State

_MOST_VISITS = 8

Values = Mapping[str, Mapping[Place, Value]]
Told = dict[str, dict[str, Comparison]]
Equal = Mapping[Place, Place]
_NONE: Equal = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Execution:
    """What is executed: the image, the graph, the machine, and what holds where nodes begin.

    *Soundness:* it knows what the checker knows.
    """

    code: Code
    graph: Graph
    machine: Machine
    invariants: Values

    def outcomes(self, node: str, flags: Mapping[str, Comparison], equal: Equal = _NONE) -> tuple[Outcome, ...]:
        """The ways out of a node where flags tell so much, and places are equal."""
        state = beginning(self.invariants[node], flags, equal)
        return run_block(self.code, self.machine, self.graph, node, state).outcomes

    def excluded(self, node: str, flags: Mapping[str, Comparison], equal: Equal = _NONE) -> tuple[int | None, ...]:
        """Ways out of a node that the checker sees and the graph does not have."""
        outcomes = [one for one in self.outcomes(node, flags, equal) if not one.is_assumed]
        departing = [one for one in outcomes if one.address is not None and not edges_taken(self.graph, node, one)]
        leaves = any(one.address is None for one in outcomes) and node not in self.graph.exits
        return (*dict.fromkeys(one.address for one in departing), *((None,) if leaves else ()))


def decided_flags(flow: Execution) -> tuple[Told, dict[str, Sequence[int | None]]]:
    """What flags tell where it excludes ways that the graph does not have, and the ways that are left to exclude.

    *Soundness:* none is claimed.
    """
    told = _told(flow)
    wanted = _wanted(flow, told)
    kept = {node: own for node, own in told.items() if node in wanted and own}
    return kept, still_excluded(flow, kept, {})


def still_excluded(flow: Execution, flags: Flags, equal: Equalities) -> dict[str, Sequence[int | None]]:
    """The ways that are left to exclude where so much is told.

    *Soundness:* none is claimed.
    """
    excluded = {node: flow.excluded(node, flags.get(node, {}), equal.get(node, {})) for node in flow.graph.nodes}
    return {node: departing for node, departing in excluded.items() if departing}


def _told(flow: Execution) -> Told:
    """What flags tell where each node begins, whatever way led to it.

    A worklist of its own: which edges are taken depends on what is told, and of one several outcomes may be.
    """
    told: Told = {flow.graph.entry: {}}
    visits: dict[str, int] = {}
    waiting = [flow.graph.entry]
    while waiting:
        node = waiting.pop()
        for outcome in flow.outcomes(node, told[node]):
            for edge in edges_taken(flow.graph, node, outcome):
                target, new = edge.target, known_flags(outcome.state)
                old = told.get(target)
                is_late = visits.get(target, 0) > _MOST_VISITS
                both = new if old is None else _common(old, new, is_late=is_late)
                both = {} if target == flow.graph.entry else both
                if old is None or both.keys() != old.keys() or any(_differ(both[key], old[key]) for key in both):
                    told[target] = both
                    visits[target] = visits.get(target, 0) + 1
                    waiting.append(target)
    return told


def _wanted(flow: Execution, told: Told) -> frozenset[str]:
    """The nodes of which it is worth to tell something: those with ways to exclude, and those that lead to them."""

    def matters(edge: Edge) -> bool:
        return bool(told.get(edge.source)) and not _tells(flow, edge.source, edge.target, told[edge.target])

    ends = (node for node in flow.graph.nodes if told.get(node) and flow.excluded(node, {}))
    return NodeFlow(flow.graph, flow.graph.edges).before(ends, matters)


def _tells(flow: Execution, source: str, node: str, flags: Mapping[str, Comparison]) -> bool:
    """Whether executing ``source`` tells of the same flags at ``node``, whatever held before."""
    departing = [
        one for one in flow.outcomes(source, {})
        if any(edge.target == node for edge in edges_taken(flow.graph, source, one))
    ]  # fmt: skip
    return all(lacking(one.state, flags) is None for one in departing)


def _common(one: Mapping[str, Comparison], other: Mapping[str, Comparison], *, is_late: bool) -> dict[str, Comparison]:
    found = {}
    for name in one.keys() & other.keys():
        a, b = one[name], other[name]
        if (a.is_signed, a.is_result) == (b.is_signed, b.is_result) and not (is_late and _differ(a, b)):
            left, right = join(a.left_value, b.left_value), join(a.right_value, b.right_value)
            if left.is_number and right.is_number and left.low >= 0 and right.low >= 0:
                found[name] = a._replace(left_value=left, right_value=right, holding=a.holding & b.holding)
    return found


def _differ(one: Comparison, other: Comparison) -> bool:
    return (one.left_value, one.right_value, one.holding) != (other.left_value, other.right_value, other.holding)


def known_flags(state: State) -> dict[str, Comparison]:
    """What flags tell in ``state``, of numbers, with what is known of these by now."""
    found: dict[str, Comparison] = {}
    for name, own in state.flags.items():
        left, right = (ranges_of(state, *one)[-1] for one in ((own.left, own.left_value), (own.right, own.right_value)))
        if name != "count" and all(one.is_number and one.low >= 0 for one in (left, right)):
            unnamed = own._replace(left=object(), right=object(), difference=None)
            found[name] = unnamed._replace(left_value=left, right_value=right)
    return found
