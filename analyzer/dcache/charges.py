"""Cycles and misses by point that a bound charges for data, and those that are counted for the whole call instead.

Words: linear constraint, auxiliary variable, footprint (docs/explanation/glossary.md).

*Soundness:* what is counted for the whole call, or for parts of it (`kept_parts`), is at most what was charged where it
takes place, and at most what `footprints` says of all lines of the part; what no part keeps stays charged.

All of the table is in the cache once it was read, whatever is read: four misses, however often the loop goes round.

>>> table = example('''
... unsigned table[32] __attribute__((aligned(32)));
... unsigned f(unsigned n) {
...     unsigned sum = 0;
...     for (unsigned i = 0; i < 9; i++) { sum = sum * 5 + table[n >> 27]; n = n * 7 + sum; }
...     return sum;
... }''')
>>> found, strays, _ = data_footprint(table.values, table.lines.places.config)
>>> whole = KeptPart(kept_lines(found, table.lines.places.config), strays)
>>> counted = table.data.counting((whole,), {})
>>> [(one.constant, one.auxiliaries[-1]) for one in counted.constraints if one.name == KEPT]
[(4, ('miss:kept', 1))]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from wcet_probe.analyzer.dcache.footprints import KeptLines, data_footprint, kept_lines  # the last two for the example
from wcet_probe.analyzer.dcache.kept_parts import KeptPart
from wcet_probe.analyzer.dcache.miss_constraints import Refills
from wcet_probe.analyzer.graph.supergraph import Edge
from wcet_probe.analyzer.ipet.flow_problem import LinearConstraint
from wcet_probe.model.target import CacheConfig

__all__ = [
    "KEPT",
    "Charge",
    "KeptCall",
    "KeptMisses",
    "KeptPart",
    "data_footprint",
    "fills",
    "kept_constraints",
    "kept_lines",
    "kept_name",
]

KEPT = "miss:kept"
"""Misses that nothing else counts, where no line of the footprint is evicted once it was accessed.

Of parts of the call their numbers follow: those of all parts that keep what is missed.
"""


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
    """Lines that a part of the call keeps, or all of it, and how many each of its strays is."""

    part: KeptPart
    strays: Mapping[tuple[int, int], int]

    def has(self, access: tuple[int, int]) -> bool:
        """Whether an access, by its point and the address of its instruction, goes to lines that are kept."""
        is_inside = self.part.nodes is None or access[0] in self.part.nodes
        return is_inside and access not in self.strays and access not in self.part.crowding

    def counts(self, accesses: Collection[tuple[int, int]]) -> bool:
        """Whether a variable that counts the misses of ``accesses`` counts none but those on lines that are kept.

        Where no access is told of a variable, it is one of the call only.
        """
        return (self.part.nodes is None or bool(accesses)) and all(map(self.has, accesses))


class KeptCall(NamedTuple):
    """The lines that parts of the call keep, and the accesses whose misses auxiliary variables count, by their name."""

    parts: Sequence[KeptMisses]
    accesses: Mapping[str, Collection[tuple[int, int]]]

    @classmethod
    def of(
        cls,
        parts: Iterable[KeptPart],
        told: Iterable[tuple[str | None, int, int | None]],
        passing: Mapping[tuple[int, int], int],
    ) -> KeptCall:
        """Of variables points and addresses are ``told``; ``passing`` is how many accesses an instruction has."""
        accesses: dict[str, set[tuple[int, int]]] = {}
        for name, point, address in told:
            if name is not None and address is not None:
                accesses.setdefault(name, set()).add((point, address))
        return cls([KeptMisses(one, {stray: passing[stray] for stray in one.strays}) for one in parts], accesses)

    def variable(self, accesses: Iterable[tuple[int, int]]) -> str | None:
        """The variable that counts the misses of ``accesses``, if there is one: by the parts that keep all of them."""
        every = tuple(accesses)
        holding = [number for number, one in enumerate(self.parts) if all(map(one.has, every))]
        if not holding:
            return None
        is_whole = len(holding) == 1 and self.parts[holding[0]].part.nodes is None
        return KEPT if is_whole else f"{KEPT}:{'.'.join(map(str, holding))}"

    def variables(self, *places: Charge) -> Mapping[tuple[int, int | None], str | None]:
        """The variables that count the misses which ``places`` charge, by point and address of the instruction."""
        return {
            (point, address): self.variable((point, one) for one in addresses)
            for place in places
            for point, addresses in place.by
            for address in addresses
        }

    def holding(self, variable: str) -> Collection[int]:
        """The numbers of the parts that keep what ``variable`` counts misses of."""
        if variable == KEPT:
            return [number for number, one in enumerate(self.parts) if one.part.nodes is None]
        return [int(number) for number in variable.removeprefix(f"{KEPT}:").split(".")]


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


def kept_name(lines: KeptLines, part: int | None = None) -> str:
    """The name of the constraint of all misses on ``lines``: it tells the stack pointer that these rest on.

    So the checker, which does not follow the constraint, knows that this is assumed. ``part`` is the number of the part
    of the call, if it is not the whole.
    """
    name = KEPT if part is None else f"{KEPT}:{part}"
    return name if lines.stack_pointer is None else f"{name}:stack-pointer:{lines.stack_pointer:#x}"


def kept_constraints(
    inside: Charge, leaving: Charge, edges: Iterable[Edge], names: Iterable[str], kept: KeptCall
) -> Iterator[LinearConstraint]:
    """All misses on lines that are kept: those that ``names`` count, and the others, which are taken from the charges.

    *Soundness:* as said of `footprints`: each line that is kept misses once for each time that control comes into the
    part of the call, and again for its share of strays. A miss is in the constraints of all parts that keep its line,
    by the one variable that counts it.
    """
    every = tuple(edges)
    charged: dict[str, tuple[Counter[int], Counter[int]]] = {}
    if any(one.part.nodes is None for one in kept.parts):
        charged[KEPT] = Counter(), Counter()  # its constraint tells what stores that are followed rest on
    for number, place in enumerate((inside, leaving)):
        for (point, addresses), count in place.by.items():
            variable = kept.variable((point, address) for address in addresses)
            if variable is not None:
                charged.setdefault(variable, (Counter(), Counter()))[number][point] += count
                place.misses[point] -= count
        place.misses = +place.misses
    for variable, counted in sorted(charged.items()):
        yield fills(f"{variable}:executed", *counted, every, ((variable, 1),))
    known = {name: kept.accesses.get(name, ()) for name in names}
    for number, one in enumerate(kept.parts):
        lines, _, _, nodes, entries = one.part
        each, points = lines.strays_for_each if one.strays else 1, Counter[int]()
        for (point, _), count in one.strays.items():
            points[point] += lines.in_a_set * count
        limited = [name for name, accesses in known.items() if one.counts(accesses)]
        limited += (name for name in sorted(charged) if number in kept.holding(name))
        if not limited:
            continue
        most = each * lines.number
        yield LinearConstraint(
            kept_name(lines, None if nodes is None else number),
            tuple((point, -count) for point, count in sorted(points.items()) if count),
            tuple((edge, -most) for edge in entries if edge is not None),
            constant=most if nodes is None or None in entries else 0,
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
