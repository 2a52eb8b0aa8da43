"""What the scenarios of btree-best-fit and fast-fit share: a trace from a layout, and the words of a guest's heap."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Sequence
from dataclasses import dataclass

from wcet_probe.model.scenario import Trace
from wcet_probe.scenarios.families import GuestHeap

_WORD_BYTES = 4


def trace_of_layout(requests: Sequence[int], freed: Sequence[int]) -> Trace:
    """Allocate all of ``requests``, slot by slot in this order, then free the slots ``freed`` in that order."""
    allocations, frees = len(requests), len(freed)
    return Trace(
        kinds=(0,) * allocations + (1,) * frees,
        slots=(*range(allocations), *freed),
        sizes_bytes=(*requests, *(0,) * frees),
        cache_sets=(0,) * (allocations + frees),
        slot_count=allocations,
    )


@dataclass(slots=True)
class Words:
    """A copy of the guest's heap, word by word, read at once. Writes change the copy alone.

    Attributes:
        base_address: address of the first word.
        words: all words of the heap.
    """

    base_address: int
    words: array[int]

    @classmethod
    def of(cls, guest: GuestHeap, pointer_at: int) -> Words:
        """Read the heap. The word at ``pointer_at`` is an address in it: its bytes tell the guest's byte order."""
        words = array("I", guest.read(guest.heap.base_address, guest.heap.size_bytes))
        little = int.from_bytes(guest.read(pointer_at, _WORD_BYTES), "little") == guest.read_word(pointer_at)
        if little != (sys.byteorder == "little"):
            words.byteswap()
        return cls(guest.heap.base_address, words)

    def __getitem__(self, address: int) -> int:
        return self.words[(address - self.base_address) >> 2]

    def __setitem__(self, address: int, value: int) -> None:
        self.words[(address - self.base_address) >> 2] = value
