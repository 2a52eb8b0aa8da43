"""Sets of the cache that have room for all lines but those of a few accesses: these are taken for strays.

Where a call may access more lines of a set than the policy keeps, each of its accesses to the set would be charged each
time. But mostly one of the lines is met far less often than the others, such as a constant beside an array. If what may
go to that line counts as a stray (`footprints`), charged each time, with what it may evict, the set has room for the
others, which then miss once.

Words: footprint, line (docs/explanation/glossary.md).

*Soundness:* any access may be taken for a stray. Which ones are is chosen by how often they were executed in a solution
of the flow problem: a choice that is only as good as that. Those that are chosen evict lines only in sets that they may
go to.

The first line of the table is in the set of the word ``far``, which is read once, and there is one way. The table is
kept if the load of ``far`` is a stray:

>>> table = example('''
... struct { unsigned table[16], pad[112], far; } all __attribute__((aligned(512)));
... unsigned f(unsigned n, unsigned count) {
...     unsigned sum = 0;
...     for (; count; count--) { sum = sum * 5 + all.table[n >> 28]; n = n * 7 + sum; }
...     return sum + all.far;
... }''', spec="d:sets=16,ways=1,line=32,policy=lru")
>>> from wcet_probe.analyzer.dcache.footprints import data_footprint, kept_lines
>>> config = table.lines.places.config
>>> found, strays, extents = data_footprint(table.values, config)
>>> kept_lines(found, config, in_part=True).crowded
frozenset({0})
>>> executed = {point: 9 if point in table.scopes.repeated else 1 for point in table.values.states}
>>> chosen = relieved((found, strays, extents), config, None, executed)
>>> len(chosen.strays), kept_lines(chosen.footprint, config)[:3]
(1, (2, 1, 1))
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from wcet_probe.analyzer.dcache.footprints import (
    DataFootprint,
    Extents,
    Strays,
    numbers_between,
    united,
)
from wcet_probe.analyzer.domains.cache_sets import effective_ways
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.model.target import CacheConfig

_STACK = -1
"""In place of the line of an access to the stack, wherever that is."""


class Relieved(NamedTuple):
    """A footprint without what some accesses go to.

    Attributes:
        footprint: of all accesses but strays.
        strays: those of before, and those that were chosen.
        reach: the sets that a chosen stray may go to; any that is not told may go anywhere.
    """

    footprint: DataFootprint
    strays: Strays
    reach: Mapping[tuple[int, int], frozenset[int]]


def relieved(
    call: tuple[DataFootprint, Strays, Extents],
    config: CacheConfig,
    stack_pointer: int | None,
    executed: Mapping[int, int],
) -> Relieved | None:
    """The footprint of a ``call`` where some more accesses are strays, so that fewer sets are crowded.

    None if no choice is likely to pay: were all accesses charged each time, that would be less.

    Args:
        call: all its lines, accesses that may be anywhere, and where all others are (`data_footprint`).
        config: the cache.
        stack_pointer: its value at entry; None where it is not known.
        executed: how often points are.

    *Soundness:* as said of the module.
    """
    footprint, strays, extents = call
    if footprint.numbers is None:
        return None
    lines = {one: frozenset(_lines(spans, config, stack_pointer)) for one, spans in extents.items()}
    weight = {one: executed.get(one[0], 0) for one in lines}
    cost, chosen = min(_choices(footprint, lines, weight, config), key=lambda one: one[0])
    anywhere = sum(executed.get(point, 0) for point, _ in strays)
    if not chosen or cost + 2 * anywhere >= anywhere + sum(weight.values()):
        return None
    left = [span for one, spans in extents.items() if one not in chosen for span in spans]
    parts = [DataFootprint(frozenset(), (low, end)) for base, low, end in sorted(left) if base is Base.STACK]
    numbers = frozenset(
        number for base, low, end in left if base is Base.NUMBER for number in numbers_between(low, end, config)
    )
    reach = {
        one: frozenset(number % config.sets for number in lines[one]) for one in chosen if _STACK not in lines[one]
    }
    return Relieved(united([DataFootprint(numbers, has_strays=True), *parts]), strays | chosen, reach)


def _choices(
    footprint: DataFootprint,
    lines: Mapping[tuple[int, int], frozenset[int]],
    weight: Mapping[tuple[int, int], int],
    config: CacheConfig,
) -> Iterator[tuple[int, Strays]]:
    """What may be taken for strays, and what misses cost about then; of a stack somewhere all of it or none."""
    ways, (low, end) = effective_ways(config).must, footprint.stack or (0, 0)
    at_stack = frozenset(one for one, own in lines.items() if _STACK in own)
    yield _chosen(lines, at_stack, weight, ways, config)
    on_stack = -(-((end - low + config.line_bytes - 2) // config.line_bytes + 1) // config.sets)
    if at_stack and on_stack <= ways:
        yield _chosen(lines, frozenset(), weight, ways - on_stack, config, is_strict=True)


def _lines(spans: Collection[tuple[Base, int, int]], config: CacheConfig, stack_pointer: int | None) -> Iterator[int]:
    for base, low, end in spans:
        if base is not Base.STACK:
            yield from numbers_between(low, end, config)
        elif stack_pointer is None:
            yield _STACK
        else:
            yield from numbers_between(low + stack_pointer, end + stack_pointer, config)


def _chosen(
    lines: Mapping[tuple[int, int], frozenset[int]],
    strays: Strays,
    weight: Mapping[tuple[int, int], int],
    room: int,
    config: CacheConfig,
    *,
    is_strict: bool = False,
) -> tuple[int, Strays]:
    """What misses cost about, and ``strays`` and those that are added so that each set has ``room`` for the rest.

    Set by set, the lines that are met least often; unless it ``is_strict``, not where charging all accesses to the set
    is less. A stray counts twice, as it may evict a line.
    """
    passing: dict[int, set[tuple[int, int]]] = {}
    for access, own in lines.items():
        for number in own - {_STACK} if access not in strays else ():
            passing.setdefault(number, set()).add(access)
    by_set: dict[int, list[int]] = {}
    for number in sorted(passing):
        by_set.setdefault(number % config.sets, []).append(number)

    def most(accesses: Collection[tuple[int, int]]) -> int:
        return sum(weight[one] for one in accesses)

    def on(numbers: Collection[int]) -> int:
        return sum(most(passing[number]) for number in numbers)

    chosen, crowding = set(strays), set[tuple[int, int]]()
    for numbers in sorted(by_set.values(), key=lambda one: (-on(one), one)):
        left = [number for number in numbers if not passing[number] <= chosen]
        left.sort(key=lambda number: (most(passing[number]), number))
        away = {one for number in left[: max(0, len(left) - room)] for one in passing[number]} - chosen
        every = {one for number in left for one in passing[number]} - chosen
        if is_strict or 2 * most(away) <= most(every):
            chosen |= away
        else:
            crowding |= every
    return 2 * most(chosen) + most(crowding - chosen), frozenset(chosen)
