"""Misses that accesses share: those of a line in its stay, and those of lines known by number in the call.

They are events of the flow problem, limited by how often stays begin, and by how often the first access of a stay is
executed. The stay of a group is the time from when the leaves of its variable part get their values to when one of them
may get another (`younger_sets`). Single writes of stores share these limits, where they rule out a miss before.

*Soundness:* a persistent access misses at most once in the stay of its line, so there are at most as many misses as
stays in which the line is accessed; each of these begins somewhere, and has a first access.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from operator import eq
from types import MappingProxyType
from typing import NamedTuple

from wcet_probe.analyzer.dcache.allocated_before import Filled
from wcet_probe.analyzer.dcache.strided_traversals import Sweep
from wcet_probe.analyzer.dcache.symbolic_blocks import Group, Line
from wcet_probe.analyzer.domains.lattice import Dual, Truths
from wcet_probe.analyzer.facts.language import Visit
from wcet_probe.analyzer.facts.memory import Objects
from wcet_probe.analyzer.graph.fixpoint import least
from wcet_probe.analyzer.graph.flow_order import FlowOrder
from wcet_probe.analyzer.graph.loop_forest import loops_of
from wcet_probe.analyzer.graph.supergraph import EXIT, Edge
from wcet_probe.analyzer.ipet.flow_problem import Limit
from wcet_probe.analyzer.values.analysis import Values, brought_back
from wcet_probe.analyzer.values.state import defined_at
from wcet_probe.analyzer.values.terms import Term


class Shared(NamedTuple):
    """Whose misses an access shares: of a line in its stay, besides of its candidates in the call, or of a sweep.

    Or only of the first visits to a line, or of those that find it as it was (`data_misses`). The lines of a sweep may
    be evicted in between where it ``is_refilled``.
    """

    line: Line | None
    candidates: frozenset[Line] = frozenset()
    swept: Line | None = None
    objects: Objects | None = None
    visit: Visit | None = None
    is_refilled: bool = False


class Refills(NamedTuple):
    """A sweep whose lines may be evicted and filled again, and what would limit its misses if they were not."""

    sweep: Sweep
    limit: Limit


class SharedMisses(NamedTuple):
    """What misses share.

    Attributes:
        misses: of each execution of a point, which are not shared.
        writes: the same of single writes.
        limits: of the misses and single writes that are events.
        written: single writes of each event that is no miss.
        modified: events of lines that the stores of ``written`` modify.
        refills: of sweeps whose lines may be evicted.
        accesses: group, if it is known, and points of the misses that are events.
    """

    misses: Counter[int]
    writes: Counter[int]
    limits: list[Limit]
    written: dict[str, int]
    modified: list[str]
    refills: list[Refills]
    accesses: dict[str, tuple[int | None, frozenset[int]]]


class Starts(NamedTuple):
    """Where stays begin: at points and edges, and where ``at_entry`` also once in the call."""

    points: tuple[int, ...]
    edges: tuple[Edge, ...]
    at_entry: bool


class Stays:
    """The stays of groups in ``values``.

    ``sure`` are the lines that each point accesses in any case, and fills; ``held`` the edges of `resident_at_entry`.
    """

    def __init__(
        self, values: Values, sure: Mapping[int, Collection[Line | None]], held: Mapping[Line, frozenset[Edge]]
    ) -> None:
        self._terms, self._sure, self._held = values.terms, sure, held
        self._points = sorted(values.states)
        self._order = FlowOrder(self._points, (edge for edge in values.edges if edge.target != EXIT))
        self._brought_back = brought_back(values)
        self.repeated = frozenset(node for loop in loops_of(values.forest) for node in loop.nodes)
        """Points that may be executed more than once."""

    def starts(self, group: Group) -> Starts:
        """Where stays of a group begin, but for the first of those that begin at points that are executed once.

        *Soundness:* a stay begins where one of the group's leaves is defined, and behind an edge that may give it
        another value. Those that are not defined in a loop are defined once at most.
        """
        edges = (
            edge
            for edge, silent in self._brought_back.items()
            if edge.target != EXIT
            and any(leaf in silent and self._defined_at(leaf) != edge.target for leaf in group.deciding)
        )
        return Starts(
            points=self._defined_again(group.leaves),
            edges=tuple(edges),
            at_entry=not self._defined_again(group.deciding),
        )

    def missing(self, group: Group, line: Line) -> Starts:
        """Where stays of a group begin in which ``line`` may miss, as `starts`.

        *Soundness:* a stay that begins where all the leaves that are defined are values of before begins behind one of
        the edges that lead there.
        """
        return self.but_for(group, self._held.get(line, frozenset()))

    def but_for(self, group: Group, held: frozenset[Edge]) -> Starts:
        """Where stays of a group begin, but for those behind some edges that are ``held``.

        *Soundness:* as said of `missing`.
        """
        starts = self.starts(group)
        joins = {edge.target for edge in held if edge.target in starts.points and self._is_join(group, edge.target)}
        arriving = (edge for point in sorted(joins) for edge in self._order.incoming[point])
        return Starts(
            points=tuple(point for point in starts.points if point not in joins),
            edges=tuple(edge for edge in (*starts.edges, *arriving) if edge not in held),
            at_entry=starts.at_entry,
        )

    def sure_points(self, line: Line) -> frozenset[int]:
        """The points that access ``line`` in any case, and fill it."""
        return frozenset(point for point in self._points if line in self._sure[point])

    def _is_join(self, group: Group, point: int) -> bool:
        """Whether all leaves of ``group`` that ``point`` defines are values that edges bring there."""
        own = (leaf for leaf in group.leaves if self._defined_at(leaf) == point)
        return point != 0 and all(self._terms[leaf].arguments[:2] == ("phi", (point,)) for leaf in own)

    def is_one_address(self, group: Group) -> bool:
        """Whether the variable part of ``group`` has one value in the call.

        *Soundness:* all its leaves are defined once at most, and no edge gives it another value.
        """
        known = all(self._defined_at(leaf) is not None for leaf in group.leaves)
        return known and self.starts(group) == Starts((), (), at_entry=True)

    def leading_to(self, starts: Starts, points: Collection[int]) -> frozenset[int]:
        """``points``, and those that they can be reached from with none of ``starts`` in between.

        *Soundness:* a stay in which the line is accessed at ``points`` begins there, or at another one of these; behind
        a start within one of ``points`` the access may have been before it.
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

    def first(self, group: Group, points: Collection[int], is_meant: Callable[[Line], bool]) -> tuple[int, ...]:
        """Those of ``points`` by which a line that ``is_meant`` may be accessed for the first time in a stay.

        *Soundness:* the others are executed behind one of ``points`` that surely accesses such a line. Accesses
        elsewhere do not count, whatever line they are to: their misses are not limited here, and a FIFO set may evict
        what hit in it.
        """
        sure = {point for point in points if any(line and is_meant(line) for line in self._sure[point])}
        return self._not_behind(group, points, sure)

    def first_executed(self, group: Group, points: Collection[int]) -> tuple[int, ...]:
        """Those of ``points`` that may be the first of them to be executed in a stay of ``group``."""
        return self._not_behind(group, points, points)

    def _not_behind(self, group: Group, points: Collection[int], sure: Collection[int]) -> tuple[int, ...]:
        """Those of ``points`` that are not executed behind one that is ``sure``, in the same stay, on every way.

        *Soundness:* a greatest fixpoint.
        """
        before = least(
            self._order,
            Dual(Truths()),
            {0: False},
            lambda point, is_behind: is_behind or point in sure,
            lambda edge, is_behind: is_behind and not self._begins(group, edge),
        )
        return tuple(point for point in points if not before.get(point, True))

    def is_last(self, group: Group, point: int, others: Iterable[int]) -> bool:
        """Whether neither ``point`` nor one of ``others`` is executed behind ``point``, in a stay of ``group``."""
        found, waiting = set[int](), [point]
        while waiting:
            onward = {
                edge.target for edge in self._order.outgoing[waiting.pop()] if not self._begins(group, edge)
            } - found
            found |= onward
            waiting += onward
        return found.isdisjoint((point, *others))

    def _begins(self, group: Group, edge: Edge) -> bool:
        """Whether a stay of ``group`` may begin behind ``edge``."""
        if not self._brought_back[edge].isdisjoint(group.deciding):
            return True
        return any(self._defined_at(leaf) == edge.target for leaf in group.leaves)

    def _defined_at(self, leaf: Term) -> int | None:
        return defined_at(self._terms[leaf].arguments)

    def _defined_again(self, leaves: Iterable[Term]) -> tuple[int, ...]:
        """The points in loops that define some of ``leaves``."""
        points = {self._defined_at(leaf) for leaf in leaves}
        return tuple(sorted(point for point in points if point is not None and point in self.repeated))


def shared_misses(
    shared: Mapping[Shared, Sequence[int]],
    stays: Stays,
    sweeps: Mapping[int, Sweep],
    groups: Sequence[Group],
    line_bytes: int,
    *,
    writes: Mapping[Line, Mapping[int, int]] = MappingProxyType({}),
    filled: Mapping[Line, Mapping[Edge, Filled]] = MappingProxyType({}),
) -> SharedMisses:
    """Misses of each execution of a point, and limits of those that are events; the same of single writes.

    Args:
        shared: points of the persistent accesses, by what they share.
        stays: of the groups.
        sweeps: by name.
        groups: by number.
        line_bytes: of the cache.
        writes: stores at points, by line, that are single writes only if no miss of an access to the line came before
            in the stay, and behind which the point has none.
        filled: as `allocated_before` has it.

    *Soundness:* as said of the module. Each miss of an access that is persistent in the call is of another one of the
    candidates; regions of candidates do not overlap.
    """
    found = SharedMisses(Counter(), Counter(), [], {}, [], [], {})
    by_group: dict[int, dict[int, dict[str, list[int]]]] = {}
    sweeping = _of_sweeps(shared, sweeps, line_bytes, found.refills)
    for events, own in (*_of_regions(shared), *sweeping, *_of_visits(shared)):
        found.limits.extend(own)
        for event, (line, points) in events.items():
            others = found.accesses.get(event, (None, frozenset()))[1]
            found.accesses[event] = line and line.group, others.union(points)
            if line is None:
                found.limits.append(_executed(event, points, (event,)))
            else:
                known = by_group.setdefault(line.group, {}).setdefault(line.granule, {})
                # A region with no line but this one has no event of its own.
                known.setdefault(event, []).extend(points)
    for number, granules in sorted(by_group.items()):
        stores = {granule: writes.get(Line(number, granule), {}) for granule in granules}
        most = groups[number].most_lines(granules, line_bytes)
        _add_stays(found, number, granules, stores, most=most, stays=stays, group=groups[number])
    for line, counts in writes.items():
        group, edges = groups[line.group], filled.get(line, {})
        if line.granule not in by_group.get(line.group, {}):
            if not edges or not _is_once(stays, group, counts):
                found.writes.update(counts)
                continue
            _add_writes(found, line, counts, stays=stays, group=group)
        names = [name for name in (_write(line, point) for point in sorted(counts)) if name in found.written]
        if edges and len(names) == len(counts) and _is_once(stays, group, counts):
            misses, leading = partial(_misses_of, by_group), partial(stays.leading_to, points=sorted(counts))
            _add_filled(found, line, names, edges, misses, leading=leading, stays=stays, groups=groups)
    return found


def _misses_of(events: Mapping[int, Mapping[int, _Points]], line: Line) -> _Points:
    """The misses of a line that are events."""
    return events.get(line.group, {}).get(line.granule, {})


_Points = Mapping[str, Sequence[int]]
"""The points of accesses, by the name of what they share."""
_Events = Mapping[str, tuple[Line | None, Sequence[int]]]
"""The line whose stay they are in, if any, and the points of the accesses, by name."""


def _of_regions(shared: Mapping[Shared, Sequence[int]]) -> Iterator[tuple[_Events, list[Limit]]]:
    for number, (region, found) in enumerate(_regions(shared)):
        is_shared = _is_shared(region, found)
        place = f":region{number}" if is_shared else ""
        events = {_event(line, place): (line, points) for line, points in found.items()}
        yield events, [Limit(f"miss{place}", constant=len(region), events=_all(events))] if is_shared else []


def _of_sweeps(
    shared: Mapping[Shared, Sequence[int]], sweeps: Mapping[int, Sweep], line_bytes: int, refills: list[Refills]
) -> Iterator[tuple[_Events, list[Limit]]]:
    """The events of sweeps and their limits, but for those that are added to ``refills``."""
    for number, ((swept, objects, is_refilled), found) in enumerate(_swept(shared).items()):
        place = f":sweep{number}"
        events = {_event(line, place): (line, points) for line, points in found.items()}
        points = [point for own in found.values() for point in own]
        sweep, limits = sweeps[swept.group], list[Limit]()
        if sweep.step_bytes:
            limit = sweep.limit(f"miss{place}", list(events), points, line_bytes)
            if is_refilled:
                refills.append(Refills(sweep, limit))
            else:
                limits.append(limit)
        if objects:
            limits.append(sweep.counted_limit(f"miss{place}:lines", events, objects.lines))
        yield events, limits


def _of_visits(shared: Mapping[Shared, Sequence[int]]) -> Iterator[tuple[_Events, list[Limit]]]:
    yield {visit_event(key): (key.line, points) for key, points in shared.items() if key.visit}, []


def event_names(shared: Mapping[Shared, Sequence[int]]) -> Mapping[Shared, str]:
    """The names of the events that misses are counted by, by what they share; of some there may be no event."""
    sweeps = {key: f":sweep{number}" for number, key in enumerate(_swept(shared))}
    regions = list(enumerate(_regions(shared)))
    names: dict[Shared, str] = {}
    for key in shared:
        if key.visit:
            names[key] = visit_event(key)
        elif key.swept is not None:
            names[key] = _event(key.line, sweeps[key.swept, key.objects, key.is_refilled])
        else:
            number, (region, found) = next(one for one in regions if _is_of(key.candidates, one[1][0]))
            names[key] = _event(key.line, f":region{number}" if _is_shared(region, found) else "")
    return names


def _is_of(candidates: frozenset[Line], region: frozenset[Line]) -> bool:
    return candidates <= region and bool(candidates) == bool(region)


def _is_shared(region: frozenset[Line], found: Mapping[Line | None, Sequence[int]]) -> bool:
    return bool(region) and (len(found) > 1 or None in found)


def visit_event(shared: Shared) -> str:
    """The name of the misses that only visits of a kind share."""
    return _event(shared.line, f":{shared.visit}")


def _swept(
    shared: Mapping[Shared, Sequence[int]],
) -> Mapping[tuple[Line, Objects | None, bool], Mapping[Line | None, Sequence[int]]]:
    """The points of the accesses of each sweep, by line; apart those whose lines may be evicted."""
    found: dict[tuple[Line, Objects | None, bool], dict[Line | None, Sequence[int]]] = {}
    for (line, _, swept, objects, _, is_refilled), points in shared.items():
        if swept is not None:
            found.setdefault((swept, objects, is_refilled), {})[line] = points
    return found


def _regions(shared: Mapping[Shared, Sequence[int]]) -> Iterator[tuple[frozenset[Line], dict[Line | None, list[int]]]]:
    """Candidates, as many as overlap each other, with the points of the accesses that have them, by line.

    First those that have none.
    """
    regions: list[frozenset[Line]] = []
    others = {key: points for key, points in shared.items() if not key.visit}
    for candidates in (key.candidates for key in others):
        united = candidates.union(*(region for region in regions if not region.isdisjoint(candidates)))
        regions = [region for region in regions if region.isdisjoint(candidates)]
        regions += [united] if united else []
    for region in (frozenset[Line](), *regions):
        found: dict[Line | None, list[int]] = {}
        for (line, candidates, swept, _, _, _), points in others.items():
            if swept is None and _is_of(candidates, region):
                found.setdefault(line, []).extend(points)
        yield region, found


def _add_stays(
    found: SharedMisses,
    number: int,
    granules: Mapping[int, Mapping[str, Sequence[int]]],
    writes: Mapping[int, Mapping[int, int]],
    *,
    most: int,
    stays: Stays,
    group: Group,
) -> None:
    """Add to ``found`` the misses of the persistent accesses of a group: events and their points, by granule.

    ``granules`` lie in ``most`` lines at most.

    *Soundness:* a stay has a single write of a store, if no access came before that missed, or a miss, if the store and
    the accesses that may miss do not follow the store in the stay: the two share the limits of a miss.
    """
    starts = stays.starts(group)
    limits = found.limits
    every: list[str] = []
    points_of_all: set[int] = set()
    for granule, events in sorted(granules.items()):
        line, name = Line(number, granule), f"miss:{number}.{granule}"
        missing = stays.missing(group, line)
        points = [point for own in events.values() for point in own]
        last = {point: count for point, count in writes[granule].items() if stays.is_last(group, point, points)}
        found.writes.update({point: count for point, count in writes[granule].items() if point not in last})
        is_once = points[0] not in stays.repeated or missing == Starts(tuple(points), (), at_entry=False)
        if most == len(granules) and len(points) == 1 and is_once and name in events and not last:
            found.misses[points[0]] += 1
            continue
        every += events
        points_of_all.update(points)
        if len(events) > 1:
            limits += (_executed(f"{event}:own", own, (event,)) for event, own in events.items())
        first = stays.first(group, sorted(set(points)), partial(eq, line))
        limits.append(_executed(name, first, events))
        limits.append(_in_each(missing, stays.leading_to(starts, points), f"{name}:stay", events, 1))
        for point, count in sorted(last.items()):
            write, both = _write(line, point), sorted({*points, point})
            found.written[write] = count
            first = stays.first(group, both, partial(eq, line))
            limits.append(_executed(f"{write}:own", (point,), (write,)))
            limits.append(_executed(write, first, (*events, write)))
            limits.append(_in_each(starts, stays.leading_to(starts, both), f"{write}:stay", (*events, write), 1))
        if last:
            _add_modified(found, line, last, events, points, stays=stays, group=group, most=sum(last.values()))
    if every and most < len(granules):
        first = stays.first(group, sorted(points_of_all), lambda one: one.group == number)
        limits.append(_executed(f"miss:{number}", first, every, most))
        limits.append(_in_each(starts, stays.leading_to(starts, points_of_all), f"miss:{number}:lines", every, most))


def _add_modified(
    found: SharedMisses,
    line: Line,
    stores: Mapping[int, int],
    misses: Iterable[str],
    points: Sequence[int],
    *,
    stays: Stays,
    group: Group,
    most: int,
) -> None:
    """Add to ``found`` how often ``most`` stores modify a line that are behind the accesses to it that may miss.

    *Soundness:* first-in first-out: of these accesses, at ``points``, one misses in a stay at most, and if it does, the
    line is not evicted before the stores, all of which then find it: one modifies it. Else each may.
    """
    modified = _modified(line)
    accessed = stays.first(group, sorted({*points, *stores}), partial(eq, line))
    first = Counter(stays.first_executed(group, sorted(stores)))
    first.update(dict.fromkeys(accessed, most - 1))
    executed = tuple((point, -count) for point, count in sorted(first.items()))
    events = ((modified, 1), *((miss, most - 1) for miss in misses))
    found.modified.append(modified)
    found.limits.append(Limit(f"{modified}:stay", executed, events=events))
    own = tuple((point, -count) for point, count in sorted(stores.items()))
    found.limits.append(Limit(f"{modified}:own", own, events=((modified, 1),)))


def _add_writes(found: SharedMisses, line: Line, stores: Mapping[int, int], *, stays: Stays, group: Group) -> None:
    """Add to ``found`` the single writes of ``stores`` to a line of which no access may miss, as events."""
    for point, count in stores.items():
        found.written[_write(line, point)] = count
        found.limits.append(_executed(f"{_write(line, point)}:own", (point,), (_write(line, point),)))
    _add_modified(found, line, stores, (), (), stays=stays, group=group, most=1)


def _write(line: Line, point: int) -> str:
    return f"write:{line.group}.{line.granule}@{point}"


def _is_once(stays: Stays, group: Group, stores: Mapping[int, int]) -> bool:
    """Whether a stay of ``group`` has one of ``stores`` at most."""
    return set(stores.values()) == {1} and all(stays.is_last(group, point, stores) for point in stores)


def _add_filled(
    found: SharedMisses,
    line: Line,
    writes: Iterable[str],
    filled: Mapping[Edge, Filled],
    misses: Callable[[Line], _Points],
    *,
    leading: Callable[[Starts], Collection[int]],
    stays: Stays,
    groups: Sequence[Group],
) -> None:
    """Add to ``found`` what is known of the single ``writes`` to a line that was ``filled`` before the stay.

    *Soundness:* a stay has one of the stores. Where it began behind one of the edges, it is no single write if the line
    was filled in the stay that ended there, by its other name; nor does it modify the line then. Misses by that name
    and stays in which it was not filled are as many as the stays in which the line was accessed by it.
    """
    group = groups[line.group]
    accessed: Counter[int] = Counter()
    shared: list[str] = []
    for before in sorted({one.before for one in filled.values()}):
        events = misses(before)
        points = {point for own in events.values() for point in own} | stays.sure_points(before)
        accessed.update(stays.first(groups[before.group], sorted(points), partial(eq, before)))
        shared += events
    accesses = tuple((point, -count) for point, count in sorted(accessed.items()))
    modified = [_modified(line)] if all(one.is_modified for one in filled.values()) else []
    for name in (list(writes), modified):
        if name:
            starts = stays.but_for(group, frozenset(filled))
            own = _in_each(starts, leading(stays.starts(group)), f"{name[0]}:filled", (*name, *shared), 1)
            found.limits.append(replace(own, points=(*own.points, *accesses)))


def _modified(line: Line) -> str:
    return f"modified:{line.group}.{line.granule}"


def _event(line: Line | None, place: str) -> str:
    return f"miss{place}" if line is None else f"miss:{line.group}.{line.granule}{place}"


def _all(events: Iterable[str]) -> tuple[tuple[str, int], ...]:
    return tuple((event, 1) for event in events)


def _executed(name: str, points: Iterable[int], events: Iterable[str], most: int = 1) -> Limit:
    """``events`` take place at most ``most`` times in sum for each execution of one of ``points``."""
    executed = tuple((point, -most * count) for point, count in sorted(Counter(points).items()))
    return Limit(f"{name}:executed", executed, events=_all(events))


def _in_each(starts: Starts, leading: Collection[int], name: str, events: Iterable[str], most: int) -> Limit:
    """``events`` take place at most ``most`` times in sum in each stay that begins before one of ``leading``."""
    return Limit(
        name,
        tuple((point, -most) for point in starts.points if point in leading),
        tuple((edge, -most) for edge in starts.edges if edge.target in leading),
        constant=most if starts.at_entry else 0,
        events=_all(events),
    )
