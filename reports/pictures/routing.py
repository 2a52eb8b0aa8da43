"""Edges of a layered drawing as smooth lines from rank to rank, with arrows, and letters where a column ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from wcet_probe.reports.pictures.colours import INK, MUTED, PAPER, WORST
from wcet_probe.reports.pictures.layering import Route
from wcet_probe.reports.pictures.svg import SMALL_SIZE, element, number, path, text

_BACK = "5 3"
_ARROW = 5.0
_PORT_GAP = 14.0
_LETTER_AWAY, _LETTER_RADIUS = 18.0, 6.5


@dataclass(frozen=True, slots=True)
class Box:
    """A node: its extent, what draws it with the middle of its top at a place, and whether edges to it have arrows."""

    width: float
    height: float
    draw: Callable[[float, float], list[str]]
    has_arrows: bool = True


@dataclass(frozen=True, slots=True)
class Placement:
    """Where everything is.

    Attributes:
        boxes: nodes by name.
        routes: edges, through points that are no boxes.
        middle, top: of each node and point.
        floor: the end of its rank.
        ports: where a route, by index, touches its ``n``-th point, at the point's ``top`` or ``bottom``.
    """

    boxes: Mapping[str, Box]
    routes: Sequence[Route]
    middle: Mapping[str, float]
    top: Mapping[str, float]
    floor: Mapping[str, float]
    ports: Mapping[tuple[int, int, str], float]

    def bottom(self, name: str) -> float:
        """The lower edge of a node; of a point the end of its rank."""
        return self.top[name] + self.boxes[name].height if name in self.boxes else self.floor[name]

    def has_arrow(self, name: str) -> bool:
        """Whether an edge that ends there has an arrow."""
        return name in self.boxes and self.boxes[name].has_arrows


Letters = dict[tuple[int, int], tuple[str, float, float]]
"""Of a cut step of a route, by indices: the letter, and its places at the end of a column and the top of the next."""


def placement(
    boxes: Mapping[str, Box],
    routes: Sequence[Route],
    middle: Mapping[str, float],
    top: Mapping[str, float],
    floor: Mapping[str, float],
) -> Placement:
    """Places on each box, side by side, for the edges that begin or end there, in the order of where they go."""
    wanted: dict[tuple[str, str], list[tuple[float, int, int]]] = {}
    for index, route in enumerate(routes):
        for step, (above, below) in enumerate(pairwise(route.points)):
            wanted.setdefault((above, "bottom"), []).append((middle[below], index, step))
            wanted.setdefault((below, "top"), []).append((middle[above], index, step + 1))
    ports: dict[tuple[int, int, str], float] = {}
    for (name, side), ends in wanted.items():
        apart = min(_PORT_GAP, (boxes[name].width if name in boxes else 0.0) / (len(ends) + 1))
        for order, (_, index, step) in enumerate(sorted(ends)):
            ports[index, step, side] = middle[name] + apart * (order - (len(ends) - 1) / 2)
    return Placement(boxes, routes, middle, top, floor, ports)


def routed(placed: Placement, edges: Mapping[tuple[str, str], bool], letters: Letters) -> list[str]:
    """All edges, the strong ones on top, and loops from a node to itself."""
    weak, strong = list[str](), list[str]()
    for index, route in enumerate(placed.routes):
        is_strong = edges[route.source, route.target]
        (strong if is_strong else weak).extend(_route(placed, index, letters, is_strong=is_strong))
    for (source, target), is_strong in edges.items():
        if source == target:
            (strong if is_strong else weak).extend(_loop(placed, source, is_strong=is_strong))
    return weak + strong


def _stroke(*, is_strong: bool) -> tuple[str, float]:
    return (WORST, 2.2) if is_strong else (MUTED, 0.9)


def _route(placed: Placement, index: int, letters: Letters, *, is_strong: bool) -> list[str]:
    route = placed.routes[index]
    colour, width = _stroke(is_strong=is_strong)
    steps, marks = list[str](), list[str]()
    first, last = route.points[0], route.points[-1]
    arrow_above = route.upwards and placed.has_arrow(first)
    arrow_below = not route.upwards and placed.has_arrow(last)
    for step, (above, below) in enumerate(pairwise(route.points)):
        x1, x2 = placed.ports[index, step, "bottom"], placed.ports[index, step + 1, "top"]
        start = placed.bottom(above) + (_ARROW if arrow_above and above == first else 0)
        end = placed.top[below] - (_ARROW if arrow_below and below == last else 0)
        upright = start if above == first else placed.top[above]
        start = placed.floor[above]  # down to the end of the rank, past boxes that are taller
        if start > upright:
            steps.append(f"M{number(x1)} {number(upright)}V{number(start)}")
        start = max(start, upright)
        if (index, step) in letters:
            letter, out, into = letters[index, step]
            lower, upper = placed.floor[above] + _LETTER_AWAY, placed.top[below] - _LETTER_AWAY - 3
            steps += [_smooth(x1, start, out, lower - _LETTER_RADIUS), _smooth(into, upper + _LETTER_RADIUS, x2, end)]
            marks += [_circled(letter, out, lower), _circled(letter, into, upper)]
        else:
            steps.append(_smooth(x1, start, x2, end))
    if arrow_above:
        marks.append(_arrow(placed.ports[index, 0, "bottom"], placed.bottom(first), _ARROW, colour))
    if arrow_below:
        x = placed.ports[index, len(route.points) - 1, "top"]
        marks.append(_arrow(x, placed.top[last], -_ARROW, colour))
    return [path("".join(steps), stroke=colour, width=width, dash=_BACK if route.upwards else ""), *marks]


def _smooth(x1: float, y1: float, x2: float, y2: float) -> str:
    start, end = f"{number(x1)} {number(y1)}", f"{number(x2)} {number(y2)}"
    if abs(x1 - x2) < 0.5:
        return f"M{start}L{end}"
    middle = number((y1 + y2) / 2)
    return f"M{start}C{number(x1)} {middle} {number(x2)} {middle} {end}"


def _arrow(x: float, tip: float, back: float, colour: str) -> str:
    """A head with its ``tip`` at a height, opening towards ``back``."""
    return path(f"M{number(x)} {number(tip)}L{number(x - 3.2)} {number(tip + back * 1.3)}h6.4z", fill=colour)


def _circled(letter: str, x: float, y: float) -> str:
    ring = element("circle", cx=x, cy=y, r=_LETTER_RADIUS, fill=PAPER, stroke=MUTED, stroke_width=0.8)
    return ring + text(x, y + 3.4, letter, size=SMALL_SIZE - 0.5, anchor="middle", fill=INK)


def _loop(placed: Placement, name: str, *, is_strong: bool) -> list[str]:
    """A line from the right side of a box back to it; the box's width has room for it."""
    colour, width = _stroke(is_strong=is_strong)
    box = placed.boxes[name]
    x, low, high = placed.middle[name] + box.width / 2 - 14, placed.bottom(name) - 5, placed.top[name] + 6
    bend = f"C{number(x + 15)} {number(low + 2)} {number(x + 15)} {number(high - 2)} {number(x + 5)} {number(high)}"
    head = f"M{number(x)} {number(high)}l6.5 -3v6.4z"
    return [
        path(f"M{number(x)} {number(low)}{bend}", stroke=colour, width=width, dash=_BACK),
        path(head, fill=colour),
    ]
