"""What accesses have shown of names where nodes begin, for the checker to test: the greatest fixpoint, as it sees it.

Words: shown, certificate, asserted (docs/explanation/glossary.md).

*Soundness:* none is claimed. The checker tests the result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from wcet_probe.analyzer.domains.lattice import Joined
from wcet_probe.analyzer.ipet.node_flow import NodeFlow
from wcet_probe.certificate.kernel.coverage import Code, Coverage
from wcet_probe.certificate.kernel.records import Edge, Graph
from wcet_probe.certificate.names.names import Names, Traced
from wcet_probe.certificate.names.shown_classes import shown_behind
from wcet_probe.certificate.names.symbols import Tracer
from wcet_probe.certificate.values.congruences import UNALIGNED, Congruence
from wcet_probe.certificate.values.numbers import TOP, Value
from wcet_probe.certificate.values.state import Place
from wcet_probe.certificate.values.terms import form_of_name

Classes = Mapping[str, Congruence]


def with_shown(
    code: Code, graph: Graph, invariants: Mapping[str, Mapping[Place, Value]], coverage: Coverage, names: Names
) -> Names:
    """``names`` with the classes of symbols that accesses have shown, of those that a place holds where a node begins.

    Args:
        code: the image.
        graph: of the flow problem.
        invariants: of its nodes.
        coverage: of the graph, by the checker.
        names: without classes that are shown.

    *Soundness:* none is claimed.
    """

    def leaving(node: str, shown: Classes) -> Callable[[Edge], Classes]:
        tracer = Tracer(code, graph, invariants, coverage, replace(names, shown={node: shown}))
        traced = tracer.trace(node)
        return lambda edge: _behind(names, edge, traced)

    taken = (edge for edge in graph.edges if edge.name in coverage.taken and edge.target != graph.entry)
    shown = NodeFlow(graph, taken).least(Joined(_joined), {}, leaving)
    return replace(names, shown={node: own for node, own in shown.items() if own})


def _behind(names: Names, edge: Edge, traced: Traced) -> Classes:
    begins = names.begins(edge)
    found: dict[str, Congruence] = {}
    for place, (symbol, offset) in names.claims.get(edge.target, {}).items():
        values = {state.read(place) for state in traced.leaving.get(edge.name, ())}
        value = values.pop() if len(values) == 1 else TOP
        if symbol not in names.homes:
            lasting = [part for part in form_of_name(symbol) if part not in begins]
            found |= {part: shown_behind(traced.shown, part, begins, {}) for part in lasting}
            continue
        low = value.low - offset
        own = {symbol: Value(value.base, low, low, 0)} if value.is_constant else {}
        found[symbol] = max(found.get(symbol, UNALIGNED), shown_behind(traced.shown, symbol, begins, own))
    return {symbol: one for symbol, one in found.items() if one != UNALIGNED}


def _joined(one: Classes, other: Classes) -> Classes:
    found = {}
    for symbol in one.keys() & other.keys():
        modulus = min(one[symbol].modulus, other[symbol].modulus)
        apart = (one[symbol].residue - other[symbol].residue) % modulus
        found[symbol] = one[symbol].coarser(min(modulus, apart & -apart or modulus))
    return {symbol: found[symbol] for symbol in sorted(found) if found[symbol] != UNALIGNED}
