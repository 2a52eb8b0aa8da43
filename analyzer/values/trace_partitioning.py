"""Tail duplication: where paths meet that hold different pointers, what follows is analysed for each pointer apart.

Behind a merge of two blocks of a heap, say, one register holds the address of either. As one value it would have a name
of its own, and nothing that is known of the lines of the two blocks would be known of it.

Words: trace partitioning, join (docs/explanation/glossary.md).

*Soundness:* a copy has the block and the edges of its point, so every path of the graph is a path of the result (node
splitting: A. Aho, M. Lam, R. Sethi, J. Ullman, Compilers, 2nd edition, section 9.7.6).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from wcet_probe.analyzer.graph.loop_forest import Loop, loops_of
from wcet_probe.analyzer.graph.supergraph import EXIT, Context, Edge, Point, Supergraph
from wcet_probe.analyzer.values.result import Values
from wcet_probe.analyzer.values.symbolic.locations import Location
from wcet_probe.analyzer.values.symbolic.term_table import Term

_MOST_COPIES = 8
_MOST_GROWTH = 3
_MANY_POINTS = 1_000
"""Points from which on none are copied: in software floating point pointers go apart where nothing hangs on it."""
_MANY_VISITS = 1_000
"""Executions of blocks to find values, from which on none are copied: it would take several times as many."""

Trace = tuple[tuple[int, int], ...]
"""Where control came together with other pointers before, and by which of its ways."""


def pointer_paths(values: Values) -> Mapping[Edge, int]:
    """The edges to points where paths meet with different pointers, numbered by what they bring.

    A pointer is what an address of an access is the sum of, there or once it has come round a loop. Headers of loops
    are left out. None where values took too long to find.

    *Soundness:* it decides what is copied, not what is true.
    """
    if values.visits >= _MANY_VISITS:
        return {}
    headers = {loop.header for loop in loops_of(values.forest)}
    addends = _pointers(values, headers)
    paths: dict[Edge, int] = {}
    for point, edges in values.arriving.items():
        if point == EXIT or point in headers or len(edges) < 2:
            continue
        held = [location for location, term in values.states[point].locations.items() if term in addends]
        brought = {edge: _brought(values, edge, held) for edge in edges}
        numbers = {terms: number for number, terms in enumerate(dict.fromkeys(brought.values()))}
        if len(numbers) > 1:
            paths |= {edge: numbers[terms] for edge, terms in brought.items()}
    return paths


def _pointers(values: Values, headers: Collection[int]) -> set[Term]:
    """The terms that addresses are the sums of, and those that they are where a loop's next round begins."""
    terms, found = values.terms, set[Term]()
    waiting = [one.pointer for own in values.accesses.values() for one in own if one.pointer is not None]
    while waiting:
        addends = {term for term, factor in terms.linear(waiting.pop()).coefficients.items() if factor == 1} - found
        found |= addends
        for term in addends:
            match terms[term].arguments:
                case ("phi", (int(point),), Location() as location) if point in headers:
                    brought = (values.edges[edge].state.read(location) for edge in values.arriving.get(point, ()))
                    waiting += [part for part in brought if part is not None]
    return found


def _brought(values: Values, edge: Edge, held: Iterable[Location]) -> tuple[Term | None, ...]:
    state = values.edges[edge].state
    return tuple(state.read(location) for location in held)


def partitioned(values: Values, paths: Mapping[Edge, int]) -> Supergraph:
    """The graph of ``values`` with a copy of each point for each trace that leads to it.

    Loops are copied as a whole. Where traces become too many, what is oldest of them is forgotten. Where nothing is
    copied, it is the graph of ``values`` without what they show not to be reached.

    *Soundness:* as said of the module; the headers of loops stay their only entries.
    """
    outgoing: dict[int, list[Edge]] = {point: [] for point in values.states}
    never: dict[int, set[tuple[str, int | None]]] = {}  # as values show
    for edge in values.graph.edges:
        if edge.source in outgoing and (edge.target == EXIT or edge.target in outgoing):
            outgoing[edge.source].append(edge)
        elif edge.source in outgoing:
            never.setdefault(edge.source, set()).add((edge.way, edge.address))
    originals = tuple(
        replace(point, left_out=point.left_out | never.get(point.index, set())) for point in values.graph.points
    )
    # Of copies that are too many in sum, fewer are made everywhere, rather than none at the end.
    most = max(len(values.states), min(_MOST_GROWTH * len(values.states), _MANY_POINTS))
    copies = _MOST_COPIES if most > len(values.states) else 1
    graphs = (_copied(values, originals, outgoing, paths, each) for each in range(copies, 0, -1))
    return next(graph for graph in graphs if len(graph.points) <= most)


def _copied(
    values: Values,
    originals: Sequence[Point],
    outgoing: Mapping[int, Sequence[Edge]],
    paths: Mapping[Edge, int],
    most_copies: int,
) -> Supergraph:
    """The graph with at most so many copies of a point; with one it is the graph of ``values``."""
    partitioning = _Partitioning(originals, outgoing, paths, most_copies)
    for _, arrival in partitioning.level(values.forest, [(0, _Arrival((), None))]):
        if arrival.edge is not None:
            partitioning.edges.append(arrival.edge)
    return replace(values.graph, points=tuple(partitioning.points), edges=tuple(partitioning.edges))


class _Arrival(NamedTuple):
    """Control comes with a trace by an edge, which starts at a copy; no edge at the entry."""

    trace: Trace
    edge: Edge | None


@dataclass(slots=True)
class _Partitioning:
    originals: Sequence[Point]
    outgoing: Mapping[int, Sequence[Edge]]
    paths: Mapping[Edge, int]
    most_copies: int
    points: list[Point] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    copies: Counter[tuple[Context, int]] = field(default_factory=Counter)

    def level(
        self, parts: Sequence[int | Loop], seeds: Iterable[tuple[int, _Arrival]], header: tuple[int, int] | None = None
    ) -> list[tuple[int, _Arrival]]:
        """Copy ``parts``, in the loop with the header and its copy ``header``.

        ``seeds`` is what arrives from there; what symbols is returned. Both say where control goes.
        """
        arriving: dict[int, list[_Arrival]] = {_first(part): [] for part in parts}
        leaving: list[tuple[int, _Arrival]] = []

        def send(target: int, arrival: _Arrival) -> None:
            if header is not None and target == header[0] and arrival.edge is not None:
                self.edges.append(arrival.edge._replace(target=header[1]))
            elif target in arriving:
                arriving[target].append(arrival)
            else:
                leaving.append((target, arrival))

        for target, arrival in seeds:
            send(target, arrival)
        for part in parts:
            point = _first(part)
            for trace, arrivals in self._by_trace(arriving[point]).items():
                copy = self._copy(point, arrivals)
                gone = [(edge.target, self._along(edge, copy, trace)) for edge in self.outgoing[point]]
                if isinstance(part, Loop):
                    gone = self.level(part.parts[1:], gone, (point, copy))
                for target, arrival in gone:
                    send(target, arrival)
        return leaving

    def _by_trace(self, arrivals: Sequence[_Arrival]) -> Mapping[Trace, list[_Arrival]]:
        """``arrivals`` by what is kept of their traces: the latest parts, if all are too many."""
        kept = max((len(arrival.trace) for arrival in arrivals), default=0)
        while True:
            found: dict[Trace, list[_Arrival]] = {}
            for arrival in arrivals:
                found.setdefault(arrival.trace[max(0, len(arrival.trace) - kept) :], []).append(arrival)
            if len(found) <= self.most_copies or not kept:
                return found
            kept -= 1

    def _along(self, edge: Edge, copy: int, trace: Trace) -> _Arrival:
        path = self.paths.get(edge)
        longer = trace if path is None else (*trace, (edge.target, path))
        return _Arrival(longer, edge._replace(source=copy))

    def _copy(self, point: int, arrivals: Iterable[_Arrival]) -> int:
        original, index = self.originals[point], len(self.points)
        place = original.context, original.block.address
        self.points.append(replace(original, index=index, copy=self.copies[place]))
        self.copies[place] += 1
        self.edges += [arrival.edge._replace(target=index) for arrival in arrivals if arrival.edge is not None]
        return index


def _first(part: int | Loop) -> int:
    return part.header if isinstance(part, Loop) else part
