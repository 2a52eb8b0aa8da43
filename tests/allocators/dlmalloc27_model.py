"""dlmalloc27 as a specification: chunks in a list, bins as Python lists, nothing of the C's boundary tags and links.

Predicts the offset that every malloc returns. ``word_bytes`` is 4 for the guests and 8 for a 64-bit host.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto

LARGE = 256
"""The least size of a large bin."""


class State(Enum):
    """What a chunk is."""

    USED = auto()
    FAST = auto()
    FREE = auto()


@dataclass(eq=False)
class Chunk:
    """A chunk: offset of its first word in the arena, all its bytes."""

    offset: int
    size: int
    state: State


@dataclass
class Dlmalloc27:
    """The heap after ``init``. Offsets that go in and out are those of payloads."""

    heap_bytes: int
    word_bytes: int
    fast_request: int = 64
    threshold: int = 131072
    chunks: list[Chunk] = field(default_factory=list)
    """In address order; the last one is top."""
    fast: dict[int, list[Chunk]] = field(default_factory=dict)
    """By size; the last chunk is served first."""
    unsorted: list[Chunk] = field(default_factory=list)
    """Oldest first."""
    bins: dict[int, list[Chunk]] = field(default_factory=dict)
    """By number; the last chunk of a small bin is the oldest, of a large bin the smallest."""
    remainder: int | None = None
    """Offset of what a small request split off last."""
    is_untouched: bool = True
    """Nothing was freed yet: requests are cut off top."""

    def __post_init__(self) -> None:
        self.alignment = 2 * self.word_bytes
        self.least = 2 * self.alignment
        self.chunks = [Chunk(0, self.heap_bytes, State.FREE)]

    def malloc(self, size: int) -> int | None:
        """Offset of the payload that a request gets."""
        if size >= (1 << 8 * self.word_bytes) - 2 * self.least:
            return None
        need = self._round(size)
        chunk = self._serve(need)
        if chunk is None:
            return None
        chunk.state = State.USED
        return chunk.offset + self.alignment

    def free(self, payload: int) -> None:
        """Into a fast bin, or merged at once."""
        chunk = next(c for c in self.chunks if c.offset + self.alignment == payload)
        self.is_untouched = False
        if chunk.size <= self._round(self.fast_request):
            chunk.state = State.FAST
            self.fast.setdefault(chunk.size, []).append(chunk)
        elif self._release(chunk) >= self.threshold:
            self._consolidate()

    def bin_of(self, size: int) -> int:
        """Number of the bin of a size: by quarters of a power of two from 256 on, up to the 95th."""
        if size < LARGE:
            return size // 8
        number, start, width = 32, LARGE, LARGE // 4
        while size >= start + width and number < 95:
            start += width
            number += 1
            if number % 4 == 0:
                width *= 2
        return number

    def _round(self, size: int) -> int:
        return max(self.least, -(-(size + self.word_bytes) // self.alignment) * self.alignment)

    def _serve(self, need: int) -> Chunk | None:
        if self.is_untouched:
            return self._cut_top(need)
        if self.fast.get(need):
            return self.fast[need].pop()
        if need >= LARGE:
            self._consolidate()
        elif self.bins.get(self.bin_of(need)):
            return self.bins[self.bin_of(need)].pop()
        for _ in range(2):
            chunk = self._search(need)
            if chunk is not None or not any(self.fast.values()):
                return chunk
            self._consolidate()
        return self._search(need)

    def _search(self, need: int) -> Chunk | None:
        while self.unsorted:
            chunk = self.unsorted[0]
            splits = need < LARGE and chunk.size > need + self.least and chunk.offset == self.remainder
            if chunk.size == need or (splits and len(self.unsorted) == 1):
                self.unsorted.remove(chunk)
                return self._cut(chunk, need)
            del self.unsorted[0]
            self._sort(chunk)
        fitting = [c for number in sorted(self.bins) for c in reversed(self.bins[number]) if c.size >= need]
        if fitting:
            self.bins[self.bin_of(fitting[0].size)].remove(fitting[0])
            return self._cut(fitting[0], need)
        return self._cut_top(need)

    def _cut_top(self, need: int) -> Chunk | None:
        top = self.chunks[-1]
        if top.size < need + self.least:
            return None
        chunk = Chunk(top.offset, need, State.USED)
        self.chunks[-1] = Chunk(top.offset + need, top.size - need, State.FREE)
        self.chunks.insert(-1, chunk)
        return chunk

    def _sort(self, chunk: Chunk) -> None:
        chunks = self.bins.setdefault(self.bin_of(chunk.size), [])
        if chunk.size < LARGE:
            chunks.insert(0, chunk)
        elif chunks and chunk.size <= chunks[-1].size:
            chunks.append(chunk)
        else:
            chunks.insert(sum(c.size > chunk.size for c in chunks), chunk)

    def _cut(self, chunk: Chunk, need: int) -> Chunk:
        if chunk.size - need >= self.least:
            rest = Chunk(chunk.offset + need, chunk.size - need, State.FREE)
            chunk.size = need
            self.chunks.insert(self.chunks.index(chunk) + 1, rest)
            self.unsorted.append(rest)
            if need < LARGE:
                self.remainder = rest.offset
        return chunk

    def _consolidate(self) -> None:
        for size in sorted(self.fast):
            for chunk in reversed(self.fast.pop(size)):
                self._release(chunk)

    def _release(self, chunk: Chunk) -> int:
        """Merges a chunk with its free neighbours; the size of what comes out."""
        at = self.chunks.index(chunk)
        start = at - (at > 0 and self.chunks[at - 1].state is State.FREE)
        end = at + 1 + (self.chunks[at + 1].state is State.FREE)
        run = self.chunks[start:end]
        for other in run:
            for chunks in (self.unsorted, *self.bins.values()):
                if other in chunks:
                    chunks.remove(other)
        merged = Chunk(run[0].offset, sum(c.size for c in run), State.FREE)
        self.chunks[start:end] = [merged]
        if merged is not self.chunks[-1]:
            self.unsorted.append(merged)
        return merged.size
