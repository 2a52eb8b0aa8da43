"""A layered drawing of a directed graph: ranks by longest path, few crossings, edges from rank to rank.

Cycles are broken by reversing the edges that close them in a depth-first walk. An edge over several ranks passes
through a point on each. The order within ranks follows the barycentres of neighbours; places are then drawn towards
the neighbours, as far as what stands beside leaves room. All choices go by the order of the nodes and edges given.

Source: K. Sugiyama, S. Tagawa, M. Toda, "Methods for Visual Understanding of Hierarchical System Structures", 1981.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

_SWEEPS = 12
_PLACING_SWEEPS = 40
_GAP, _POINT_GAP = 14.0, 7.5
_POINT_WEIGHT = 4.0
_STRAIGHT = 8.0
"""How much more an edge over several ranks wants to be upright than a node to be amid its neighbours."""


@dataclass(frozen=True, slots=True)
class Route:
    """An edge: the places of its ends and points on each rank, from above; ``upwards`` if it goes against the ranks."""

    source: str
    target: str
    points: tuple[str, ...]
    upwards: bool


@dataclass(frozen=True, slots=True)
class Layers:
    """A drawing.

    Attributes:
        ranks: names of nodes and points of edges on each rank, from left to right; points begin with ``|``.
        middle: the horizontal middle of each.
        routes: the edges, without loops from a node to itself.
        width: of all.
    """

    ranks: tuple[tuple[str, ...], ...]
    middle: Mapping[str, float]
    routes: tuple[Route, ...]
    width: float


@dataclass(frozen=True, slots=True)
class Ranked:
    """Nodes and points of edges on their ranks, not yet in order; ``room`` is the width that they need at most."""

    ranks: Sequence[Sequence[str]]
    routes: Sequence[Route]
    widths: Mapping[str, float]
    room: float


def ranked(widths: Mapping[str, float], edges: Iterable[tuple[str, str]], room: float) -> Ranked:
    """The ranks of the nodes in ``widths`` with their ``edges``, if possible within the width ``room``.

    Parameters:
        widths: of each node; the first one goes on top.
        edges: source and target; loops from a node to itself are left out.
        room: where a rank is wider, some of its nodes go one rank further down.
    """
    down = _downwards(list(widths), list(dict.fromkeys((s, t) for s, t in edges if s != t)))
    tenths = 10
    while True:
        rank_of = _ranks(widths, down, room * tenths / 10)
        routes, points = _routes(down, rank_of)
        ranks = _by_rank({**rank_of, **points})
        widest = max(sum(widths.get(name, 0.0) for name in names) + _gaps(names, widths) for names in ranks)
        if widest <= room or not tenths:
            return Ranked(ranks, routes, widths, max(room, widest))
        tenths -= 1


def arranged(found: Ranked) -> Layers:
    """The ranks of ``found`` in an order with few crossings, and every name in its place."""
    above: dict[str, list[str]] = {}
    below: dict[str, list[str]] = {}
    for route in found.routes:
        for upper, lower in pairwise(route.points):
            above.setdefault(lower, []).append(upper)
            below.setdefault(upper, []).append(lower)
    ordered = _ordered([list(names) for names in found.ranks], above, below)
    neighbours = {name: [*above.get(name, ()), *below.get(name, ())] for names in ordered for name in names}
    middle = _placed(ordered, neighbours, found.widths, found.room)
    half = {name: found.widths.get(name, 0.0) / 2 for name in middle}
    left = min(x - half[name] for name, x in middle.items())
    width = max(x + half[name] for name, x in middle.items()) - left
    return Layers(
        tuple(map(tuple, ordered)), {name: x - left for name, x in middle.items()}, tuple(found.routes), width
    )


def spans(names: Sequence[str], edges: Iterable[tuple[str, str]]) -> dict[tuple[str, str], int]:
    """Over how many ranks each of ``edges`` goes where no rank is too wide; against the ranks, a negative number."""
    down = _downwards(names, list(dict.fromkeys((s, t) for s, t in edges if s != t)))
    rank_of = _ranks(dict.fromkeys(names, 0.0), down, math.inf)
    found = {(edge.above, edge.below): rank_of[edge.below] - rank_of[edge.above] for edge in down if not edge.upwards}
    return found | {(e.below, e.above): rank_of[e.above] - rank_of[e.below] for e in down if e.upwards}


@dataclass(frozen=True, slots=True)
class _Down:
    """An edge as it is ranked: from ``above`` to ``below``."""

    above: str
    below: str
    upwards: bool


def _downwards(names: Sequence[str], edges: Sequence[tuple[str, str]]) -> list[_Down]:
    """``edges``, those turned around that close a cycle in a depth-first walk from the first name on."""
    after: dict[str, list[str]] = {name: [] for name in names}
    for source, target in edges:
        after[source].append(target)
    state: dict[str, int] = {}
    closing: set[tuple[str, str]] = set()
    for root in names:
        if root in state:
            continue
        state[root] = 1
        stack = [(root, iter(after[root]))]
        while stack:
            name, rest = stack[-1]
            step = next(rest, None)
            if step is None:
                state[name] = 2
                stack.pop()
            elif state.get(step) == 1:
                closing.add((name, step))
            elif step not in state:
                state[step] = 1
                stack.append((step, iter(after[step])))
    return [_Down(t, s, upwards=True) if (s, t) in closing else _Down(s, t, upwards=False) for s, t in edges]


def _ranks(widths: Mapping[str, float], down: Sequence[_Down], room: float) -> dict[str, int]:
    """The rank of each node: below all that it follows, on each no more nodes than ``room`` has place for, or one."""
    after: dict[str, list[str]] = {name: [] for name in widths}
    waiting = dict.fromkeys(widths, 0)
    for edge in down:
        after[edge.above].append(edge.below)
        waiting[edge.below] += 1
    least = dict.fromkeys(widths, 0)
    filled: dict[int, float] = {}
    rank_of: dict[str, int] = {}
    ready = [name for name in widths if not waiting[name]]
    while ready:
        following = []
        for name in ready:
            rank = least[name]
            while rank in filled and filled[rank] + _GAP + widths[name] > room:
                rank += 1
            filled[rank] = widths[name] + (filled[rank] + _GAP if rank in filled else 0.0)
            rank_of[name] = rank
            for below in after[name]:
                least[below] = max(least[below], rank + 1)
                waiting[below] -= 1
                if not waiting[below]:
                    following.append(below)
        ready = following
    return rank_of


def _routes(down: Sequence[_Down], rank_of: Mapping[str, int]) -> tuple[list[Route], dict[str, int]]:
    """The way of each edge through the ranks, and the rank of each point on it."""
    routes, points = [], {}
    for number, edge in enumerate(down):
        first, last = rank_of[edge.above], rank_of[edge.below]
        between = {f"|{number}.{rank}": rank for rank in range(first + 1, last)}
        points.update(between)
        source, target = (edge.below, edge.above) if edge.upwards else (edge.above, edge.below)
        routes.append(Route(source, target, (edge.above, *between, edge.below), edge.upwards))
    return routes, points


def _by_rank(rank_of: Mapping[str, int]) -> list[list[str]]:
    ranks: list[list[str]] = [[] for _ in range(max(rank_of.values()) + 1)]
    for name, rank in rank_of.items():
        ranks[rank].append(name)
    return [names for names in ranks if names]


_Neighbours = Mapping[str, Sequence[str]]


def _ordered(ranks: list[list[str]], above: _Neighbours, below: _Neighbours) -> list[list[str]]:
    """``ranks``, each in the order with the fewest crossings that some sweeps down and up find."""
    best, fewest = ranks, _crossings(ranks, below)
    for sweep in range(_SWEEPS):
        downwards = sweep % 2 == 0
        ranks = _swept(ranks, above if downwards else below, downwards=downwards)
        crossings = _crossings(ranks, below)
        if crossings < fewest:
            best, fewest = ranks, crossings
    return best


def _swept(ranks: list[list[str]], neighbours: _Neighbours, *, downwards: bool) -> list[list[str]]:
    fixed: dict[str, int] = {}
    result = []
    for names in ranks if downwards else reversed(ranks):
        wished = {}
        for index, name in enumerate(names):
            known = [fixed[other] for other in neighbours.get(name, ()) if other in fixed]
            wished[name] = (sum(known) / len(known) if known else index, index)
        order = sorted(names, key=wished.__getitem__)
        fixed = {name: index for index, name in enumerate(order)}
        result.append(order)
    return result if downwards else result[::-1]


def _crossings(ranks: Sequence[Sequence[str]], below: _Neighbours) -> int:
    """How many pairs of edges between neighbouring ranks cross."""
    total = 0
    for upper, lower in pairwise(ranks):
        place = {name: index for index, name in enumerate(lower)}
        ends = [place[other] for name in upper for other in sorted(below.get(name, ()), key=place.__getitem__)]
        total += sum(before > after for index, after in enumerate(ends) for before in ends[:index])
    return total


def _placed(
    ranks: Sequence[Sequence[str]], neighbours: _Neighbours, widths: Mapping[str, float], room: float
) -> dict[str, float]:
    """The middle of each name: near its neighbours' middles, in order, with gaps, all within ``room``."""
    rows = [_row(names, widths, room) for names in ranks]
    pulled = {name: [(other, _pull(name, other)) for other in others] for name, others in neighbours.items()}
    total = {name: sum(pull for _, pull in others) for name, others in pulled.items()}
    middle = {name: room / 2 for names in ranks for name in names}
    for sweep in range(_PLACING_SWEEPS):
        for row in rows if sweep % 2 == 0 else reversed(rows):
            wished = [
                sum(middle[other] * pull for other, pull in pulled[name]) / total[name] if total[name] else middle[name]
                for name in row.names
            ]
            middle.update(zip(row.names, row.placed(wished), strict=True))
    return middle


def _pull(name: str, other: str) -> float:
    return _STRAIGHT if name.startswith("|") and other.startswith("|") else 1.0


@dataclass(frozen=True, slots=True)
class _Row:
    """A rank to be placed.

    Attributes:
        names: in order.
        offsets: of each from the first, where there is nothing but gaps between them.
        weights: of the wish of each.
        low, high: where the first may stand.
    """

    names: Sequence[str]
    offsets: Sequence[float]
    weights: Sequence[float]
    low: float
    high: float

    def placed(self, wished: Sequence[float]) -> list[float]:
        """Places nearest to the ``wished`` ones, in the sense of least squares."""
        levels = nondecreasing([x - offset for x, offset in zip(wished, self.offsets, strict=True)], self.weights)
        return [min(max(x, self.low), self.high) + offset for x, offset in zip(levels, self.offsets, strict=True)]


def _row(names: Sequence[str], widths: Mapping[str, float], room: float) -> _Row:
    offsets = list(accumulate((_distance(left, right, widths) for left, right in pairwise(names)), initial=0.0))
    weights = [_POINT_WEIGHT if name.startswith("|") else 1.0 for name in names]
    low = widths.get(names[0], 0.0) / 2
    return _Row(names, offsets, weights, low, max(low, room - widths.get(names[-1], 0.0) / 2 - offsets[-1]))


def nondecreasing(wished: Sequence[float], weights: Sequence[float]) -> list[float]:
    """The numbers nearest to the ``wished`` ones, in the sense of weighted least squares, none below the one before.

    The pool-adjacent-violators algorithm.
    """
    pools: list[tuple[float, float, int]] = []
    for level, weight in zip(wished, weights, strict=True):
        pools.append((level, weight, 1))
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            (a, weight_a, size_a), (b, weight_b, size_b) = pools[-2:]
            together = weight_a + weight_b
            pools[-2:] = [((a * weight_a + b * weight_b) / together, together, size_a + size_b)]
    return [level for level, _, size in pools for _ in range(size)]


def _gaps(names: Sequence[str], widths: Mapping[str, float]) -> float:
    """What the distances on a rank add to the widths, in the worst order."""
    boxes = sum(name in widths for name in names)
    points = len(names) - boxes
    return _GAP * max(0, boxes - 1) + _POINT_GAP * (points if boxes else points - 1)


def _distance(left: str, right: str, widths: Mapping[str, float]) -> float:
    """Between the middles of two neighbours on a rank."""
    gap = _POINT_GAP if left.startswith("|") or right.startswith("|") else _GAP
    return (widths.get(left, 0) + widths.get(right, 0)) / 2 + gap
