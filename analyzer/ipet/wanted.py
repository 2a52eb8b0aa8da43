"""What of the content of caches somebody still asks for: the rest needs no record in a certificate.

Words: certificate, liveness (docs/explanation/glossary.md).

*Soundness:* none is claimed: what is not said is not used, and the checker finds what is missing.
"""

from __future__ import annotations

from collections.abc import Callable

from wcet_probe.analyzer.domains.lattice import Bits
from wcet_probe.analyzer.ipet.node_flow import NodeFlow
from wcet_probe.certificate.caches.annotations import Annotations
from wcet_probe.certificate.caches.misses import LinearConstraint, Side, places_of
from wcet_probe.certificate.caches.residents import Must
from wcet_probe.certificate.caches.steps import NUMBER


def wanted_lines(side: Side, flow: NodeFlow) -> Callable[[str, Must], Must]:
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
    own = dict.fromkeys(flow.names, 0)
    for node, steps in side.steps.items():
        for step in steps:
            own[node] |= bits.get(step.spot, 0) if step.spot is not None else 0
    live = flow.least_backwards(Bits(len(bits)), own, lambda _, accessed: accessed)

    def kept(node: str, must: Must) -> Must:
        return {
            spot: younger
            for spot, younger in must.items()
            if spot.base != NUMBER or bits.get(spot, 0) & live[node]
        }  # fmt: skip

    return kept


def taking(constraint: LinearConstraint, annotations: Annotations, flow: NodeFlow) -> frozenset[str]:
    """The nodes from which misses of a limit are reached before it is given new credits.

    *Soundness:* none is claimed.
    """
    return flow.before(places_of(constraint, annotations), lambda edge: constraint.credited.get(edge.name, 0) <= 0)
