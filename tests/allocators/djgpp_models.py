"""The DJGPP allocators with buckets as specifications: offsets of payloads and lists, no headers, no bit tricks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field


def powers(word: int, minimum: int, header: int) -> list[int]:
    """Sizes of blocks: powers of two, and a ``header`` that is apart."""
    return [size for size in ((1 << bits) + header for bits in range(2, 29)) if size >= minimum * word // 4]


def quarters(word: int, minimum: int, header: int) -> list[int]:
    """Sizes of blocks: four per power of two, all of them multiples of two words, and a ``header`` that is apart."""
    units = {*range(1, 8), *((4 + q) << e for e in range(24) for q in range(4))}
    return [size for size in (unit * 2 * word + header for unit in sorted(units)) if size >= minimum * word // 4]


@dataclass
class Buckets:
    """The heap after ``init``. ``chunk`` bytes are carved at a miss; 0: one block is taken."""

    heap_bytes: int
    word: int
    sizes: list[int]
    chunk: int = 0
    gives_back: bool = False
    lists: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    used: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.top = self.word

    def malloc(self, size: int) -> int | None:
        if not 0 < size < self.heap_bytes:
            return None
        block = next(block for block in self.sizes if block >= size + self.word)
        if not self.lists[block]:
            room = self.heap_bytes - self.top
            blocks = max(1, min(self.chunk, room) // block)
            if blocks * block > room:
                return None
            self.lists[block] = [self.top + block * i for i in reversed(range(blocks))]
            self.top += block * blocks
        offset = self.lists[block].pop() + self.word
        self.used[offset] = block
        return offset

    def free(self, offset: int) -> None:
        block, start = self.used.pop(offset), offset - self.word
        if self.gives_back and start + block == self.top:
            self.top = start
        else:
            self.lists[block].append(start)


def model(
    sizes: Callable[[int, int, int], list[int]],
    minimum: int = 16,
    chunk: int = 0,
    *,
    gives_back: bool = False,
    apart: bool = False,
) -> Callable[[int, int], Buckets]:
    """The heap of bytes of arena and bytes of a word."""
    return lambda heap_bytes, word: Buckets(heap_bytes, word, sizes(word, minimum, apart * word), chunk, gives_back)
