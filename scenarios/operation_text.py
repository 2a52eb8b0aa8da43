"""Operations as words of a text that people read and compare: ``+SLOT:BYTES``, ``-SLOT``, and rows of them as one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from wcet_probe.model.scenario import Operation, OperationKind

_WORD = re.compile(r"(?:\+(\d+):(\d+)(?:@(\d+))?|-(\d+))(?:\*(\d+)(?:/(-?\d+))?)?", re.ASCII)
_LEAST_ROW = 3
_MOST_OPERATIONS = 1 << 24
_LIMIT = 1 << 32


def operation_word(operation: Operation) -> str:
    """``+SLOT:BYTES`` for an allocation (``+SLOT:BYTES@SET`` with a cache set), ``-SLOT`` for a deallocation."""
    if operation.kind is OperationKind.FREE:
        return f"-{operation.slot}"
    cache_set = f"@{operation.cache_set}" if operation.cache_set else ""
    return f"+{operation.slot}:{operation.size_bytes}{cache_set}"


def words_of(operations: Sequence[Operation]) -> Iterator[str]:
    """``operations`` as words; a row of equal ones whose slots go up by one ends with ``*COUNT``, by N ``*COUNT/N``."""
    at = 0
    while at < len(operations):
        first = operations[at]
        step = operations[at + 1].slot - first.slot if at + 1 < len(operations) else 0
        count = 1
        while at + count < len(operations) and operations[at + count] == replace(first, slot=first.slot + count * step):
            count += 1
        count = count if count >= _LEAST_ROW else 1
        row = f"*{count}" + (f"/{step}" if step != 1 else "") if count > 1 else ""
        yield operation_word(first) + row
        at += count


def operations_of(words: Iterable[str]) -> Iterator[Operation]:
    """The operations that ``words_of`` wrote.

    Raises:
        ValueError: a word is none, or there are more operations than any heap has room for.
    """
    left = _MOST_OPERATIONS
    for word in words:
        match = _WORD.fullmatch(word)
        if not match:
            raise ValueError(f"{word!r} is no operation")
        slot, size, cache_set, freed, rows, steps = (int(one or 0) for one in match.groups())
        count, step = (rows, steps if match[6] else 1) if match[5] else (1, 0)
        is_free = match[4] is not None
        first = Operation(OperationKind.FREE, freed) if is_free else _allocation(slot, size, cache_set)
        last = first.slot + (count - 1) * step
        left -= count
        if left < 0 or count < 1 or not 0 <= last < _LIMIT or first.slot >= _LIMIT or size >= _LIMIT:
            raise ValueError(f"{word!r} is out of range")
        yield from (replace(first, slot=first.slot + number * step) for number in range(count))


def _allocation(slot: int, size: int, cache_set: int) -> Operation:
    return Operation(OperationKind.MALLOC, slot, size, cache_set)
