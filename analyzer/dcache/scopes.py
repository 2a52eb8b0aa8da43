"""Scopes of reference groups: where they begin, which point accesses a line first in one, which last.

The scope of a group is the time from when the symbols of its variable part get their values to when one of them may get
another, after the temporal scopes of B. Huynh, L. Ju, A. Roychoudhury, Scope-aware data cache analysis for WCET
estimation, RTAS 2011.

Words: scope, reference group, first touch, reuse (docs/explanation/glossary.md).

*Soundness:* more places where scopes begin, and more points that may be the first, are larger bounds.

The node of this list gets its value where the loop is entered and on its back edge: both lead to point 3, which defines
the symbol again in each round. It is also the first to access the node's line.

>>> walk = example('''
... struct node { struct node *next; unsigned key, size; };
... unsigned f(struct node *n, unsigned count) {
...     unsigned sum = 0;
...     for (; count; count--) { sum += n->key; if (sum & 1) n->size = sum; n = n->next; }
...     return sum;
... }''')
>>> walk.scopes.starts(walk.lines.groups[0])
Starts(points=(3,), edges=(), at_entry=False)
>>> walk.scopes.first(walk.lines.groups[0], (3, 4, 5), lambda line: line.group == 0)
(3,)
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

from wcet_probe.analyzer.dcache.symbolic_blocks import ReferenceGroup, SymbolicBlock
from wcet_probe.analyzer.graph.loop_forest import loops_of
from wcet_probe.analyzer.graph.supergraph import EXIT, Edge
from wcet_probe.analyzer.icache.condensation import condensed
from wcet_probe.analyzer.values.result import Values
from wcet_probe.analyzer.values.symbolic.symbol_names import defined_at
from wcet_probe.analyzer.values.symbolic.term_table import Term


class Starts(NamedTuple):
    """Where scopes begin: at points and edges, and where ``at_entry`` also once in the call."""

    points: tuple[int, ...]
    edges: tuple[Edge, ...]
    at_entry: bool


class Scopes:
    """The scopes of groups in ``values``.

    ``sure`` are the lines that each point accesses in any case, and fills, ``departing`` those that it so accesses
    where it is left for another than the next instruction; ``resident`` the edges of `resident_at_entry`.
    """

    def __init__(
        self,
        values: Values,
        sure: Mapping[int, Collection[SymbolicBlock | None]],
        resident: Mapping[SymbolicBlock, frozenset[Edge]],
        departing: Mapping[int, Collection[SymbolicBlock | None]] = MappingProxyType({}),
    ) -> None:
        self._terms, self._sure, self._resident, self._departing = values.terms, sure, resident, departing
        self._points = sorted(values.states)
        self._order = values.order
        self._killing: dict[Term, dict[Edge, int]] = {}
        """The edges that kill each symbol, numbered as the graph has them."""
        for number, (edge, symbols) in enumerate(values.killed.items()):
            for symbol in symbols if edge.target != EXIT else ():
                self._killing.setdefault(symbol, {})[edge] = number
        self.repeated = frozenset(node for loop in loops_of(values.forest) for node in loop.nodes)
        """Points that may be executed more than once."""

    def starts(self, group: ReferenceGroup) -> Starts:
        """Where scopes of a group begin, but for the first of those that begin at points that are executed once.

        *Soundness:* a scope begins where one of the group's symbols is defined, and behind an edge that may give it
        another value. Those that are not defined in a loop are defined once at most.
        """
        edges = {
            edge: number
            for symbol in group.deciding
            for edge, number in self._killing.get(symbol, {}).items()
            if self._defined_at(symbol) != edge.target
        }
        return Starts(
            points=self._defined_again(group.symbols),
            edges=tuple(sorted(edges, key=edges.__getitem__)),
            at_entry=not self._defined_again(group.deciding),
        )

    def missing(self, group: ReferenceGroup, line: SymbolicBlock) -> Starts:
        """Where scopes of a group begin in which ``line`` may miss, as `starts`.

        *Soundness:* a scope that begins where all the symbols that are defined are values of before begins behind one
        of the edges that lead there.
        """
        return self.but_for(group, self._resident.get(line, frozenset()))

    def but_for(self, group: ReferenceGroup, resident: frozenset[Edge]) -> Starts:
        """Where scopes of a group begin, but for those behind some edges that are ``resident``.

        *Soundness:* as said of `missing`.
        """
        starts = self.starts(group)
        joins = {edge.target for edge in resident if edge.target in starts.points and self._is_join(group, edge.target)}
        arriving = (edge for point in sorted(joins) for edge in self._order.incoming[point])
        return Starts(
            points=tuple(point for point in starts.points if point not in joins),
            edges=tuple(edge for edge in (*starts.edges, *arriving) if edge not in resident),
            at_entry=starts.at_entry,
        )

    def sure_points(self, line: SymbolicBlock) -> frozenset[int]:
        """The points that access ``line`` in any case, and fill it."""
        return frozenset(point for point in self._points if line in self._sure[point])

    def _is_join(self, group: ReferenceGroup, point: int) -> bool:
        """Whether all symbols of ``group`` that ``point`` defines are values that edges bring there."""
        own = (symbol for symbol in group.symbols if self._defined_at(symbol) == point)
        return point != 0 and all(self._terms[symbol].arguments[:2] == ("phi", (point,)) for symbol in own)

    def is_one_address(self, group: ReferenceGroup) -> bool:
        """Whether the variable part of ``group`` has one value in the call.

        *Soundness:* all its symbols are defined once at most, and no edge gives it another value.
        """
        known = all(self._defined_at(symbol) is not None for symbol in group.symbols)
        return known and self.starts(group) == Starts((), (), at_entry=True)

    def leading_to(self, starts: Starts, points: Collection[int]) -> frozenset[int]:
        """``points``, and those that they can be reached from with none of ``starts`` in between.

        *Soundness:* a scope in which the line is accessed at ``points`` begins there, or at another one of these;
        behind a start within one of ``points`` the access may have been before it.
        """
        begins = set(starts.points).difference(points)
        found, waiting = set(points), list(points)
        while waiting:
            point = waiting.pop()
            arriving = () if point in begins else self._order.incoming[point]
            sources = {edge.source for edge in arriving if edge not in starts.edges} - found
            found |= sources
            waiting += sources
        return frozenset(found)

    def first(
        self, group: ReferenceGroup, points: Collection[int], is_meant: Callable[[SymbolicBlock], bool]
    ) -> tuple[int, ...]:
        """Those of ``points`` by which a line that ``is_meant`` may be accessed for the first time in a scope.

        *Soundness:* the others are executed behind one of ``points`` that surely accesses such a line. Accesses
        elsewhere do not count, whatever line they are to: their misses are not limited here, and a FIFO set may evict
        what hit in it.
        """
        sure = {point for point in points if any(line and is_meant(line) for line in self._sure[point])}
        return self._not_behind(group, points, sure)

    def first_executed(self, group: ReferenceGroup, points: Collection[int]) -> tuple[int, ...]:
        """Those of ``points`` that may be the first of them to be executed in a scope of ``group``."""
        return self._not_behind(group, points, points)

    def _not_behind(self, group: ReferenceGroup, points: Collection[int], sure: Collection[int]) -> tuple[int, ...]:
        """Those of ``points`` that are not executed behind one that is ``sure``, in the same scope, on every way.

        *Soundness:* what a way leads to from where a scope begins, or the call, with none before that is sure, is kept.
        Other points pass on what leads to them, so the ways of the condensed graph are those of the whole one.
        """
        passed, begun = frozenset(sure), {0, *self._begun_at(group)}
        graph, nearest = condensed(self._order, passed | begun)
        found = graph.behind(begun, lambda edge: edge.source not in passed)
        return tuple(point for point in points if nearest[point] in found)

    def _begun_at(self, group: ReferenceGroup) -> Iterator[int]:
        """The points behind edges behind which a scope of ``group`` may begin."""
        for symbol in group.deciding:
            yield from (edge.target for edge in self._killing.get(symbol, ()))
        for symbol in group.symbols:
            point = self._defined_at(symbol)
            if point is not None and point in self._order and self._order.incoming[point]:
                yield point

    def is_repeated(self, group: ReferenceGroup, point: int, line: SymbolicBlock) -> bool:
        """Whether ``point`` may be executed again in a scope of ``group``, with no sure access to ``line`` in between.

        *Soundness:* as said of ``sure`` and ``departing``.
        """
        passed, found, waiting = self.sure_points(line), set[int](), [point]
        while waiting:
            source = waiting.pop()
            if source not in passed:
                is_loaded = line in self._departing.get(source, ())
                edges = (edge for edge in self._order.outgoing[source] if edge.way == "fall" or not is_loaded)
                onward = {edge.target for edge in edges if not self._begins(group, edge)} - found
                found |= onward
                waiting += onward
        return point in found

    def is_last(self, group: ReferenceGroup, point: int, others: Iterable[int]) -> bool:
        """Whether neither ``point`` nor one of ``others`` is executed behind ``point``, in a scope of ``group``."""
        found, waiting = set[int](), [point]
        while waiting:
            onward = {
                edge.target for edge in self._order.outgoing[waiting.pop()] if not self._begins(group, edge)
            } - found
            found |= onward
            waiting += onward
        return found.isdisjoint((point, *others))

    def _begins(self, group: ReferenceGroup, edge: Edge) -> bool:
        """Whether a scope of ``group`` may begin behind ``edge``."""
        if any(edge in self._killing.get(symbol, ()) for symbol in group.deciding):
            return True
        return any(self._defined_at(symbol) == edge.target for symbol in group.symbols)

    def _defined_at(self, symbol: Term) -> int | None:
        return defined_at(self._terms[symbol].arguments)

    def _defined_again(self, symbols: Iterable[Term]) -> tuple[int, ...]:
        """The points in loops that define some of ``symbols``."""
        points = {self._defined_at(symbol) for symbol in symbols}
        return tuple(sorted(point for point in points if point is not None and point in self.repeated))
