"""Parts of a call that keep the lines that they access: its loops, and the calls of functions in it.

All lines of a call may be too many for a cache, or one of its accesses may go anywhere. But while control stays in one
of its loops, only the accesses of the loop count, and those of functions that the loop calls. If these lines fit
(`footprints`), each of them misses once for each time that control comes into the loop. So it is of the points of any
part of a call, such as those of a function that is called.

Where the lines of a set are too many only because nobody knows where the stack is, there are two answers, and both
hold: the accesses to the stack are strays to all other lines, and the latter are strays to those of the stack.

After C. Cullmann, Cache persistence analysis: theory and practice, ACM TECS 12 (1s), 2013, and B. Huynh, L. Ju, A.
Roychoudhury, Scope-aware data cache analysis for WCET estimation, RTAS 2011, with all lines of a scope for ages.

Words: footprint, line, loop forest, persistence (docs/explanation/glossary.md).

*Soundness:* from when control comes into a set of points, by one of the edges into it or where the call begins, until
it leaves, all accesses are those of these points. What `footprints` says of the accesses of a call holds of these: they
may find anything in the cache, and a miss on a line that is kept is the first since then, or is caused by strays of
these points. Any access may be taken for a stray. Which parts are told is a choice, as each is sound for itself.

The call reads two tables that share the sets of a cache with one way; each loop keeps its own:

>>> two = example('''
... struct { unsigned one[128], other[128]; } all __attribute__((aligned(512)));
... unsigned f(unsigned n, unsigned count) {
...     unsigned sum = 0;
...     for (unsigned i = 0; i < 99; i++) { sum = sum * 5 + all.one[n >> 25]; n = n * 7 + sum; }
...     for (unsigned i = 0; i < 99; i++) { sum = sum * 5 + all.other[n >> 25]; n = n * 7 + sum; }
...     return sum;
... }''', spec="d:sets=16,ways=1,line=32,policy=lru")
>>> from wcet_probe.analyzer.dcache.footprints import data_footprint
>>> config = two.lines.places.config
>>> call = data_footprint(two.values, config)
>>> kept_lines(call[0], config, in_part=True) is None
True
>>> [(one.lines.number, len(one.entries)) for one in kept_parts(two.values, call, config)]
[(16, 1), (16, 1)]
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

from wcet_probe.analyzer.dcache.footprints import (
    DataFootprint,
    Extents,
    KeptLines,
    Strays,
    crowding,
    evicts,
    kept_lines,
    numbers_between,
    united,
)
from wcet_probe.analyzer.graph.supergraph import Edge
from wcet_probe.analyzer.values.properties.loop_shapes import loop_shapes
from wcet_probe.analyzer.values.result import Values
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.model.target import CacheConfig

MOST_PARTS = 200
"""So many are told at most, larger ones first: each is a constraint of the flow problem."""


class KeptPart(NamedTuple):
    """A part of a call, or all of it, and the lines that it keeps.

    Attributes:
        lines: those that are kept.
        strays: the accesses that may be anywhere, by point and address of the instruction.
        crowding: those that may go to crowded sets; of the whole call also those that may go to lines outside of it.
        nodes: its points; None for the whole call.
        entries: the edges into it, with None where the call begins in it; nothing for the whole call.
    """

    lines: KeptLines
    strays: Strays
    crowding: Strays = frozenset()
    nodes: frozenset[int] | None = None
    entries: tuple[Edge | None, ...] = ()


def kept_parts(
    values: Values,
    call: tuple[DataFootprint, Strays, Extents],
    config: CacheConfig,
    stack_pointer: int | None = None,
    held: Strays = frozenset(),
) -> tuple[KeptPart, ...]:
    """The parts of the call of ``values`` that keep lines which no larger one keeps without strays.

    Args:
        values: points and edges.
        call: its lines, accesses that may be anywhere, and where all others are (`footprints.data_footprint`).
        config: the cache.
        stack_pointer: its value at entry; None where it is not known.
        held: accesses to lines that the whole call keeps, without strays.

    *Soundness:* as said of the module.
    """
    (_, strays, extents), by_point = call, dict[int, list[tuple[int, int]]]()
    evicting = frozenset(
        (point, one.instruction_address) for point, own in values.accesses.items() for one in own if evicts(one, config)
    )
    for access in (*extents, *strays):
        by_point.setdefault(access[0], []).append(access)
    found: list[KeptPart] = []
    # Larger parts come first, and parts lie in each other or apart.
    kept = set(held)
    for nodes in _parts(values):
        own = frozenset(access for point in nodes for access in by_point.get(point, ()))
        if own - strays <= kept:
            continue
        entries = tuple(_entries(values, nodes))
        for lines, others, crowd in _kept(own, call, evicting, config, stack_pointer):
            gained = own - others - crowd - kept
            if gained & evicting and len(found) < MOST_PARTS:
                found.append(KeptPart(lines, others, crowd, nodes, entries))
                kept |= gained if others.isdisjoint(evicting) else frozenset()
    return tuple(found)


def _parts(values: Values) -> list[frozenset[int]]:
    """The points of each loop, and of each call of a function with all that it calls; larger ones first."""
    found = {shape.loop.nodes for shape in loop_shapes(values)}
    calls: dict[tuple[int, ...], set[int]] = {}
    for index in values.states:
        context = values.graph.points[index].context
        for depth in range(1, len(context) + 1):
            calls.setdefault(context[:depth], set()).add(index)
    found.update(map(frozenset, calls.values()))
    return sorted(found, key=lambda nodes: (-len(nodes), min(nodes)))


def _entries(values: Values, nodes: Collection[int]) -> Iterator[Edge | None]:
    if 0 in nodes:
        yield None
    for node in sorted(nodes):
        yield from (edge for edge in values.arriving.get(node, ()) if edge.source not in nodes)


def _kept(
    own: Strays,
    call: tuple[DataFootprint, Strays, Extents],
    evicting: Strays,
    config: CacheConfig,
    stack_pointer: int | None,
) -> Iterator[tuple[KeptLines, Strays, Strays]]:
    """What accesses keep, with those that are strays, and those that may go to crowded sets."""
    _, strays, extents = call
    at_stack = {one for one in own - strays if any(base is Base.STACK for base, *_ in extents[one])}
    elsewhere = {one for one in own - strays if any(base is Base.NUMBER for base, *_ in extents[one])}
    choices: list[Collection[tuple[int, int]]] = [()]
    if stack_pointer is None and at_stack and elsewhere:
        choices += (at_stack, elsewhere)
    for chosen in choices:
        others = (own & strays).union(chosen)
        left = {one: extents[one] for one in own - others}
        filling = {one: spans for one, spans in left.items() if one in evicting}
        found = _footprint(filling, config, has_strays=not others.isdisjoint(evicting))
        lines = kept_lines(found, config, stack_pointer, in_part=True)
        if lines is not None and lines.number:
            yield lines, others, crowding(left, lines, config)
            if not chosen and not lines.crowded:
                return


def _footprint(extents: Extents, config: CacheConfig, *, has_strays: bool) -> DataFootprint:
    spans = {span for own in extents.values() for span in own}
    numbers = {
        number for base, low, end in spans if base is Base.NUMBER for number in numbers_between(low, end, config)
    }
    stack = (DataFootprint(frozenset(), (low, end)) for base, low, end in sorted(spans) if base is Base.STACK)
    return united([DataFootprint(frozenset(numbers), has_strays=has_strays), *stack])
