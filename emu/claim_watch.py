"""What proofs claim of every call, in tables of the native core, which holds each observed call against it."""

from __future__ import annotations

import ctypes
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import Any, TypeVar

from wcet_probe.build.image import require_symbol
from wcet_probe.emu import claim_layouts as layouts
from wcet_probe.emu.call_path_tables import CallPathTables
from wcet_probe.emu.loops import LoopTable
from wcet_probe.emu.memory import Region
from wcet_probe.emu.tables import CodeTable
from wcet_probe.identity import Same
from wcet_probe.model.access_claims import AccessClaim, access_claims
from wcet_probe.model.held_calls import BrokenClaim, ClaimKind, HeldCalls
from wcet_probe.model.image import Image
from wcet_probe.model.proof import Bound, WordClaim
from wcet_probe.model.target import Target

_KINDS = tuple(ClaimKind)
"""In the order of ``enum wp_claim_kind``, which begins with what is no violation."""

_WORD_BYTES = 4
_BOUNDS_KEPT = 32
_Row = TypeVar("_Row", bound=ctypes.Structure)


class ClaimWatch:
    """The claims of some bounds, and what was counted of the calls that were held against them.

    Parameters:
        bounds: one for each function that may be called.
        entry_addresses: of these functions.
        table: the code.
        regions: the guest's memory, in the order that the observer knows it.
        target: what the calls run on.
        loops: names of the watched loops in their order; flow claims count entries of them.
    """

    def __init__(
        self,
        bounds: Sequence[Bound],
        entry_addresses: Sequence[int],
        *,
        table: CodeTable,
        regions: Sequence[Region],
        target: Target,
        loops: Sequence[str],
    ) -> None:
        cache, memory = target.dcache, target.memory
        self._row_count = table.row_count
        self._lines = _LineTable(regions, cache.line_bytes if cache else 1)
        self._entries = [
            _Entry(bound, table.row(address), _Guest(table, regions, target, self._lines.count), loops)
            for bound, address in zip(bounds, entry_addresses, strict=True)
        ]
        visits = cache is not None and any(entry.visits for entry in self._entries)
        self._visited = (ctypes.c_uint32 * (self._lines.count if visits else 0))()
        self._layouts = _rows(layouts.EntryClaimsLayout, (entry.layout for entry in self._entries))
        stack = next(region.extent for region in regions if region.name == "stack")
        is_saving = any(bound.saving_stores for bound in bounds)
        self._saved = (ctypes.c_uint8 * (stack.size_bytes // _WORD_BYTES if is_saving else 0))()
        self.setup = layouts.ClaimSetupLayout(
            entries=self._layouts,
            first_line=self._lines.first,
            line_row=self._lines.row,
            visited=self._visited if visits else None,
            saved=self._saved if is_saving else None,
            entry_count=len(self._entries),
            line_bytes=cache.line_bytes if cache else 0,
            sets=cache.sets if cache else 0,
            stack_base=stack.base_address,
            stack_words=len(self._saved),
            fetch_line_cycles=memory.line_cycles(target.icache.line_bytes) if target.icache else 0,
            data_line_cycles=memory.line_cycles(cache.line_bytes) if cache else 0,
            single_cycles=memory.single_cycles,
            write_allocate=bool(cache and cache.write_allocate),
        )

    def broken(self, found: layouts.BrokenClaimLayout) -> BrokenClaim | None:
        """What the native core says was violated; None where all held."""
        if found.kind == layouts.HOLDS:
            return None
        entry: _Entry = self._entries[found.entry]
        return entry.broken(found, self._layouts[found.entry])

    @property
    def event_tables(self) -> list[Any]:
        """Running sums over the rows of the code: where one grows, the core is told of the block.

        That is where flow claims count; and everywhere, where calls are followed through the points of a proof.
        """
        is_followed = any(entry.layout.paths.point_count for entry in self._entries)
        followed = [range(self._row_count + 1)] if is_followed else []
        return [entry.events_before for entry in self._entries] + followed

    def calls(self) -> tuple[HeldCalls, ...]:
        """What was counted, for each of the bounds."""
        return tuple(entry.calls(layout) for entry, layout in zip(self._entries, self._layouts, strict=True))


def claim_watch(  # noqa: PLR0917  (as of a machine)
    image: Image, bounds: Sequence[Bound], table: CodeTable, regions: Sequence[Region], target: Target, loops: LoopTable
) -> ClaimWatch:
    """What is claimed of all observed calls of the entries of ``bounds``.

    Raises:
        ImageError: the image lacks one of them.
    """
    return ClaimWatch(
        bounds,
        [require_symbol(image, bound.entry).address for bound in bounds],
        table=table,
        regions=regions,
        target=target,
        loops=[loop.name for loop in loops.watched],
    )


@dataclass(frozen=True, slots=True)
class _Guest:
    """What all claims are about: code, memory, core, and the number of lines of the memory."""

    table: CodeTable
    regions: Sequence[Region]
    target: Target
    line_count: int


class _LineTable:
    """Where the lines of the regions stand in tables of lines."""

    def __init__(self, regions: Sequence[Region], line_bytes: int) -> None:
        first = [region.extent.base_address // line_bytes for region in regions]
        behind = [(region.extent.end_address - 1) // line_bytes + 1 for region in regions]
        *rows, self.count = accumulate((b - a for a, b in zip(first, behind, strict=True)), initial=0)
        self.first = (ctypes.c_uint32 * len(first))(*first)
        self.row = (ctypes.c_uint32 * len(rows))(*rows)


class _Entry:
    """The claims of one bound."""

    def __init__(self, bound: Bound, entry_row: int, guest: _Guest, loops: Sequence[str]) -> None:
        table, target = guest.table, guest.target
        set_count = target.dcache.sets if target.dcache else 0
        self._bound = bound
        self._known = known = _claim_rows(Same(bound), Same(table), set_count)
        self.visits = any(claim.is_first_visit or claim.is_only_again for claim in known.claims)
        self._change_rows = _rows(
            layouts.ChangeClaimLayout, ((_saturated(most, 64), 0, 0) for _, most in known.changes)
        )
        self._line_rows, self._stamps = _line_rows(known.counted, guest.line_count, set_count)
        self._word_rows = _rows(layouts.WordClaimLayout, (_word(word, guest) for word in bound.words))
        self._flow_rows = _rows(
            layouts.FlowClaimLayout, ((_saturated(one.constant, 63), 0, 0) for one in bound.flow_claims)
        )
        self._paths = CallPathTables(bound, table, set_count)
        self._access_rows = (layouts.AccessClaimLayout * len(known.accesses)).from_buffer_copy(known.accesses)
        entries = [
            (weight, 0, loops.index(name), flow)
            for flow, claim in enumerate(bound.flow_claims)
            for name, weight in claim.entries
            if name in loops
        ]
        self._loop_entries = _rows(layouts.FlowEntriesLayout, entries)
        self.layout = layouts.EntryClaimsLayout(
            claim_of_row=known.claim_of_row,
            accesses=self._access_rows,
            ranges=known.ranges,
            sets=known.sets,
            changes=self._change_rows,
            lines=self._line_rows,
            words=self._word_rows,
            events_before=known.events_before,
            events=known.events,
            flows=self._flow_rows,
            entries=self._loop_entries,
            most_instructions=_saturated(bound.instructions, 64),
            most_cycles=_saturated(bound.cycles, 64),
            entry_row=entry_row,
            change_count=len(known.changes),
            line_count=len(known.counted),
            word_count=len(bound.words),
            flow_count=len(bound.flow_claims),
            entry_count=len(entries),
            paths=self._paths.layout,
        )

    @property
    def events_before(self) -> ctypes.Array[ctypes.c_uint32]:
        """How many events of flow claims there are below each row."""
        return self._known.events_before

    def broken(self, found: layouts.BrokenClaimLayout, layout: layouts.EntryClaimsLayout) -> BrokenClaim:
        """What is violated."""
        kind, value, fact, statement, limit = _KINDS[found.kind - 1], found.value, "", "", 0
        place = found.pc
        bound = self._bound
        match kind:
            case ClaimKind.CHANGES:
                fact, limit = self._known.changes[found.index]
            case ClaimKind.LINES:
                fact, limit, _ = self._known.counted[found.index]
            case ClaimKind.LINES_OF_SET:
                fact, _, limit = self._known.counted[found.index]
            case ClaimKind.WORD:
                fact, limit = bound.words[found.index].where, bound.words[found.index].high
            case ClaimKind.FLOW:
                claim = bound.flow_claims[found.index]
                fact, statement, limit = claim.where, claim.statement, claim.constant
            case ClaimKind.INSTRUCTIONS:
                limit = bound.instructions
            case ClaimKind.CYCLES:
                limit = bound.cycles
            case ClaimKind.POINT:
                fact = ", ".join(self._paths.facts(layout.paths, found.pc, is_store=bool(found.is_store)))
            case ClaimKind.WAY:
                place = self._paths.address(found.index)
                statement = next((one.statement for one in bound.assumptions if one.id == "call-returns"), "")
            case _:
                fact = ", ".join(sorted(self._facts_of(found.pc, is_store=bool(found.is_store))))
        return BrokenClaim(kind, bound.entry, fact, statement, limit, value, place, found.address, bool(found.is_store))

    def _facts_of(self, address: int, *, is_store: bool) -> Iterable[str]:
        return (
            fact
            for claim in self._known.claims
            if (claim.address, claim.is_store) == (address, is_store)
            for fact in claim.facts
        )

    def calls(self, layout: layouts.EntryClaimsLayout) -> HeldCalls:
        """What the native core counted."""
        bound, known = self._bound, self._known
        executed = [row.executions for row in self._access_rows]
        facts: Counter[str] = Counter()
        for claim, count in zip(known.claims, executed, strict=True):
            facts.update(dict.fromkeys(claim.facts, count))
        return HeldCalls(
            calls=layout.calls,
            accesses={
                (claim.address, claim.is_store): count for claim, count in zip(known.claims, executed, strict=True)
            },
            facts=dict(facts),
            line_changes={fact: row.greatest for (fact, _), row in zip(known.changes, self._change_rows, strict=True)},
            lines={fact: row.greatest for (fact, *_), row in zip(known.counted, self._line_rows, strict=True)},
            lines_of_set={
                fact: row.greatest_of_set for (fact, *_), row in zip(known.counted, self._line_rows, strict=True)
            },
            word_loads={word.where: row.loads for word, row in zip(bound.words, self._word_rows, strict=True)},
            flow_maxima=tuple(row.greatest for row in self._flow_rows),
            instructions=layout.greatest_instructions,
            cycles=layout.greatest_cycles,
        )


@dataclass(frozen=True, slots=True)
class _ClaimRows:
    """The tables of a bound; the native core writes to none but to its own copy of those of accesses.

    Attributes:
        claims: of accesses.
        changes, counted: the facts that limit changes of lines, and lines.
        accesses, ranges, sets, claim_of_row, events_before, events: as in ``struct wp_entry_claims``.
    """

    claims: Sequence[AccessClaim]
    changes: Sequence[tuple[str, int]]
    counted: Sequence[tuple[str, int, int]]
    accesses: ctypes.Array[layouts.AccessClaimLayout]
    ranges: ctypes.Array[layouts.ClaimRangeLayout]
    sets: ctypes.Array[ctypes.c_uint8]
    claim_of_row: ctypes.Array[ctypes.c_uint32]
    events_before: ctypes.Array[ctypes.c_uint32]
    events: ctypes.Array[layouts.FlowEventLayout]


@lru_cache(_BOUNDS_KEPT)
def _claim_rows(of: Same[Bound], code: Same[CodeTable], set_count: int) -> _ClaimRows:
    bound, table = of.value, code.value
    claims = tuple(access_claims(bound.accesses).values())
    changes = tuple(dict.fromkeys(claim.line_changes for claim in claims if claim.line_changes))
    counted = tuple(dict.fromkeys(claim.lines for claim in claims if claim.lines))
    claim_of_row = (ctypes.c_uint32 * (2 * table.row_count))()
    for number, claim in enumerate(claims, 1):
        claim_of_row[2 * table.row(claim.address) + claim.is_store] = number
    return _ClaimRows(
        claims,
        changes,
        counted,
        *_access_tables(claims, changes, counted, set_count, dict(bound.saving_stores)),
        claim_of_row,
        *_flow_events(bound, table),
    )


def _access_tables(
    claims: Sequence[AccessClaim],
    changed: Sequence[tuple[str, int]],
    counted_lines: Sequence[tuple[str, int, int]],
    set_count: int,
    saving: Mapping[int, Sequence[int]],
) -> tuple[Any, Any, Any]:
    """The claims of accesses, the ranges that they refer to, and rows of sets, the first of which is not used."""
    rows: list[tuple[int, ...]] = []
    ranges: list[tuple[int, ...]] = []
    set_rows: dict[frozenset[int], int] = {}
    for claim in claims:
        flags = (
            layouts.MAY_BE_FRAME * claim.may_be_frame
            | layouts.FIRST_VISIT * claim.is_first_visit
            | layouts.ONLY_AGAIN * claim.is_only_again
            | layouts.MAY_CROSS * claim.may_cross
        )
        set_row = 0 if claim.sets is None else set_rows.setdefault(claim.sets, len(set_rows) + 1)
        changes = changed.index(claim.line_changes) + 1 if claim.line_changes else 0
        counted = counted_lines.index(claim.lines) + 1 if claim.lines else 0
        saves = sum(1 << number for number in saving.get(claim.address, ())) if claim.is_store else 0
        rows.append((0, len(ranges), len(claim.ranges), set_row, changes, counted, flags, saves))
        ranges += [(each.low, each.stride, each.steps, each.from_stack) for each in claim.ranges]
    marks = bytes(set_count) + bytes(number in sets for sets in set_rows for number in range(set_count))
    return (
        _rows(layouts.AccessClaimLayout, rows),
        _rows(layouts.ClaimRangeLayout, ranges),
        (ctypes.c_uint8 * len(marks)).from_buffer_copy(marks),
    )


def _flow_events(bound: Bound, table: CodeTable) -> tuple[Any, Any]:
    """The blocks that flow claims count, in order of rows, and how many there are below each row."""
    events = sorted(
        (table.row(address), flow, weight)
        for flow, claim in enumerate(bound.flow_claims)
        for address, weight in claim.blocks
    )
    at_row = Counter(row for row, _, _ in events)
    before = accumulate((at_row[row] for row in range(table.row_count - 1)), initial=0)
    rows = _rows(layouts.FlowEventLayout, ((weight, row, flow) for row, flow, weight in events))
    return (ctypes.c_uint32 * table.row_count)(*before), rows


def _saturated(limit: int, bits: int) -> int:
    """``limit``, or the greatest number of so many bits if that is less: what the native core counts is below it."""
    return min(limit, (1 << bits) - 1)


def _rows(layout: type[_Row], rows: Iterable[Any]) -> ctypes.Array[_Row]:
    """An array of ``layout``; a row is one, or its fields."""
    made = [row if isinstance(row, layout) else layout(*row) for row in rows]
    return (layout * len(made))(*made)


def _line_rows(
    counted: Sequence[tuple[str, int, int]], line_count: int, set_count: int
) -> tuple[ctypes.Array[layouts.LineClaimLayout], list[Any]]:
    """The claims that count lines, and the tables that they point to, which must be kept alive."""
    kept = [tuple((ctypes.c_uint32 * count)() for count in (line_count, set_count, set_count)) for _ in counted]
    rows = [
        layouts.LineClaimLayout(*tables, _saturated(most, 32), _saturated(most_of_set, 32))
        for (_, most, most_of_set), tables in zip(counted, kept, strict=True)
    ]
    return _rows(layouts.LineClaimLayout, rows), kept


def _word(word: WordClaim, guest: _Guest) -> layouts.WordClaimLayout:
    region = next(
        region
        for region in guest.regions
        if word.address in region.extent and word.address + _WORD_BYTES <= region.extent.end_address
    )
    content = (ctypes.c_uint8 * _WORD_BYTES).from_buffer(region.buffer, word.address - region.origin)
    return layouts.WordClaimLayout(content, 0, word.address, word.low, word.high, guest.target.big_endian)
