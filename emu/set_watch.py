"""What each operation of a replay touches of the data cache: the native core's records, read out as columns."""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from wcet_probe.emu import native
from wcet_probe.emu.layout import OPERATIONS_AT_ONCE
from wcet_probe.emu.memory import Region
from wcet_probe.errors import UsageError
from wcet_probe.model.target import Target

_KINDS = 2


@dataclass(frozen=True, slots=True)
class OperationSets:
    """What the operations of a replay touched, a column each, in their order.

    Attributes:
        arguments: value of the first argument's register at entry: of free, the block.
        results: value of the result's register at return: of malloc, the block.
        accesses: data accesses, each line of one counted.
        most_in_set: of these, those to the set that has the most.
        unexpected: how many sets were accessed that were not expected.
        touched: accessed sets by kind of the operation (0: malloc, 1: free) and name of the region.
    """

    arguments: Sequence[int]
    results: Sequence[int]
    accesses: Sequence[int]
    most_in_set: Sequence[int]
    unexpected: Sequence[int]
    touched: Mapping[int, Mapping[str, frozenset[int]]]
    _records: memoryview = field(repr=False)

    def first_accesses(self, operation: int) -> tuple[tuple[int, int], ...]:
        """Instruction and address of the first access to each unexpected set; of a few sets, where there are many."""
        words = native.SET_RECORD_WORDS * operation
        kept = min(self.unexpected[operation], native.UNEXPECTED_KEPT)
        pairs = iter(self._records[words + native.SET_RECORD_HEAD : words + native.SET_RECORD_HEAD + 2 * kept])
        return tuple(zip(pairs, pairs, strict=True))


def sets_to_watch(target: Target, operations: int) -> int:
    """How many sets the data cache of ``target`` has, which so many ``operations`` are watched in.

    Raises:
        UsageError: the target has no data cache, or they are too many.
    """
    cache = target.dcache
    if cache is None:
        message = f"{target.name} has no data cache, and so no sets; choose another target, or --cache d:."
        raise UsageError(message)
    if operations > OPERATIONS_AT_ONCE:
        message = f"{operations} operations are too many to watch at once; give {OPERATIONS_AT_ONCE} at most."
        raise UsageError(message)
    return cache.sets


class SetWatch:
    """Tables that the native core writes to while ``kinds`` operations are replayed."""

    def __init__(
        self,
        regions: Sequence[Region],
        sets: int,
        kinds: Sequence[int],
        expected: Mapping[str, Collection[int]],
        first_register: int,
    ) -> None:
        self._regions, self._sets = regions, sets
        count = len(kinds)
        self._records = (ctypes.c_uint32 * (native.SET_RECORD_WORDS * count))()
        self._kinds = (ctypes.c_uint8 * count)(*kinds)
        self._touched = (ctypes.c_uint8 * (_KINDS * len(regions) * sets))()
        rows = (expected.get(region.name, ()) for region in regions)
        self._expected = _table(rows, sets)
        self._counts, self._is_counted = (ctypes.c_uint32 * sets)(), (ctypes.c_uint8 * sets)()
        self.setup = native.SetSetupLayout(
            operations=self._records,
            kinds=self._kinds,
            expected=self._expected,
            touched=self._touched,
            counts=self._counts,
            is_counted=self._is_counted,
            capacity=count,
            range_count=len(regions),
            sets=sets,
            first_register=first_register,
        )

    def result(self) -> OperationSets:
        """What was recorded."""
        words = array("I")
        words.frombytes(bytes(self._records))
        arguments, results, accesses, most_in_set, unexpected = (
            words[number :: native.SET_RECORD_WORDS] for number in range(native.SET_RECORD_HEAD)
        )
        touched = {kind: dict(self._touched_by(kind)) for kind in range(_KINDS)}
        return OperationSets(arguments, results, accesses, most_in_set, unexpected, touched, memoryview(words))

    def _touched_by(self, kind: int) -> Iterator[tuple[str, frozenset[int]]]:
        for number, region in enumerate(self._regions):
            if not region.harness:
                start = (kind * len(self._regions) + number) * self._sets
                marks = self._touched[start : start + self._sets]
                yield region.name, frozenset(index for index, mark in enumerate(marks) if mark)


def _table(rows: Iterator[Collection[int]], sets: int) -> ctypes.Array[ctypes.c_uint8]:
    """A byte for each row and set: 1 where the row has the set."""
    marks = [index in row for row in rows for index in range(sets)]
    return (ctypes.c_uint8 * len(marks))(*marks)
