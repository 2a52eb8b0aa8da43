"""Lines that a certificate says are modified where nodes begin: those that a store finds so, which need not be counted.

Words: modified, certificate (docs/explanation/glossary.md).

*Soundness:* none is claimed: the checker tests each record.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wcet_probe.certificate.annotations import Annotations
from wcet_probe.certificate.misses import DATA, Caches, Side
from wcet_probe.certificate.modified import Content
from wcet_probe.certificate.steps import Spot

_Lines = frozenset[Spot]


def modified_lines(caches: Caches, annotations: Annotations, order: Sequence[str]) -> Mapping[str, _Lines]:
    """By node, the lines of those that must be in the data cache that are modified, if a store behind finds them so.

    Args:
        caches: of a graph.
        annotations: the lines that must be in them.
        order: of its nodes, each before its successors as far as can be.

    *Soundness:* none is claimed.
    """
    side = next((side for side in caches.sides if side.name == DATA), None)
    if side is None or not side.residents.config.write_back:
        return {}
    must = annotations.must.get(DATA, {})
    states: dict[str, _Lines] = {caches.graph.entry: frozenset()}
    waiting, place = [caches.graph.entry], {node: number for number, node in enumerate(order)}
    while waiting:
        waiting.sort(key=place.__getitem__, reverse=True)
        node = waiting.pop()
        after = _behind(side, node, Content(must.get(node, {}), states[node]))
        for edge in caches.graph.leading[node]:
            if edge.name in caches.passages:
                known = after.along(side.residents, caches.passages[edge.name])
                new = frozenset(known.modified & must.get(edge.target, {}).keys())
                old = states.get(edge.target)
                if old is None or not old <= new:
                    states[edge.target] = new if old is None else old & new
                    waiting += [edge.target] * (edge.target not in waiting)
    return _asked_for(caches, side, {node: lines for node, lines in states.items() if lines})


def _behind(side: Side, node: str, known: Content) -> Content:
    for step in side.steps[node]:
        known = known.behind(side.residents, step)
    return known


def _asked_for(caches: Caches, side: Side, states: Mapping[str, _Lines]) -> Mapping[str, _Lines]:
    """The lines of ``states`` that a store finds modified, and those that they were before."""
    found: dict[str, _Lines] = {}
    for node, lines in states.items():
        found[node] = lines & {step.spot for step in side.steps[node] if step.is_store and step.spot is not None}
    waiting = [node for node, lines in found.items() if lines]
    while waiting:
        target = waiting.pop()
        for edge in caches.arriving.get(target, ()):
            passage, before = caches.passages.get(edge.name), states.get(edge.source)
            if passage is None or not before:
                continue
            own = {
                spot for spot in before - found[edge.source]
                if not found[target].isdisjoint(side.residents.moved(spot, passage))
            }  # fmt: skip
            if own:
                found[edge.source] |= own
                waiting.append(edge.source)
    return {node: lines for node, lines in found.items() if lines}
