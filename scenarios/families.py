"""What a family of scenarios offers to the probe, and what it may see of the guest."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import wraps
from itertools import accumulate, chain, repeat

from wcet_probe.errors import HeapTooSmallError, StateError
from wcet_probe.model.allocator import Allocator
from wcet_probe.model.scenario import Block, ScenarioPlan
from wcet_probe.model.target import MemoryRange


class Extreme(StrEnum):
    """Which of a scenario's candidate states is the answer."""

    MOST_CYCLES = "most cycles"
    FEWEST_CYCLES = "fewest cycles"


def extreme_of(scenario: str) -> Extreme:
    """Which candidate answers ``scenario``: the cheapest one where the best is asked for, else the dearest."""
    return Extreme.FEWEST_CYCLES if scenario.startswith("best-") else Extreme.MOST_CYCLES


@dataclass(frozen=True, slots=True)
class HeapRequest:
    """For which heap a scenario is built.

    Attributes:
        allocator: with its parameter values.
        heap_bytes: size of the heap.
        data_line_bytes: line size of the D-cache, None without one: states may differ in how blocks lie across lines.
        seed: seed of a random workload.
    """

    allocator: Allocator
    heap_bytes: int
    data_line_bytes: int | None
    seed: int


Builder = Callable[[HeapRequest], tuple[ScenarioPlan, ...]]
"""Builds the candidate plans of a scenario for a heap."""

_WORD_BYTES = 4
_BLOCKS_IN_SINGLE_FILE = 64
"""How many are walked one by one before a row of them is looked for."""
_LARGEST_HEAP_BYTES = 1 << 28
_VERIFIED_STEPS = 16
"""Heaps above the one that is named which are tried too: what is left behind the last block may fit in no other way."""


def naming_a_heap_that_works(builder: Builder) -> Builder:
    """``builder``, whose refusal of a heap names the least larger one from which on none is refused."""

    @wraps(builder)
    def build(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
        try:
            return builder(request)
        except HeapTooSmallError as error:
            least = _least_heap(builder, request)
            message = (
                f"a heap of {request.heap_bytes} bytes is too small for the scenario's state on "
                f"{request.allocator.name}; "
                + (f"give at least {least} with --heap." if least else "no heap up to 256 MiB holds it.")
            )
            raise HeapTooSmallError(message) from error

    return build


def _least_heap(builder: Builder, request: HeapRequest) -> int | None:
    """Bisects between the refused heap and a larger one, then goes on until a row of heaps is accepted."""
    step = request.allocator.alignment_bytes

    def works(steps: int) -> bool:
        try:
            builder(replace(request, heap_bytes=steps * step))
        except HeapTooSmallError:
            return False
        return True

    refused = request.heap_bytes // step
    accepted = 2 * refused + 1
    while not works(accepted):
        refused, accepted = accepted, 2 * accepted
        if accepted * step > _LARGEST_HEAP_BYTES:
            return None
    while accepted - refused > 1:
        middle = (refused + accepted) // 2
        refused, accepted = (refused, middle) if works(middle) else (middle, accepted)
    tried = accepted
    while tried < accepted + _VERIFIED_STEPS:
        tried += 1
        accepted = accepted if works(tried) else tried + 1
    return accepted * step


@dataclass(frozen=True, slots=True)
class GuestHeap:
    """A guest's heap as a scenario reads it to prove its state.

    Attributes:
        read: bytes at an address: many at once are faster than word by word.
        read_word: the 32-bit word at an address, in the guest's byte order.
        slot: the address that a block of the trace was allocated at, by slot.
        symbols: addresses of the image's symbols.
        heap: the arena.
        values: build parameters of the allocator.
        alignment_bytes: alignment of the blocks.
    """

    read: Callable[[int, int], bytes]
    read_word: Callable[[int], int]
    slot: Callable[[int], int]
    symbols: Mapping[str, int]
    heap: MemoryRange
    values: Mapping[str, int]
    alignment_bytes: int = 1


@dataclass(frozen=True, slots=True)
class Blocks:
    """Blocks of a heap in address order, as columns: millions of them would be slow as objects.

    Attributes:
        addresses: of the headers.
        sizes_bytes: of header and payload.
        header_bytes: of every header.
        free: 1 for a free block, 0 for one in use.
    """

    addresses: array[int]
    sizes_bytes: array[int]
    header_bytes: int
    free: bytes

    def __len__(self) -> int:
        return len(self.addresses)

    def __iter__(self) -> Iterator[Block]:
        return map(Block, self.addresses, self.sizes_bytes, repeat(self.header_bytes), map(bool, self.free))

    @property
    def free_blocks(self) -> int:
        """How many blocks are free."""
        return self.free.count(1)

    @property
    def used_blocks(self) -> int:
        """How many blocks are in use."""
        return self.free.count(0)


def header_words(blocks: Iterable[Block]) -> Iterator[int]:
    """Addresses of all words of the headers of ``blocks``, in any order."""
    if isinstance(blocks, Blocks):
        offsets = range(0, blocks.header_bytes, _WORD_BYTES)
        return chain.from_iterable(map(offset.__add__, blocks.addresses) for offset in offsets)
    extents = ((block.address & ~3, block.address + block.header_bytes) for block in blocks)
    return chain.from_iterable(range(*extent, _WORD_BYTES) for extent in extents)


def chained_blocks(
    words: array[int],
    base_address: int,
    extent: MemoryRange,
    *,
    header_bytes: int,
    flags: int,
    free: Container[int],
) -> Blocks:
    """Blocks that fill ``extent``, each of which follows the other by the size in its first word, the tag.

    Parameters:
        words: the heap's words.
        base_address: of the first word.
        extent: from the first block to the end of the last.
        header_bytes: of every block.
        flags: bits of a tag that are not of its size in bytes, all of them among the lowest eight.
        free: values of the flags that tell of a free block.

    Raises:
        StateError: the sizes do not lead to the end of ``extent``.
    """
    first, end = ((address - base_address) // _WORD_BYTES for address in (extent.base_address, extent.end_address))
    tags = _chained_tags(words, first, end, ~flags)
    sizes = array("I", [tag & ~flags for tag in tags])
    if sum(sizes) != extent.size_bytes:
        message = (
            f"the block at {extent.base_address + sum(sizes[:-1]):#010x} has a damaged size, {sizes[-1]} bytes; "
            "report this with the command line."
        )
        raise StateError(message)
    addresses = array("I", accumulate(sizes, initial=extent.base_address))[:-1]
    is_free = bytes(byte & flags in free for byte in range(256))
    lowest_bytes = tags.tobytes()[0 if sys.byteorder == "little" else _WORD_BYTES - 1 :: _WORD_BYTES]
    return Blocks(addresses, sizes, header_bytes, lowest_bytes.translate(is_free))


def _chained_tags(words: array[int], at: int, end: int, size_mask: int) -> array[int]:
    """The tags at word ``at`` and behind, below ``end``; the last one may be damaged.

    The worst heaps hold long rows of blocks of one size, or of two by turns: these are taken many at once.
    """
    tags, beyond = array("I"), len(words)
    add = tags.append
    while at < end:
        for _ in range(_BLOCKS_IN_SINGLE_FILE):
            tag = words[at]
            add(tag)
            at += (tag & size_mask) >> 2 or beyond
            if at >= end:
                return tags
        at = _add_alternating(tags, words, at, end, size_mask)
    return tags


def _add_alternating(tags: array[int], words: array[int], at: int, end: int, size_mask: int) -> int:
    """Add tags from word ``at`` on as long as the last two sizes alternate; where the next tag is."""
    sizes = [tag & size_mask for tag in tags[-2:]]
    ahead = sum(sizes) // _WORD_BYTES
    pairs = _BLOCKS_IN_SINGLE_FILE
    while pairs := min(pairs, (end - at) // ahead):
        row = array("I", bytes(2 * _WORD_BYTES * pairs))
        row[::2] = words[at : at + ahead * pairs : ahead]
        second = at + sizes[0] // _WORD_BYTES
        row[1::2] = words[second : second + ahead * pairs : ahead]
        if any({tag & size_mask for tag in set(row[i::2])} != {sizes[i]} for i in (0, 1)):
            break
        tags.extend(row)
        at += ahead * pairs
        pairs *= 2
    return at


@dataclass(frozen=True, slots=True)
class Family:
    """The scenarios of one allocator.

    Attributes:
        builders: candidate plans of a heap, by scenario name; at least one each.
        walk: the blocks of a heap, in address order.
        state: facts of a guest's heap with the names that the predictions use; given the plan that is to be proved.
    """

    builders: Mapping[str, Builder]
    walk: Callable[[GuestHeap], Iterable[Block]]
    state: Callable[[GuestHeap, ScenarioPlan], Mapping[str, int | str]]
