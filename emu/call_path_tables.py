"""The points of a proof as tables of the native core, which follows each observed call through them."""

from __future__ import annotations

import ctypes
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from wcet_probe.emu import claim_layouts as layouts
from wcet_probe.emu.tables import CodeTable
from wcet_probe.identity import Same
from wcet_probe.model.proof import AccessRange, Bound

_ROW_BYTES = 2
_BOUNDS_KEPT = 32


class CallPathTables:
    """What a bound says of the accesses at each of its points, and where control may go from there.

    Where it has summarised callees, or no points that lead to each other, nothing is followed.

    Parameters:
        bound: what was proved.
        table: the code.
        set_count: sets of the data cache; 0 without one.
    """

    def __init__(self, bound: Bound, table: CodeTable, set_count: int) -> None:
        self._table = table
        self._accesses: Mapping[int, Sequence[AccessRange]] = {}
        self.layout = layouts.PathsLayout()
        if bound.summarised or not bound.point_edges:
            return
        known = _path_rows(Same(bound), Same(table), set_count)
        self._accesses = known.at_point
        count = len(known.points)
        self.layout.points = (layouts.PathPointLayout * count).from_buffer_copy(known.points)
        self.layout.next = known.next
        self.layout.accesses = known.accesses
        self.layout.sets = known.sets
        self.layout.ends = known.ends
        self.layout.here = (ctypes.c_uint32 * count)()
        self.layout.there = (ctypes.c_uint32 * count)()
        self.layout.point_count = count

    def facts(self, paths: layouts.PathsLayout, address: int, *, is_store: bool) -> Sequence[str]:
        """The facts that what is said of an access rests on, where control was when the native core lost its way."""
        here = {paths.here[number] for number in range(paths.here_count)}
        told = [one for point in here for one in self._accesses.get(point, ())]
        return sorted({one.fact for one in told if (one.address, one.is_store) == (address, is_store)} - {""})

    def address(self, row: int) -> int:
        """Of the code at ``row``."""
        return self._table.address(row)


@dataclass(frozen=True, slots=True)
class _PathRows:
    """The tables of a bound; the native core writes to none but to its own copy of the points.

    Attributes:
        at_point: what is said of accesses at each point.
        points, next, accesses, sets, ends: as in ``struct wp_paths``.
    """

    at_point: Mapping[int, Sequence[AccessRange]]
    points: ctypes.Array[layouts.PathPointLayout]
    next: ctypes.Array[ctypes.c_uint32]
    accesses: ctypes.Array[layouts.PathAccessLayout]
    sets: ctypes.Array[ctypes.c_uint8]
    ends: ctypes.Array[ctypes.c_uint8]


@lru_cache(_BOUNDS_KEPT)
def _path_rows(of: Same[Bound], code: Same[CodeTable], set_count: int) -> _PathRows:
    bound, table = of.value, code.value
    blocks = [(address, end) for (address, _), end in zip(bound.points, bound.point_ends, strict=True)]
    at_point = _by_point(bound.accesses, blocks)
    following: dict[int, list[int]] = defaultdict(list)
    for source, target in bound.point_edges:
        if target is not None:
            following[source].append(target)
    returning = {source for source, target in bound.point_edges if target is None}
    points = (layouts.PathPointLayout * len(blocks))()
    to: list[int] = []
    accesses: list[layouts.PathAccessLayout] = []
    set_rows: dict[frozenset[int], int] = {}
    marks = bytearray(table.row_count + 1)
    for number, (point, (start, end)) in enumerate(zip(points, blocks, strict=True)):
        point.first, point.behind = table.row(start), table.row(start) + (end - start) // _ROW_BYTES
        marks[point.first] = marks[point.behind] = 1
        point.first_next, point.next_count = len(to), len(following[number])
        to += following[number]
        own = at_point.get(number, ())
        point.first_access, point.access_count = len(accesses), len(own)
        accesses += [_access(one, table, set_rows) for one in own]
        point.returns = number in returning
    sets = bytes(set_count) + bytes(number in row for row in set_rows for number in range(set_count))
    return _PathRows(
        at_point,
        points,
        (ctypes.c_uint32 * len(to))(*to),
        (layouts.PathAccessLayout * len(accesses))(*accesses),
        (ctypes.c_uint8 * len(sets)).from_buffer_copy(sets),
        (ctypes.c_uint8 * len(marks)).from_buffer_copy(marks),
    )


def _by_point(accesses: Sequence[AccessRange], blocks: Sequence[tuple[int, int]]) -> dict[int, list[AccessRange]]:
    """The accesses that are said of each point; those said of none in particular are of all with the instruction."""
    found: dict[int, list[AccessRange]] = defaultdict(list)
    for one in accesses:
        if one.point is not None:
            found[one.point].append(one)
            continue
        for number, (start, end) in enumerate(blocks):
            if start <= one.address < end:
                found[number].append(one)
    return found


def _access(one: AccessRange, table: CodeTable, set_rows: dict[frozenset[int], int]) -> layouts.PathAccessLayout:
    flags = (
        layouts.STORES * one.is_store
        | layouts.ONE_LINE * one.is_one_line
        | layouts.NO_FRAME * (one.is_store and one.base == "number")
    )
    set_row = 0 if one.sets is None else set_rows.setdefault(one.sets, len(set_rows) + 1)
    addresses = layouts.ClaimRangeLayout(one.low, one.stride, one.steps, one.base == "stack")
    return layouts.PathAccessLayout(addresses, table.row(one.address), flags, set_row)
