"""dlmalloc28 as a specification: best fit over a list of chunks; no trie, no bitmap, no boundary tag.

Predicts the offset that every malloc returns. ``word_bytes`` is 4 for the guests and 8 for a 64-bit host.
"""

from __future__ import annotations

from dataclasses import dataclass, field

SMALL_BINS = 32


@dataclass
class Chunk:
    """A chunk: offset of its header in the arena, its whole size."""

    offset: int
    size: int
    free: bool


@dataclass
class Dlmalloc28:
    """The heap after ``init``. Offsets that go in and out are those of payloads."""

    heap_bytes: int
    word_bytes: int
    chunks: list[Chunk] = field(default_factory=list)
    """In address order, without the top chunk."""
    bins: dict[int, list[Chunk]] = field(default_factory=dict)
    """By size. The next one to be served is the last of a small size and the first of a large one."""
    victim: Chunk | None = None
    top: int = 0
    """Offset of the top chunk."""

    def malloc(self, size: int) -> int | None:
        unit = 2 * self.word_bytes
        wanted = max(2 * unit, -(-(size + self.word_bytes) // unit) * unit)
        if size == 0:
            return None
        if found := self._bin_for(wanted):
            return self._take(found, wanted)
        if self.victim and self.victim.size >= wanted:
            return self._take_victim(wanted)
        if self.heap_bytes - self.top > wanted:
            self.chunks.append(Chunk(self.top, wanted, free=False))
            self.top += wanted
            return self.chunks[-1].offset + unit
        return None

    def _bin_for(self, wanted: int) -> int | None:
        """The size of the chunk in a bin or trie that serves the request, None if the victim or the top does."""
        unit = 2 * self.word_bytes
        victim = self.victim.size if self.victim else 0
        best = min((size for size, bin_ in self.bins.items() if bin_ and size >= wanted), default=None)
        fits_whole = best is not None and best <= wanted + unit and best < SMALL_BINS * unit
        if best is None or fits_whole or victim < wanted:
            return best
        return best if wanted >= SMALL_BINS * unit and best < victim else None

    def free(self, payload: int) -> None:
        at = next(i for i, c in enumerate(self.chunks) if c.offset + 2 * self.word_bytes == payload)
        start = at - 1 if at > 0 and self.chunks[at - 1].free else at
        end = at + 2 if at + 1 < len(self.chunks) and self.chunks[at + 1].free else at + 1
        run = self.chunks[start:end]
        merged = Chunk(run[0].offset, sum(c.size for c in run), free=True)
        is_victim = any(c is self.victim for c in run)
        for chunk in run:
            if chunk.free and chunk is not self.victim:
                self.bins[chunk.size] = [c for c in self.bins[chunk.size] if c is not chunk]
        if end == len(self.chunks):
            del self.chunks[start:]
            self.top = merged.offset
            self.victim = None if is_victim else self.victim
            return
        self.chunks[start:end] = [merged]
        if is_victim:
            self.victim = merged
        else:
            self._insert(merged)

    def _insert(self, chunk: Chunk) -> None:
        self.bins.setdefault(chunk.size, []).append(chunk)

    def _take(self, size: int, wanted: int) -> int:
        limit = SMALL_BINS * 2 * self.word_bytes
        chunk = self.bins[size].pop(-1 if size < limit else 0)
        rest = self._cut(chunk, wanted)
        if rest and wanted < limit:
            if self.victim:
                self._insert(self.victim)
            self.victim = rest
        elif rest:
            self._insert(rest)
        return chunk.offset + 2 * self.word_bytes

    def _take_victim(self, wanted: int) -> int:
        assert self.victim is not None
        chunk = self.victim
        self.victim = self._cut(chunk, wanted)
        return chunk.offset + 2 * self.word_bytes

    def _cut(self, chunk: Chunk, wanted: int) -> Chunk | None:
        chunk.free = False
        spare = chunk.size - wanted
        if spare < 4 * self.word_bytes:
            return None
        chunk.size = wanted
        rest = Chunk(chunk.offset + wanted, spare, free=True)
        self.chunks.insert(self.chunks.index(chunk) + 1, rest)
        return rest
