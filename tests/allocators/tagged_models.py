"""First-fit, best-fit and half-fit as specifications: blocks in a list, nothing of the C's arithmetic.

Predict the offset of every payload. ``word_bytes`` is 4 for the guests and 8 for a 64-bit host; lengths are given for
guests and are twice as long there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

HEAP_LIMIT = 1 << 28


@dataclass(eq=False)
class Block:
    """A block with its tags: offset of its header in the arena."""

    offset: int
    size: int
    free: bool


class Tagged(ABC):
    """A heap with boundary tags after ``init``. Offsets that go in and out are those of payloads."""

    def __init__(
        self, heap_bytes: int, word_bytes: int, *, alignment: int = 8, minimum: int = 16, threshold: int = 16
    ) -> None:
        self.word = word_bytes
        scale = word_bytes // 4
        self.alignment, self.minimum = alignment * scale, minimum * scale
        self.threshold = max(threshold, minimum) * scale
        whole = Block(word_bytes, heap_bytes - 2 * word_bytes, free=True)
        self.blocks = [whole]
        self.insert(whole)

    @abstractmethod
    def insert(self, block: Block) -> None:
        """Files a free block."""

    @abstractmethod
    def remove(self, block: Block) -> None:
        """Takes a free block out of its list."""

    @abstractmethod
    def find(self, size: int) -> Block | None:
        """The free block that a block of ``size`` bytes is cut from."""

    def malloc(self, size: int) -> int | None:
        needed = max(-(-(size + 2 * self.word) // self.alignment) * self.alignment, self.minimum)
        block = self.find(needed) if 0 < size <= HEAP_LIMIT else None
        if block is None:
            return None
        self.remove(block)
        block.free = False
        spare = block.size - needed
        if spare >= self.threshold:
            block.size = needed
            rest = Block(block.offset + needed, spare, free=True)
            self.blocks.insert(self.blocks.index(block) + 1, rest)
            self.insert(rest)
        return block.offset + self.word

    def free(self, offset: int) -> None:
        position = next(i for i, block in enumerate(self.blocks) if block.offset + self.word == offset)
        start = position - 1 if position > 0 and self.blocks[position - 1].free else position
        end = position + 2 if position + 1 < len(self.blocks) and self.blocks[position + 1].free else position + 1
        run = self.blocks[start:end]
        for block in run:
            if block.free:
                self.remove(block)
        merged = Block(run[0].offset, sum(block.size for block in run), free=True)
        self.blocks[start:end] = [merged]
        self.insert(merged)


class FirstFit(Tagged):
    def __init__(self, heap_bytes: int, word_bytes: int, **parameters: int) -> None:
        self.list: list[Block] = []
        super().__init__(heap_bytes, word_bytes, **parameters)

    def insert(self, block: Block) -> None:
        self.list.insert(0, block)

    def remove(self, block: Block) -> None:
        self.list.remove(block)

    def find(self, size: int) -> Block | None:
        return next((block for block in self.list if block.size >= size), None)


class BestFit(FirstFit):
    def insert(self, block: Block) -> None:
        self.list.append(block)

    def find(self, size: int) -> Block | None:
        return min((block for block in self.list if block.size >= size), key=lambda block: block.size, default=None)


class HalfFit(Tagged):
    def __init__(self, heap_bytes: int, word_bytes: int, **parameters: int) -> None:
        self.lists: list[list[Block]] = [[] for _ in range(28)]
        super().__init__(heap_bytes, word_bytes, **parameters)

    def _list(self, block: Block) -> list[Block]:
        payload = block.size - 2 * self.word
        return next(blocks for i, blocks in enumerate(self.lists) if 1 << i <= payload < 2 << i)

    def insert(self, block: Block) -> None:
        self._list(block).insert(0, block)

    def remove(self, block: Block) -> None:
        self._list(block).remove(block)

    def find(self, size: int) -> Block | None:
        return next((b[0] for i, b in enumerate(self.lists) if 1 << i >= size - 2 * self.word and b), None)
