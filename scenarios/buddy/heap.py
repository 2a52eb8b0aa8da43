"""What the scenarios of both buddy systems compute with: classes, roots, ways to carve a heap, facts of a guest's heap.

A buddy system knows sizes by class; a block of class k splits into a left child of class k - 1 and a right child of
class k - ``step``. A heap that is no single block is cut into *roots*, largest first.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Literal

from wcet_probe.errors import HeapTooSmallError
from wcet_probe.model.scenario import Block, Trace
from wcet_probe.scenarios.families import GuestHeap
from wcet_probe.scenarios.traces import TraceBuilder

_LEAST_BLOCKS = 64
_FREE_BIT = 1
_WORD_BYTES = 4
_HEADS_AT = 4 * _WORD_BYTES
_LINKS = 1, 2
"""Words of a free block: on and back in its list."""
_PIECE_BYTES = 1 << 12


class Buddies(ABC):
    """A buddy system with its build parameters: the same rules as its C, kept equal by the state proof of every run."""

    control: str
    step: int
    tag_shift: int
    least_requests: tuple[int, ...]
    """Classes of the requests that may cost most."""
    merges_form: str
    """Merges from the deepest leaf to the largest root, as a closed form in words; ``{drop}`` stands for fewer ones."""
    leaf_first: bool
    """Whether a request for the least block of a free block is served by its left-most, deepest leaf."""

    def __init__(self, values: Mapping[str, int]) -> None:
        self.minimum_bytes = values["minimum-block"]
        self.header_bytes = values["alignment"]

    @abstractmethod
    def size(self, class_: int) -> int:
        """Bytes of a block, header included."""

    @abstractmethod
    def splits(self, found: int, wanted: int) -> int:
        """How often malloc splits a block of class ``found`` for a request of class ``wanted``."""

    @abstractmethod
    def splits_form(self, wanted: int) -> str:
        """The same for the largest root, as a closed form in words."""

    @abstractmethod
    def buddy(self, offset: int, tag: int) -> tuple[int, int]:
        """Offset and class of the buddy of a block; a root's is where no free block of that class can be."""

    @abstractmethod
    def parent(self, tag: int, buddy_tag: int) -> int:
        """Tag of the block that a used block and its free buddy merge into."""

    def class_of(self, size_bytes: int) -> int:
        """The class that a request is rounded up to."""
        class_ = 0
        while self.size(class_) < size_bytes + self.header_bytes:
            class_ += 1
        return class_

    def payload(self, class_: int) -> int:
        """The largest request of a class."""
        return self.size(class_) - self.header_bytes

    def roots(self, heap_bytes: int) -> tuple[int, ...]:
        """Classes of the roots of a heap, largest first.

        Raises:
            HeapTooSmallError: the heap is too small for any scenario.
        """
        least = _LEAST_BLOCKS * self.minimum_bytes
        if heap_bytes < least:
            message = f"a heap of {heap_bytes} bytes is too small for the scenario; give at least {least} with --heap."
            raise HeapTooSmallError(message)
        classes = []
        while heap_bytes >= self.minimum_bytes:
            classes.append(self.largest(heap_bytes))
            heap_bytes -= self.size(classes[-1])
        return tuple(classes)

    def largest(self, bytes_: int) -> int:
        """The class of the largest block that some memory holds."""
        class_ = 1 if self.size(1) <= bytes_ else 0
        while self.size(class_ + 1) <= bytes_:
            class_ += 1
        return class_


@dataclass(frozen=True, slots=True)
class Region:
    """A whole block of a class, in use, at an offset from the heap's start."""

    class_: int
    slot: int
    offset: int


@dataclass(frozen=True, slots=True)
class Spine:
    """A region split down to a leaf: slots of the leaf and, by class, of the other child of every split."""

    leaf: int
    parts: tuple[int, ...]


@dataclass(slots=True)
class Carving:
    """Carves a fresh heap.

    All roots are allocated first: what is freed is then the only free block, and it is known what malloc does with it.
    """

    buddies: Buddies
    heap_bytes: int
    builder: TraceBuilder = field(default_factory=TraceBuilder)
    roots: list[Region] = field(default_factory=list)

    def __post_init__(self) -> None:
        classes = self.buddies.roots(self.heap_bytes)
        ends = tuple(accumulate(self.buddies.size(c) for c in classes))
        smallest_first = zip(reversed(classes), reversed((0, *ends[:-1])), strict=True)
        self.roots = [Region(c, self._used(c), offset) for c, offset in smallest_first][::-1]

    def split(self, region: Region) -> tuple[Region, Region]:
        """The children of a region, both in use; a Fibonacci one is of class 3 at least."""
        self.builder.free(region.slot)
        left, right = region.class_ - 1, region.class_ - self.buddies.step
        middle = region.offset + self.buddies.size(left)
        return Region(left, self._used(left), region.offset), Region(right, self._used(right), middle)

    def spine(self, region: Region, *, leaf_first: bool | None = None, turn: int | None = None) -> Spine:
        """Splits a region down its left children (binary with the leaf last: its right ones); all are in use.

        In the binary system the part of class ``turn`` is then the other child of its split, if there is one.
        """
        self.builder.free(region.slot)
        classes = range(region.class_ - self.buddies.step + 1)
        if turn is not None and turn in classes:
            return self._turned(classes, turn, leaf_first=bool(leaf_first))
        if self.buddies.leaf_first if leaf_first is None else leaf_first:
            leaf = self._used(0)
            return Spine(leaf, tuple([self._used(c) for c in classes]))
        parts = [self._used(c) for c in reversed(classes)]
        return Spine(self._used(0), tuple(reversed(parts)))

    def _turned(self, classes: range, turn: int, *, leaf_first: bool) -> Spine:
        """A block that is allocated before what else its parent holds is its left child, and one after it the right."""
        if leaf_first:
            ahead = self._used(turn)
            leaf = self._used(0)
            return Spine(leaf, tuple([ahead if c == turn else self._used(c) for c in classes]))
        parts = {c: self._used(c) for c in reversed(classes) if c != turn}
        leaf = self._used(0)
        return Spine(leaf, tuple(parts[c] if c in parts else self._used(c) for c in classes))

    def free(self, *slots: int) -> None:
        """Frees blocks, in this order."""
        for slot in slots:
            self.builder.free(slot)

    def two_chains(self, regions: list[Region]) -> tuple[list[Spine], list[Region]]:
        """Spines in the two largest regions, or in the children of the largest: whichever are longer together.

        Longest first. Fewer than two if there are not as many regions. And the regions that are left.
        """
        regions = sorted([r for r in regions if r.class_ >= 3], key=lambda r: -r.class_)
        if not regions:
            return [], []
        second = regions[1].class_ if len(regions) > 1 else 0
        if regions[0].class_ + second < 2 * regions[0].class_ - 1 - self.buddies.step:
            regions[:1] = self.split(regions[0])
        return [self.spine(region) for region in regions[:2]], regions[2:]

    def place(self, regions: list[Region], class_: int, residue: int, modulus: int) -> int | None:
        """The slot of a block of ``class_`` at ``residue`` modulo ``modulus``, split off one of ``regions``, if any.

        What remains of the region is among them then, but for the block's buddy: the two would merge.
        """
        for region in regions:
            path = self._path(region.class_, region.offset, class_, residue, modulus)
            if path:
                regions.remove(region)
                return self._follow(path, region, regions).slot
        return None

    def _follow(self, path: tuple[bool, ...], region: Region, others: list[Region]) -> Region:
        """Splits a region down a path; ``others`` gets what is beside the path, but for the block's buddy."""
        for number, goes_right in enumerate(path, 1):
            children = self.split(region)
            region, other = children[goes_right], children[not goes_right]
            if number < len(path):
                others.append(other)
        return region

    def _path(self, from_: int, offset: int, class_: int, residue: int, modulus: int) -> tuple[bool, ...] | None:
        """The way down from a block of class ``from_``, for each split whether it goes to the right child."""
        if from_ == class_:
            return () if offset % modulus == residue else None
        if from_ <= class_ or from_ < 2 * self.buddies.step - 1:  # as `split` demands
            return None
        middle = offset + self.buddies.size(from_ - 1)
        for goes_right, child, start in ((False, from_ - 1, offset), (True, from_ - self.buddies.step, middle)):
            rest = self._path(child, start, class_, residue, modulus)
            if rest is not None:
                return (goes_right, *rest)
        return None

    def trace(self) -> Trace:
        """All operations so far."""
        return self.builder.trace()

    def _used(self, class_: int) -> int:
        return self.builder.malloc(self.buddies.payload(class_))


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A guest's heap, read in pieces when they are needed: of a large heap a few headers are."""

    buddies: Buddies
    guest: GuestHeap
    base_address: int
    bytes_: int
    heads: tuple[int, ...]
    byte_order: Literal["little", "big"]
    pieces: dict[int, bytes] = field(default_factory=dict)

    @classmethod
    def of(cls, buddies: Buddies, guest: GuestHeap) -> Snapshot:
        """Reads the control structure."""
        control = guest.symbols[buddies.control]
        base, size = (guest.read_word(control + _WORD_BYTES * i) for i in range(2))
        little = int.from_bytes(guest.read(control, _WORD_BYTES), "little") == base
        lists = range(buddies.largest(size) + 1)
        heads = tuple(guest.read_word(control + _HEADS_AT + _WORD_BYTES * i) for i in lists)
        return cls(buddies, guest, base, size, heads, "little" if little else "big")

    def word(self, offset: int) -> int:
        """A word of the heap."""
        start, within = offset - offset % _PIECE_BYTES, offset % _PIECE_BYTES
        if start not in self.pieces:
            size = min(_PIECE_BYTES, self.bytes_ - start)
            self.pieces[start] = self.guest.read(self.base_address + start, size)
        return int.from_bytes(self.pieces[start][within : within + _WORD_BYTES], self.byte_order)

    def blocks(self) -> Iterator[tuple[int, int, bool]]:
        """Offset, class and freedom of every block, by address."""
        offset = 0
        while offset < self.bytes_:
            tag = self.word(offset)
            yield offset, tag >> self.buddies.tag_shift, bool(tag & _FREE_BIT)
            offset += self.buddies.size(tag >> self.buddies.tag_shift)

    def search(self, wanted: int) -> tuple[int, int | None]:
        """How many lists malloc looks at for a request of class ``wanted``, and the class it finds."""
        for class_ in range(wanted, len(self.heads)):
            if self.heads[class_]:
                return class_ - wanted + 1, class_
        return len(self.heads) - wanted, None

    def merges(self, offset: int) -> list[int]:
        """For every merge that freeing a block makes: how many blocks then stand beside the buddy in its list."""
        tag, neighbours, gone = self.word(offset), list[int](), set[int]()
        while True:
            buddy, class_ = self.buddies.buddy(offset, tag)
            if buddy >= self.bytes_:
                return neighbours
            buddy_tag = self.word(buddy)
            if buddy_tag >> self.buddies.tag_shift != class_ or not buddy_tag & _FREE_BIT:
                return neighbours
            neighbours.append(sum(self._has_neighbour(buddy, link, gone) for link in _LINKS))
            gone.add(self.base_address + buddy)
            tag = self.buddies.parent(tag, buddy_tag & ~_FREE_BIT)
            offset = min(offset, buddy)

    def _has_neighbour(self, offset: int, link: int, gone: set[int]) -> bool:
        """Whether the list goes on from a block, over blocks that have left it."""
        address = self.word(offset + _WORD_BYTES * link)
        while address in gone:
            address = self.word(address - self.base_address + _WORD_BYTES * link)
        return address != 0


def walk(buddies: Buddies, guest: GuestHeap) -> tuple[Block, ...]:
    """The blocks of the guest's heap in address order."""
    snapshot = Snapshot.of(buddies, guest)
    return tuple(
        Block(snapshot.base_address + offset, buddies.size(class_), buddies.header_bytes, free)
        for offset, class_, free in snapshot.blocks()
    )
