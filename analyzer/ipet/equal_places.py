"""Which places hold one value where nodes begin, for the checker to test: branches that compare these go one way only.

Words: certificate, abstract state, fixpoint (docs/explanation/glossary.md).

*Soundness:* none is claimed. The checker tests the result.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from wcet_probe.analyzer.ipet.decided_flags import Execution, still_excluded
from wcet_probe.certificate.kernel.coverage import edges_taken
from wcet_probe.certificate.kernel.equalities import Equalities, are_equal, differing
from wcet_probe.certificate.kernel.flags import Flags
from wcet_probe.certificate.kernel.records import Graph
from wcet_probe.certificate.machines.machine import Outcome
from wcet_probe.certificate.values.state import Place, State, is_saved

Pair = tuple[Place, Place]
Classes = list[list[Place]]
"""Places that hold one value, of each value that two places hold at least."""


@dataclass(frozen=True, slots=True)
class _Flow:
    """What is executed, where flags tell what they tell."""

    execution: Execution
    flags: Flags

    @property
    def graph(self) -> Graph:
        return self.execution.graph

    def outcomes(self, node: str, equal: Mapping[Place, Place]) -> tuple[Outcome, ...]:
        return self.execution.outcomes(node, self.flags.get(node, {}), equal)

    def excluded(self, node: str, equal: Mapping[Place, Place]) -> tuple[int | None, ...]:
        return self.execution.excluded(node, self.flags.get(node, {}), equal)


def equal_places(execution: Execution, flags: Flags) -> tuple[Equalities, dict[str, Sequence[int | None]]]:
    """What is equal where it excludes ways that the graph does not have, and the ways that are left to exclude.

    Args:
        execution: of the nodes.
        flags: what flags tell where nodes begin.

    *Soundness:* none is claimed.
    """
    flow = _Flow(execution, flags)
    told = _told(flow)
    waiting = [(node, pair) for node, classes in told.items() for pair in _deciding(flow, node, classes)]
    kept: dict[str, set[Pair]] = {}
    sources: dict[str, list[str]] = {}
    for node in told if waiting else ():
        for target in dict.fromkeys(edge.target for edge in flow.graph.leading[node]):
            sources.setdefault(target, []).append(node)
    while waiting:
        node, pair = waiting.pop()
        if pair not in kept.setdefault(node, set()):
            kept[node].add(pair)
            for source in sources.get(node, ()):
                waiting += [(source, one) for one in _giving(flow, source, told[source], node, pair)]
    equal = {node: _representatives(_classes(pairs)) for node, pairs in kept.items()}
    equal = equal if _holds(flow, equal) else {}
    return equal, still_excluded(execution, flags, equal)


def _told(flow: _Flow) -> dict[str, Classes]:
    """What is equal where each node begins, whatever way led to it, though no way is excluded by it.

    What is equal is followed to its end first, and then along edges that this excludes: a way that was excluded for as
    long as more seemed equal would take from its target what the others leave.
    """
    told: dict[str, Classes] = {flow.graph.entry: []}
    for is_excluding in (True, False):
        waiting = [*told]
        while waiting:
            node = waiting.pop()
            for target, state in _arriving(flow, node, _representatives(told[node]), is_excluding=is_excluding):
                old = told.get(target)
                new = _classes_in(state) if old is None else [part for own in old for part in _parts(state, own)]
                if old is None or sorted(map(len, new)) != sorted(map(len, old)):
                    told[target] = new
                    waiting.append(target)
    told[flow.graph.entry] = []
    return told


def _arriving(
    flow: _Flow, node: str, equal: Mapping[Place, Place], *, is_excluding: bool = False
) -> Iterator[tuple[str, State]]:
    """What edges carry; an edge that is taken only where nothing is equal carries that, or is excluded."""
    seen = set[str]()
    for own in (equal, {}) if equal and not is_excluding else (equal,):
        found = [
            (edge, one.state) for one in flow.outcomes(node, own) for edge in edges_taken(flow.graph, node, one)
            if edge.name not in seen
        ]  # fmt: skip
        seen |= {edge.name for edge, _ in found}
        yield from ((edge.target, state) for edge, state in found)


def _classes_in(state: State) -> Classes:
    places = [*state.values, *state.names, *(one for one in state.names.values() if isinstance(one, str | int))]
    return _parts(state, [one for one in dict.fromkeys(places) if not is_saved(one) and one != "r15"])


def _parts(state: State, places: Iterable[Place]) -> Classes:
    """``places`` by what they hold in ``state``."""
    found: Classes = []
    for place in places:
        own = next((one for one in found if are_equal(state, one[0], place)), None)
        if own is None:
            found.append([place])
        else:
            own.append(place)
    return [one for one in found if len(one) > 1]


def _deciding(flow: _Flow, node: str, classes: Classes) -> Iterator[Pair]:
    """The pairs that exclude ways by themselves which the graph does not have."""
    excluded = flow.excluded(node, {})
    for pair in _pairs(classes) if excluded else ():
        if len(flow.excluded(node, dict([pair]))) < len(excluded):
            yield pair


def _giving(flow: _Flow, source: str, classes: Classes, target: str, pair: Pair) -> Iterable[Pair]:
    """What has to be equal at ``source`` so that ``pair`` is at ``target``: nothing, a pair, or all that is."""

    def gives(equal: Mapping[Place, Place]) -> bool:
        return all(are_equal(state, *pair) for where, state in _arriving(flow, source, equal) if where == target)

    if gives({}):
        return ()
    one = next((one for one in _pairs(classes) if gives(dict([one]))), None)
    return [one] if one else list(_pairs(classes))


def _pairs(classes: Classes) -> Iterator[Pair]:
    for places in classes:
        yield from combinations(sorted(places, key=str), 2)


def _classes(pairs: Iterable[Pair]) -> Classes:
    found: list[set[Place]] = []
    for pair in pairs:
        touching = [one for one in found if one & set(pair)]
        found = [one for one in found if one not in touching] + [set(pair).union(*touching)]
    return [sorted(one, key=str) for one in found]


def _representatives(classes: Classes) -> dict[Place, Place]:
    return {place: places[0] for places in classes for place in places[1:]}


def _holds(flow: _Flow, equal: Equalities) -> bool:
    return not equal.get(flow.graph.entry) and all(
        differing(one.state, equal.get(edge.target, {})) is None
        for node in flow.graph.nodes
        for one in flow.outcomes(node, equal.get(node, {}))
        for edge in edges_taken(flow.graph, node, one)
    )
