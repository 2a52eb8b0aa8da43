"""Static cache analysis: which accesses of a graph always hit or always miss, whatever the path and the start.

Sets are independent of each other, so the fixpoint is computed set by set over the states of `cache_sets`.
A cache is given its own graph: fetches for an instruction cache, loads and stores for a data cache, both in the order
of execution for a unified one. Accesses that surely bypass the cache are left out.

Words: must analysis, may analysis, set, fixpoint (docs/explanation/glossary.md).

*Soundness:* the states at the nodes are above the start's at the entry, and above each predecessor's behind its
accesses; by induction over a path they describe every content that a set can have there. :func:`is_fixpoint` checks
just this.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import TypeVar, overload

from wcet_probe.analyzer.domains.cache_sets import (
    EffectiveWays,
    SetAccess,
    SetState,
    SetStates,
    access,
    cannot_hold,
    effective_ways,
    initial_state,
    leq,
    must_hold,
)
from wcet_probe.analyzer.domains.lattice import Lattice
from wcet_probe.analyzer.graph.fixpoint import least
from wcet_probe.analyzer.graph.flow_order import Arrow, FlowOrder
from wcet_probe.analyzer.icache.condensation import condensed
from wcet_probe.model.target import CacheConfig

State = TypeVar("State")

SetNodes = Mapping[int, tuple[SetAccess, ...]]
"""The accesses of each node that may be to one set; nodes without are left out."""
START = -1
"""The node before the entries of a region."""


class Classification(StrEnum):
    """What is known of an access, each time that it takes place."""

    ALWAYS_HIT = "always-hit"
    ALWAYS_MISS = "always-miss"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class CacheAccess:
    """An access to one line.

    Attributes:
        lines: numbers (address / line bytes) of the lines that it may be to; it is to exactly one of them each time.
            None for any line. An access that straddles lines is one for each.
        is_write: whether it is a store.
        is_certain: False where it may also not reach the cache: its condition may fail, or its address be uncached.
    """

    lines: frozenset[int] | None
    is_write: bool
    is_certain: bool = True


@dataclass(frozen=True, eq=False)
class CacheGraph:
    """Accesses along the paths of a program.

    Attributes:
        nodes: the accesses of each node, in order.
        successors: of each node.
        entry: where each path starts; it may also be a successor.
    """

    nodes: tuple[tuple[CacheAccess, ...], ...]
    successors: tuple[tuple[int, ...], ...]
    entry: int

    @cached_property
    def region(self) -> FlowOrder[Arrow]:
        """What the entry leads to, behind `START`, which leads to the entry."""
        reached, waiting = {self.entry}, [self.entry]
        while waiting:
            new = set(self.successors[waiting.pop()]) - reached
            reached |= new
            waiting += new
        nodes = sorted(reached)
        arrows = (Arrow(node, target) for node in nodes for target in dict.fromkeys(self.successors[node]))
        return FlowOrder((START, *nodes), (Arrow(START, self.entry), *arrows), START)


@dataclass(frozen=True, slots=True)
class CacheAnalysis:
    """The fixpoint and what follows from it.

    Attributes:
        states: at the start of each node, by set; None where no path leads. Sets without a known access are left out.
        classifications: of each access of each node.
    """

    states: Mapping[int, Sequence[SetState | None]]
    classifications: tuple[tuple[Classification, ...], ...]


class NodeStates(Sequence[SetState | None]):
    """The states of one set at the start of so many nodes, each looked up where it is asked for."""

    def __init__(self, count: int, state_at: Callable[[int], SetState | None]) -> None:
        self._nodes, self._state_at = range(count), state_at

    @overload
    def __getitem__(self, place: int) -> SetState | None: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[SetState | None]: ...

    def __getitem__(self, place: int | slice) -> SetState | Sequence[SetState | None] | None:
        if isinstance(place, slice):
            return [self._state_at(node) for node in self._nodes[place]]
        return self._state_at(self._nodes[place])

    def __len__(self) -> int:
        return len(self._nodes)


def analyze(graph: CacheGraph, config: CacheConfig, *, is_cold: bool = False) -> CacheAnalysis:
    """The states of all sets and the class of each access.

    Args:
        graph: paths and accesses.
        config: the cache.
        is_cold: whether all lines are invalid at the start; else the start may be any content.

    Raises:
        UsageError: see :func:`cache_sets.effective_ways`.

    *Soundness:* as said of the module; accesses that no path reaches are unknown.
    """
    ways = effective_ways(config)
    start = initial_state(ways, is_cold=is_cold)
    states: dict[int, Sequence[SetState | None]] = {}
    for number, nodes in by_set(graph, config).items():
        found = fixpoint(graph.region, start, nodes.keys(), _transfer(nodes, ways), SetStates())
        states[number] = NodeStates(len(graph.nodes), found)
    return CacheAnalysis(states, classify(graph, config, states))


def is_fixpoint(
    graph: CacheGraph,
    config: CacheConfig,
    states: Mapping[int, Sequence[SetState | None]],
    *,
    is_cold: bool = False,
) -> bool:
    """Whether ``states`` are above all that can happen: one pass, whoever found them.

    *Soundness:* as said of the module. A set of a known access must have states.
    """
    ways = effective_ways(config)
    start = initial_state(ways, is_cold=is_cold)

    def covered(below: SetState, above: SetState | None) -> bool:
        return above is not None and leq(below, above)

    for number, nodes in by_set(graph, config).items():
        before = states.get(number, ())
        if len(before) != len(graph.nodes) or not covered(start, before[graph.entry]):
            return False
        transfer = _transfer(nodes, ways)
        for node, state in enumerate(before):
            targets = graph.successors[node] if state is not None else ()
            if targets and state is not None:
                after = transfer(node, state)
                if not all(covered(after, before[target]) for target in targets):
                    return False
    return True


def classify(
    graph: CacheGraph, config: CacheConfig, states: Mapping[int, Sequence[SetState | None]]
) -> tuple[tuple[Classification, ...], ...]:
    """The class of each access under the states of a fixpoint.

    *Soundness:* an access hits if it does in each set that it may be to. Nothing is said of an access to any line.
    """
    ways = effective_ways(config)
    hits: defaultdict[tuple[int, int], set[bool]] = defaultdict(set)
    misses: defaultdict[tuple[int, int], set[bool]] = defaultdict(set)
    for number, nodes in by_set(graph, config).items():
        for node, parts in nodes.items():
            state = states[number][node]
            if state is None:
                continue
            for part in parts:
                if part.lines is not None:
                    hits[node, part.index].add(must_hold(state, part.lines))
                    misses[node, part.index].add(cannot_hold(state, part.lines, ways))
                state = access(state, part, ways)

    def classification(key: tuple[int, int]) -> Classification:
        if hits.get(key) == {True}:
            return Classification.ALWAYS_HIT
        return Classification.ALWAYS_MISS if misses.get(key) == {True} else Classification.UNKNOWN

    return tuple(
        tuple(classification((node, index)) for index in range(len(accesses)))
        for node, accesses in enumerate(graph.nodes)
    )


def by_set(graph: CacheGraph, config: CacheConfig) -> dict[int, SetNodes]:
    """The accesses as each set sees them, for the sets that some access is known to be to.

    *Soundness:* an access that may be to several sets takes place in none of them for certain; one to any line may be
    to any line of every set.
    """
    numbers = {line % config.sets for accesses in graph.nodes for a in accesses for line in a.lines or ()}
    parts: dict[int, dict[int, list[SetAccess]]] = {number: {} for number in sorted(numbers)}
    for node, accesses in enumerate(graph.nodes):
        for index, one in enumerate(accesses):
            fills = not one.is_write or config.write_allocate
            lines: defaultdict[int, list[int]] = defaultdict(list)
            for line in sorted(one.lines or ()):
                lines[line % config.sets].append(line)
            if one.lines is None:
                for seen in parts.values():
                    seen.setdefault(node, []).append(SetAccess(index, None, is_certain=False, fills=fills))
            for number, own in lines.items():
                is_certain = one.is_certain and len(lines) == 1
                part = SetAccess(index, tuple(own), is_certain=is_certain, fills=fills)
                parts[number].setdefault(node, []).append(part)
    return {number: {node: tuple(own) for node, own in nodes.items()} for number, nodes in parts.items()}


def part_of(whole: FlowOrder[Arrow], nodes: Collection[int]) -> FlowOrder[Arrow]:
    """The part of a `CacheGraph.region` that consists of ``nodes``, as far as they are in it, behind `START`.

    *Soundness:* `START` leads to the graph's entry and to the target of each edge from outside.
    """
    inside = sorted(node for node in nodes if node in whole and node != START)
    if len(inside) + 1 == len(whole.outgoing):
        return whole
    held = frozenset(inside)
    entries = (Arrow(START, node) for node in inside if not held.issuperset(whole.sources[node]))
    within = (arrow for node in inside for arrow in whole.outgoing[node] if arrow.target in held)
    return FlowOrder((START, *inside), (*entries, *within), START)


def fixpoint(
    part: FlowOrder[Arrow],
    start: State,
    changing: Collection[int],
    transfer: Callable[[int, State], State],
    lattice: Lattice[State],
) -> Callable[[int], State | None]:
    """The least state at the start of each of a region's nodes, for a finite domain and a monotone ``transfer``.

    It is None of a node that no path leads to.

    Args:
        part: the region.
        start: the state at its entries.
        changing: the nodes that ``transfer`` may change a state at.
        transfer: the state behind a node of the graph.
        lattice: of the states.

    *Soundness:* as said of `fixpoint.solve`, which checks the result in one pass, and of `condensation`.
    """
    graph, group = condensed(part, changing)
    found = least(
        graph, lattice, {START: start}, lambda node, state: transfer(node, state) if node in changing else state
    )
    return lambda node: found[group[node]] if node in group else None


def _transfer(nodes: SetNodes, ways: EffectiveWays) -> Callable[[int, SetState], SetState]:
    def transfer(node: int, state: SetState) -> SetState:
        for part in nodes.get(node, ()):
            state = access(state, part, ways)
        return state

    return transfer
