"""What a block makes of a state, and what its edges carry.

*Soundness:* it holds what the value analysis found, and decides nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from wcet_probe.analyzer.graph.supergraph import Edge
from wcet_probe.analyzer.values.accesses import Access
from wcet_probe.analyzer.values.call_effects import Summarised
from wcet_probe.analyzer.values.state import State
from wcet_probe.analyzer.values.terms import Term
from wcet_probe.analyzer.values.transfer import Flow


@dataclass(frozen=True, slots=True)
class EdgeValues:
    """What is known where control takes an edge: the state, and the conditions that its block learnt on the way.

    ``calls`` are the calls that are not expanded but stand on the edge.
    """

    edge: Edge
    state: State
    conditions: tuple[tuple[Term, bool], ...]
    calls: tuple[Summarised, ...] = ()


@dataclass(frozen=True, slots=True)
class ExecutedBlock:
    """What a block makes of ``state``: how control leaves it, its data accesses, and what the edges carry."""

    state: State
    flows: Sequence[Flow]
    accesses: tuple[Access, ...]
    taken: Mapping[Edge, EdgeValues]
