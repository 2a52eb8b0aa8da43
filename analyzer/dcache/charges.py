"""Cycles and misses by point that a bound charges for data, and those that are counted for the whole call instead.

Words: linear constraint, auxiliary variable, footprint (docs/explanation/glossary.md).

*Soundness:* what is counted for the whole call is at most what was charged where it takes place, and at most what
`footprints` says of all lines of the call; the accesses that may be anywhere stay charged.

All of the table is in the cache once it was read, whatever is read: four misses, however often the loop goes round.

>>> table = example('''
... unsigned table[32] __attribute__((aligned(32)));
... unsigned f(unsigned n) {
...     unsigned sum = 0;
...     for (unsigned i = 0; i < 9; i++) { sum = sum * 5 + table[n >> 27]; n = n * 7 + sum; }
...     return sum;
... }''')
>>> found, strays, _ = data_footprint(table.values, table.lines.places.config)
>>> counted = table.data.counting(kept_lines(found, table.lines.places.config), strays, frozenset(), {})
>>> [(one.constant, one.auxiliaries[-1]) for one in counted.constraints if one.name == KEPT]
[(4, ('miss:kept', 1))]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from wcet_probe.analyzer.dcache.footprints import KeptLines, data_footprint, kept_lines  # the last two for the example
from wcet_probe.analyzer.dcache.miss_constraints import Refills
from wcet_probe.analyzer.graph.supergraph import Edge
from wcet_probe.analyzer.ipet.flow_problem import LinearConstraint
from wcet_probe.model.target import CacheConfig

__all__ = ["KEPT", "Charge", "KeptMisses", "data_footprint", "fills", "kept_constraints", "kept_lines", "kept_name"]

KEPT = "miss:kept"
"""Misses that nothing else counts, where no line of the footprint is evicted once it was accessed."""


@dataclass(slots=True)
class Charge:
    """What accesses cost where their points are executed, or where these are left.

    Attributes:
        cycles, misses: by point.
        local: of accesses that are persistent in a block only, granules and instructions, by point and group.
        by: misses by point and the addresses of the instructions that have them.
    """

    cycles: Counter[int] = field(default_factory=Counter)
    misses: Counter[int] = field(default_factory=Counter)
    local: dict[tuple[int, int], set[tuple[int, int]]] = field(default_factory=dict)
    by: Counter[tuple[int, frozenset[int]]] = field(default_factory=Counter)

    def add(self, point: int, addresses: Iterable[int], count: int = 1) -> None:
        """Add misses of the instructions at ``addresses``."""
        self.misses[point] += count
        self.by[point, frozenset(addresses)] += count

    def without(self, strays: Collection[tuple[int, int]]) -> Counter[int]:
        """The misses that are none of ``strays``, by point; without any, all."""
        if not strays:
            return Counter(self.misses)
        found = Counter[int]()
        for (point, addresses), count in self.by.items():
            if all((point, address) not in strays for address in addresses):
                found[point] += count
        return found

    def copied(self) -> Charge:
        """A copy, as far as misses and cycles are concerned."""
        return replace(self, cycles=Counter(self.cycles), misses=Counter(self.misses))

    def total(self, fill_cycles: int) -> Mapping[int, int]:
        """Cycles by point, a miss being a fill."""
        cycles = Counter(self.cycles)
        for point, count in self.misses.items():
            cycles[point] += count * fill_cycles
        return cycles


class KeptMisses(NamedTuple):
    """Lines that are kept, and which misses are none of them.

    Attributes:
        lines: those that are kept.
        strays: accesses that may be anywhere, and how many each of them is.
        names: variables that count misses of strays or of what goes to crowded sets.
        crowding: accesses that may go to crowded sets.
    """

    lines: KeptLines
    strays: Mapping[tuple[int, int], int]
    names: Collection[str | None]
    crowding: Collection[tuple[int, int]] = ()


def fills(
    name: str,
    misses: Mapping[int, int],
    leaving: Mapping[int, int],
    edges: Iterable[Edge],
    auxiliaries: Iterable[tuple[str, int]],
) -> LinearConstraint:
    """What ``auxiliaries`` limit is no more than ``misses`` at points, and ``leaving`` where ``edges`` leave them."""
    return LinearConstraint(
        name,
        tuple((point, -count) for point, count in sorted(misses.items())),
        tuple((edge, -leaving.get(edge.source, 0)) for edge in edges if edge.way != "fall"),
        auxiliaries=tuple(auxiliaries),
    )


def kept_name(lines: KeptLines) -> str:
    """The name of the constraint of all misses on ``lines``: it tells the stack pointer that these rest on.

    So the checker, which does not follow the constraint, knows that this is assumed.
    """
    return KEPT if lines.stack_pointer is None else f"{KEPT}:stack-pointer:{lines.stack_pointer:#x}"


def kept_constraints(
    inside: Charge, leaving: Charge, edges: Iterable[Edge], names: Iterable[str], kept: KeptMisses
) -> Iterator[LinearConstraint]:
    """All misses on lines that are kept: those that ``names`` count, and the others, which are taken from the charges.

    *Soundness:* as said of `footprints`: each line that is kept misses once, and again for its part of strays.
    """
    others = {*kept.strays, *kept.crowding}
    counted = inside.without(others), leaving.without(others)
    for place, own in zip((inside, leaving), counted, strict=True):
        place.misses = place.misses - own
    yield fills(f"{KEPT}:executed", *counted, edges, ((KEPT, 1),))
    each, points = kept.lines.strays_for_each if kept.strays else 1, Counter[int]()
    for (point, _), count in kept.strays.items():
        points[point] -= kept.lines.in_a_set * count
    limited = (*(name for name in names if name not in kept.names), KEPT)
    yield LinearConstraint(
        kept_name(kept.lines),
        tuple(sorted(points.items())),
        constant=each * kept.lines.number,
        auxiliaries=tuple((name, each) for name in limited),
    )


def refill_constraint(
    refills: Refills,
    config: CacheConfig,
    charges: tuple[Charge, Charge],
    edges: Iterable[Edge],
    names: Iterable[str],
) -> LinearConstraint:
    """A traversal misses once a line, and once more for each so many other misses in the loop as there are ways.

    Args:
        refills: the traversal.
        config: the cache.
        charges: misses that are charged within points, and where these are left.
        edges: of the graph.
        names: variables that count the other misses.

    *Soundness:* first-in first-out: between two fills of a line as many other lines of its set are filled as there
    are ways, by other groups, as the lines of the traversal's group that are accessed meanwhile are in other sets.
    In a unified cache they may be lines of code, of which those that are refetched are auxiliary variables, too.
    A traversal is done with a line before it comes to the next: what is filled between fills of the one is not
    filled between those of another.
    """
    ways, line_bytes, (traversal, constraint), (inside, leaving) = config.ways, config.line_bytes, refills, charges
    points = Counter({point: ways * factor for point, factor in constraint.points})
    points.subtract({point: line_bytes * inside.misses[point] for point in traversal.nodes})
    weights = Counter({edge: ways * factor for edge, factor in constraint.edges})
    departing = (edge for edge in edges if edge.source in traversal.nodes and edge.way != "fall")
    weights.subtract({edge: line_bytes * leaving.misses[edge.source] for edge in departing})
    return LinearConstraint(
        constraint.name,
        tuple((point, factor) for point, factor in sorted(points.items()) if factor),
        tuple((edge, factor) for edge, factor in weights.items() if factor),
        auxiliaries=(
            *((one, ways * factor) for one, factor in constraint.auxiliaries),
            *((one, -line_bytes) for one in names),
        ),
    )
