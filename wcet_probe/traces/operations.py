"""The rows of a trace: what a program asked of its heap, in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from wcet_probe.errors import UsageError

KINDS = ("malloc", "calloc", "memalign", "realloc", "free")


class TraceRow(NamedTuple):
    """One operation of a program.

    Attributes:
        kind: one of ``KINDS``.
        block: the block that the operation is about; numbers from 1 on, each given once. Of realloc the old block, 0
            for none.
        size_bytes: requested; of calloc the product; 0 for free.
        alignment_bytes: requested by memalign, else 0.
        new_block: of realloc the new block, 0 where none was asked for; else 0.
        time_ns: since the program began; 0 where it is not known.
    """

    kind: str
    block: int
    size_bytes: int = 0
    alignment_bytes: int = 0
    new_block: int = 0
    time_ns: int = 0


class HeapOperation(NamedTuple):
    """An operation of an allocator that knows malloc and free only; ``row`` is the trace's row that it comes from."""

    is_free: bool
    slot: int
    size_bytes: int
    row: int


Where = Callable[[int], str]
"""Names the row of a number, as a message has it."""


def _row_of_trace(number: int) -> str:
    return f"row {number} of the trace"


def heap_operations(rows: Iterable[TraceRow], where: Where = _row_of_trace) -> Iterator[HeapOperation]:
    """``rows`` as mallocs and frees of slots, which are used again, so that memory follows the live blocks.

    A realloc is a malloc of the new size and a free of the old block, as where it cannot grow in place; a memalign is a
    malloc with room to align in. A request of no bytes asks for one, as the standard C library gives a block for it.

    Raises:
        UsageError: a row frees a block that was never given out, or was freed before, or gives one out twice; the
            message names it by ``where``.
    """
    slots = _Slots(where)
    for number, row in enumerate(rows, 1):
        if row.kind not in KINDS:
            raise UsageError(f"{where(number)} is of kind {row.kind!r}; kinds are {', '.join(KINDS)}.")
        given = row.new_block if row.kind == "realloc" else row.block if row.kind != "free" else 0
        taken = row.block if row.kind in {"realloc", "free"} else 0
        if given or row.kind in {"malloc", "calloc", "memalign"}:
            slot = slots.allocate(given, number)
            yield HeapOperation(
                is_free=False, slot=slot, size_bytes=max(1, row.size_bytes + row.alignment_bytes), row=number
            )
        if taken or row.kind == "free":
            yield HeapOperation(is_free=True, slot=slots.release(taken, number), size_bytes=0, row=number)


def checked(rows: Iterable[TraceRow], where: Where = _row_of_trace) -> Iterator[TraceRow]:
    """``rows``, each checked as `heap_operations` does, and raising what it raises."""
    last: list[TraceRow] = []

    def kept() -> Iterator[TraceRow]:
        for row in rows:
            last.append(row)
            yield row

    for _ in heap_operations(kept(), where):
        yield from last
        last.clear()
    yield from last


class _Slots:
    """Slots of the blocks that are held, and those that may be given again."""

    def __init__(self, where: Where) -> None:
        self._where = where
        self._held: dict[int, int] = {}
        self._unused: list[int] = []
        self._highest = 0

    def allocate(self, block: int, number: int) -> int:
        if block <= 0 or block in self._held:
            why = "is held" if block > 0 else "is no block"
            raise UsageError(f"{self._where(number)} allocates block {block}, which {why}; number blocks from 1 on.")
        self._highest = max(self._highest, block)
        slot = self._held[block] = self._unused.pop() if self._unused else len(self._held)
        return slot

    def release(self, block: int, number: int) -> int:
        slot = self._held.pop(block, None)
        if slot is None:
            why = "was freed before" if 0 < block <= self._highest else "was never allocated"
            raise UsageError(f"{self._where(number)} frees block {block}, which {why}; correct or record it again.")
        self._unused.append(slot)
        return slot
