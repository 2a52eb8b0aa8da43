# SPDX-License-Identifier: 0BSD
"""What a result says of calls that were observed: what their path costs in the graph, and the distance to the bound."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from wcet_probe.certificate.kernel.loops import Json
from wcet_probe.certificate.kernel.records import Graph, demand
from wcet_probe.certificate.results.witnessed import UNITS, witnessed
from wcet_probe.model.instruction import Instruction


def verify_slack(document: Json) -> None:
    """Check that the distance between bound and observation is what a result says, and not negative.

    Observed is the dearest known call in each unit; the one in cycles must be the call that the result is about.

    Raises:
        VerificationError: it is not, or a number is missing.
    """
    for unit in UNITS:
        try:
            bound, slack, seen = document["bound"][unit], document["slack"][unit], (witnessed(document) or {})[unit]
            right = slack == bound - seen >= 0
        except (KeyError, TypeError):
            right = False
        demand(right, f"the slack in {unit} is not bound minus observation")
    witnesses = document.get("witnesses")
    if witnesses:
        known = isinstance(witnesses, Mapping) and witnesses.keys() == set(UNITS)
        demand(
            known and all(isinstance(one, Mapping) for one in witnesses.values()), "there is no witness for each unit"
        )
        for unit, witness in witnesses.items():
            demand(witness.get("value") == witness.get(unit), f"the witness in {unit} has two values")
        same = all(document["witnesses"]["cycles"].get(unit) == document["observed"].get(unit) for unit in UNITS)
        demand(same, "the witness in cycles is not the observed call")


def verify_runs(document: Json) -> None:
    """Check that no run of a function of one's own, if any is told, is above the bound of ``document``.

    Raises:
        VerificationError: one is, or a number is missing.
    """
    observed = document.get("observed")
    if observed is None:
        return
    for unit in UNITS:
        try:
            told = [
                *(one[unit] for one in observed["calls"]),
                *([observed["found"][unit]] if observed["found"] else ()),
            ]
            right = 0 <= max(told) == observed[unit] <= document["bound"][unit]
        except (KeyError, TypeError, ValueError):
            right = False
        demand(right, f"a run took more {unit} than the bound, or what the dearest took is not told")


def least_cost(graph: Graph, code: Mapping[str, Sequence[Instruction]], addresses: Iterable[int]) -> int:
    """What executing the instructions at ``addresses`` costs at least, as a path of the graph from entry to exit.

    Raises:
        VerificationError: it is no such path.
    """
    blocks = {node: [one.address for one in instructions] for node, instructions in code.items()}
    places: dict[tuple[str, int], int] | None = None
    for address in addresses:
        following: dict[tuple[str, int], int] = {}
        for place, spent in _places(graph, blocks, places, address):
            following[place] = min(spent, following.get(place, spent))
        demand(following, f"the observed path leaves the graph at {address:#x}")
        places = following
    ends = [
        spent + graph.exits[node]
        for (node, place), spent in (places or {}).items()
        if place == len(blocks[node]) - 1 and node in graph.exits
    ]
    demand(ends, "the observed path leaves the graph at its end")
    return min(ends)


def _places(
    graph: Graph, blocks: Mapping[str, Sequence[int]], before: Mapping[tuple[str, int], int] | None, address: int
) -> Iterator[tuple[tuple[str, int], int]]:
    """Nodes and places in them at ``address`` that are reached from those ``before``, and what that costs in all."""
    if before is None and blocks[graph.entry][0] == address:
        yield (graph.entry, 0), graph.nodes[graph.entry][1]
    for (node, place), spent in (before or {}).items():
        if place + 1 < len(blocks[node]):
            if blocks[node][place + 1] == address:
                yield (node, place + 1), spent
            continue
        for edge in graph.leading[node]:
            reached, cost = graph.nodes[edge.target]
            if reached == address:
                yield (edge.target, 0), spent + edge.cost + cost
