"""The heap of dlmalloc28 in plain Python: sizes, bits of tries, how to lay chunks out, and how to read them back.

Kept equal to ``allocators/dlmalloc28/dlmalloc28.c`` by the state proof of every run. ``size`` means a whole chunk.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from wcet_probe.errors import UsageError
from wcet_probe.model import Block, Trace
from wcet_probe.scenarios.families import GuestHeap
from wcet_probe.scenarios.traces import TraceBuilder

UNIT_BYTES = 8
HEADER_BYTES = 8
OVERHEAD_BYTES = 4
MINIMUM_BYTES = 16
SMALL_LIMIT_BYTES = 256
_FIRST_EXPONENT = 8
_LAST_TRIE = 31
_FREE_HEAD_MASK = 7
_PREV_USED, _USED = 1, 2
_WORD_BYTES = 4
_TREE_BINS_AT = 28 + 32 * 8
_NODE_BYTES = 32


def request_of(size: int) -> int:
    """The largest request that a chunk of ``size`` bytes serves."""
    return size - OVERHEAD_BYTES


def trie_of(size: int) -> int:
    """Index of the trie that holds ``size``."""
    exponent = size.bit_length() - 1
    return min(_LAST_TRIE, 2 * (exponent - _FIRST_EXPONENT) + (size >> (exponent - 1) & 1))


def key_bits(size: int) -> Iterator[int]:
    """The bits that the trie of ``size`` branches on, first to last; those below the unit of sizes are zero."""
    trie = trie_of(size)
    first = 31 if trie == _LAST_TRIE else _FIRST_EXPONENT + trie // 2 - 2
    return (size >> bit & 1 for bit in range(first, -1, -1))


@dataclass(frozen=True, slots=True)
class Trie:
    """An interval of sizes and how deep its trie can be: of [2^exponent, 2^(exponent+1)) the lower or upper half."""

    exponent: int
    half: int

    @property
    def least(self) -> int:
        """The least size."""
        return (2 + self.half) << (self.exponent - 1)

    @property
    def levels(self) -> int:
        """Bits that sizes can differ in: the most nodes below one another, less one."""
        return self.exponent - 4


@dataclass(slots=True)
class Layout:
    """Cuts a virgin heap into chunks of exact sizes, from low addresses to high ones, and frees some of them.

    Attributes:
        heap_bytes: size of the heap.
        position_bytes: offset of the next chunk from the start of the heap.
    """

    heap_bytes: int
    position_bytes: int = 0
    _builder: TraceBuilder = field(default_factory=TraceBuilder)

    def used(self, size: int) -> int:
        """A used chunk; its slot."""
        self.position_bytes += size
        if self.position_bytes > self.heap_bytes - HEADER_BYTES:
            message = (
                f"a heap of {self.heap_bytes} bytes is too small for the scenario's state; "
                f"give at least {2 * self.heap_bytes} with --heap."
            )
            raise UsageError(message)
        return self._builder.malloc(request_of(size))

    def align(self, remainder_bytes: int, modulus_bytes: int) -> None:
        """A fence, so that the next chunk's header is at ``remainder_bytes`` in a cache line."""
        gap = (remainder_bytes - self.position_bytes) % modulus_bytes
        if gap:
            self.used(gap if gap >= MINIMUM_BYTES else gap + modulus_bytes)

    def fill(self) -> None:
        """A fence over all that is left but the least top chunk."""
        room = self.heap_bytes - HEADER_BYTES - self.position_bytes
        if room >= MINIMUM_BYTES:
            self.used(room)

    def trace(self, frees: Sequence[int]) -> Trace:
        """The operations that reach the layout, then the deallocations of ``frees`` in this order."""
        for slot in frees:
            self._builder.free(slot)
        return self._builder.trace()


def walk(guest: GuestHeap) -> tuple[Block, ...]:
    """The chunks of the guest's heap in address order, the top chunk last."""
    blocks = []
    memory = guest.read(guest.heap.base_address, guest.heap.size_bytes)
    order = "little"
    at = 0
    while at < len(memory):
        head = int.from_bytes(memory[at + _WORD_BYTES : at + HEADER_BYTES], order)
        size = head & ~_FREE_HEAD_MASK
        blocks.append(Block(guest.heap.base_address + at, size, HEADER_BYTES, not head & _USED))
        at += size
    return tuple(blocks)
