"""A layered drawing on a page: rank below rank, in as many columns as it takes to be no taller than the page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from wcet_probe.reports.pictures.layering import Layers, layered, nondecreasing
from wcet_probe.reports.pictures.routing import Box, Letters, Placement, placement, routed

_RANK_GAP = 19.0
_COLUMN_GAP = 22.0
_MOST_COLUMNS = 5
_TALLEST = 860.0
_LETTER_ROOM, _LETTER_GAP = 30.0, 14.0
_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True, slots=True)
class Drawing:
    """A graph: ``body`` gives its elements with the top left corner at a place."""

    body: Callable[[float, float], list[str]]
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class _Column:
    """Ranks from ``first`` on, before ``last``; by ``shift`` their places are moved to the right."""

    first: int
    last: int
    shift: float


@dataclass(frozen=True, slots=True)
class _Sheet:
    layers: Layers
    heights: tuple[float, ...]
    columns: tuple[_Column, ...]
    width: float
    height: float


def drawing(boxes: Mapping[str, Box], edges: Mapping[tuple[str, str], bool], room: float) -> Drawing:
    """The graph of ``boxes`` and ``edges`` in the fewest columns that are not taller than a page.

    Parameters:
        boxes: nodes by name; the first one goes on top.
        edges: by source and target, whether they are drawn strong.
        room: the width to fill at most; where a single node or the points of edges need more, it is wider.
    """
    sheet = _fitting(boxes, edges, room)

    def body(x: float, y: float) -> list[str]:
        placed = _placed(sheet, boxes, x, y)
        parts = routed(placed, edges, _letters(sheet, placed))
        for name, box in boxes.items():
            parts += box.draw(placed.middle[name], placed.top[name])
        return parts

    return Drawing(body, sheet.width, sheet.height)


def _fitting(boxes: Mapping[str, Box], edges: Mapping[tuple[str, str], bool], room: float) -> _Sheet:
    """In the fewest columns that are not too tall; where there are none, what is least tall."""
    widths = {name: box.width for name, box in boxes.items()}
    tried: list[_Sheet] = []
    for columns in range(1, _MOST_COLUMNS + 1):
        layers = layered(widths, edges, (room - _COLUMN_GAP * (columns - 1)) / columns)
        tried.append(_sheet(layers, boxes, columns))
        if tried[-1].width <= room and tried[-1].height <= _TALLEST:
            break
    return min(tried, key=lambda one: (max(one.width, room), max(one.height, _TALLEST)))


def _sheet(layers: Layers, boxes: Mapping[str, Box], columns: int) -> _Sheet:
    heights = tuple(max((boxes[name].height for name in names if name in boxes), default=0.0) for names in layers.ranks)
    cuts = _cuts(layers, heights, columns)
    bounds = list(zip([0, *cuts], [*cuts, len(heights)], strict=True))
    placed, left, height = [], 0.0, 0.0
    for first, last in bounds:
        extents = [
            (layers.middle[name], boxes[name].width / 2 if name in boxes else 0.0)
            for names in layers.ranks[first:last]
            for name in names
        ]
        start, end = min(x - half for x, half in extents), max(x + half for x, half in extents)
        placed.append(_Column(first, last, left - start))
        left += end - start + _COLUMN_GAP
        ends = (first > 0) + (last < len(heights))
        height = max(height, sum(heights[first:last]) + _RANK_GAP * (last - first - 1) + _LETTER_ROOM * ends)
    return _Sheet(layers, heights, tuple(placed), left - _COLUMN_GAP, height)


def _cuts(layers: Layers, heights: Sequence[float], columns: int) -> list[int]:
    """Ranks that begin a further column: near equal parts, where the fewest edges are cut."""
    total = sum(heights) + _RANK_GAP * len(heights)
    below = [sum(heights[:rank]) + _RANK_GAP * rank for rank in range(len(heights))]
    crossing = [0] * (len(heights) + 1)
    rank_of = {name: rank for rank, names in enumerate(layers.ranks) for name in names}
    for route in layers.routes:
        for rank in range(rank_of[route.points[0]] + 1, rank_of[route.points[-1]] + 1):
            crossing[rank] += 1
    cuts: list[int] = []
    for part in range(1, columns):
        wished = total * part / columns
        free = [rank for rank in range(1, len(heights)) if rank > (cuts[-1] if cuts else 0)]
        near = [rank for rank in free if abs(below[rank] - wished) <= total / columns / 8] or free
        if not near:
            break
        cuts.append(min(near, key=lambda rank: (crossing[rank], abs(below[rank] - wished))))
    return cuts


def _placed(sheet: _Sheet, boxes: Mapping[str, Box], x: float, y: float) -> Placement:
    """Where each node and each point of an edge is."""
    middle, top, floor = {}, {}, {}
    for column in sheet.columns:
        place = y + (_LETTER_ROOM if column.first else 0)
        for rank in range(column.first, column.last):
            for name in sheet.layers.ranks[rank]:
                middle[name] = x + column.shift + sheet.layers.middle[name]
                top[name], floor[name] = place, place + sheet.heights[rank]
            place += sheet.heights[rank] + _RANK_GAP
    return placement(boxes, sheet.layers.routes, middle, top, floor)


def _letters(sheet: _Sheet, placed: Placement) -> Letters:
    """Letters for the steps of routes that lead from a column into the next, side by side at the end of both."""
    rank_of = {name: rank for rank, names in enumerate(sheet.layers.ranks) for name in names}
    found: Letters = {}
    names = (_ALPHABET[index % 26] + (str(index // 26) if index >= 26 else "") for index in count())
    for column in sheet.columns[1:]:
        cut = [
            (index, step)
            for index, route in enumerate(placed.routes)
            for step in range(len(route.points) - 1)
            if rank_of[route.points[step]] < column.first <= rank_of[route.points[step + 1]]
        ]
        out = _side_by_side({key: placed.ports[(*key, "bottom")] for key in cut})
        into = _side_by_side({(i, s): placed.ports[i, s + 1, "top"] for i, s in cut})
        for key in sorted(cut, key=lambda key: out[key]):
            found[key] = (next(names), out[key], into[key])
    return found


def _side_by_side(wished: Mapping[tuple[int, int], float]) -> dict[tuple[int, int], float]:
    order = sorted(wished, key=lambda key: (wished[key], key))
    levels = nondecreasing([wished[key] - _LETTER_GAP * index for index, key in enumerate(order)], [1.0] * len(order))
    return {key: level + _LETTER_GAP * index for index, (key, level) in enumerate(zip(order, levels, strict=True))}
