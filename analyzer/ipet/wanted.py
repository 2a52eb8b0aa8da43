"""What of the content of caches somebody still asks for: the rest needs no record in a certificate.

Words: certificate, liveness (docs/explanation/glossary.md).

*Soundness:* none is claimed: what is not said is not used, and the checker finds what is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from wcet_probe.certificate.annotations import Annotations
from wcet_probe.certificate.misses import Caches, LinearConstraint, Side, places_of
from wcet_probe.certificate.residents import Must
from wcet_probe.certificate.steps import NUMBER


def wanted_lines(caches: Caches, side: Side) -> Callable[[str, Must], Must]:
    """What is worth saying of lines where a node begins: those known by number are accessed there, or behind.

    *Soundness:* none is claimed.
    """
    bits = {
        spot: 1 << number
        for number, spot in enumerate(
            dict.fromkeys(
                step.spot
                for steps in side.steps.values()
                for step in steps
                if step.spot is not None and step.spot.base == NUMBER
            )
        )
    }
    own = dict.fromkeys(caches.graph.nodes, 0)
    for node, steps in side.steps.items():
        for step in steps:
            own[node] |= bits.get(step.spot, 0) if step.spot is not None else 0
    live = _behind(caches, own)

    def kept(node: str, must: Must) -> Must:
        return {
            spot: younger
            for spot, younger in must.items()
            if spot.base != NUMBER or bits.get(spot, 0) & live[node]
        }  # fmt: skip

    return kept


def taking(caches: Caches, constraint: LinearConstraint, annotations: Annotations) -> frozenset[str]:
    """The nodes from which misses of a limit are reached before it is given new credits.

    *Soundness:* none is claimed.
    """
    found = set(places_of(constraint, annotations))
    waiting = list(found)
    while waiting:
        for edge in caches.arriving.get(waiting.pop(), ()):
            is_kept = edge.name in caches.passages and constraint.credited.get(edge.name, 0) <= 0
            if is_kept and edge.source not in found:
                found.add(edge.source)
                waiting.append(edge.source)
    return frozenset(found)


def _behind(caches: Caches, own: Mapping[str, int]) -> Mapping[str, int]:
    """What each node has, or one that is reached from it."""
    found = dict(own)
    waiting = dict.fromkeys(caches.graph.nodes)
    while waiting:
        node, _ = waiting.popitem()
        for edge in caches.arriving.get(node, ()):
            new = found[edge.source] | found[node]
            if edge.name in caches.passages and new != found[edge.source]:
                found[edge.source] = new
                waiting[edge.source] = None
    return found
