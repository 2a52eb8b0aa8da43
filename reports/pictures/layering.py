"""A layered drawing of a directed graph: ranks by longest path, few crossings, edges from rank to rank.

Cycles are broken by reversing the edges that close them in a depth-first walk. An edge over several ranks passes
through a point on each. The order within ranks follows the barycentres of neighbours; places are then drawn towards
the neighbours, as far as what stands beside leaves room. All choices go by the order of the nodes and edges given.

Source: K. Sugiyama, S. Tagawa, M. Toda, "Methods for Visual Understanding of Hierarchical System Structures", 1981.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

_SWEEPS = 12
_PLACING_SWEEPS = 16
_GAP, _POINT_GAP = 16.0, 9.0
_POINT_WEIGHT = 4.0
"""How much more a long edge wants to be straight than a node wants to be in the middle of its neighbours."""


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


def layered(widths: Mapping[str, float], edges: Iterable[tuple[str, str]], room: float) -> Layers:
    """The drawing of the nodes in ``widths`` with their ``edges``, if possible within the width ``room``.

    Parameters:
        widths: of each node; the first one goes on top.
        edges: source and target; loops from a node to itself are left out.
        room: where a rank is wider, some of its nodes go one rank further down.
    """
    down = _downwards(list(widths), list(dict.fromkeys((s, t) for s, t in edges if s != t)))
    limit = max(1, max(len(names) for names in _by_rank(_ranks(widths, down, len(widths)))))
    while True:
        found = _drawing(widths, down, limit)
        if found.width <= room or limit == 1:
            return found
        limit -= 1


@dataclass(frozen=True, slots=True)
class _Down:
    """An edge as it is ranked: from ``above`` to ``below``."""

    above: str
    below: str
    upwards: bool


def _drawing(widths: Mapping[str, float], down: Sequence[_Down], limit: int) -> Layers:
    rank_of = _ranks(widths, down, limit)
    routes, points = _routes(down, rank_of)
    neighbours_above: dict[str, list[str]] = {}
    neighbours_below: dict[str, list[str]] = {}
    for route in routes:
        for above, below in zip(route.points, route.points[1:], strict=False):
            neighbours_above.setdefault(below, []).append(above)
            neighbours_below.setdefault(above, []).append(below)
    ranks = _ordered(_by_rank({**rank_of, **points}), neighbours_above, neighbours_below)
    middle = _placed(ranks, widths, neighbours_above, neighbours_below)
    left = min(middle[name] - widths.get(name, 0) / 2 for names in ranks for name in names)
    middle = {name: x - left for name, x in middle.items()}
    width = max(x + widths.get(name, 0) / 2 for name, x in middle.items())
    return Layers(tuple(map(tuple, ranks)), middle, tuple(routes), width)


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


def _ranks(widths: Mapping[str, float], down: Sequence[_Down], limit: int) -> dict[str, int]:
    """The rank of each node: below all that it follows, at most ``limit`` nodes on one."""
    after: dict[str, list[str]] = {name: [] for name in widths}
    waiting = dict.fromkeys(widths, 0)
    for edge in down:
        after[edge.above].append(edge.below)
        waiting[edge.below] += 1
    least = dict.fromkeys(widths, 0)
    full: dict[int, int] = {}
    rank_of: dict[str, int] = {}
    ready = [name for name in widths if not waiting[name]]
    while ready:
        following = []
        for name in ready:
            rank = least[name]
            while full.get(rank, 0) >= limit:
                rank += 1
            full[rank] = full.get(rank, 0) + 1
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
        own = {name: index for index, name in enumerate(names)}

        def barycentre(name: str, own: dict[str, int] = own) -> float:
            known = [fixed[other] for other in neighbours.get(name, ()) if other in fixed]
            return sum(known) / len(known) if known else own[name]

        order = sorted(names, key=lambda name: (barycentre(name), own[name]))
        fixed = {name: index for index, name in enumerate(order)}
        result.append(order)
    return result if downwards else result[::-1]


def _crossings(ranks: Sequence[Sequence[str]], below: _Neighbours) -> int:
    """How many pairs of edges between neighbouring ranks cross."""
    total = 0
    for upper, lower in zip(ranks, ranks[1:], strict=False):
        place = {name: index for index, name in enumerate(lower)}
        ends = [place[other] for name in upper for other in sorted(below.get(name, ()), key=place.__getitem__)]
        total += sum(before > after for index, after in enumerate(ends) for before in ends[:index])
    return total


def _placed(
    ranks: Sequence[Sequence[str]], widths: Mapping[str, float], above: _Neighbours, below: _Neighbours
) -> dict[str, float]:
    """The middle of each name: near its neighbours' middles, in order, with gaps."""
    middle: dict[str, float] = {}
    for names in ranks:
        x = 0.0
        for left, name in zip((None, *names), names, strict=False):
            x = x + _distance(left, name, widths) if left is not None else 0.0
            middle[name] = x
    for sweep in range(_PLACING_SWEEPS):
        for names in ranks if sweep % 2 == 0 else reversed(ranks):
            wished = []
            for name in names:
                others = [*above.get(name, ()), *below.get(name, ())]
                wished.append(sum(middle[other] for other in others) / len(others) if others else middle[name])
            middle.update(zip(names, _apart(names, wished, widths), strict=True))
    return middle


def _apart(names: Sequence[str], wished: Sequence[float], widths: Mapping[str, float]) -> list[float]:
    """Places nearest to the ``wished`` ones, in the sense of least squares, that keep order and distances.

    The pool-adjacent-violators algorithm on the places minus the distances.
    """
    offsets = [0.0]
    for left, right in zip(names, names[1:], strict=False):
        offsets.append(offsets[-1] + _distance(left, right, widths))
    pools: list[tuple[float, float, int]] = []
    for name, place, offset in zip(names, wished, offsets, strict=True):
        weight = _POINT_WEIGHT if name.startswith("|") else 1.0
        pools.append((place - offset, weight, 1))
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            (a, weight_a, size_a), (b, weight_b, size_b) = pools[-2:]
            together = weight_a + weight_b
            pools[-2:] = [((a * weight_a + b * weight_b) / together, together, size_a + size_b)]
    levels = [level for level, _, size in pools for _ in range(size)]
    return [level + offset for level, offset in zip(levels, offsets, strict=True)]


def _distance(left: str, right: str, widths: Mapping[str, float]) -> float:
    """Between the middles of two neighbours on a rank."""
    gap = _POINT_GAP if left.startswith("|") or right.startswith("|") else _GAP
    return (widths.get(left, 0) + widths.get(right, 0)) / 2 + gap
