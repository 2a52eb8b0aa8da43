"""A layered drawing on a page: rank below rank in one or more columns, edges as smooth lines.

Where a column ends, its edges get a letter and go on under the same letter at the top of the next column.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from wcet_probe.reports.pictures.colours import INK, MUTED, PAPER, VERMILLION
from wcet_probe.reports.pictures.layering import Layers, Route, layered
from wcet_probe.reports.pictures.svg import SMALL_SIZE, element, number, path, text

RANK_GAP = 24.0
_COLUMN_GAP = 28.0
_MOST_COLUMNS = 4
_TALLEST = 860.0
_LETTER_ROOM, _LETTER_GAP = 30.0, 14.0
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True, slots=True)
class Box:
    """A node: its size, and what draws it with the middle of its top at a place."""

    width: float
    height: float
    draw: Callable[[float, float], list[str]]


@dataclass(frozen=True, slots=True)
class Style:
    """How an edge is drawn."""

    strong: bool = False


@dataclass(frozen=True, slots=True)
class Drawing:
    """Elements with the top left corner at (0, 0), and their extent."""

    body: Callable[[float, float], list[str]]
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class _Column:
    """Ranks ``first`` up to before ``last``, ``left`` of the whole, ``top`` of each rank by its index."""

    first: int
    last: int
    left: float


@dataclass(frozen=True, slots=True)
class _Sheet:
    layers: Layers
    heights: tuple[float, ...]
    columns: tuple[_Column, ...]
    height: float

    @property
    def width(self) -> float:
        return self.columns[-1].left + self.layers.width


def drawing(
    boxes: Mapping[str, Box],
    edges: Mapping[tuple[str, str], Style],
    room: float,
    *,
    arrows: Callable[[str], bool] = lambda _: True,
) -> Drawing:
    """The graph of ``boxes`` and ``edges`` within the width ``room``, in the fewest columns that fit onto a page.

    Parameters:
        boxes: nodes by name; the first one goes on top.
        edges: by source and target.
        room: the width to fill at most; a graph with wider ranks is wider.
        arrows: whether an edge that ends at this node gets an arrow.
    """
    widths = {name: box.width for name, box in boxes.items()}
    sheets: list[_Sheet] = []
    for columns in range(1, _MOST_COLUMNS + 1):
        each = (room - _COLUMN_GAP * (columns - 1)) / columns
        layers = layered(widths, edges, each)
        if columns > 1 and layers.width > each:
            break
        sheets.append(_sheet(layers, boxes, columns))
        if sheets[-1].height <= _TALLEST:
            break
    sheet = min(sheets, key=lambda one: (max(one.height, _TALLEST), len(one.columns)))

    def body(x: float, y: float) -> list[str]:
        return _drawn(sheet, boxes, edges, arrows, x, y)

    return Drawing(body, sheet.width, sheet.height)


def _sheet(layers: Layers, boxes: Mapping[str, Box], columns: int) -> _Sheet:
    heights = tuple(max((boxes[name].height for name in names if name in boxes), default=0.0) for names in layers.ranks)
    cuts = _cuts(layers, heights, columns)
    bounds = list(zip([0, *cuts], [*cuts, len(heights)], strict=True))
    placed = tuple(
        _Column(first, last, index * (layers.width + _COLUMN_GAP)) for index, (first, last) in enumerate(bounds)
    )
    height = max(
        sum(heights[first:last])
        + RANK_GAP * (last - first - 1)
        + (_LETTER_ROOM if first else 0)
        + (_LETTER_ROOM if last < len(heights) else 0)
        for first, last in bounds
    )
    return _Sheet(layers, heights, placed, height)


def _cuts(layers: Layers, heights: Sequence[float], columns: int) -> list[int]:
    """Ranks that begin a further column: near equal parts, where the fewest edges are cut."""
    total = sum(heights) + RANK_GAP * len(heights)
    below = [sum(heights[:rank]) + RANK_GAP * rank for rank in range(len(heights))]
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


def _drawn(
    sheet: _Sheet,
    boxes: Mapping[str, Box],
    edges: Mapping[tuple[str, str], Style],
    arrows: Callable[[str], bool],
    x: float,
    y: float,
) -> list[str]:
    tops, lefts = _places(sheet, x, y)
    rank_of = {name: rank for rank, names in enumerate(sheet.layers.ranks) for name in names}
    middle = {name: place + lefts[rank_of[name]] for name, place in sheet.layers.middle.items()}
    ports = _ports(sheet.layers.routes, middle, boxes)
    letters = _letters(sheet, ports, rank_of, lefts)
    strokes: list[tuple[bool, list[str]]] = []
    for index, route in enumerate(sheet.layers.routes):
        style = edges[route.source, route.target]
        strokes.append((style.strong, _route(index, route, style, sheet, tops, rank_of, ports, boxes, letters, arrows)))
    body = [part for strong in (False, True) for is_strong, parts in strokes if is_strong is strong for part in parts]
    for name, box in boxes.items():
        body += box.draw(middle[name], tops[rank_of[name]])
        if (name, name) in edges:
            body += _loop(middle[name] + box.width / 2 - 14, tops[rank_of[name]], box, edges[name, name])
    return body


def _places(sheet: _Sheet, x: float, y: float) -> tuple[list[float], list[float]]:
    """The top and the left edge of each rank."""
    tops, lefts = [], []
    for column in sheet.columns:
        top = y + (_LETTER_ROOM if column.first else 0)
        for rank in range(column.first, column.last):
            tops.append(top)
            lefts.append(x + column.left)
            top += sheet.heights[rank] + RANK_GAP
    return tops, lefts


_Ports = dict[tuple[int, int, str], float]
"""Where a route, by index, touches the ``index``-th of its points, at its ``bottom`` or ``top``."""


def _ports(routes: Sequence[Route], middle: Mapping[str, float], boxes: Mapping[str, Box]) -> _Ports:
    """Places side by side on a box for the edges that begin or end there, in the order of where they go."""
    wanted: dict[tuple[str, str], list[tuple[float, int, int]]] = {}
    for index, route in enumerate(routes):
        for step, (above, below) in enumerate(zip(route.points, route.points[1:], strict=False)):
            wanted.setdefault((above, "bottom"), []).append((middle[below], index, step))
            wanted.setdefault((below, "top"), []).append((middle[above], index, step + 1))
    ports: _Ports = {}
    for (name, side), ends in wanted.items():
        room = boxes[name].width if name in boxes else 0.0
        apart = min(14.0, room / (len(ends) + 1))
        for order, (_, index, step) in enumerate(sorted(ends)):
            ports[index, step, side] = middle[name] + apart * (order - (len(ends) - 1) / 2)
    return ports


_Letters = dict[tuple[int, int], tuple[str, float, float]]
"""Of a step of a route that is cut: the letter, and its places at the end of the one and the top of the next column."""


def _letters(sheet: _Sheet, ports: _Ports, rank_of: Mapping[str, int], lefts: Sequence[float]) -> _Letters:
    found: _Letters = {}
    names = map(_letter, count())
    for column in sheet.columns[1:]:
        cut = [
            (index, step)
            for index, route in enumerate(sheet.layers.routes)
            for step in range(len(route.points) - 1)
            if rank_of[route.points[step]] < column.first <= rank_of[route.points[step + 1]]
        ]
        out = _side_by_side({key: ports[(*key, "bottom")] for key in cut}, lefts[column.first - 1])
        into = _side_by_side({(i, s): ports[i, s + 1, "top"] for i, s in cut}, lefts[column.first])
        for key in sorted(cut, key=lambda key: out[key]):
            found[key] = (next(names), out[key], into[key])
    return found


def _letter(index: int) -> str:
    return _LETTERS[index % 26] + (str(index // 26) if index >= 26 else "")


def _side_by_side(wished: Mapping[tuple[int, int], float], low: float) -> dict[tuple[int, int], float]:
    places, floor = {}, low
    for key in sorted(wished, key=lambda key: (wished[key], key)):
        places[key] = max(floor, wished[key])
        floor = places[key] + _LETTER_GAP
    return places


def _route(
    index: int,
    route: Route,
    style: Style,
    sheet: _Sheet,
    tops: Sequence[float],
    rank_of: Mapping[str, int],
    ports: _Ports,
    boxes: Mapping[str, Box],
    letters: _Letters,
    arrows: Callable[[str], bool],
) -> list[str]:
    stroke, width = (VERMILLION, 2.2) if style.strong else (MUTED, 0.9)
    dash = "5 3" if route.upwards else ""
    steps: list[str] = []
    marks: list[str] = []
    last = len(route.points) - 2
    for step, (above, below) in enumerate(zip(route.points, route.points[1:], strict=False)):
        upper, lower = rank_of[above], rank_of[below]
        x1, x2 = ports[index, step, "bottom"], ports[index, step + 1, "top"]
        y1 = tops[upper] + (boxes[above].height if above in boxes else sheet.heights[upper])
        y2 = tops[lower]
        start = y1 + (5 if route.upwards and step == 0 and arrows(above) else 0)
        end = y2 - (5 if not route.upwards and step == last and arrows(below) else 0)
        if step:
            steps.append(f"M{number(x1)} {number(tops[upper])}V{number(y1)}")
        if (index, step) in letters:
            letter, out, into = letters[index, step]
            floor = tops[upper] + sheet.heights[upper] + 18
            steps.append(_smooth(x1, start, out, floor - 8))
            steps.append(_smooth(into, y2 - 18 + 4, x2, end))
            marks += [_circled(letter, out, floor), _circled(letter, into, y2 - 21)]
        else:
            steps.append(_smooth(x1, start, x2, end))
        if route.upwards and step == 0 and arrows(above):
            marks.append(_arrow(x1, y1, 5, stroke))
        if not route.upwards and step == last and arrows(below):
            marks.append(_arrow(x2, y2, -5, stroke))
    return [path("".join(steps), stroke=stroke, width=width, dash=dash), *marks]


def _smooth(x1: float, y1: float, x2: float, y2: float) -> str:
    if abs(x1 - x2) < 0.5:
        return f"M{number(x1)} {number(y1)}L{number(x2)} {number(y2)}"
    half = (y2 - y1) / 2
    return (
        f"M{number(x1)} {number(y1)}C{number(x1)} {number(y1 + half)} "
        f"{number(x2)} {number(y2 - half)} {number(x2)} {number(y2)}"
    )


def _arrow(x: float, tip: float, back: float, colour: str) -> str:
    half = 3.2
    steps = f"M{number(x)} {number(tip)}L{number(x - half)} {number(tip + back * 1.3)}H{number(x + half)}z"
    return path(steps, fill=colour)


def _circled(letter: str, x: float, y: float) -> str:
    ring = element("circle", cx=x, cy=y, r=6.5, fill=PAPER, stroke=MUTED, stroke_width=0.8)
    return ring + text(x, y + 3.4, letter, size=SMALL_SIZE - 0.5, anchor="middle", fill=INK)


def _loop(x: float, y: float, box: Box, style: Style) -> list[str]:
    stroke, width = (VERMILLION, 2.2) if style.strong else (MUTED, 0.9)
    low, high = y + box.height - 5, y + 6
    steps = f"M{number(x)} {number(low)}C{number(x + 15)} {number(low + 2)} {number(x + 15)} {number(high - 2)} "
    head = f"M{number(x)} {number(high)}L{number(x + 6.5)} {number(high - 3)}V{number(high + 3.4)}z"
    return [
        path(f"{steps}{number(x + 5)} {number(high)}", stroke=stroke, width=width, dash="5 3"),
        path(head, fill=stroke),
    ]
