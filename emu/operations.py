"""What each operation of a replay counted, as columns: a million operations are a few arrays.

The native core keeps the raw counts; cycles are made of them here, as `measurement.stall_cycles` makes those of a call.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wcet_probe.emu.native import OperationCountsLayout
from wcet_probe.model.target import Target

Column = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class OperationColumns:
    """Columns of equal length, one row for each operation in order.

    Attributes:
        instructions: from the allocator's entry to its return.
        cycles: of the instructions, and waiting for memory.
        fetch_misses, data_misses: line fills of the caches; stores that miss without a fill are among the data misses.
        writebacks: modified lines that were written to memory.
        results: the first register at the end: of malloc the block's address, 0 where it was refused.
    """

    instructions: Column
    cycles: Column
    fetch_misses: Column
    data_misses: Column
    writebacks: Column
    results: Column


def operation_columns(operations: ctypes.Array[OperationCountsLayout], target: Target) -> OperationColumns:
    """``operations`` as the native core counted them, with the cycles that ``target`` takes for them."""
    names = [name for name, *_ in OperationCountsLayout._fields_]
    rows = np.frombuffer(bytes(operations), dtype=np.uint64).astype(np.int64).reshape(-1, len(names))
    raw = {name: rows[:, index] for index, name in enumerate(names)}
    memory = target.memory
    cycles = raw["cycles"] + raw["region_cycles"]
    if target.icache:
        cycles += (raw["fetch_misses"] + raw["fetch_writebacks"]) * memory.line_cycles(target.icache.line_bytes)
    if target.dcache:
        fills = raw["read_misses"] + (raw["write_misses"] if target.dcache.write_allocate else 0)
        cycles += (fills + raw["writebacks"]) * memory.line_cycles(target.dcache.line_bytes)
        cycles += raw["memory_writes"] * memory.single_cycles
    else:
        cycles += (raw["accesses"] - raw["region_accesses"]) * memory.single_cycles
    return OperationColumns(
        instructions=raw["instructions"],
        cycles=cycles,
        fetch_misses=raw["fetch_misses"],
        data_misses=raw["read_misses"] + raw["write_misses"],
        writebacks=raw["writebacks"] + raw["fetch_writebacks"],
        results=raw["result"],
    )
