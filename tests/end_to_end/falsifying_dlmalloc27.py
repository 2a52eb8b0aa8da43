"""States of dlmalloc27 in which numbers of its facts are attained; sizes are those of chunks, in bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from wcet_probe.model.scenario import Operation, OperationKind, Trace
from wcet_probe.scenarios.dlmalloc27.heap import GRANULE_BYTES, LARGE_BYTES, MINIMUM_BYTES, OVERHEAD_BYTES, bin_of
from wcet_probe.scenarios.dlmalloc27.script import Script, script_for
from wcet_probe.scenarios.families import HeapRequest

_FIRST_BIN, _LAST_SMALL_BIN = 3, 31
"""The first bin that a search looks at, and the last one of the first word of marks, which holds one size."""
_NOT_FAST_BYTES = 80
"""A chunk that no fast bin takes."""
_SMALL_BYTES = 40
"""A chunk that nothing in these heaps is large enough for, or of that size."""


def _malloc(variant: str, script: Script, size: int) -> tuple[str, Trace, Operation]:
    return variant, script.trace(), Operation(OperationKind.MALLOC, 0, size - OVERHEAD_BYTES)


def _all_fast(request: HeapRequest) -> Iterator[tuple[str, Trace, Operation]]:
    """Every chunk that the heap has room for is in a fast bin, and they are merged in address order."""
    script = script_for(request)
    slots = [script.cut(MINIMUM_BYTES) for _ in range(script.room_bytes // MINIMUM_BYTES)]
    script.free(slots[::-1])
    yield _malloc("all chunks in a fast bin, merged in address order", script, request.heap_bytes // 16 * 8)


def _all_large(request: HeapRequest) -> Iterator[tuple[str, Trace, Operation]]:
    """As many large chunks as there is room for: all are sorted, and all are too small for the request."""
    script = script_for(request)
    slots: list[int] = []
    while script.room_bytes >= LARGE_BYTES + MINIMUM_BYTES:
        slots.append(script.cut(LARGE_BYTES))
        script.cut(MINIMUM_BYTES)
    script.free(slots)
    yield _malloc("all large chunks are too small", script, LARGE_BYTES + GRANULE_BYTES)


def _least_of(number: int) -> int:
    """The least size of a bin."""
    if number <= _LAST_SMALL_BIN:
        return GRANULE_BYTES * number
    power, quarter = divmod(number, 4)
    return (4 + quarter) << power - 2


def _marked(request: HeapRequest, kept: Sequence[int], bins: Sequence[int] | None) -> Script:
    """A heap with chunks in use but for ``kept``, which are in fast bins, and marks of the empty ``bins``.

    None: of all from the first to that of a chunk of the whole heap. A chunk is sorted into each by a request that is
    refused, and merges then with the one behind it, which leaves the mark there.
    """
    script = script_for(request)
    slots = [script.cut(size) for size in kept]
    whole = script.room_bytes - MINIMUM_BYTES
    block = script.cut(whole)
    script.cut(MINIMUM_BYTES)
    for number in range(_FIRST_BIN, bin_of(whole)) if bins is None else bins:
        size = _least_of(number)
        script.free([block])
        part, rest = script.malloc(size), script.malloc(whole - size)
        script.free([part])
        script.malloc(whole)  # refused
        script.free([rest])
        block = script.malloc(whole)
    script.free(slots)
    return script


def _marks(request: HeapRequest) -> Iterator[tuple[str, Trace, Operation]]:
    """Marks of empty bins only, or of the last one of each word; a second search finds a chunk."""
    yield _malloc("all bins have marks and are empty", _marked(request, (24,), None), MINIMUM_BYTES)
    last = _least_of(_LAST_SMALL_BIN)
    kept = (*(24,) * ((last - 32) // 24), 32)
    script = _marked(request, kept, (_LAST_SMALL_BIN,))
    yield _malloc("the last bins of words have marks and are empty", script, MINIMUM_BYTES)


def _no_marks(request: HeapRequest) -> Iterator[tuple[str, Trace, Operation]]:
    """Two searches go through all words of marks, and find none."""
    script = script_for(request)
    fast = script.cut(MINIMUM_BYTES)
    script.cut(script.room_bytes)
    script.free([fast])
    yield _malloc("two searches through all words", script, MINIMUM_BYTES + GRANULE_BYTES)


def _last_remainder(request: HeapRequest) -> Iterator[tuple[str, Trace, Operation]]:
    """The rest of the last split is the only unsorted chunk of both sorts, and too small for both."""
    script = script_for(request)
    cut, fast = script.cut(_NOT_FAST_BYTES), script.cut(MINIMUM_BYTES)
    script.cut(script.room_bytes)
    script.free([cut])
    script.malloc(_NOT_FAST_BYTES - MINIMUM_BYTES)
    script.free([fast])
    yield _malloc("the rest of the last split is sorted twice", script, _SMALL_BYTES)


def _sorted_twice(request: HeapRequest) -> Iterator[tuple[str, Trace, Operation]]:
    """Two unsorted chunks, one of a fast bin between them, and a used one, over and over: all sorted, merged, sorted.

    Two chunks behind all these are the exact fit that ends an earlier sort at once: the others are left unsorted.
    """
    script = script_for(request)
    unsorted: list[int] = []
    fast: list[int] = []
    while script.room_bytes >= 8 * MINIMUM_BYTES:
        before, between, behind, _ = (script.cut(MINIMUM_BYTES) for _ in range(4))
        unsorted += [before, behind]
        fast.append(between)
    pair = [script.cut(MINIMUM_BYTES), script.cut(MINIMUM_BYTES)]
    fast.append(script.cut(MINIMUM_BYTES))
    script.cut(script.room_bytes)
    script.free([*unsorted, *pair])
    script.malloc(2 * MINIMUM_BYTES)
    script.free(fast)
    yield _malloc("chunks are sorted, merged and sorted again", script, _SMALL_BYTES)


STATES = (_all_fast, _all_large, _marks, _no_marks, _last_remainder, _sorted_twice)
