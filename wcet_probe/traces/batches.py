"""Heap operations as columns, some ten thousand at a time: what a long workload is generated and counted in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from wcet_probe.traces.operations import HeapOperation

OPERATIONS_AT_ONCE = 1 << 16


@dataclass(frozen=True, slots=True)
class OperationBatch:
    """Consecutive operations, as columns of equal length.

    Attributes:
        frees: whether each is a free; else it is a malloc.
        slots: the slot of its block; a slot is used again only behind the free of its block.
        sizes_bytes: of malloc, 0 of free.
    """

    frees: NDArray[np.bool_]
    slots: NDArray[np.int64]
    sizes_bytes: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.frees)


def batches(operations: Iterable[HeapOperation]) -> Iterator[OperationBatch]:
    """``operations`` in order, ``OPERATIONS_AT_ONCE`` at a time."""
    stream = iter(operations)
    while part := list(islice(stream, OPERATIONS_AT_ONCE)):
        frees, slots, sizes, _rows = zip(*part, strict=True)
        yield OperationBatch(np.array(frees, bool), np.array(slots, np.int64), np.array(sizes, np.int64))
