"""The fixpoint of the analysis of lines that are known by name: states along edges, where lines get other names.

*Soundness:* as said of `younger_sets`, whose states are joined where paths meet; the result is checked in one pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TypeVar

from wcet_probe.analyzer.dcache.strided_traversals import Sweep
from wcet_probe.analyzer.dcache.symbolic_blocks import Line, Lines, Successor
from wcet_probe.analyzer.dcache.younger_sets import (
    UNKNOWN,
    CacheState,
    LineAccess,
    RelationalCache,
    Renaming,
    Verdict,
    Younger,
    join,
)
from wcet_probe.analyzer.domains.lattice import Joined
from wcet_probe.analyzer.graph.fixpoint import least
from wcet_probe.analyzer.graph.flow_order import FlowOrder
from wcet_probe.analyzer.graph.supergraph import EXIT, Edge
from wcet_probe.analyzer.values.analysis import Values, brought_back
from wcet_probe.analyzer.values.state import defined_at
from wcet_probe.analyzer.values.terms import Linear, Term
from wcet_probe.model.target import CacheConfig


@dataclass(frozen=True, slots=True)
class RelationalAnalysis:
    """The fixpoint.

    Attributes:
        cache: the domain.
        states: where each point begins.
        verdicts: of each access of each point.
        renamed: of each edge, the lines in the cache that have another name behind it.
        renaming: what each edge does to names.
        passage: what edges do to lines of which something is known.
    """

    cache: RelationalCache
    states: Mapping[int, CacheState]
    verdicts: Mapping[int, tuple[Verdict, ...]]
    renamed: Mapping[Edge, Mapping[Line, Younger]]
    renaming: Mapping[Edge, Renaming]
    passage: Passage


def analyze(
    values: Values,
    lines: Lines,
    accesses: Mapping[int, Sequence[LineAccess]],
    config: CacheConfig,
    sweeps: Sequence[Sweep] = (),
) -> RelationalAnalysis:
    """The fixpoint over the points of ``values``, for any content of the cache at entry.

    Args:
        values: points, edges and terms.
        lines: names of the lines.
        accesses: of each point, in order.
        config: the cache.
        sweeps: those that accesses belong to.

    *Soundness:* as said of the module.
    """
    cache = RelationalCache(lines.groups, config, lines.stand_ins(), {sweep.name: sweep.group for sweep in sweeps})
    passage = Passage(values, lines, cache, sweeps)

    def behind(point: int, state: CacheState) -> CacheState:
        for access in accesses.get(point, ()):
            state = cache.touch(state, access)
        return state

    states = fixpoint(values, UNKNOWN, behind, passage.along, join)
    verdicts = {point: tuple(cache.verdicts(state, accesses.get(point, ()))) for point, state in states.items()}
    renamed = {edge: passage.renamed(edge, behind(edge.source, states[edge.source])) for edge in passage.renaming}
    return RelationalAnalysis(cache, states, verdicts, renamed, passage.renaming, passage)


_State = TypeVar("_State")


def fixpoint(
    values: Values,
    entry: _State,
    behind: Callable[[int, _State], _State],
    along: Callable[[Edge, _State], _State],
    join: Callable[[_State, _State], _State],
) -> Mapping[int, _State]:
    """States where points begin, by what holds ``behind`` a point and ``along`` an edge; ``entry`` holds at entry.

    *Soundness:* as said of `fixpoint.solve`, which checks the result in one pass.
    """
    order = FlowOrder(values.states, (edge for edge in values.edges if edge.target != EXIT))
    return least(order, Joined(join), {0: entry}, behind, along)


class Passage:
    """What an edge does to a state: names that mean something else behind it, and new names of known lines."""

    def __init__(self, values: Values, lines: Lines, cache: RelationalCache, sweeps: Sequence[Sweep]) -> None:
        self._values, self._lines, self._cache = values, lines, cache
        terms = values.terms
        self._new_names: dict[Edge, tuple[tuple[Linear, Linear], ...]] = {}
        self.renaming: dict[Edge, Renaming] = {}
        self._stale: dict[Edge, frozenset[Term]] = {}
        defined: dict[int | None, set[Term]] = {}
        for leaf in frozenset().union(*(group.leaves for group in lines.groups)):
            defined.setdefault(defined_at(terms[leaf].arguments), set()).add(leaf)
        found: dict[Edge, tuple[Successor, ...]] = {}
        for edge, silent in brought_back(values).items():
            if edge.target != EXIT:
                anew = frozenset(defined.get(edge.target, ()))
                self._stale[edge] = silent | anew
                self._new_names[edge] = tuple(self._changes(edge))
                dropped = frozenset(
                    number
                    for number, group in enumerate(lines.groups)
                    if not (anew.isdisjoint(group.leaves) and silent.isdisjoint(group.deciding))
                )
                began = frozenset(sweep.name for sweep in sweeps if edge in sweep.entries)
                self.renaming[edge] = Renaming(dropped | began)
                found[edge] = tuple(self._successors(edge))
        lasting = lines.lasting(one for own in found.values() for one in own)
        for edge, own in found.items():
            successors = {one.of: one.to for one in reversed(own) if one in lasting}
            self.renaming[edge] = self.renaming[edge]._replace(successors=successors)

    def _successors(self, edge: Edge) -> Iterable[Successor]:
        """What lines of groups are lines of behind ``edge``."""
        for (old, new), number in product(self._new_names[edge], range(len(self._lines.groups))):
            successor = self._lines.successor(number, old, new, self._stale[edge])
            if successor is not None:
                yield successor

    def _changes(self, edge: Edge) -> Iterable[tuple[Linear, Linear]]:
        """Old and new address of what a location holds that has another term behind the edge."""
        terms, before = self._values.terms, self._values.edges[edge].state
        after = self._values.states[edge.target]
        for location, new in after.locations.items():
            if terms[new].bits != 32 or location.space == "unique":
                continue
            old = before.read(location)
            if old is not None and old != new:
                yield terms.linear(old), terms.linear(new)

    def along(self, edge: Edge, state: CacheState) -> CacheState:
        """The state where ``edge`` leads to.

        *Soundness:* as said of the parts.
        """
        kept = self._cache.without(state, self.renaming[edge])
        return CacheState({**kept.must, **self.renamed(edge, state)}, kept.stay)

    def renamed(self, edge: Edge, state: CacheState) -> Mapping[Line, Younger]:
        """The lines in the cache that have another name behind ``edge``.

        *Soundness:* a location holds the same number before and behind an edge, so what is known of a line by its old
        term is known by the new one. What the accesses of a group show of its variable part is shown by those that are
        executed: a name that takes it for granted is good enough for them, but for a further name only where that takes
        as much for granted.
        """
        gained = {new: younger for new, (_, younger) in self.gained(edge, state.must).items()}
        return self._cache.held(gained, self.renaming[edge])

    def gained(self, edge: Edge, lines: Mapping[Line, Younger]) -> Mapping[Line, tuple[Line, Younger]]:
        """By their names behind ``edge``, those of ``lines`` that have another one there, and what is known of them.

        *Soundness:* as said of `renamed`; what is known speaks of groups as they are before the edge.
        """
        gained: dict[Line, tuple[Line, Younger]] = {}
        for old, new in self._new_names[edge]:
            for line, younger in lines.items():
                named = self._lines.renamed(line, old, new, self._stale[edge])
                if named is not None and (not younger.is_assumed or named.implies_old):
                    is_assumed = younger.is_assumed or not named.is_implied
                    gained.setdefault(named.line, (line, younger._replace(is_assumed=is_assumed)))
        return gained
