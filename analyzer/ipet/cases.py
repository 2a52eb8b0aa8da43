"""Cases of which one holds where a loop's header begins, for the checker to test: a counter that is at its end already.

A loop that ends when two registers are equal may be entered with one value in both, or with two that are limited. What
holds in either case is lost where both are joined: a number is at most the end, but nothing limits these.

Words: certificate, header, abstract state (docs/explanation/glossary.md).

*Soundness:* none is claimed. The checker tests the result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce

from wcet_probe.analyzer.ipet.node_flow import NodeFlow
from wcet_probe.certificate.kernel.coverage import edges_of
from wcet_probe.certificate.kernel.equalities import Case, Cases, are_equal
from wcet_probe.certificate.kernel.records import Graph
from wcet_probe.certificate.machines.machine import Outcome
from wcet_probe.certificate.values.numbers import ANY, TOP, join
from wcet_probe.certificate.values.state import Place, State


def loop_cases(flow: NodeFlow, graph: Graph, outcomes: Callable[[str], Iterable[Outcome]]) -> Cases:
    """The cases of headers that compare places which are equal on some ways into the loop, and limited on all others.

    Args:
        flow: of the graph.
        graph: of the certificate.
        outcomes: ways out of a node, by what holds where it begins.

    *Soundness:* none is claimed.
    """
    found: dict[str, Sequence[Case]] = {}
    for loop in flow.order.loops:
        header, inside = flow.names[loop.header], {flow.names[node] for node in loop.nodes}
        pairs = dict.fromkeys(_compared(outcomes(header)))
        sources = {edge.source for edge in graph.edges if edge.target == header} - inside if pairs else ()
        entering = [
            one.state for source in sorted(sources) for one in outcomes(source)
            if one.address is not None and any(edge.target == header for edge in edges_of(graph, source, one))
        ]  # fmt: skip
        cases = next((cases for pair in pairs if (cases := _cases(entering, *pair))), ())
        if cases:
            found[header] = cases
    return found


def _compared(outcomes: Iterable[Outcome]) -> Iterator[tuple[Place, Place]]:
    """The places whose values are compared before a way out is taken."""
    for one in outcomes:
        for told in one.state.flags.values():
            if told.holding and isinstance(told.left, str | int) and isinstance(told.right, str | int):
                yield told.left, told.right


def _cases(entering: Sequence[State], one: Place, other: Place) -> Sequence[Case]:
    others = [state for state in entering if not are_equal(state, one, other)]
    if not others or len(others) == len(entering):
        return ()
    values = {place: reduce(join, (state.read(place) for state in others)) for place in (one, other)}
    known = {place: value for place, value in values.items() if value.is_plain and value not in {ANY, TOP}}
    return (Case({}, {one: other}), Case(known, {})) if known else ()
