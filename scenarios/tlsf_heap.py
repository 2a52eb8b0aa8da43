"""TLSF's size classes and heap layout, in plain Python: what the scenarios of TLSF compute with.

Written from C06 §3, and kept equal to ``allocators/tlsf/tlsf.c`` by the state proof of every run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from wcet_probe.errors import HeapTooSmallError
from wcet_probe.model.scenario import Block, Trace
from wcet_probe.scenarios.families import GuestHeap
from wcet_probe.scenarios.traces import TraceBuilder

ALIGNMENT_BYTES = 8
HEADER_BYTES = 8
MINIMUM_BLOCK_BYTES = 16
_ALIGNMENT_BITS = 3
_HEAP_BITS = 28
_FREE_BIT, _FLAGS = 1, 3
_WORD_BYTES = 4


@dataclass(frozen=True, slots=True)
class Classes:
    """The two-level mapping from sizes to classes; sizes are payloads in bytes.

    Attributes:
        sl_bits: second-level bits.
        asked_limit: least size that is rounded to a class; 0: such that the first row has a class for each size below.
    """

    sl_bits: int
    asked_limit: int = 0

    @classmethod
    def of_values(cls, values: Mapping[str, int]) -> Classes:
        """Those of a build."""
        return cls(values["sl-bits"], values.get("small-limit", 0))

    @property
    def small_limit(self) -> int:
        """Least size that is rounded to a class: sizes below it have a class each."""
        return self.asked_limit or 1 << (self.sl_bits + _ALIGNMENT_BITS)

    @property
    def row_count(self) -> int:
        """Number of first-level rows."""
        return _HEAP_BITS - self.small_limit.bit_length() + 2

    def row_start(self, row: int) -> int:
        """Least size of the row ``row`` ≥ 1."""
        return self.small_limit << (row - 1)

    def width(self, size: int) -> int:
        """How far apart the sizes of blocks are of which one is the lower end of the class that holds ``size``."""
        if size < self.small_limit:
            return ALIGNMENT_BYTES
        return max(ALIGNMENT_BYTES, 1 << (size.bit_length() - 1 - self.sl_bits))

    def of(self, size: int) -> tuple[int, int]:
        """First-level and second-level index of the list that holds ``size``."""
        if size < self.small_limit:
            return 0, (size << self.sl_bits) // self.small_limit
        row = size.bit_length() - self.small_limit.bit_length() + 1
        return row, (size - self.row_start(row)) * (1 << self.sl_bits) // self.row_start(row)

    def floor(self, size: int) -> int:
        """Lower end of the class of ``size``."""
        return size // self.width(size) * self.width(size)


@dataclass(slots=True)
class Layout:
    """Cuts a virgin heap into used and free blocks of exact sizes, from low addresses to high ones.

    A request is rounded up to a class, so an exact size is composed of blocks whose sizes are lower ends of classes;
    pieces that lie side by side merge again when they are freed.

    Attributes:
        classes: the size classes.
        heap_bytes: size of the heap.
        position_bytes: offset of the next block from the start of the heap.
    """

    classes: Classes
    heap_bytes: int
    position_bytes: int = 0
    _builder: TraceBuilder = field(default_factory=TraceBuilder)
    _to_free: list[int] = field(default_factory=list)

    @property
    def room_bytes(self) -> int:
        """Bytes that are not laid out yet, headers included."""
        return self.heap_bytes - HEADER_BYTES - self.position_bytes

    def used(self, size: int) -> int:
        """One used block of ``size`` bytes, the lower end of a class; its slot."""
        self._take(HEADER_BYTES + size)
        return self._builder.malloc(size)

    def fence(self, total_bytes: int = MINIMUM_BLOCK_BYTES) -> None:
        """Used blocks of ``total_bytes`` together, headers included; they keep what lies around them apart."""
        for size in self._pieces(total_bytes):
            self.used(size)

    def free(self, size: int) -> None:
        """A block of ``size`` bytes that will be free."""
        self._to_free.extend([self.used(piece) for piece in self._pieces(HEADER_BYTES + size)])

    def fence_until(self, remainder_bytes: int, modulus_bytes: int) -> None:
        """Fences until the offset of the next block is ``remainder_bytes`` modulo ``modulus_bytes``."""
        gap = (remainder_bytes - self.position_bytes) % modulus_bytes
        if gap:
            self.fence(gap if gap >= MINIMUM_BLOCK_BYTES else gap + modulus_bytes)

    def trace(self) -> Trace:
        """The operations that reach the layout; what is not laid out is one free block at the end."""
        for slot in self._to_free:
            self._builder.free(slot)
        self._to_free.clear()
        return self._builder.trace()

    def _take(self, total_bytes: int) -> None:
        left = self.room_bytes - total_bytes
        if left < 0 or 0 < left < MINIMUM_BLOCK_BYTES:
            message = f"a heap of {self.heap_bytes} bytes is too small for the layout; give a larger --heap."
            raise HeapTooSmallError(message)
        self.position_bytes += total_bytes

    def _pieces(self, total_bytes: int) -> Iterator[int]:
        """Lower ends of classes whose blocks fill ``total_bytes`` exactly; no rest is too small for a block."""
        while total_bytes:
            size = self.classes.floor(total_bytes - HEADER_BYTES)
            if total_bytes - HEADER_BYTES - size == ALIGNMENT_BYTES:
                size = self.classes.floor(size - ALIGNMENT_BYTES)
            yield size
            total_bytes -= HEADER_BYTES + size


def walk(guest: GuestHeap) -> tuple[Block, ...]:
    """The blocks of the guest's heap in address order, the sentinel left out."""
    blocks = []
    address, behind = guest.heap.base_address, guest.heap.end_address - HEADER_BYTES
    while address < behind:
        size_and_free = guest.read_word(address + _WORD_BYTES)
        size = size_and_free & ~_FLAGS
        blocks.append(Block(address, HEADER_BYTES + size, HEADER_BYTES, bool(size_and_free & _FREE_BIT)))
        address += HEADER_BYTES + size
    return tuple(blocks)


def lists(guest: GuestHeap) -> dict[tuple[int, int], int]:
    """Length of every list that is not empty, by class; read from bitmaps and heads of the control structure."""
    classes = Classes.of_values(guest.values)
    control = guest.symbols["tlsf_control"]
    fl_bitmap_at, sl_bitmap_at = control + 2 * _WORD_BYTES, control + 3 * _WORD_BYTES
    heads_at = sl_bitmap_at + _WORD_BYTES * classes.row_count
    lengths = {}
    for row in _bits(guest.read_word(fl_bitmap_at)):
        for column in _bits(guest.read_word(sl_bitmap_at + _WORD_BYTES * row)):
            block = guest.read_word(heads_at + _WORD_BYTES * ((row << classes.sl_bits) + column))
            length = 0
            while block:
                length += 1
                block = guest.read_word(block + HEADER_BYTES)
            lengths[row, column] = length
    return lengths


def _bits(word: int) -> Iterator[int]:
    while word:
        yield (word & -word).bit_length() - 1
        word &= word - 1
