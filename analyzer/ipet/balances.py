"""What is left of limits of misses where nodes begin, for a certificate.

A line may have several names, and a balance has one: of those that it has behind an edge the one is kept by which the
misses are counted that come first. Where nothing is left, the line may be in the cache all the same, as *must* says.

Of hundreds of limits each is left over within a few nodes, so that it has a worklist of its own: in the engine it took
2.5 times as long (900 limits of 3,000 nodes), for a check that the checker makes again. It ends as joins are counted.

Words: certificate, balance (docs/explanation/glossary.md).

*Soundness:* none is claimed: the checker tests each record.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from heapq import heappop, heappush

from wcet_probe.analyzer.ipet.joined_lines import joined_balance
from wcet_probe.analyzer.ipet.node_flow import NodeFlow
from wcet_probe.analyzer.ipet.wanted import taking
from wcet_probe.certificate.caches.annotations import Annotations
from wcet_probe.certificate.caches.misses import Caches, LinearConstraint, Side, places_of
from wcet_probe.certificate.caches.residents import FULL, Balance, Bound, balance_holds
from wcet_probe.certificate.caches.steps import Spot
from wcet_probe.certificate.kernel.records import Edge

_MOST_JOINS = 128
"""At one node; then nothing is said there: a pointer that goes on by a byte a round has another offset each time."""


def left_of(
    caches: Caches, constraint: LinearConstraint, annotations: Annotations, flow: NodeFlow
) -> dict[str, Balance]:
    """What is left of a limit where nodes begin, as the checker sees it.

    Args:
        caches: of the graph.
        constraint: the limit.
        annotations: what misses it counts, and the lines that must be in the caches.
        flow: of the edges of the graph that can be taken.

    *Soundness:* none is claimed.
    """
    side = caches.side_of(constraint, annotations)
    if side is None:
        return {}
    wanting = taking(constraint, annotations, flow)
    near = _nearest(caches, side, constraint, annotations, wanting)
    place = flow.places
    # Elsewhere nothing is left: it is not followed from the entry on, but from what leads to a node that takes.
    before = {edge.source for node in wanting for edge in caches.arriving.get(node, ()) if edge.name in caches.passages}
    states: dict[str, Balance] = dict.fromkeys(node for node in before - wanting if node in place)
    states[caches.graph.entry] = caches.at_entry(constraint)
    waiting, joins = sorted(map(place.__getitem__, states)), Counter[str]()
    while waiting:
        node = flow.nodes[heappop(waiting)]
        after, _ = caches.left_behind(side, constraint, node, states[node], annotations.misses)
        for edge in caches.graph.leading[node]:
            if edge.name in caches.passages and edge.target in wanting:
                spots = near.get(edge.target, ())
                new = caches.along(side, constraint, edge.name, after, [spot.base for spot in spots])
                if constraint.least == 1:
                    new = _resident(caches, side, edge, annotations, spots, left=new)
                if edge.target in states:
                    old = states[edge.target]
                    if balance_holds(side.residents, new, old):
                        continue
                    joins[edge.target] += 1
                    new = joined_balance(side.residents, old, new) if joins[edge.target] <= _MOST_JOINS else None
                states[edge.target] = new
                if place[edge.target] not in waiting:
                    heappush(waiting, place[edge.target])
    first = caches.touched_from(constraint, annotations)
    said = sorted(wanting & states.keys(), key=flow.ranks.__getitem__)
    return {node: states[node] for node in said if states[node] is not None and caches.parts.get(node, first) >= first}


def _nearest(
    caches: Caches, side: Side, constraint: LinearConstraint, annotations: Annotations, wanting: Collection[str]
) -> Mapping[str, Sequence[Spot]]:
    """By node that is ``wanting``, the granules of the misses that are counted which control comes to first."""
    found: dict[str, tuple[Spot, ...]] = {}
    for node in places_of(constraint, annotations):
        counted = annotations.misses[node]
        steps = [step for step in side.steps[node] if counted.get(step.key) in constraint.events]
        found[node] = tuple(dict.fromkeys(step.spot for step in steps if step.spot is not None))
    waiting = list(found)
    for node in waiting:  # grows as more are found
        for edge in caches.arriving.get(node, ()):
            if edge.name in caches.passages and edge.source in wanting and edge.source not in found:
                found[edge.source] = found[node]
                waiting.append(edge.source)
    return found


def _resident(
    caches: Caches, side: Side, edge: Edge, annotations: Annotations, spots: Sequence[Spot], *, left: Balance
) -> Balance:
    """What is ``left`` behind an edge; where that is nothing for a line that must be in the cache, this line."""
    if left == FULL or (isinstance(left, Bound) and None not in left.spent.values()):
        return left
    asked = {(spot.base, spot.offset) for spot in spots}
    must = caches.resident_along(side, edge, annotations)
    there = sorted(spot for spot in must if (spot.base, spot.offset) in asked)
    return Bound(there[0].base, there[0].granule_bytes, {there[0].offset: must[there[0]]}) if there else left
