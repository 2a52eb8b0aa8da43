"""dlmalloc28: conformance, the model, the last trie, the checker against broken heaps, the depth of tries."""

from __future__ import annotations

import ctypes
import random
from collections.abc import Callable
from enum import IntEnum
from typing import Any

import pytest

from . import conformance
from .conformance import FREE, INIT, LARGE_HEAP, MALLOC, NONE, WORD, Client, Conformance, Driver, Host, Subject
from .dlmalloc28_model import Dlmalloc28

UNIT = 2 * WORD
HUGE_HEAP = 1 << 27
HEAD, RING_NEXT, RING_PREV, LEFT, RIGHT, PARENT, BIN = range(1, 8)
"""Words of a chunk; word 0 is prev_foot."""


class Violation(IntEnum):
    """enum dlmalloc28_violation."""

    NO_HEAP = 1
    BAD_FLAGS = 2
    BAD_SIZE = 3
    BAD_PREV_USED = 4
    BAD_PREV_FOOT = 5
    BAD_ADJACENT_FREE = 6
    BAD_TOP = 7
    BAD_DV = 8
    BAD_ADDRESS = 9
    BAD_FREE = 10
    BAD_RING = 11
    BAD_BIN = 12
    BAD_TREE = 13
    BAD_MAP = 14
    BAD_FREE_COUNT = 15
    BAD_FREE_MEMBERS = 16


class TrieDriver(Driver):
    """With two heaps at the end: one of many large chunks of many sizes, one whose chunks reach into the last trie."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._found(LARGE_HEAP)
        for size in (504, 1, 600, 1, 600, 1):
            self._malloc(size)
        self._free(0)
        self._malloc(488)  # takes the least chunk of a trie whole
        for slot in (2, 4):
            self._free(slot)
        for size in (400, 300):  # each leaves a designated victim, the second in the place of the first
            self._malloc(size)
        draw = random.Random(0)
        for _ in range(600):
            slot = draw.randrange(1 + len(self._offsets))
            if slot < len(self._offsets) and self._offsets[slot] is not None:
                self._free(slot)
            else:
                self._malloc(draw.choice((draw.randrange(500), draw.randrange(500, 4000))))
        self._found(HUGE_HEAP)
        for size in (25 << 20, 1, 33 << 20, 1):
            self._malloc(size)
        for slot in (0, 2):
            self._free(slot)
        self._malloc(24 << 20)

    def _found(self, heap_bytes: int) -> None:
        self._heap = Dlmalloc28(heap_bytes, self._word)
        self._offsets = list[int | None]()
        self._add(INIT, heap_bytes, 0)

    def _malloc(self, size: int) -> None:
        offset = self._heap.malloc(size)
        self._add(MALLOC, size, NONE if offset is None else offset)
        if offset is not None:
            self._offsets.append(offset)

    def _free(self, slot: int) -> None:
        offset = self._offsets[slot]
        assert offset is not None
        self._heap.free(offset)
        self._offsets[slot] = None
        self._add(FREE, slot, 0)


Spoil = Callable[["Spoiled"], None]
SPOILS: list[tuple[Violation, Spoil]] = []


class Spoiled:
    """A heap with a designated victim, two chunks in a small bin, and a trie of a root, a child and a ring.

    Each name is the address of a chunk; a used one follows each of them.
    """

    def __init__(self, host: Host) -> None:
        self.host = host
        host.init(1 << 16)
        blocks = [self._chunk(units) for units in (60, 2, 4, 2, 4, 2, 64, 2, 65, 2, 64, 2)]
        host.free(blocks[0])
        self._chunk(20)
        self.dv = host.arena + 20 * UNIT
        self.small, self.small_2, self.root, self.child, self.twin = (self._address(b) for b in blocks[2::2])
        self.fence = self._address(blocks[3])
        for block in blocks[2::2]:
            host.free(block)
        assert host.check() == 0

    def _chunk(self, units: int) -> int:
        offset = self.host.malloc(units * UNIT - WORD)
        assert offset is not None
        return offset

    def _address(self, payload: int) -> int:
        return self.host.arena + payload - UNIT

    def get(self, address: int, index: int) -> int:
        return ctypes.c_size_t.from_address(address + index * WORD).value

    def set(self, address: int, index: int, value: int) -> None:
        ctypes.c_size_t.from_address(address + index * WORD).value = value

    def add(self, address: int, index: int, change: int) -> None:
        self.set(address, index, self.get(address, index) + change)

    @property
    def control(self) -> int:
        """Address of: first, top, dv, top_size, dv_size, both maps, small bins, tries."""
        return ctypes.addressof(ctypes.c_size_t.in_dll(self.host.library, "dlmalloc28_control"))

    @property
    def maps(self) -> ctypes.Array[ctypes.c_uint32]:
        return (ctypes.c_uint32 * 2).from_address(self.control + 5 * WORD)

    @property
    def small_bin(self) -> int:
        """Address of the head of the ring of both small chunks."""
        return self.control + 5 * WORD + 8 + 4 * UNIT

    @property
    def tries(self) -> int:
        return self.control + 5 * WORD + 8 + 32 * UNIT


def spoils(violation: Violation) -> Callable[[Spoil], Spoil]:
    def register(function: Spoil) -> Spoil:
        SPOILS.append((violation, function))
        return function

    return register


def changed(violation: Violation, name: str, where: str, index: int, value: Callable[[Spoiled], int]) -> None:
    """Registers a heap in which one word of a chunk, or of the control structure, has another value."""

    def spoil(heap: Spoiled) -> None:
        heap.set(getattr(heap, where), index, value(heap))

    spoil.__name__ = name
    SPOILS.append((violation, spoil))


V = Violation
changed(V.NO_HEAP, "no heap", "control", 0, lambda _: 0)
changed(V.BAD_FLAGS, "unknown flag", "small", HEAD, lambda h: h.get(h.small, HEAD) | 4)
changed(V.BAD_SIZE, "size zero", "small", HEAD, lambda _: 1)
changed(V.BAD_SIZE, "beyond the top", "small", HEAD, lambda _: (1 << 16) | 1)
changed(V.BAD_PREV_USED, "free chunk called used", "fence", HEAD, lambda h: h.get(h.fence, HEAD) | 1)
changed(V.BAD_PREV_FOOT, "foot of another size", "fence", 0, lambda h: h.get(h.fence, 0) + UNIT)
changed(V.BAD_ADJACENT_FREE, "used chunk called free", "fence", HEAD, lambda h: h.get(h.fence, HEAD) & ~2)
changed(V.BAD_TOP, "top of another size", "control", 3, lambda h: h.get(h.control, 3) + UNIT)
changed(V.BAD_DV, "victim of another size", "control", 4, lambda h: h.get(h.control, 4) + UNIT)
changed(V.BAD_DV, "victim without address", "control", 2, lambda _: 0)
changed(V.BAD_DV, "victim in use", "control", 2, lambda h: h.fence)
changed(V.BAD_DV, "victim nowhere", "control", 2, lambda _: UNIT)
changed(V.BAD_ADDRESS, "ring leads away", "small", RING_NEXT, lambda _: UNIT)
changed(V.BAD_ADDRESS, "child misaligned", "root", LEFT, lambda h: h.child + WORD)
changed(V.BAD_FREE, "used chunk in a ring", "small_bin", 0, lambda h: h.fence + UNIT)
changed(V.BAD_RING, "link back to itself", "small", RING_PREV, lambda h: h.small + UNIT)
changed(V.BAD_RING, "head's link back", "small_bin", 1, lambda h: h.small_2 + UNIT)
changed(V.BAD_RING, "ring without its head", "small", RING_NEXT, lambda h: h.small_2 + UNIT)
changed(V.BAD_BIN, "large chunk in a small bin", "small_bin", 0, lambda h: h.root + UNIT)
changed(V.BAD_BIN, "node of another trie", "child", BIN, lambda h: h.get(h.child, BIN) + 1)
changed(V.BAD_TREE, "child without parent", "child", PARENT, lambda _: 0)
changed(V.BAD_TREE, "root with a parent", "root", PARENT, lambda h: h.child)
changed(V.BAD_TREE, "ring member with a parent", "twin", PARENT, lambda h: h.root)
changed(V.BAD_TREE, "ring member of another trie", "twin", BIN, lambda _: 31)
changed(V.BAD_TREE, "root below its child", "child", LEFT, lambda h: h.root)


@spoils(V.BAD_FLAGS)
def before_the_first_chunk_is_a_free_one(heap: Spoiled) -> None:
    heap.add(heap.host.arena, HEAD, -1)


@spoils(V.BAD_TOP)
def top_in_use(heap: Spoiled) -> None:
    heap.add(heap.get(heap.control, 1), HEAD, 2)


@spoils(V.BAD_BIN)
def child_on_the_wrong_side(heap: Spoiled) -> None:
    heap.set(heap.root, RIGHT, heap.child)
    heap.set(heap.root, LEFT, 0)


@spoils(V.BAD_TREE)
def child_of_its_parents_size(heap: Spoiled) -> None:
    """The twin as a node of its own."""
    for chunk in (heap.root, heap.twin):
        for index in (RING_NEXT, RING_PREV):
            heap.set(chunk, index, chunk + UNIT)
    heap.set(heap.child, LEFT, heap.twin)
    heap.set(heap.twin, PARENT, heap.child)


@spoils(V.BAD_ADDRESS)
def trie_leads_away(heap: Spoiled) -> None:
    heap.set(heap.tries, heap.get(heap.root, BIN), UNIT)


@spoils(V.BAD_MAP)
def bit_of_an_empty_small_bin(heap: Spoiled) -> None:
    heap.maps[0] |= 1 << 9


@spoils(V.BAD_MAP)
def no_bit_of_a_small_bin(heap: Spoiled) -> None:
    heap.maps[0] = 0


@spoils(V.BAD_MAP)
def bit_of_an_empty_trie(heap: Spoiled) -> None:
    heap.set(heap.tries, 20, 0)
    heap.maps[1] |= 1 << 20


@spoils(V.BAD_FREE_COUNT)
def trie_forgotten(heap: Spoiled) -> None:
    heap.maps[1] = 0


@spoils(V.BAD_FREE_MEMBERS)
def another_chunk_in_the_victims_place(heap: Spoiled) -> None:
    heap.set(heap.control, 2, heap.root)
    heap.set(heap.control, 4, heap.get(heap.root, HEAD) & ~7)


class TestDlmalloc28(Conformance):
    subject = Subject("dlmalloc28", model=Dlmalloc28)

    def test_no_line_or_branch_stays_unexecuted(self, tmp_path, monkeypatch):
        monkeypatch.setattr(conformance, "Driver", TrieDriver)
        super().test_no_line_or_branch_stays_unexecuted(tmp_path)

    @pytest.mark.parametrize(("violation", "spoil"), SPOILS, ids=[f"{v.name}: {s.__name__}" for v, s in SPOILS])
    def test_check_names_the_violation(self, host: Host, violation: Violation, spoil: Spoil) -> None:
        spoil(Spoiled(host))
        assert host.check() == violation

    @pytest.mark.parametrize("seed", range(6))
    def test_tries_of_many_sizes(self, host: Host, seed: int) -> None:
        """Large chunks only, many of them free at once: every request gets the best fit, the oldest of its size."""
        draw = random.Random(seed)
        client = Client(host, Dlmalloc28(1 << 18, WORD))
        host.init(1 << 18)
        largest = draw.choice((560, 700, 4000))
        for _ in range(250):
            if len(client.live) > 90 or (client.live and draw.random() < 0.4):
                client.free(draw.choice(sorted(client.live)))
            else:
                client.malloc(draw.randrange(500, largest))

    def test_victim_serves_large_requests_that_it_fits_better(self, host: Host) -> None:
        client = Client(host, Dlmalloc28(1 << 16, WORD))
        host.init(1 << 16)
        first, *_ = [client.malloc(size) for size in (2000, 8, 3000, 8)]
        large = sorted(client.live)[2]
        assert first is not None
        client.free(first)
        client.malloc(100)
        client.free(large)
        for size in (1200, 600, 3000):
            client.malloc(size)


class TestDlmalloc28ByTable(Conformance):
    subject = Subject("dlmalloc28", {"bit-search": 1}, model=Dlmalloc28)

    def test_no_line_or_branch_stays_unexecuted(self, tmp_path, monkeypatch):
        monkeypatch.setattr(conformance, "Driver", TrieDriver)
        super().test_no_line_or_branch_stays_unexecuted(tmp_path)
