"""The data footprint of a call: all lines that it may access, and whether a cache keeps each of them once it is in.

Where no more lines may be accessed in a set than the replacement policy surely keeps, no line of that set is evicted
after the call has accessed it. If that is so of all sets, the call misses at most once for each line, whatever paths it
takes and however little is known of what a single access goes to. Some accesses may go anywhere: *strays*. Each of them
takes a little of that away.

Words: footprint, line, persistence (docs/explanation/glossary.md).

*Soundness:* each access but the strays goes to one of the lines of the footprint: those of all addresses that it may
have. Addresses of the stack are told by their distance from the stack pointer at entry, whatever that is; they are
neighbours, so that consecutive lines are in consecutive sets. A line is evicted only after as many other lines of its
set were accessed since it was, as an LRU set has ways whose content is always in the real one
(`cache_sets.effective_ways`), k of them. First-in first-out keeps as many lines as it has ways, without strays: were a
line filled twice, take the first such fill; since the line's first fill each other line of its set was filled once at
most, and there are fewer of them than it takes to evict the line.

With strays: of m lines of the footprint in a set, m <= k, one misses again only if k others were accessed since it
was, m - 1 of them of the footprint at most, so k - m + 1 or more strays went to the set in that time. Of one line these
times do not overlap; so each stray counts for at most m misses, each of which takes k - m + 1 of them.

Each set is for itself: in *crowded* ones, that have too many lines, nothing is kept, and what goes to them evicts no
line of another set. So accesses that surely go to other sets miss once for each line there.

Stores that fill nothing evict nothing, but where a hit makes its line younger (`cache_sets.stores_evict`). So lines
that are only stored to do not count, and such strays take nothing away: no line is filled by them, nor evicted. But a
stray may fill such a line, and what the call loads may evict it: nothing is said of what a store finds there.

Where the stack pointer at entry is known, by assumption ``stack-pointer``, so are the lines of the stack. Else each of
its lines may be in any set: where others are too many, all that goes to the stack may go to a crowded set.

The index is known by its range: the load may be to any of four lines, in sets of their own.

>>> table = example('''
... unsigned table[32] __attribute__((aligned(32)));
... unsigned f(unsigned i) { return table[i & 31] + table[i >> 27]; }''')
>>> config = table.lines.places.config
>>> found, strays, _ = data_footprint(table.values, config)
>>> len(found.numbers), len(strays), kept_lines(found, config)[:3]
(4, 0, (4, 1, 2))

An argument may point anywhere. Two strays to a set, at least, evict one line of it:

>>> table = example('''
... unsigned table[32] __attribute__((aligned(32)));
... unsigned f(unsigned *index) { return table[*index & 31]; }''')
>>> found, strays, _ = data_footprint(table.values, config)
>>> len(found.numbers), len(strays)
(4, 1)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from wcet_probe.analyzer.dcache.pointer_extents import Extent
from wcet_probe.analyzer.domains.cache_sets import effective_ways, stores_evict
from wcet_probe.analyzer.values.execution.accesses import Access
from wcet_probe.analyzer.values.result import Values
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.model.target import CacheConfig, Replacement

Strays = frozenset[tuple[int, int]]
"""Points and addresses of the instructions with accesses that may be anywhere."""
Extents = Mapping[tuple[int, int], tuple[tuple[Base, int, int], ...]]
"""By point and address of an instruction, first byte and end of what its accesses may be to, from their base."""


class DataFootprint(NamedTuple):
    """The lines that a call may access, strays apart.

    Attributes:
        numbers: those of known addresses, as address / line bytes; None where some access may be anywhere, and is not
            charged as a stray.
        stack: first byte and end of what may be accessed of the stack, from the stack pointer at entry; None for
            nothing.
        has_strays: whether there are other accesses, which are charged apart.
    """

    numbers: frozenset[int] | None
    stack: tuple[int, int] | None = None
    has_strays: bool = False


class KeptLines(NamedTuple):
    """Lines of a footprint that fit into their sets of the cache.

    Attributes:
        number: how many there are.
        in_a_set: most of them in one set.
        strays_for_each: the least number of strays that evict one.
        crowded: the sets of other lines of the footprint, which may evict each other.
        stack_pointer: its value at entry where it is known.
    """

    number: int
    in_a_set: int
    strays_for_each: int
    crowded: frozenset[int] = frozenset()
    stack_pointer: int | None = None


NOTHING = DataFootprint(frozenset())
ANYWHERE = DataFootprint(None)


def data_footprint(
    values: Values, config: CacheConfig, extent_of: Callable[[Access], Extent | None] = lambda _: None
) -> tuple[DataFootprint, Strays, Extents]:
    """The lines that the points of ``values`` may access, their strays, and where all other accesses are.

    Calls that are not expanded apart. An instruction with several accesses is a stray if one of them is. Stores that
    evict nothing are told, but what they alone go to is no part of the footprint.

    Args:
        values: accesses by point.
        config: the cache.
        extent_of: where an access may begin of which the values tell no range that fits into the cache.

    *Soundness:* as said of the module.
    """
    most_bytes = config.sets * config.ways * config.line_bytes
    spans: dict[Base, set[tuple[int, int]]] = {Base.NUMBER: set(), Base.STACK: set()}
    strays, has_strays = set[tuple[int, int]](), False
    extents: dict[tuple[int, int], tuple[tuple[Base, int, int], ...]] = {}
    for point, own in values.accesses.items():
        for access in own:
            if access.offset.is_bottom:
                continue  # it has no address, so it does not take place
            found = _extent(access)
            if found is None or found.high - found.low >= most_bytes:
                found = extent_of(access)
            key = point, access.instruction_address
            if found is None or found.high - found.low >= most_bytes:
                strays.add(key)
                has_strays |= evicts(access, config)
            else:
                span = found.low, found.high + access.size_bytes
                extents[key] = (*extents.get(key, ()), (found.base, *span))
                if evicts(access, config):
                    spans[found.base].add(span)
    numbers = {number for low, end in spans[Base.NUMBER] for number in numbers_between(low, end, config)}
    stack = [DataFootprint(frozenset(), span) for span in sorted(spans[Base.STACK])]
    static = DataFootprint(frozenset(numbers), has_strays=has_strays)
    known = {one: own for one, own in extents.items() if one not in strays}
    return united([static, *stack]), frozenset(strays), known


def evicts(access: Access, config: CacheConfig) -> bool:
    """Whether ``access`` may make another line leave the cache.

    *Soundness:* as said of `cache_sets.stores_evict`.
    """
    return not access.is_store or stores_evict(config)


def of_stack(footprint: DataFootprint) -> DataFootprint:
    """The part of ``footprint`` on the stack, with all other accesses as strays."""
    if footprint.numbers is None:
        return footprint
    return footprint._replace(numbers=frozenset(), has_strays=footprint.has_strays or bool(footprint.numbers))


def _extent(access: Access) -> Extent | None:
    """Where an access may begin, as far as its range of values tells."""
    if access.base is Base.NUMBER:
        return Extent(Base.NUMBER, *access.offset.unsigned_range())
    return Extent(Base.STACK, *access.offset.signed_range()) if access.base is Base.STACK else None


def united(footprints: Iterable[DataFootprint]) -> DataFootprint:
    """All lines of ``footprints``, which are told from one stack pointer.

    *Soundness:* what lies between two parts of the stack counts as well.
    """
    numbers: set[int] = set()
    stack: tuple[int, int] | None = None
    has_strays = False
    for one in footprints:
        if one.numbers is None:
            return ANYWHERE
        numbers |= one.numbers
        has_strays |= one.has_strays
        if one.stack is not None:
            stack = one.stack if stack is None else (min(stack[0], one.stack[0]), max(stack[1], one.stack[1]))
    return DataFootprint(frozenset(numbers), stack, has_strays)


def moved(footprint: DataFootprint, offset: int | None) -> DataFootprint:
    """``footprint`` of a call where the stack pointer has moved by ``offset`` bytes; None if that is unknown."""
    if footprint.stack is None:
        return footprint
    if offset is None:
        return ANYWHERE
    return footprint._replace(stack=(footprint.stack[0] + offset, footprint.stack[1] + offset))


def kept_lines(
    footprint: DataFootprint, config: CacheConfig, stack_pointer: int | None = None, *, in_part: bool = False
) -> KeptLines | None:
    """The lines of ``footprint`` that are not evicted once they were accessed, but by strays; None if there are none.

    Args:
        footprint: all lines of the call.
        config: the cache.
        stack_pointer: its value at entry; None where it is not known.
        in_part: whether lines of some sets are good enough; else None if a line may be evicted by another one.

    *Soundness:* as said of the module. Of an unknown stack pointer the stack's first byte is anywhere in a line.
    """
    if footprint.numbers is None:
        return None
    numbers, on_stack = set(footprint.numbers), 0
    low, end = footprint.stack or (0, 0)
    if stack_pointer is not None:
        numbers.update(numbers_between(low + stack_pointer, end + stack_pointer, config))
    elif end > low:
        on_stack = (end - low + config.line_bytes - 2) // config.line_bytes + 1
    ways = effective_ways(config).must if footprint.has_strays else kept_ways(config)
    by_set, stack_in_a_set = Counter(number % config.sets for number in numbers), -(-on_stack // config.sets)
    crowded = frozenset(index for index, count in by_set.items() if count + stack_in_a_set > ways)
    if (crowded and not in_part) or stack_in_a_set > ways:
        return None
    fitting = [count for index, count in by_set.items() if index not in crowded]
    number, most = sum(fitting) + (0 if crowded else on_stack), max(fitting, default=0) + stack_in_a_set
    return KeptLines(number, most, ways - most + 1, crowded, stack_pointer) if number or not crowded else None


def crowding(extents: Extents, kept: KeptLines, config: CacheConfig) -> Strays:
    """The accesses that may go to a set that is crowded, by where they may begin and end.

    *Soundness:* as said of the module.
    """
    if not kept.crowded:
        return frozenset()
    return frozenset(access for access, spans in extents.items() if any(_crowds(one, kept, config) for one in spans))


def _crowds(span: tuple[Base, int, int], kept: KeptLines, config: CacheConfig) -> bool:
    base, low, end = span
    if base is Base.STACK:
        if kept.stack_pointer is None:
            return True
        low, end = low + kept.stack_pointer, end + kept.stack_pointer
    return any(number % config.sets in kept.crowded for number in numbers_between(low, end, config))


def not_kept(extents: Extents, footprint: DataFootprint, kept: KeptLines, config: CacheConfig) -> Strays:
    """The accesses that may go to another line than those that are kept: to a crowded set, or none of the footprint.

    Args:
        extents: where the accesses may begin and end.
        footprint: all lines of the call.
        kept: those of them that are kept.
        config: the cache.

    *Soundness:* as said of the module: stores that evict nothing may go to lines that are not of the footprint. Of an
    unknown stack pointer it has the bytes of the stack, not what else is in their lines.
    """
    outside = (one for one, spans in extents.items() if not all(_is_in(span, footprint, config) for span in spans))
    return crowding(extents, kept, config).union(outside)


def _is_in(span: tuple[Base, int, int], footprint: DataFootprint, config: CacheConfig) -> bool:
    (base, low, end), (first, last) = span, footprint.stack or (0, 0)
    if base is Base.STACK:
        return first <= low and end <= last
    return footprint.numbers is not None and footprint.numbers.issuperset(numbers_between(low, end, config))


def numbers_between(low: int, end: int, config: CacheConfig) -> range:
    """The lines of the bytes from ``low`` to before ``end``; none where there are no bytes."""
    return range(low // config.line_bytes, (end - 1) // config.line_bytes + 1) if end > low else range(0)


def kept_ways(config: CacheConfig) -> int:
    """How many lines of a set surely stay in the cache once they were accessed, if no others of the set are."""
    return config.ways if config.replacement is Replacement.FIFO else effective_ways(config).must
