"""A loop of the binary whose iterations are counted in runs, and the counts: observer and proof name it alike."""

from __future__ import annotations

from dataclasses import dataclass

from wcet_probe.model.target import MemoryRange


@dataclass(frozen=True, slots=True)
class WatchedLoop:
    """A loop of the binary whose iterations the machine counts in every run.

    Attributes:
        name: what tells it from the others, in messages and counts.
        header_address: the first instruction of its header, which every iteration executes once.
        entry_addresses: the last instruction of each block outside that leads into the loop. None where the header is
            the function's first instruction: whatever reaches it from outside ``body`` then enters the loop.
        body: address ranges of the loop's blocks, the header's among them, callees not.
    """

    name: str
    header_address: int
    entry_addresses: tuple[int, ...]
    body: tuple[MemoryRange, ...]


@dataclass(frozen=True, slots=True)
class LoopCount:
    """What was counted of a :class:`WatchedLoop`.

    Attributes:
        name: the loop's.
        max_header_executions: most executions of the header for one entry.
        header_executions: executions of the header, over all entries.
        entries: how often the loop was entered.
    """

    name: str
    max_header_executions: int
    header_executions: int
    entries: int
