"""Events in the order of their time; those of one time in the order in which they were entered."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field

from wcet_probe.traces.operations import TraceRow


@dataclass(slots=True)
class Releases:
    """Blocks that are held, by the time at which they are freed. Times are of any unit, the caller's."""

    waiting: list[tuple[float, int, int]] = field(default_factory=list)
    blocks: int = 0

    def hold(self, size_bytes: int, until: float) -> TraceRow:
        """Allocate the next block, to be freed at ``until``."""
        self.blocks += 1
        heapq.heappush(self.waiting, (until, self.blocks, self.blocks))
        return TraceRow("malloc", self.blocks, size_bytes)

    def due(self, now: float) -> Iterator[TraceRow]:
        """Free all that is due at ``now``."""
        while self.waiting and self.waiting[0][0] <= now:
            yield TraceRow("free", heapq.heappop(self.waiting)[2])

    def rest(self) -> Iterator[TraceRow]:
        """Free what is left, in the order of its times."""
        return self.due(float("inf"))
