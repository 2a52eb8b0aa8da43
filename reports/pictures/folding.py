"""A layered drawing on a page: rank below rank, in as many columns as it takes to be no taller than the page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from wcet_probe.reports.pictures.layering import Layers, Ranked, arranged, nondecreasing, ranked
from wcet_probe.reports.pictures.routing import Box, Letters, Placement, placement, routed

_RANK_GAP = 19.0
_COLUMN_GAP = 22.0
_MOST_COLUMNS = 8
TALLEST = 860.0
"""What a page has room for, below a heading."""
_WISHED = 560.0
"""Columns are added up to here, so that a narrow graph does not fill a page."""

_LETTER_ROOM, _LETTER_GAP = 30.0, 14.0
_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True, slots=True)
class Drawing:
    """A graph: ``body`` gives its elements with the top left corner at a place."""

    body: Callable[[float, float], list[str]]
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Plan:
    """A graph cut into columns, not yet arranged.

    Attributes:
        boxes: nodes by name.
        edges: by source and target, whether they are drawn strong.
        ranked: its ranks.
        heights: of the ranks.
        columns: the first rank of each column, and behind its last one.
        width: it is at most as wide.
        height: of the tallest column.
    """

    boxes: Mapping[str, Box]
    edges: Mapping[tuple[str, str], bool]
    ranked: Ranked
    heights: tuple[float, ...]
    columns: tuple[tuple[int, int], ...]
    width: float
    height: float


def planned(boxes: Mapping[str, Box], edges: Mapping[tuple[str, str], bool], room: float) -> Plan:
    """The graph of ``boxes`` and ``edges`` in the fewest columns that are not too tall.

    Parameters:
        boxes: nodes by name; the first one goes on top.
        edges: by source and target, whether they are drawn strong.
        room: the width to fill at most; where a single node or the points of edges need more, it is wider.
    """
    widths = {name: box.width for name, box in boxes.items()}
    tried: list[Plan] = []
    for columns in range(1, _MOST_COLUMNS + 1):
        gaps = _COLUMN_GAP * (columns - 1)
        found = ranked(widths, edges, (room - gaps) / columns)
        heights = tuple(
            max((boxes[name].height for name in names if name in boxes), default=0.0) for names in found.ranks
        )
        cuts = _cuts(found, heights, columns)
        parts = tuple(zip([0, *cuts], [*cuts, len(heights)], strict=True))
        height = max(_height(heights, first, last) for first, last in parts)
        tried.append(Plan(boxes, edges, found, heights, parts, found.room * columns + gaps, height))
        if tried[-1].width <= room + 1 and height <= _WISHED:
            break
    return min(tried, key=lambda plan: (max(plan.width, room + 1), _grade(plan.height), len(plan.columns)))


def _grade(height: float) -> float:
    """0 for what is as low as wished, then what fits onto a page, then by height."""
    return 0.0 if height <= _WISHED else 1.0 if height <= TALLEST else height


def drawing(plan: Plan) -> Drawing:
    """``plan`` with everything in its place."""
    layers = arranged(plan.ranked)
    shifts, left = [], 0.0
    for first, last in plan.columns:
        extents = [
            (layers.middle[name], plan.boxes[name].width / 2 if name in plan.boxes else 0.0)
            for names in layers.ranks[first:last]
            for name in names
        ]
        start, end = min(x - half for x, half in extents), max(x + half for x, half in extents)
        shifts.append(left - start)
        left += end - start + _COLUMN_GAP

    def body(x: float, y: float) -> list[str]:
        placed = _placed(plan, layers, [x + shift for shift in shifts], y)
        parts = routed(placed, plan.edges, _letters(plan, placed))
        for name, box in plan.boxes.items():
            parts += box.draw(placed.middle[name], placed.top[name])
        return parts

    return Drawing(body, left - _COLUMN_GAP, plan.height)


def _height(heights: Sequence[float], first: int, last: int) -> float:
    ends = (first > 0) + (last < len(heights))
    return sum(heights[first:last]) + _RANK_GAP * (last - first - 1) + _LETTER_ROOM * ends


def _cuts(found: Ranked, heights: Sequence[float], columns: int) -> list[int]:
    """Ranks that begin a further column: near equal parts, where the fewest edges are cut."""
    total = sum(heights) + _RANK_GAP * len(heights)
    above = [sum(heights[:rank]) + _RANK_GAP * rank for rank in range(len(heights))]
    crossing = [0] * (len(heights) + 1)
    rank_of = {name: rank for rank, names in enumerate(found.ranks) for name in names}
    for route in found.routes:
        for rank in range(rank_of[route.points[0]] + 1, rank_of[route.points[-1]] + 1):
            crossing[rank] += 1
    cuts: list[int] = []
    for part in range(1, columns):
        wished = total * part / columns
        free = range((cuts[-1] if cuts else 0) + 1, len(heights))
        near = [rank for rank in free if abs(above[rank] - wished) <= total / columns / 12] or free
        if not near:
            break
        cuts.append(min(near, key=lambda rank: (crossing[rank], abs(above[rank] - wished))))
    return cuts


def _placed(plan: Plan, layers: Layers, shifts: Sequence[float], y: float) -> Placement:
    """Where each node and each point of an edge is; the columns are moved to the right by ``shifts``."""
    middle, top, floor = {}, {}, {}
    for (first, last), shift in zip(plan.columns, shifts, strict=True):
        place = y + (_LETTER_ROOM if first else 0)
        for rank in range(first, last):
            for name in layers.ranks[rank]:
                middle[name] = shift + layers.middle[name]
                top[name], floor[name] = place, place + plan.heights[rank]
            place += plan.heights[rank] + _RANK_GAP
    return placement(plan.boxes, layers.routes, middle, top, floor)


def _letters(plan: Plan, placed: Placement) -> Letters:
    """Letters for the steps of routes that lead from a column into the next, side by side at the end of both."""
    rank_of = {name: rank for rank, names in enumerate(plan.ranked.ranks) for name in names}
    right = max(x + (placed.boxes[name].width / 2 if name in placed.boxes else 0) for name, x in placed.middle.items())
    found: Letters = {}
    names = (_ALPHABET[index % 26] + (str(index // 26) if index >= 26 else "") for index in count())
    for begin, _ in plan.columns[1:]:
        cut = [
            (index, step)
            for index, route in enumerate(placed.routes)
            for step in range(len(route.points) - 1)
            if rank_of[route.points[step]] < begin <= rank_of[route.points[step + 1]]
        ]
        out = _side_by_side({key: placed.ports[(*key, "bottom")] for key in cut}, right)
        into = _side_by_side({(i, s): placed.ports[i, s + 1, "top"] for i, s in cut}, right)
        for key in sorted(cut, key=lambda key: out[key]):
            found[key] = (next(names), out[key], into[key])
    return found


def _side_by_side(wished: Mapping[tuple[int, int], float], right: float) -> dict[tuple[int, int], float]:
    """Places near the ``wished`` ones, apart from each other, up to ``right``."""
    order = sorted(wished, key=lambda key: (wished[key], key))
    levels = nondecreasing([wished[key] - _LETTER_GAP * index for index, key in enumerate(order)], [1.0] * len(order))
    most = right - _LETTER_GAP * (len(order) - 1)
    places = [min(level, most) + _LETTER_GAP * index for index, level in enumerate(levels)]
    return dict(zip(order, places, strict=True))
