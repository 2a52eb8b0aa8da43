"""The heap of dlmalloc28 in plain Python: sizes, bits of tries, how to lay chunks out, and how to read them back.

Kept equal to ``allocators/dlmalloc28/dlmalloc28.c`` by the state proof of every run. ``size`` means a whole chunk.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from wcet_probe.errors import HeapTooSmallError
from wcet_probe.model.scenario import Block, Trace
from wcet_probe.scenarios.families import GuestHeap
from wcet_probe.scenarios.traces import TraceBuilder

UNIT_BYTES = 8
HEADER_BYTES = 8
OVERHEAD_BYTES = 4
MINIMUM_BYTES = 16
SMALL_LIMIT_BYTES = 256
FLAGS = 7
_FIRST_EXPONENT = 8
_LAST_TRIE = 31
_USED = 2
_WORD_BYTES = 4
_WINDOW_BYTES = 4096
_TREE_MAP_AT = 24
_TREE_BINS_AT = 32 + 32 * 8


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

    @property
    def above(self) -> Trie:
        """The next trie."""
        return Trie(self.exponent, 1) if self.half == 0 else Trie(self.exponent + 1, 0)

    def path(self, units: int, levels: Sequence[int], allowed: range, taken: Sequence[int] = ()) -> list[int] | None:
        """Distinct sizes, in units above the least one, for nodes below one another.

        The node of level l shares its first l bits with ``units``. Sizes are drawn from ``allowed``, small ones first,
        but for those ``taken``; the deepest node has the least choice and goes first. None if there are not enough.
        """
        found, used = list[int](), set(taken)
        for level in reversed(levels):
            width = 1 << (self.levels - level)
            start = units // width * width
            choice = range(max(start, allowed.start), min(start + width, allowed.stop))
            one = next((size for size in choice if size not in used), None)
            if one is None:
                return None
            used.add(one)
            found.append(one)
        return found[::-1]

    def placed(self, places: Sequence[tuple[int, int]]) -> list[int] | None:
        """Distinct sizes in bytes, small ones first, for nodes of a level and units: as above, of several paths."""
        found = dict[int, int]()
        for number in sorted(range(len(places)), key=lambda number: -places[number][0]):
            level, units = places[number]
            taken = tuple(found.values())
            one = self.path(units, (level,), range(1 << self.levels), taken) if level <= self.levels else None
            if one is None:
                return None
            found[number] = one[0]
        return [self.size(found[number]) for number in range(len(places))]

    def size(self, units: int) -> int:
        """The size that is ``units`` above the least one."""
        return self.least + UNIT_BYTES * units

    def units(self, size: int) -> int:
        """How far ``size`` is above the least one."""
        return (size - self.least) // UNIT_BYTES


def trie_at(size: int) -> Trie:
    """The trie that holds ``size``."""
    exponent = size.bit_length() - 1
    return Trie(exponent, size >> (exponent - 1) & 1)


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
            raise HeapTooSmallError(message)
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
    blocks, order = [], order_of(guest)
    at, start, window = 0, 0, b""
    while at < guest.heap.size_bytes:
        if at + HEADER_BYTES > start + len(window):
            start = at
            window = guest.read(guest.heap.base_address + at, min(_WINDOW_BYTES, guest.heap.size_bytes - at))
        head = int.from_bytes(window[at - start + _WORD_BYTES : at - start + HEADER_BYTES], order)
        size = head & ~FLAGS
        blocks.append(Block(guest.heap.base_address + at, size, HEADER_BYTES, not head & _USED))
        at += size
    return tuple(blocks)


def order_of(guest: GuestHeap) -> Literal["little", "big"]:
    """The guest's byte order, which the first head shows: no heap of 2^28 bytes has a size with that many bits."""
    head = guest.read(guest.heap.base_address + _WORD_BYTES, _WORD_BYTES)
    return "big" if int.from_bytes(head, "big") == guest.read_word(guest.heap.base_address + _WORD_BYTES) else "little"


@dataclass(frozen=True, slots=True)
class Node:
    """A free chunk in a trie as the guest's memory has it; 0: no child, no parent."""

    address: int
    size: int
    children: tuple[int, int]
    ring_next: int


@dataclass(frozen=True, slots=True)
class Tries:
    """The tries of a guest's heap, and the walks that malloc and free make through them.

    Attributes:
        guest: the heap.
        roots: addresses of roots that are not as the guest has them.
        children: those of nodes by address, likewise.
    """

    guest: GuestHeap
    roots: Mapping[int, int] = field(default_factory=dict)
    children: Mapping[int, tuple[int, int]] = field(default_factory=dict)

    def root(self, trie: int) -> Node | None:
        """The root of a trie, None if it is empty."""
        control = self.guest.symbols["dlmalloc28_control"]
        if trie in self.roots:
            return self.node(self.roots[trie]) if self.roots[trie] else None
        if not self.guest.read_word(control + _TREE_MAP_AT) >> trie & 1:
            return None
        return self.node(self.guest.read_word(control + _TREE_BINS_AT + _WORD_BYTES * trie))

    def node(self, address: int) -> Node:
        """The node at ``address``."""
        word = self.guest.read_word
        children = self.children.get(address) or (word(address + 16), word(address + 20))
        return Node(address, word(address + 4) & ~FLAGS, children, word(address + 8))

    def without(self, node: Node) -> Tries:
        """The tries when a ``node`` that is alone in its ring has left its place to a leaf below it."""
        below = self.to_leaf(node)
        heir = below[-1].address if below else 0
        roots, children = dict(self.roots), dict(self.children)
        above = [node, *below][-2] if below else node
        if heir:
            children[above.address] = _replaced(above.children, heir, 0)
            children[heir] = children.get(node.address, node.children)
        path = self.path(node.size)
        if len(path) > 1:
            children[path[-2].address] = _replaced(path[-2].children, node.address, heir)
        else:
            roots[trie_of(node.size)] = heir
        return Tries(self.guest, roots, children)

    def path(self, size: int) -> list[Node]:
        """The nodes that the bits of ``size`` lead to, down to one of this size or to the end."""
        node, nodes, bits = self.root(trie_of(size)), list[Node](), key_bits(size)
        while node:
            nodes.append(node)
            child = 0 if node.size == size else node.children[next(bits, 0)]
            node = self.node(child) if child else None
        return nodes

    def leftmost(self, size: int) -> list[Node]:
        """The nodes on the leftmost path of the first trie above that of ``size`` that is not empty."""
        roots = (self.root(trie) for trie in range(trie_of(size) + 1, _LAST_TRIE + 1))
        first = next((root for root in roots if root), None)
        return self._leftmost_from(first.address) if first else []

    def _leftmost_from(self, address: int) -> list[Node]:
        nodes = list[Node]()
        while address:
            nodes.append(self.node(address))
            address = nodes[-1].children[0] or nodes[-1].children[1]
        return nodes

    def beside(self, size: int) -> list[Node]:
        """The leftmost path of the deepest right subtree beside the path of ``size``; none if there is no such tree."""
        path = self.path(size)
        ends = [*(node.address for node in path[1:]), 0]
        rights = [node.children[1] for node, end in zip(path, ends, strict=True) if node.children[1] not in {0, end}]
        return self._leftmost_from(rights[-1]) if rights and path[-1].size != size else []

    def to_leaf(self, node: Node) -> list[Node]:
        """The nodes below ``node`` on the way to the leaf that takes its place; none if its ring has another chunk."""
        nodes = list[Node]()
        if node.ring_next != node.address + HEADER_BYTES:
            return nodes
        while child := node.children[1] or node.children[0]:
            node = self.node(child)
            nodes.append(node)
        return nodes


def _replaced(children: tuple[int, int], child: int, heir: int) -> tuple[int, int]:
    """``children`` with another one in the place of ``child``."""
    return (heir, children[1]) if children[0] == child else (children[0], heir)
