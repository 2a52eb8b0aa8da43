"""Watched loops for the native core: the events that it counts, and the counts that it leaves.

An event is the execution of a header, or of an instruction outside the loop that leads into it. The native core finds
those of a block as it finds the block's instructions, by a difference of running sums over the rows of the code table.
"""

from __future__ import annotations

import ctypes
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from wcet_probe.emu.native import LoopCountLayout, LoopEventLayout, LoopRangeLayout, LoopSetupLayout
from wcet_probe.emu.tables import HALFWORD_BYTES, CodeTable
from wcet_probe.errors import UsageError
from wcet_probe.model.instruction import Control, Instruction
from wcet_probe.model.target import MemoryRange
from wcet_probe.model.watched_loop import LoopCount, WatchedLoop


@dataclass(frozen=True, slots=True)
class LoopTable:
    """Watched loops in the native core's layout.

    Attributes:
        watched: the loops.
        events_before: for each row of the code table, and one more, the events of all rows below.
        events: loop and kind of each, in order of rows.
        ranges: rows that a loop without entries consists of, in order of loops.
        first_range: for each loop, and one more, its first of ``ranges``.
        counts: what the native core counts of each loop.
    """

    watched: tuple[WatchedLoop, ...]
    events_before: ctypes.Array[ctypes.c_uint32]
    events: ctypes.Array[LoopEventLayout]
    ranges: ctypes.Array[LoopRangeLayout]
    first_range: ctypes.Array[ctypes.c_uint32]
    counts: ctypes.Array[LoopCountLayout]


def loop_table(watched: Sequence[WatchedLoop], table: CodeTable) -> LoopTable:
    """The table of the loops ``watched`` in the code ``table``.

    Raises:
        UsageError: a loop names an address where no instruction starts, its header is outside its body or an entry
            inside, or its entries cannot be told from its iterations.
    """
    for loop in watched:
        _check(loop, table)
    events = sorted(
        (table.row(address), number, address == loop.header_address)
        for number, loop in enumerate(watched)
        for address in {loop.header_address, *loop.entry_addresses}
    )
    at_row = Counter(row for row, _, _ in events)
    row_count = table.row_count if watched else 1
    before = accumulate((at_row[row] for row in range(row_count - 1)), initial=0)
    bodies = [() if loop.entry_addresses else loop.body for loop in watched]
    ranges = [_rows(part, table) for body in bodies for part in body]
    return LoopTable(
        watched=tuple(watched),
        events_before=(ctypes.c_uint32 * row_count)(*before),
        events=(LoopEventLayout * len(events))(*(LoopEventLayout(*event) for event in events)),
        ranges=(LoopRangeLayout * len(ranges))(*ranges),
        first_range=(ctypes.c_uint32 * (len(bodies) + 1))(*accumulate(map(len, bodies), initial=0)),
        counts=(LoopCountLayout * len(bodies))(),
    )


def loop_setup(loops: LoopTable) -> LoopSetupLayout:
    """What the native core is told of ``loops``, which must be kept alive; all null where there are none."""
    if not loops.watched:
        return LoopSetupLayout()
    return LoopSetupLayout(loops.events_before, loops.events, loops.ranges, loops.first_range, loops.counts)


def loop_counts(loops: LoopTable) -> tuple[LoopCount, ...]:
    """What has been counted of each of ``loops`` since the last restart."""
    return tuple(
        LoopCount(loop.name, count.max_header_executions, count.header_executions, count.entries)
        for loop, count in zip(loops.watched, loops.counts, strict=True)
    )


def restart_counts(loops: LoopTable) -> None:
    """Forget what was counted; to be called between runs."""
    ctypes.memset(loops.counts, 0, ctypes.sizeof(loops.counts))


def _rows(part: MemoryRange, table: CodeTable) -> LoopRangeLayout:
    first, behind = (
        (address - table.base_address) // HALFWORD_BYTES for address in (part.base_address, part.end_address)
    )
    return LoopRangeLayout(first, behind)


def _check(loop: WatchedLoop, table: CodeTable) -> None:
    def is_inside(address: int) -> bool:
        return any(address in part for part in loop.body)

    def refuse(what: str) -> None:
        message = f"the loop {loop.name!r} cannot be watched: {what}."
        raise UsageError(message)

    if not is_inside(loop.header_address):
        refuse(f"its header {loop.header_address:#010x} lies outside its body; give the address ranges of its blocks")
    for address in filter(is_inside, loop.entry_addresses):
        refuse(f"its entry {address:#010x} lies inside its body; name instructions outside that lead into it")
    for call in [] if loop.entry_addresses else filter(_is_call, table.instructions.values()):
        if call.address + call.size_bytes == loop.header_address and is_inside(call.address):
            refuse(f"the call at {call.address:#010x} returns to its header; name the instructions that lead into it")


def _is_call(instruction: Instruction) -> bool:
    return instruction.control is Control.CALL
