"""The fixpoint over symbolic cache blocks: states along edges, where lines get other names (substitution).

Words: symbolic cache block, killed binding, fixpoint (docs/explanation/glossary.md).

*Soundness:* as said of `younger_sets`, whose states are joined where paths meet; the result is checked in one pass.

On the back edge the node becomes the one before, and another one is the node. Both names are killed, and what was known
of group 0 is known of group 1:

>>> turn = example('''
... struct node { struct node *next, *last; };
... void f(struct node *n) {
...     struct node *before = 0;
...     while (n) {
...         struct node *next = n->next;
...         n->next = before;
...         if (before) before->last = n;
...         before = n; n = next;
...     }
... }''', spec="d:sets=16,ways=4,line=32,policy=fifo,allocate=no")
>>> [(dict(one.successors), sorted(one.killed)) for one in turn.analysis.substitution.values() if one.successors]
[({0: 1}, [0, 1])]
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from wcet_probe.analyzer.dcache.strided_traversals import StridedTraversal
from wcet_probe.analyzer.dcache.symbolic_blocks import Successor, SymbolicBlock, SymbolicBlocks
from wcet_probe.analyzer.dcache.younger_sets import (
    UNKNOWN,
    CacheState,
    LineAccess,
    RelationalCache,
    Substitution,
    Verdict,
    YoungerSet,
    join,
)
from wcet_probe.analyzer.domains.lattice import Joined
from wcet_probe.analyzer.graph.fixpoint import least
from wcet_probe.analyzer.graph.supergraph import EXIT, Edge
from wcet_probe.analyzer.values.result import Values
from wcet_probe.analyzer.values.symbolic.linear import Linear
from wcet_probe.analyzer.values.symbolic.symbol_names import defined_at
from wcet_probe.analyzer.values.symbolic.term_table import Term
from wcet_probe.model.target import CacheConfig


@dataclass(frozen=True, slots=True)
class RelationalAnalysis:
    """The fixpoint.

    Attributes:
        cache: the domain.
        states: where each point begins.
        verdicts: of each access of each point.
        substituted: of each edge, the lines in the cache that have another name behind it.
        substitution: what each edge does to names.
        passage: what edges do to lines of which something is known.
    """

    cache: RelationalCache
    states: Mapping[int, CacheState]
    verdicts: Mapping[int, tuple[Verdict, ...]]
    substituted: Mapping[Edge, Mapping[SymbolicBlock, YoungerSet]]
    substitution: Mapping[Edge, Substitution]
    passage: Passage


def analyze(
    values: Values,
    lines: SymbolicBlocks,
    accesses: Mapping[int, Sequence[LineAccess]],
    config: CacheConfig,
    traversals: Sequence[StridedTraversal] = (),
    *,
    keeps_all: bool = False,
    at: Mapping[SymbolicBlock, int] = MappingProxyType({}),
) -> RelationalAnalysis:
    """The fixpoint over the points of ``values``, for any content of the cache at entry.

    Args:
        values: points, edges and terms.
        lines: names of the lines.
        accesses: of each point, in order.
        config: the cache.
        traversals: those that accesses belong to.
        keeps_all: whether lines that were accessed are evicted by accesses only that are said to (`RelationalCache`).
        at: as of `RelationalCache`.

    *Soundness:* as said of the module. What takes place where a block is left otherwise than to the next instruction,
    as the loads of a conditional return, has surely taken place behind those edges.
    """
    groups = {traversal.name: traversal.group for traversal in traversals}
    cache = RelationalCache(lines.groups, config, lines.stand_ins(), groups, keeps_all, at)
    passage = Passage(values, lines, cache, traversals)

    def behind(point: int, state: CacheState) -> CacheState:
        for access in accesses.get(point, ()):
            state = cache.touch(state, access)
        return state

    def along(edge: Edge, state: CacheState) -> CacheState:
        if keeps_all and edge.way != "fall":
            for access in accesses.get(edge.source, ()):
                if access.is_leaving:
                    state = cache.touch(state, access._replace(is_certain=True))
        return passage.along(edge, state)

    states = least(values.order, Joined(join), {0: UNKNOWN}, behind, along)
    verdicts = {point: tuple(cache.verdicts(state, accesses.get(point, ()))) for point, state in states.items()}
    substituted = {
        edge: passage.substituted(edge, behind(edge.source, states[edge.source])) for edge in passage.substitution
    }
    return RelationalAnalysis(cache, states, verdicts, substituted, passage.substitution, passage)


class Passage:
    """What an edge does to a state: names that mean something else behind it, and new names of known lines."""

    def __init__(
        self, values: Values, lines: SymbolicBlocks, cache: RelationalCache, traversals: Sequence[StridedTraversal]
    ) -> None:
        self._values, self._lines, self._cache = values, lines, cache
        terms = values.terms
        self._substitutions: dict[Edge, tuple[tuple[Linear, Linear], ...]] = {}
        self.substitution: dict[Edge, Substitution] = {}
        self._killed: dict[Edge, frozenset[Term]] = {}
        defined: dict[int | None, set[Term]] = {}
        speaking = lines.groups_by_symbol()
        for symbol in speaking:
            defined.setdefault(defined_at(terms[symbol].arguments), set()).add(symbol)
        deciding: dict[Term, list[int]] = {}
        for number, group in enumerate(lines.groups):
            for symbol in group.deciding:
                deciding.setdefault(symbol, []).append(number)
        found: dict[Edge, tuple[Successor, ...]] = {}
        for edge, killed in values.killed.items():
            if edge.target != EXIT:
                anew = frozenset(defined.get(edge.target, ()))
                self._killed[edge] = killed | anew
                self._substitutions[edge] = tuple(self._changes(edge))
                killed_groups = frozenset().union(
                    *(speaking[symbol] for symbol in anew),
                    *(deciding[symbol] for symbol in killed & deciding.keys()),
                )
                began = frozenset(traversal.name for traversal in traversals if edge in traversal.entries)
                self.substitution[edge] = Substitution(killed_groups | began)
                found[edge] = tuple(self._successors(edge))
        lasting = lines.lasting(one for own in found.values() for one in own)
        for edge, own in found.items():
            successors = {one.of: one.to for one in reversed(own) if one in lasting}
            self.substitution[edge] = self.substitution[edge]._replace(successors=successors)

    def _successors(self, edge: Edge) -> Iterable[Successor]:
        """What lines of groups are lines of behind ``edge``."""
        for old, new in self._substitutions[edge]:
            for number in self._lines.with_part(old):
                successor = self._lines.successor(number, old, new, self._killed[edge])
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
        kept = self._cache.without(state, self.substitution[edge])
        return CacheState({**kept.must, **self.substituted(edge, state)}, kept.scope)

    def substituted(self, edge: Edge, state: CacheState) -> Mapping[SymbolicBlock, YoungerSet]:
        """The lines in the cache that have another name behind ``edge``.

        *Soundness:* a location holds the same number before and behind an edge, so what is known of a line by its old
        term is known by the new one. What the accesses of a group show of its variable part is shown by those that are
        executed: a name that takes it for granted is good enough for them, but for a further name only where that takes
        as much for granted.
        """
        gained = {new: younger for new, (_, younger) in self.gained(edge, state.must).items()}
        return self._cache.resident(gained, self.substitution[edge])

    def gained(
        self, edge: Edge, lines: Mapping[SymbolicBlock, YoungerSet]
    ) -> Mapping[SymbolicBlock, tuple[SymbolicBlock, YoungerSet]]:
        """By their names behind ``edge``, those of ``lines`` that have another one there, and what is known of them.

        *Soundness:* as said of `substituted`; what is known speaks of groups as they are before the edge.
        """
        gained: dict[SymbolicBlock, tuple[SymbolicBlock, YoungerSet]] = {}
        for old, new in self._substitutions[edge]:
            for line, younger in lines.items():
                named = self._lines.substituted(line, old, new, self._killed[edge])
                if named is not None and (not younger.is_assumed or named.implies_old):
                    is_assumed = younger.is_assumed or not named.is_implied
                    gained.setdefault(named.line, (line, younger._replace(is_assumed=is_assumed)))
        return gained
