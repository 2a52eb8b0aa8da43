"""Building traces operation by operation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from wcet_probe.model.scenario import Operation, OperationKind, Trace


@dataclass(slots=True)
class TraceBuilder:
    """Collects operations; ``malloc`` hands out slots."""

    operations: list[Operation] = field(default_factory=list)
    slot_count: int = 0

    def malloc(self, size_bytes: int) -> int:
        """Append an allocation; the slot of its block."""
        slot = self.slot_count
        self.slot_count += 1
        self.operations.append(Operation(OperationKind.MALLOC, slot, size_bytes))
        return slot

    def free(self, slot: int) -> None:
        """Append the deallocation of the block in ``slot``."""
        self.operations.append(Operation(OperationKind.FREE, slot))

    def trace(self) -> Trace:
        """All operations so far, as columns."""
        return trace_of(self.operations, self.slot_count)


def trace_of(operations: Sequence[Operation], slot_count: int) -> Trace:
    """``operations`` as columns."""
    return Trace(
        kinds=tuple(int(o.kind is OperationKind.FREE) for o in operations),
        slots=tuple(o.slot for o in operations),
        sizes_bytes=tuple(o.size_bytes for o in operations),
        cache_sets=tuple(o.cache_set for o in operations),
        slot_count=slot_count,
    )
