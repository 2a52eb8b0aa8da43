"""Calls that are not expanded, where caches keep what they are given: each line misses once in the whole call.

Of the caches between calls nothing is known (`call_summaries`), so that each fetch and each access would miss. But all
lines that the call may fetch or access are known as a set: of the code those of all blocks, of the data its footprint
(`dcache.footprints`), callees' among them. In the sets of the cache that surely keep all of theirs, each line misses
once; so everything is charged as a hit, and each such line once in the call. Where the data
is too much, the stack alone may be kept, and accesses elsewhere are strays.

Words: footprint, line, persistence, summary (docs/explanation/glossary.md).

*Soundness:* as said of `dcache.footprints`; a cache for instructions has no accesses but fetches of the blocks that can
be reached, and those of callees that are not expanded are in their summaries. A miss writes one line back at most. What
a callee costs where lines are kept is what it costs without those misses, or its own bound, which holds whatever the
caches hold; the latter only if it has no strays, as it pays for its own misses, not for those on lines of its callers
that its strays evict.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from wcet_probe.analyzer.dcache.charges import KEPT, kept_name
from wcet_probe.analyzer.dcache.footprints import (
    NOTHING,
    DataFootprint,
    Extents,
    KeptLines,
    Strays,
    data_footprint,
    kept_lines,
    kept_ways,
    moved,
    of_stack,
    united,
)
from wcet_probe.analyzer.dcache.memory_waits import region_cycles
from wcet_probe.analyzer.dcache.misses import DataMisses
from wcet_probe.analyzer.dcache.pointer_extents import Extent
from wcet_probe.analyzer.icache.fetches import FetchMisses, fetched_lines
from wcet_probe.analyzer.ipet.flow_problem import LinearConstraint
from wcet_probe.analyzer.ipet.flow_system import AuxiliaryVariable
from wcet_probe.analyzer.values.execution.accesses import Access
from wcet_probe.analyzer.values.result import Values
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.model.target import Target


@dataclass(frozen=True, slots=True)
class Footprint:
    """All lines that a call may fetch and access, data from its stack pointer at entry.

    ``strays`` are its own, and ``extents`` tell where its other accesses may be.
    """

    code: frozenset[int]
    data: DataFootprint
    strays: Strays = frozenset()
    extents: Extents = field(default_factory=dict)

    def strays_of(self, kept: Kept) -> Strays:
        """Its own accesses that are strays where lines are ``kept``."""
        if not kept.is_stack_only:
            return self.strays
        elsewhere = (one for one, spans in self.extents.items() if any(base is Base.NUMBER for base, *_ in spans))
        return self.strays.union(elsewhere)

    def has_strays(self, kept: Kept) -> bool:
        """Whether accesses of the call, callees' among them, are strays where lines are ``kept``."""
        return kept.data is not None and (self.data.has_strays or (kept.is_stack_only and bool(self.data.numbers)))


@dataclass(frozen=True, slots=True)
class Kept:
    """The lines that are not evicted once they are in a cache.

    Attributes:
        code: by number, those of the instruction cache: all that the call fetches of their sets.
        data: those of data, if all are but for strays; else None.
        is_stack_only: whether accesses that are not to the stack are all strays.
    """

    code: frozenset[int]
    data: KeptLines | None
    is_stack_only: bool = False


def own_footprint(values: Values, target: Target, extent_of: Callable[[Access], Extent | None]) -> Footprint:
    """The lines of the points of ``values``; callees that are not expanded apart.

    ``extent_of`` is as of `dcache.footprints.data_footprint`.

    *Soundness:* as said of the module.
    """
    code: set[int] = set()
    if target.icache is not None:
        for index in values.states:
            code.update(fetched_lines(values.graph.points[index].block.instructions, target.icache.line_bytes))
    if target.dcache is None:
        return Footprint(frozenset(code), NOTHING)
    return Footprint(frozenset(code), *data_footprint(values, target.dcache, extent_of))


def with_callees(own: Footprint, callees: Iterable[tuple[Footprint | None, int | None]]) -> Footprint | None:
    """``own``, and what callees fetch and access, each with the stack pointer's offset where it is called.

    None if nothing is known of the lines of one of them.
    """
    code, data = set(own.code), [own.data]
    for callee, offset in callees:
        if callee is None:
            return None
        code |= callee.code
        data.append(moved(callee.data, offset))
    return replace(own, code=frozenset(code), data=united(data))


def kept_of(footprint: Footprint | None, target: Target, stack_pointer: int | None = None) -> Kept | None:
    """Which lines of the call's ``footprint`` are not evicted; None if it is not known of any.

    ``stack_pointer`` is its value at entry, where that is known.

    *Soundness:* as said of the module; of a unified cache nothing is said.
    """
    if footprint is None or target.unified_cache:
        return None
    code: frozenset[int] = frozenset()
    if target.icache is not None:
        sets = target.icache.sets
        lines, ways = Counter(number % sets for number in footprint.code), kept_ways(target.icache)
        code = frozenset(number for number in footprint.code if lines[number % sets] <= ways)
    data, is_stack_only = None, False
    if target.dcache is not None:
        data = kept_lines(footprint.data, target.dcache, stack_pointer)
        if data is None:
            data = kept_lines(of_stack(footprint.data), target.dcache, stack_pointer)
            is_stack_only = data is not None
    return None if not code and data is None else Kept(code, data, is_stack_only)


def other_fetch_misses(values: Values, target: Target, kept: Kept) -> FetchMisses:
    """Fetches of lines that may be evicted: each misses once in a block, as nothing else goes to the cache there."""
    if target.icache is None or target.unified_cache:
        return FetchMisses({}, {}, {})
    line_bytes, points = target.icache.line_bytes, values.graph.points
    return FetchMisses(
        {
            index: sum(
                number not in kept.code for number in fetched_lines(points[index].block.instructions, line_bytes)
            )
            for index in values.states
        },
        {},
        {},
    )


def without_misses(values: Values, target: Target, data: DataMisses, kept: KeptLines, strays: Strays) -> DataMisses:
    """What data accesses wait for besides misses on lines that are ``kept``: single writes, memory that is not cached.

    *Soundness:* a store waits for a single write if it is written through, or if it may miss and then does not fill.
    Strays miss each time, with a write-back, and may each cause so many misses on the other lines.
    """
    config, lines = target.dcache, data.lines
    if config is None or lines is None:
        return data
    is_single = not (config.write_back and config.write_allocate)
    single = target.memory.single_cycles if is_single else 0
    fill = target.memory.line_cycles(config.line_bytes) * (2 if config.write_back else 1)
    stray = fill * (1 + -(-kept.in_a_set // kept.strays_for_each))
    waiting = {
        index: sum(
            single * one.is_store
            + (0 if one.skipped_bytes else region_cycles(one, target.memory))
            + (stray if (index, one.instruction_address) in strays else 0)
            for one in lines.accesses(index)
        )
        for index in values.states
    }
    return DataMisses(waiting, {}, (), (), lines)


def kept_misses(kept: Kept, target: Target) -> Iterator[tuple[AuxiliaryVariable, LinearConstraint]]:
    """The misses of the whole call on lines that are kept: one for each, and a write-back of data."""
    if kept.code and target.icache is not None:
        fill = target.memory.line_cycles(target.icache.line_bytes)
        yield _at_most("fetch:kept", "fetch:kept", fill, len(kept.code))
    if kept.data is not None and target.dcache is not None:
        fill = target.memory.line_cycles(target.dcache.line_bytes)
        cycles = fill * (2 if target.dcache.write_back else 1)
        yield _at_most(KEPT, kept_name(kept.data), cycles, kept.data.number)


def _at_most(variable: str, constraint: str, cycles: int, most: int) -> tuple[AuxiliaryVariable, LinearConstraint]:
    limited = LinearConstraint(constraint, constant=most, auxiliaries=((variable, 1),))
    return AuxiliaryVariable(variable, cycles), limited
