"""CAMA's cache sets, size classes and heap, in plain Python: what the scenarios of CAMA compute with.

Written from H11 §IV and kept equal to ``allocators/cama/cama.c`` by the tests and by the state proof of every run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from wcet_probe.model.scenario import Block, Operation, OperationKind, Trace
from wcet_probe.scenarios.families import GuestHeap

MAXIMUM_HEAP_BYTES = 1 << 28
_FREE_BIT = 1
_SMALL_BIT, _SMALL_FREE_BIT, _SMALL_CLASS_SHIFT = 1, 2, 2
_LEAST_AREA_DESCRIPTORS = 4
_GROWTH_DESCRIPTORS = 2
_CONTROL_FIELDS = ("arena", "end", "top", "spare", "fresh", "available", "newest", "oldest")
_DESCRIPTOR_WORDS = 6


@dataclass(frozen=True, slots=True)
class Geometry:
    """Cache sets and size classes of a build; sizes in bytes, those of blocks with the word before them.

    Attributes:
        sets, line_bytes: the data cache.
        first_set, reserved_sets: where descriptors and static data lie.
        rows, columns: SL and TL.
        word_bytes: 4, or 8 on 64-bit hosts.
    """

    sets: int
    line_bytes: int
    first_set: int
    reserved_sets: int
    rows: int
    columns: int
    word_bytes: int = 4

    @classmethod
    def of_values(cls, values: Mapping[str, int], word_bytes: int = 4) -> Geometry:
        """The geometry that build parameters choose."""
        names = ("cache-sets", "line-bytes", "descriptor-first-set", "descriptor-sets", "sl", "tl")
        sets, line_bytes, first_set, reserved_sets, rows, columns = (values[name] for name in names)
        return cls(sets, line_bytes, first_set, reserved_sets, rows, columns, word_bytes)

    @property
    def alignment(self) -> int:
        """Of starts and sizes."""
        return 2 * self.word_bytes

    @property
    def minimum_block(self) -> int:
        """The least size: also that of the first class."""
        return 4 * self.word_bytes

    @property
    def descriptor_bytes(self) -> int:
        """What a descriptor takes of an area."""
        return 8 * self.word_bytes

    @property
    def threshold(self) -> int:
        """The least size of a block with a descriptor."""
        return self.sets // self.reserved_sets * self.descriptor_bytes

    @property
    def page_bytes(self) -> int:
        """One line of each set."""
        return self.sets * self.line_bytes

    @property
    def reserved_bytes(self) -> int:
        """Of a cache page."""
        return self.reserved_sets * self.line_bytes

    @property
    def classes(self) -> int:
        """Number of classes of a set."""
        return self.rows * self.columns

    @property
    def vector_words(self) -> int:
        """Words of a set's bit vector."""
        return -(-self.classes // 32)

    def set_of(self, address: int) -> int:
        """The cache set of an address."""
        return address // self.line_bytes % self.sets

    def class_of(self, size: int) -> int:
        """The class that holds blocks of this size."""
        row = size.bit_length() - 1
        width = max(1, (1 << row) // self.columns)
        column = (size - (1 << row)) // width
        return min((row - self.minimum_block.bit_length() + 1) * self.columns + column, self.classes - 1)

    def class_floor(self, number: int) -> int:
        """The least size of a class."""
        row = self.minimum_block << (number // self.columns)
        return row + row // self.columns * (number % self.columns)

    def block_size(self, size_bytes: int) -> int:
        """What a request takes of the heap."""
        size = max(_round_up(size_bytes + self.word_bytes, self.alignment), self.minimum_block)
        if size < self.threshold and size != self.class_floor(self.class_of(size)):
            return self.class_floor(self.class_of(size) + 1)
        return size

    def area_from(self, start: int) -> int:
        """Where the first descriptor area from ``start`` on begins."""
        begin = _round_up(start, self.descriptor_bytes)
        while not self._is_area(begin):
            begin += self.descriptor_bytes
        return begin

    def area_end(self, begin: int) -> int:
        """The end of the descriptor area that begins at ``begin``."""
        return begin - self._into_page(begin) + self.reserved_bytes

    def top_behind(self, begin: int) -> int:
        """The break behind the descriptor area that begins at ``begin``."""
        return self.area_end(begin) + self.alignment

    def start_in_set(self, start: int, cache_set: int) -> int:
        """The first start from ``start`` on that is in the set."""
        if self.set_of(start) == cache_set:
            return start
        return _round_up(start + 1 - cache_set * self.line_bytes, self.page_bytes) + cache_set * self.line_bytes

    def word_address(self, tables: int, plane: int, cache_set: int) -> int:
        """Where word ``plane`` of a set is in ``cama_tables``."""
        words = self.reserved_bytes // self.word_bytes
        page, word = divmod(plane * self.sets + cache_set, words)
        return tables + page * self.page_bytes + self.first_set * self.line_bytes + word * self.word_bytes

    def _into_page(self, address: int) -> int:
        return (address - self.first_set * self.line_bytes) % self.page_bytes

    def _is_area(self, begin: int) -> bool:
        return self._into_page(begin) + _LEAST_AREA_DESCRIPTORS * self.descriptor_bytes <= self.reserved_bytes


def _round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


@dataclass(slots=True, eq=False)
class Described:
    """A large block or a gap: what has a descriptor."""

    start: int
    size: int
    free: bool

    @property
    def end(self) -> int:
        """Start of what lies behind it."""
        return self.start + self.size


class Cama:
    """A heap of CAMA: what each operation answers and leaves behind.

    Attributes:
        geometry: the build's.
        top: the break.
        available: descriptors that are there and not in use.
        areas: where the descriptor areas begin.
        described: large blocks and gaps, in address order.
        small: sizes of small blocks, by start.
        lists: starts of free blocks by set and class, the head last.
    """

    def __init__(self, geometry: Geometry, heap_bytes: int, base: int = 0) -> None:
        self.geometry = geometry
        self.end = base + heap_bytes
        area = geometry.area_from(base)
        self.top = geometry.top_behind(area)
        self.available = 0
        self.areas: list[int] = []
        self.described: list[Described] = []
        self.small: dict[int, int] = {}
        self.lists: dict[tuple[int, int], list[int]] = {}
        self._add_area(area)
        self._skip(base + geometry.alignment, area)

    def malloc(self, size_bytes: int, cache_set: int) -> int | None:
        """Start of the new block, or None."""
        if not 0 < size_bytes <= MAXIMUM_HEAP_BYTES or cache_set >= self.geometry.sets:
            return None
        size = self.geometry.block_size(size_bytes)
        return self._malloc(size, cache_set, small=size < self.geometry.threshold)

    def free(self, start: int) -> None:
        """Give the block at ``start`` back."""
        if start in self.small:
            self._push(start, self.small[start])
            return
        at = next(i for i, d in enumerate(self.described) if d.start == start)
        block = self.described[at]
        block.free = True
        for other in (at + 1, at - 1):
            if 0 <= other < len(self.described) and self.described[other].free:
                left, right = self.described[min(at, other)], self.described[max(at, other)]
                if left.end == right.start:
                    self._drop(self.described[other])
                    left.size += right.size
                    self._forget(right)
                    block = left
        if block.end == self.top:
            self.top = block.start
            self._forget(block)
        else:
            self._list(block)

    def found(self, size: int, cache_set: int) -> int | None:
        """Start of the free block that serves a block size, or None if the heap must grow."""
        number = self.geometry.class_of(size)
        own = self.lists.get((cache_set, number))
        if own and (size < self.geometry.threshold or self._at(own[-1]).size >= size):
            return own[-1]
        for larger in range(number + 1, self.geometry.classes):
            if chosen := self.lists.get((cache_set, larger)):
                return chosen[-1]
        return None

    def _malloc(self, size: int, cache_set: int, *, small: bool) -> int | None:
        start = self.found(size, cache_set)
        if start in self.small:
            self._pull(start, self.small[start])
            return start
        if start is not None:
            self._cut(self._at(start), size, small=small)
        else:
            start = self._grow(size, cache_set)
            if start is not None and not small:
                self._describe(Described(start, size, free=False))
        if start is not None and small:
            self.small[start] = size
        return start

    def _cut(self, block: Described, size: int, *, small: bool) -> None:
        self._drop(block)
        rest = Described(block.start + size, block.size - size, free=True)
        if small:
            block.start, block.size = rest.start, rest.size
            self._list(block)
        elif rest.size >= self.geometry.threshold and self._can_describe():
            top = area = self.top
            if not self.available:
                area = self.geometry.area_from(top)
                self._add_area(area)
                self.top = self.geometry.top_behind(area)
            block.size, block.free = size, False
            self._describe(rest)
            self._list(rest)
            self._skip(top, area)
        else:
            block.free = False

    def _can_describe(self) -> bool:
        return self.available > 0 or self.geometry.top_behind(self.geometry.area_from(self.top)) <= self.end

    def _grow(self, size: int, cache_set: int) -> int | None:
        geometry, top, wanting = self.geometry, self.top, self.available < _GROWTH_DESCRIPTORS
        area = geometry.area_from(top)
        behind = geometry.top_behind(area) if wanting else top
        start = geometry.start_in_set(behind, cache_set)
        if start + size > self.end:
            return None
        if wanting:
            self._add_area(area)
            self._skip(top, area)
        self._skip(behind, start)
        self.top = start + size
        return start

    def _add_area(self, begin: int) -> None:
        self.areas.append(begin)
        self.available += (self.geometry.area_end(begin) - begin) // self.geometry.descriptor_bytes - 1

    def _skip(self, start: int, end: int) -> None:
        if start < end:
            gap = Described(start, end - start, free=True)
            self._describe(gap)
            self._list(gap)

    def _at(self, start: int) -> Described:
        return next(d for d in self.described if d.start == start)

    def _describe(self, block: Described) -> None:
        self.available -= 1
        self.described.append(block)
        self.described.sort(key=lambda d: d.start)

    def _forget(self, block: Described) -> None:
        self.available += 1
        self.described.remove(block)

    def _list(self, block: Described) -> None:
        if block.size >= self.geometry.threshold:
            self._push(block.start, block.size)

    def _drop(self, block: Described) -> None:
        if block.size >= self.geometry.threshold:
            self._pull(block.start, block.size)

    def _push(self, start: int, size: int) -> None:
        self.lists.setdefault((self.geometry.set_of(start), self.geometry.class_of(size)), []).append(start)

    def _pull(self, start: int, size: int) -> None:
        key = self.geometry.set_of(start), self.geometry.class_of(size)
        self.lists[key].remove(start)
        if not self.lists[key]:
            del self.lists[key]


@dataclass(slots=True)
class Layout:
    """A heap under construction: performs operations on the model and collects them as a trace.

    Addresses are offsets from the start of the heap, which starts a cache page on every target.
    """

    geometry: Geometry
    heap_bytes: int
    heap: Cama = field(init=False)
    _operations: list[Operation] = field(default_factory=list)
    _starts: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.heap = Cama(self.geometry, self.heap_bytes)

    def malloc(self, size: int, cache_set: int | None = None) -> int | None:
        """Allocate a block of ``size`` bytes with its word, at the break unless a set is named; its slot, or None."""
        if cache_set is None:
            cache_set = self.geometry.set_of(self.heap.top)
        request = size - self.geometry.word_bytes
        start = self.heap.malloc(request, cache_set)
        if start is None:
            return None
        self._starts.append(start)
        self._operations.append(Operation(OperationKind.MALLOC, len(self._starts) - 1, request, cache_set))
        return len(self._starts) - 1

    def free(self, slot: int) -> None:
        """Give the block of a slot back."""
        self.heap.free(self._starts[slot])
        self._operations.append(Operation(OperationKind.FREE, slot))

    def start(self, slot: int) -> int:
        """Start of the block of a slot."""
        return self._starts[slot]

    @property
    def operation_count(self) -> int:
        """How many operations there are so far."""
        return len(self._operations)

    def trace(self, count: int | None = None) -> Trace:
        """The first ``count`` operations, or all so far."""
        operations = self._operations[:count]
        return Trace(
            kinds=tuple(int(o.kind is OperationKind.FREE) for o in operations),
            slots=tuple(o.slot for o in operations),
            sizes_bytes=tuple(o.size_bytes for o in operations),
            cache_sets=tuple(o.cache_set for o in operations),
            slot_count=len(self._starts),
        )


# ----------------------------------------------------------------------------------------------------- the guest's heap


@dataclass(frozen=True, slots=True)
class Descriptor:
    """A descriptor of the guest; ``start`` is the block's, ``prev`` and ``next`` are its neighbours in its list."""

    address: int
    left: int
    right: int
    prev: int
    next: int
    start: int
    size_and_free: int

    @property
    def size(self) -> int:
        """Size of the block."""
        return self.size_and_free & ~_FREE_BIT

    @property
    def free(self) -> bool:
        """Whether the block is free."""
        return bool(self.size_and_free & _FREE_BIT)


class Guest:
    """A guest's heap, read from its control structure, tables and descriptors."""

    def __init__(self, guest: GuestHeap) -> None:
        self.geometry = Geometry.of_values(guest.values)
        self._guest = guest
        at = guest.symbols["cama_control"] + self.geometry.first_set * self.geometry.line_bytes
        self.control = {name: guest.read_word(at + 4 * i) for i, name in enumerate(_CONTROL_FIELDS)}
        self._sentinel = _round_up(at + 4 * len(_CONTROL_FIELDS), self.geometry.descriptor_bytes)

    def descriptor(self, address: int) -> Descriptor:
        """The descriptor at an address."""
        return Descriptor(address, *(self._guest.read_word(address + 4 * i) for i in range(_DESCRIPTOR_WORDS)))

    def chain(self) -> Iterator[Descriptor]:
        """Descriptors in use, in address order of their blocks."""
        descriptor = self.descriptor(self.descriptor(self._sentinel).right)
        while descriptor.address != self._sentinel:
            yield descriptor
            descriptor = self.descriptor(descriptor.right)

    def areas(self) -> Iterator[int]:
        """Where the descriptor areas begin, in address order."""
        area = self.control["oldest"]
        while area:
            yield area
            area = self._guest.read_word(area)

    def head(self, cache_set: int, number: int) -> int:
        """The head of a list: a descriptor, or the word before a small block; 0 if the list is empty."""
        plane = self.geometry.vector_words + number
        return self._guest.read_word(self.geometry.word_address(self._guest.symbols["cama_tables"], plane, cache_set))

    def large_list(self, cache_set: int, number: int) -> list[Descriptor]:
        """The blocks of a list of large ones."""
        found, address = list[Descriptor](), self.head(cache_set, number)
        while address:
            found.append(self.descriptor(address))
            address = found[-1].next
        return found

    def small_list(self, cache_set: int, number: int) -> list[int]:
        """Starts of the blocks of a list of small ones."""
        found, address = list[int](), self.head(cache_set, number)
        while address:
            found.append(address + self.geometry.word_bytes)
            address = self._guest.read_word(found[-1])
        return found

    def lists_of(self, cache_set: int) -> int:
        """The bit vector of a set."""
        tables = self._guest.symbols["cama_tables"]
        return sum(
            self._guest.read_word(self.geometry.word_address(tables, word, cache_set)) << 32 * word
            for word in range(self.geometry.vector_words)
        )

    def blocks(self) -> Iterator[Block]:
        """Blocks, gaps and descriptor areas, in address order; an area is all header."""
        word = self.geometry.word_bytes
        areas, chain = list(self.areas())[::-1], list(self.chain())[::-1]
        start = self.control["arena"] + self.geometry.alignment
        while start < self.control["top"]:
            if areas and areas[-1] <= start:
                begin = areas.pop()
                size = self.geometry.area_end(begin) - begin
                yield Block(begin, size, size, free=False)
                start = self.geometry.top_behind(begin)
                continue
            if chain and chain[-1].start == start:
                descriptor = chain.pop()
                size, free = descriptor.size, descriptor.free
            else:
                tag = self._guest.read_word(start - word)
                size = self.geometry.class_floor(tag >> _SMALL_CLASS_SHIFT)
                free = bool(tag & _SMALL_FREE_BIT)
            yield Block(start - word, size, word, free)
            start += size


def walk(guest: GuestHeap) -> tuple[Block, ...]:
    """Blocks, gaps and descriptor areas of a guest's heap, in address order."""
    return tuple(Guest(guest).blocks())
