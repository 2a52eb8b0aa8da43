"""TLSF as a specification: blocks in a list, classes as intervals, nothing of the C's arithmetic.

Predicts the offset that every malloc returns. ``word_bytes`` is 4 for the guests and 8 for a 64-bit host.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field

HEAP_BITS = 28


def class_bounds(sl_bits: int, alignment: int) -> list[int]:
    """Lower ends of all classes in ascending order: the linear row, then each power of two in equal parts."""
    small_limit = alignment << sl_bits
    bounds = list(range(0, small_limit, alignment))
    row = small_limit
    while row < 1 << HEAP_BITS:
        bounds.extend(range(row, 2 * row, row >> sl_bits))
        row *= 2
    return bounds


@dataclass
class Block:
    """A block: offset of its header in the arena, bytes of its payload."""

    offset: int
    size: int
    free: bool


@dataclass
class Tlsf:
    """The heap after ``init``. Offsets that go in and out are those of payloads."""

    heap_bytes: int
    sl_bits: int
    word_bytes: int
    blocks: list[Block] = field(default_factory=list)
    """In address order."""
    lists: dict[int, list[Block]] = field(default_factory=dict)
    """By index of the class; the last block is the head of the list."""

    def __post_init__(self) -> None:
        self.alignment = self.header = 2 * self.word_bytes
        self.bounds = class_bounds(self.sl_bits, self.alignment)
        whole = Block(0, self.heap_bytes - 2 * self.header, free=True)
        self.blocks = [whole]
        self._insert(whole)

    def request(self, size: int) -> int | None:
        """Index of the class that a request is rounded up to, None if there is none."""
        aligned = -(-size // self.alignment) * self.alignment
        index = bisect_left(self.bounds, aligned)
        return index if size > 0 and index < len(self.bounds) else None

    def malloc(self, size: int) -> int | None:
        """Offset of the payload that a request gets."""
        wanted = self.request(size)
        if wanted is None:
            return None
        found = min((index for index, blocks in self.lists.items() if blocks and index >= wanted), default=None)
        if found is None:
            return None
        block = self.lists[found].pop()
        block.free = False
        spare = block.size - self.bounds[wanted] - self.header
        if spare >= self.alignment:
            block.size = self.bounds[wanted]
            rest = Block(block.offset + self.header + block.size, spare, free=True)
            self.blocks.insert(self.blocks.index(block) + 1, rest)
            self._insert(rest)
        return block.offset + self.header

    def free(self, payload: int) -> None:
        """Merges the block with its free neighbours and puts it at the head of its list."""
        position = next(i for i, block in enumerate(self.blocks) if block.offset + self.header == payload)
        start = position - 1 if position > 0 and self.blocks[position - 1].free else position
        end = position + 2 if position + 1 < len(self.blocks) and self.blocks[position + 1].free else position + 1
        run = self.blocks[start:end]
        for block in run:
            if block.free:
                self.lists[self._class(block)].remove(block)
        merged = Block(run[0].offset, sum(block.size for block in run) + (len(run) - 1) * self.header, free=True)
        self.blocks[start:end] = [merged]
        self._insert(merged)

    def chain(self) -> list[tuple[int, int, bool]]:
        """All blocks in address order."""
        return [(block.offset, block.size, block.free) for block in self.blocks]

    def _class(self, block: Block) -> int:
        return bisect_right(self.bounds, block.size) - 1

    def _insert(self, block: Block) -> None:
        self.lists.setdefault(self._class(block), []).append(block)
