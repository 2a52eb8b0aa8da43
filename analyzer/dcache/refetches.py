"""Misses of lines of code that were in the cache before, where data evicts code: in a unified cache.

Of a set whose policy the bound knows little of, it knows the line that was touched last. A loop's code would be charged
a miss for each line in each round as soon as the round loads data from anywhere. But a line is missed again only after
it was evicted, that takes a fill of another line of its set, and one fill evicts one line. So lines of code, one of
each set, miss once each, and as often again, all together, as other lines are filled.

Words: line, replacement policy (docs/explanation/glossary.md).

*Soundness:* for any policy and any content at entry. Between two misses of a line there is a fill that evicts it. That
fill is of a line of the same set and thus of none of the chosen lines, and no other miss needs it. Each fill of another
line is charged at a point, where a point is left, or as an auxiliary variable.

Of a cache of four sets, the lines 8 and 12 are in one set, and 9 is alone. Line 8 is fetched in two blocks, 12 in one.

>>> found = Refetches(set_count=4, line_bytes=32)
>>> for point, number in ((1, 8), (2, 8), (2, 9), (3, 12)):
...     _ = found.add(point, number, is_local=False)
>>> found.names()
{Refetched(number=8): 'refetch:0x100', Refetched(number=9): 'refetch:0x120'}
>>> [dict(points) for points in found.left()]
[{3: 1}]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from wcet_probe.analyzer.ipet.flow_problem import LinearConstraint

EVICTIONS = "refetch:evictions"
"""The constraint that says how often the chosen lines are missed again."""


class Refetched(NamedTuple):
    """Fetches of the line with this number that may miss each time."""

    number: int


@dataclass(slots=True)
class Refetches:
    """Fetches that may miss each time.

    Attributes:
        set_count: of the cache.
        line_bytes: of the cache.
        points: how many of them an execution of each point has, by line.
        local: points and lines that have one for several fetches.
    """

    set_count: int
    line_bytes: int
    points: dict[Refetched, Counter[int]] = field(default_factory=dict)
    local: set[tuple[int, Refetched]] = field(default_factory=set)

    def add(self, point: int, number: int, *, is_local: bool) -> Refetched:
        """Count a fetch of a line; those that are local to a point miss once in it, all together."""
        key = Refetched(number)
        if not is_local or (point, key) not in self.local:
            self.points.setdefault(key, Counter())[point] += 1
        if is_local:
            self.local.add((point, key))
        return key

    def chosen(self) -> Sequence[Refetched]:
        """One line of each set: that which is fetched at the most places."""
        best: dict[int, Refetched] = {}
        for key in sorted(self.points, key=lambda one: (-self.points[one].total(), one.number)):
            best.setdefault(key.number % self.set_count, key)
        return sorted(best.values())

    def left(self) -> Iterator[Mapping[int, int]]:
        """The fetches of all other lines."""
        chosen = set(self.chosen())
        yield from (points for key, points in self.points.items() if key not in chosen)

    def names(self) -> Mapping[Refetched, str]:
        """The auxiliary variables of the misses of the chosen lines."""
        return {key: f"refetch:{key.number * self.line_bytes:#x}" for key in self.chosen()}

    def first_names(self) -> Mapping[Refetched, str]:
        """Those of their first misses, which are among them."""
        return {key: f"{name}:first" for key, name in self.names().items()}

    def constraints(self) -> Iterator[LinearConstraint]:
        """A line misses no more often than it is fetched, and for the first time once."""
        first_names = self.first_names()
        for key, name in self.names().items():
            executed = tuple((point, -count) for point, count in sorted(self.points[key].items()))
            once = tuple((point, -1) for point, _ in executed)
            first = ((first_names[key], 1),)
            yield LinearConstraint(f"{name}:executed", executed, auxiliaries=((name, 1),))
            yield LinearConstraint(f"{name}:first:executed", once, auxiliaries=first)
            yield LinearConstraint(f"{name}:first:call", constant=1, auxiliaries=first)

    def limited(self) -> Iterable[tuple[str, int]]:
        """Misses but for the first ones, of which there are no more than fills of other lines."""
        yield from ((name, 1) for name in self.names().values())
        yield from ((name, -1) for name in self.first_names().values())
