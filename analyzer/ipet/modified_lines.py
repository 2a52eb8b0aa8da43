"""Lines that a certificate says are modified where nodes begin: those that a store finds so, which need not be counted.

Words: modified, certificate (docs/explanation/glossary.md).

*Soundness:* none is claimed: the checker tests each record.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from wcet_probe.analyzer.domains.lattice import Dual, Subsets
from wcet_probe.analyzer.ipet.node_flow import NodeFlow
from wcet_probe.certificate.caches.annotations import Annotations
from wcet_probe.certificate.caches.misses import DATA, Caches, Side
from wcet_probe.certificate.caches.modified import Content
from wcet_probe.certificate.caches.steps import Spot
from wcet_probe.certificate.kernel.records import Edge

_Lines = frozenset[Spot]


def modified_lines(caches: Caches, annotations: Annotations, flow: NodeFlow) -> Mapping[str, _Lines]:
    """By node, the lines of those that must be in the data cache that are modified, if a store behind finds them so.

    Args:
        caches: of a graph.
        annotations: the lines that must be in them.
        flow: of the edges of the graph that can be taken.

    *Soundness:* none is claimed.
    """
    side = next((side for side in caches.sides if side.name == DATA), None)
    if side is None or not side.residents.config.write_back:
        return {}
    must = annotations.must.get(DATA, {})

    def leaving(node: str, lines: _Lines) -> Callable[[Edge], _Lines]:
        after = _behind(side, node, Content(must.get(node, {}), lines))

        def along(edge: Edge) -> _Lines:
            known = after.along(side.residents, caches.passages[edge.name])
            return frozenset(known.modified & must.get(edge.target, {}).keys())

        return along

    states = flow.least(Dual(Subsets[Spot](_Lines())), frozenset(), leaving)
    return _asked_for(caches, side, {node: lines for node, lines in states.items() if lines}, flow)


def _behind(side: Side, node: str, known: Content) -> Content:
    for step in side.steps[node]:
        known = known.behind(side.residents, step)
    return known


def _asked_for(caches: Caches, side: Side, states: Mapping[str, _Lines], flow: NodeFlow) -> Mapping[str, _Lines]:
    """The lines of ``states`` that a store finds modified, and those that they were before."""
    own = dict.fromkeys(flow.names, _Lines())
    for node, lines in states.items():
        own[node] = lines & {step.spot for step in side.steps[node] if step.is_store and step.spot is not None}

    def before(edge: Edge, asked: _Lines) -> _Lines:
        lines, passage = states.get(edge.source, _Lines()), caches.passages[edge.name]
        return frozenset(spot for spot in lines if not asked.isdisjoint(side.residents.moved(spot, passage)))

    found = flow.least_backwards(Subsets[Spot](_Lines()), own, before)
    return {node: lines for node, lines in found.items() if lines}
