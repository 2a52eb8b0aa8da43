"""Misses that accesses share: those of a line in its scope, and those of lines known by number in the call.

They are auxiliary variables of the flow problem, limited by how often scopes begin, and by how often the first access
of a scope is executed. The scope of a group is the time from when the symbols of its variable part get their values to
when one of them may get another (`younger_sets`). Single writes of stores share these constraints, where they rule out
a miss before.

Words: scope, linear constraint, auxiliary variable, first touch (docs/explanation/glossary.md).

*Soundness:* a persistent access misses at most once in the scope of its line, so there are at most as many misses as
scopes in which the line is accessed; each of these begins somewhere, and has a first access.

Both accesses may be to any word of the table, which is one line. They share one miss, in one call: their auxiliary
variables are at most 1 in sum, and each at most as large as its access is executed (point 0).

>>> table = example('''
... unsigned small[8] __attribute__((aligned(32)));
... unsigned f(unsigned i) { return small[i & 7] + small[i & 3]; }''')
>>> for one in table.data.constraints[:3]:
...     print(one.name, one.points, one.constant, one.auxiliaries)
miss:region1 () 1 (('miss:0.1048576:region1', 1), ('miss:1.1048576:region1', 1))
miss:0.1048576:executed ((0, -1),) 0 (('miss:0.1048576:region1', 1),)
miss:0.1048576:scope () 1 (('miss:0.1048576:region1', 1),)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from operator import eq
from types import MappingProxyType
from typing import NamedTuple

from wcet_probe.analyzer.dcache.allocated_before import Allocated
from wcet_probe.analyzer.dcache.scopes import Scopes, Starts
from wcet_probe.analyzer.dcache.strided_traversals import StridedTraversal
from wcet_probe.analyzer.dcache.symbolic_blocks import ReferenceGroup, SymbolicBlock
from wcet_probe.analyzer.facts.language import Visit
from wcet_probe.analyzer.facts.memory import Objects
from wcet_probe.analyzer.graph.supergraph import Edge
from wcet_probe.analyzer.ipet.flow_problem import LinearConstraint


class Shared(NamedTuple):
    """Whose misses an access shares: of a line in its scope, besides of its candidates in the call, or of a traversal.

    Or only of the first touches of a line, or of those that find it as it was (`data_misses`). The lines of a traversal
    may be evicted in between where it ``is_refilled``.
    """

    line: SymbolicBlock | None
    candidates: frozenset[SymbolicBlock] = frozenset()
    traversed: SymbolicBlock | None = None
    objects: Objects | None = None
    touch: Visit | None = None
    is_refilled: bool = False


class Refills(NamedTuple):
    """A traversal whose lines may be evicted and filled again, and what would limit its misses if they were not."""

    traversal: StridedTraversal
    constraint: LinearConstraint

    def may_be_evicted_by(self, accesses: tuple[int | None, frozenset[int]] | None) -> bool:
        """Whether misses of ``accesses``, a group and its points, evict lines of it; None stands for any accesses."""
        group, points = accesses or (None, self.traversal.nodes)
        return group != self.traversal.group and not points.isdisjoint(self.traversal.nodes)


class SharedMisses(NamedTuple):
    """What misses share.

    Attributes:
        misses: of each execution of a point, which are not shared.
        writes: the same of single writes.
        constraints: of the misses and single writes that are auxiliary variables.
        written: single writes of each auxiliary variable that is no miss.
        modified: auxiliary variables of lines that the stores of ``written`` modify.
        refills: of traversals whose lines may be evicted.
        accesses: group, if it is known, and points of the misses that are auxiliary variables.
        stores: those of ``written`` that may modify a line besides, of each execution of a point.
        leaving: as ``misses``, but of each time that a point is left for another than the next instruction.
    """

    misses: Counter[int]
    writes: Counter[int]
    constraints: list[LinearConstraint]
    written: dict[str, int]
    modified: list[str]
    refills: list[Refills]
    accesses: dict[str, tuple[int | None, frozenset[int]]]
    stores: Counter[int]
    leaving: Counter[int]


def shared_misses(
    shared: Mapping[Shared, Sequence[int]],
    scopes: Scopes,
    traversals: Mapping[int, StridedTraversal],
    groups: Sequence[ReferenceGroup],
    line_bytes: int,
    *,
    writes: Mapping[SymbolicBlock, Mapping[int, int]] = MappingProxyType({}),
    allocated: Mapping[SymbolicBlock, Mapping[Edge, Allocated]] = MappingProxyType({}),
    touched_stay: bool = False,
    counts_all: bool = False,
    departing: Collection[tuple[SymbolicBlock, int]] = (),
) -> SharedMisses:
    """Misses of each execution of a point, and constraints of those that are shared; the same of single writes.

    Args:
        shared: points of the persistent accesses, by what they share.
        scopes: of the groups.
        traversals: by name.
        groups: by number.
        line_bytes: of the cache.
        writes: stores at points, by line, that are single writes only if no miss of an access to the line came before
            in the scope, and behind which the point has none, unless ``touched_stay``.
        allocated: as `allocated_before` has it.
        touched_stay: whether such stores are single writes only if no access to the line that fills was before in the
            scope, whether it missed or not.
        counts_all: whether each miss has an auxiliary variable, also where it takes place once for each execution.
        departing: lines and points of such accesses as take place only where the point is left for another than the
            next instruction. Where it is the only one of its line, its misses are charged there.

    *Soundness:* as said of the module. Each miss of an access that is persistent in the call is of another one of the
    candidates; regions of candidates do not overlap.
    """
    found = SharedMisses(Counter(), Counter(), [], {}, [], [], {}, Counter(), Counter())
    by_group: dict[int, dict[int, dict[str, list[int]]]] = {}
    traversing = _of_traversals(shared, traversals, line_bytes, found.refills)
    for auxiliaries, own in (*_of_regions(shared), *traversing, *_of_visits(shared)):
        found.constraints.extend(own)
        for auxiliary, (line, points) in auxiliaries.items():
            others = found.accesses.get(auxiliary, (None, frozenset()))[1]
            found.accesses[auxiliary] = line and line.group, others.union(points)
            if line is None:
                found.constraints.append(_executed(auxiliary, points, (auxiliary,)))
            else:
                known = by_group.setdefault(line.group, {}).setdefault(line.granule, {})
                # A region with no line but this one has no auxiliary variable of its own.
                known.setdefault(auxiliary, []).extend(points)
    if touched_stay:
        _add_first_writes(found, writes, scopes, groups)
        writes = {}
    for number, granules in sorted(by_group.items()):
        stores = {granule: writes.get(SymbolicBlock(number, granule), {}) for granule in granules}
        most = groups[number].most_lines(granules, line_bytes)
        group = groups[number]
        _add_scopes(
            found,
            number,
            granules,
            stores,
            most=most,
            scopes=scopes,
            group=group,
            counts_all=counts_all,
            departing=departing,
        )
    for line, counts in writes.items():
        group, edges = groups[line.group], allocated.get(line, {})
        if line.granule not in by_group.get(line.group, {}):
            if not edges or not _is_once(scopes, group, counts):
                found.writes.update(counts)
                continue
            _add_writes(found, line, counts, scopes=scopes, group=group)
        names = [name for name in (_write(line, point) for point in sorted(counts)) if name in found.written]
        if edges and len(names) == len(counts) and _is_once(scopes, group, counts):
            misses, leading = partial(_misses_of, by_group), partial(scopes.leading_to, points=sorted(counts))
            _add_allocated(found, line, names, edges, misses, leading=leading, scopes=scopes, groups=groups)
    return found


def _misses_of(auxiliaries: Mapping[int, Mapping[int, _Points]], line: SymbolicBlock) -> _Points:
    """The misses of a line that are auxiliary variables."""
    return auxiliaries.get(line.group, {}).get(line.granule, {})


_Points = Mapping[str, Sequence[int]]
"""The points of accesses, by the name of what they share."""
_Auxiliaries = Mapping[str, tuple[SymbolicBlock | None, Sequence[int]]]
"""The line whose scope they are in, if any, and the points of the accesses, by name."""


def _of_regions(shared: Mapping[Shared, Sequence[int]]) -> Iterator[tuple[_Auxiliaries, list[LinearConstraint]]]:
    for number, (region, found) in enumerate(_regions(shared)):
        is_shared = _is_shared(region, found)
        place = f":region{number}" if is_shared else ""
        auxiliaries = {_auxiliary(line, place): (line, points) for line, points in found.items()}
        yield (
            auxiliaries,
            [LinearConstraint(f"miss{place}", constant=len(region), auxiliaries=_all(auxiliaries))]
            if is_shared
            else [],
        )


def _of_traversals(
    shared: Mapping[Shared, Sequence[int]],
    traversals: Mapping[int, StridedTraversal],
    line_bytes: int,
    refills: list[Refills],
) -> Iterator[tuple[_Auxiliaries, list[LinearConstraint]]]:
    """The auxiliary variables of traversals and their constraints, but for those that are added to ``refills``."""
    for number, ((traversed, objects, is_refilled), found) in enumerate(_traversed(shared).items()):
        place = f":traversal{number}"
        auxiliaries = {_auxiliary(line, place): (line, points) for line, points in found.items()}
        points = [point for own in found.values() for point in own]
        traversal, constraints = traversals[traversed.group], list[LinearConstraint]()
        if traversal.step_bytes:
            constraint = traversal.constraint(f"miss{place}", list(auxiliaries), points, line_bytes)
            if is_refilled:
                refills.append(Refills(traversal, constraint))
            else:
                constraints.append(constraint)
        if objects:
            constraints.append(traversal.counted_constraint(f"miss{place}:lines", auxiliaries, objects.lines))
        yield auxiliaries, constraints


def _of_visits(shared: Mapping[Shared, Sequence[int]]) -> Iterator[tuple[_Auxiliaries, list[LinearConstraint]]]:
    yield {touch_variable(key): (key.line, points) for key, points in shared.items() if key.touch}, []


def variable_names(shared: Mapping[Shared, Sequence[int]]) -> Mapping[Shared, str]:
    """The auxiliary variables of misses, by what they share; there may be none of some."""
    traversals = {key: f":traversal{number}" for number, key in enumerate(_traversed(shared))}
    regions = list(enumerate(_regions(shared)))
    names: dict[Shared, str] = {}
    for key in shared:
        if key.touch:
            names[key] = touch_variable(key)
        elif key.traversed is not None:
            names[key] = _auxiliary(key.line, traversals[key.traversed, key.objects, key.is_refilled])
        else:
            number, (region, found) = next(one for one in regions if _is_of(key.candidates, one[1][0]))
            names[key] = _auxiliary(key.line, f":region{number}" if _is_shared(region, found) else "")
    return names


def _is_of(candidates: frozenset[SymbolicBlock], region: frozenset[SymbolicBlock]) -> bool:
    return candidates <= region and bool(candidates) == bool(region)


def _is_shared(region: frozenset[SymbolicBlock], found: Mapping[SymbolicBlock | None, Sequence[int]]) -> bool:
    return bool(region) and (len(found) > 1 or None in found)


def touch_variable(shared: Shared) -> str:
    """The name of the misses that only first touches, or only reuses, share."""
    return _auxiliary(shared.line, f":{shared.touch}")


def _traversed(
    shared: Mapping[Shared, Sequence[int]],
) -> Mapping[tuple[SymbolicBlock, Objects | None, bool], Mapping[SymbolicBlock | None, Sequence[int]]]:
    """The points of the accesses of each traversal, by line; apart those whose lines may be evicted."""
    found: dict[tuple[SymbolicBlock, Objects | None, bool], dict[SymbolicBlock | None, Sequence[int]]] = {}
    for (line, _, traversed, objects, _, is_refilled), points in shared.items():
        if traversed is not None:
            found.setdefault((traversed, objects, is_refilled), {})[line] = points
    return found


def _regions(
    shared: Mapping[Shared, Sequence[int]],
) -> Iterator[tuple[frozenset[SymbolicBlock], dict[SymbolicBlock | None, list[int]]]]:
    """Candidates, as many as overlap each other, with the points of the accesses that have them, by line.

    First those that have none.
    """
    regions: list[frozenset[SymbolicBlock]] = []
    others = {key: points for key, points in shared.items() if not key.touch}
    for candidates in (key.candidates for key in others):
        united = candidates.union(*(region for region in regions if not region.isdisjoint(candidates)))
        regions = [region for region in regions if region.isdisjoint(candidates)]
        regions += [united] if united else []
    for region in (frozenset[SymbolicBlock](), *regions):
        found: dict[SymbolicBlock | None, list[int]] = {}
        for (line, candidates, traversed, _, _, _), points in others.items():
            if traversed is None and _is_of(candidates, region):
                found.setdefault(line, []).extend(points)
        yield region, found


def _add_scopes(
    found: SharedMisses,
    number: int,
    granules: Mapping[int, Mapping[str, Sequence[int]]],
    writes: Mapping[int, Mapping[int, int]],
    *,
    most: int,
    scopes: Scopes,
    group: ReferenceGroup,
    counts_all: bool,
    departing: Collection[tuple[SymbolicBlock, int]],
) -> None:
    """Add to ``found`` the misses of the persistent accesses of a group: variables and their points, by granule.

    ``granules`` lie in ``most`` lines at most.

    *Soundness:* a scope has a single write of a store, if no access came before that missed, or a miss, if the store
    and the accesses that may miss do not follow the store in the scope: the two share the constraints of a miss.
    """
    starts = scopes.starts(group)
    constraints = found.constraints
    every: list[str] = []
    points_of_all: set[int] = set()
    for granule, auxiliaries in sorted(granules.items()):
        line, name = SymbolicBlock(number, granule), f"miss:{number}.{granule}"
        missing = scopes.missing(group, line)
        points = [point for own in auxiliaries.values() for point in own]
        last = {point: count for point, count in writes[granule].items() if scopes.is_last(group, point, points)}
        found.writes.update({point: count for point, count in writes[granule].items() if point not in last})
        is_once = points[0] not in scopes.repeated or missing == Starts(tuple(points), (), at_entry=False)
        is_charged = most == len(granules) and len(points) == 1 and is_once and not counts_all
        if is_charged and name in auxiliaries and not last:
            charged = found.leaving if (line, points[0]) in departing else found.misses
            charged[points[0]] += 1
            continue
        every += auxiliaries
        points_of_all.update(points)
        if len(auxiliaries) > 1:
            constraints += (_executed(f"{auxiliary}:own", own, (auxiliary,)) for auxiliary, own in auxiliaries.items())
        first = scopes.first(group, sorted(set(points)), partial(eq, line))
        constraints.append(_executed(name, first, auxiliaries))
        constraints.append(_in_each(missing, scopes.leading_to(starts, points), f"{name}:scope", auxiliaries, 1))
        for point, count in sorted(last.items()):
            write, both = _write(line, point), sorted({*points, point})
            found.written[write] = count
            first = scopes.first(group, both, partial(eq, line))
            constraints.append(_executed(f"{write}:own", (point,), (write,)))
            constraints.append(_executed(write, first, (*auxiliaries, write)))
            constraints.append(
                _in_each(starts, scopes.leading_to(starts, both), f"{write}:scope", (*auxiliaries, write), 1)
            )
        if last:
            _add_modified(found, line, last, auxiliaries, points, scopes=scopes, group=group, most=sum(last.values()))
    if every and most < len(granules):
        first = scopes.first(group, sorted(points_of_all), lambda one: one.group == number)
        constraints.append(_executed(f"miss:{number}", first, every, most))
        constraints.append(
            _in_each(starts, scopes.leading_to(starts, points_of_all), f"miss:{number}:lines", every, most)
        )


def _add_modified(
    found: SharedMisses,
    line: SymbolicBlock,
    stores: Mapping[int, int],
    misses: Iterable[str],
    points: Sequence[int],
    *,
    scopes: Scopes,
    group: ReferenceGroup,
    most: int,
) -> None:
    """Add to ``found`` how often ``most`` stores modify a line that are behind the accesses to it that may miss.

    *Soundness:* first-in first-out: of these accesses, at ``points``, one misses in a scope at most, and if it does,
    the line is not evicted before the stores, all of which then find it: one modifies it. Else each may.
    """
    modified = _modified(line)
    accessed = scopes.first(group, sorted({*points, *stores}), partial(eq, line))
    first = Counter(scopes.first_executed(group, sorted(stores)))
    first.update(dict.fromkeys(accessed, most - 1))
    executed = tuple((point, -count) for point, count in sorted(first.items()))
    auxiliaries = ((modified, 1), *((miss, most - 1) for miss in misses))
    found.modified.append(modified)
    found.constraints.append(LinearConstraint(f"{modified}:scope", executed, auxiliaries=auxiliaries))
    own = tuple((point, -count) for point, count in sorted(stores.items()))
    found.constraints.append(LinearConstraint(f"{modified}:own", own, auxiliaries=((modified, 1),)))


def _add_writes(
    found: SharedMisses, line: SymbolicBlock, stores: Mapping[int, int], *, scopes: Scopes, group: ReferenceGroup
) -> None:
    """Add to ``found`` the single writes of ``stores`` to a line of which no access may miss."""
    for point, count in stores.items():
        found.written[_write(line, point)] = count
        found.constraints.append(_executed(f"{_write(line, point)}:own", (point,), (_write(line, point),)))
    _add_modified(found, line, stores, (), (), scopes=scopes, group=group, most=1)


def _add_first_writes(
    found: SharedMisses,
    writes: Mapping[SymbolicBlock, Mapping[int, int]],
    scopes: Scopes,
    groups: Sequence[ReferenceGroup],
) -> None:
    """Add to ``found`` the single ``writes`` of stores that are none behind an access to the line that fills.

    *Soundness:* where a point is executed again in a scope only behind such an access, all but its first execution are.
    """
    for line, point, count in ((line, *one) for line, stores in writes.items() for one in sorted(stores.items())):
        group = groups[line.group]
        starts = scopes.starts(group)
        if scopes.is_repeated(group, point, line):
            found.writes[point] += count
            continue
        write = _write(line, point)
        found.written[write] = count
        found.stores[point] += count
        found.constraints.append(_executed(f"{write}:own", (point,), (write,)))
        found.constraints.append(_in_each(starts, scopes.leading_to(starts, (point,)), f"{write}:scope", (write,), 1))


def _write(line: SymbolicBlock, point: int) -> str:
    return f"write:{line.group}.{line.granule}@{point}"


def _is_once(scopes: Scopes, group: ReferenceGroup, stores: Mapping[int, int]) -> bool:
    """Whether a scope of ``group`` has one of ``stores`` at most."""
    return set(stores.values()) == {1} and all(scopes.is_last(group, point, stores) for point in stores)


def _add_allocated(
    found: SharedMisses,
    line: SymbolicBlock,
    writes: Iterable[str],
    allocated: Mapping[Edge, Allocated],
    misses: Callable[[SymbolicBlock], _Points],
    *,
    leading: Callable[[Starts], Collection[int]],
    scopes: Scopes,
    groups: Sequence[ReferenceGroup],
) -> None:
    """Add to ``found`` what is known of the single ``writes`` to a line that was ``allocated`` before the scope.

    *Soundness:* a scope has one of the stores. Where it began behind one of the edges, it is no single write if the
    line was filled in the scope that ended there, by its other name; nor does it modify the line then. Misses by that
    name and scopes in which it was not filled are as many as the scopes in which the line was accessed by it.
    """
    group = groups[line.group]
    accessed: Counter[int] = Counter()
    shared: list[str] = []
    for before in sorted({one.before for one in allocated.values()}):
        auxiliaries = misses(before)
        points = {point for own in auxiliaries.values() for point in own} | scopes.sure_points(before)
        accessed.update(scopes.first(groups[before.group], sorted(points), partial(eq, before)))
        shared += auxiliaries
    accesses = tuple((point, -count) for point, count in sorted(accessed.items()))
    modified = [_modified(line)] if all(one.is_modified for one in allocated.values()) else []
    for name in (list(writes), modified):
        if name:
            starts = scopes.but_for(group, frozenset(allocated))
            own = _in_each(starts, leading(scopes.starts(group)), f"{name[0]}:filled", (*name, *shared), 1)
            found.constraints.append(replace(own, points=(*own.points, *accesses)))


def _modified(line: SymbolicBlock) -> str:
    return f"modified:{line.group}.{line.granule}"


def _auxiliary(line: SymbolicBlock | None, place: str) -> str:
    return f"miss{place}" if line is None else f"miss:{line.group}.{line.granule}{place}"


def _all(auxiliaries: Iterable[str]) -> tuple[tuple[str, int], ...]:
    return tuple((auxiliary, 1) for auxiliary in auxiliaries)


def _executed(name: str, points: Iterable[int], auxiliaries: Iterable[str], most: int = 1) -> LinearConstraint:
    """``auxiliaries`` take place at most ``most`` times in sum for each execution of one of ``points``."""
    executed = tuple((point, -most * count) for point, count in sorted(Counter(points).items()))
    return LinearConstraint(f"{name}:executed", executed, auxiliaries=_all(auxiliaries))


def _in_each(
    starts: Starts, leading: Collection[int], name: str, auxiliaries: Iterable[str], most: int
) -> LinearConstraint:
    """``auxiliaries`` take place at most ``most`` times in sum in each scope that begins before one of ``leading``."""
    return LinearConstraint(
        name,
        tuple((point, -most) for point in starts.points if point in leading),
        tuple((edge, -most) for edge in starts.edges if edge.target in leading),
        constant=most if starts.at_entry else 0,
        auxiliaries=_all(auxiliaries),
    )
