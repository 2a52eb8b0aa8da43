"""The operations of a replay, as the table that the guest's replay loop reads.

A long trace has arrays of words as columns. They are read where they are, by the native core: a copy of them, or a look
at each number from Python, takes as long as the translated guest needs for the operations themselves.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable, Sequence
from ctypes import addressof, c_uint32, c_void_p

from wcet_probe.emu import native
from wcet_probe.emu.layout import HARNESS_ADDRESS, MOST_SLOTS, OPERATION_BYTES, OPERATIONS_AT_ONCE
from wcet_probe.emu.memory import GuestMemory
from wcet_probe.errors import UsageError
from wcet_probe.model.scenario import Trace

_MANY_OPERATIONS = 1 << 16
"""Whose table fills half a large page."""


def parts(trace: Trace) -> Iterable[Trace]:
    """``trace`` in pieces that fit the operation table, as views of words.

    Raises:
        UsageError: it names more blocks than there are slots.
    """
    kinds, slots, sizes, cache_sets = map(_words, (trace.kinds, trace.slots, trace.sizes_bytes, trace.cache_sets))
    if native.load().wp_largest(_start(slots), len(trace)) >= MOST_SLOTS:
        message = "the trace names too many blocks; use at most 6 million slots."
        raise UsageError(message)
    for start in range(0, len(trace), OPERATIONS_AT_ONCE):
        piece = slice(start, start + OPERATIONS_AT_ONCE)
        yield Trace(kinds[piece], slots[piece], sizes[piece], cache_sets[piece], trace.slot_count)


def write_operations(part: Trace, memory: GuestMemory) -> None:
    """Write the table that the guest's replay loop reads: four words an operation."""
    columns = [_words(column) for column in (part.kinds, part.slots, part.sizes_bytes, part.cache_sets)]
    is_swapped = memory.big_endian != (sys.byteorder == "big")
    if len(part) >= _MANY_OPERATIONS:
        memory.advise_large_pages(HARNESS_ADDRESS)
    with memory.window(HARNESS_ADDRESS, OPERATION_BYTES * len(part)) as table:
        places = (c_void_p * len(columns))(*map(_start, columns))
        native.load().wp_write_operations(_start(table), places, len(part), is_swapped)


def _words(column: Sequence[int]) -> memoryview:
    """``column`` as words of the host, in place where it has them."""
    if isinstance(column, memoryview) and column.format == "I":
        return column
    return memoryview(column if isinstance(column, array) and column.typecode == "I" else array("I", column))


def _start(words: memoryview) -> int:
    return addressof((c_uint32 * 0).from_buffer(words))
