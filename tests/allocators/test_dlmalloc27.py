"""dlmalloc27: the conformance suite against a specification, the checker against broken heaps, its own rules."""

from __future__ import annotations

import ctypes
import random
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pytest

from tests.allocators import conformance
from tests.allocators.conformance import (
    FREE,
    HEAP,
    INIT,
    MALLOC,
    NONE,
    WORD,
    Client,
    Conformance,
    Driver,
    Host,
    Subject,
)
from tests.allocators.dlmalloc27_model import Dlmalloc27

THRESHOLD = 4096
ALIGNMENT = 2 * WORD
HUGE_HEAP = 32 << 20


class DeferredClient(Client):
    """A refused request may merge and sort: the client's blocks stay as they are, which their contents show."""

    def malloc(self, size: int) -> int | None:
        offset = self.host.malloc(size)
        if self.model:
            assert offset == self.model.malloc(size), size
        if offset is not None:
            assert offset % self.host.alignment == 0
            assert 0 <= offset <= self.host.heap_bytes - size
            assert all(offset + size <= other or other + bytes_ <= offset for other, bytes_ in self.live.items())
            self.live[offset] = size
            ctypes.memmove(self.host.arena + offset, conformance.pattern(offset, size), size)
        assert self.host.check() == 0
        return offset


class HugeDriver(Driver):
    """With what random operations do not reach: a request before there is a heap, and a huge heap at the end."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.steps.insert(0, (MALLOC, 1))
        self.expected.insert(0, NONE)
        if self._word < WORD:
            return
        assert self._subject.model
        heap = self._subject.model(HUGE_HEAP, WORD)
        offsets: list[int] = []

        def malloc(size: int) -> None:
            offset = heap.malloc(size)
            assert offset is not None
            offsets.append(offset)
            self._add(MALLOC, size, offset)

        self._add(INIT, HUGE_HEAP, 0)
        # The last bin; a walk past two larger chunks of a bin, and one from its smallest to a larger chunk.
        sizes, searched = (17 << 20, 1240, 1200, 1140, 1150), (16 << 20, 1210)
        for size in sizes:
            malloc(size)
            malloc(200)
        for slot in range(0, 2 * len(sizes), 2):
            self._add(FREE, slot, 0)
            heap.free(offsets[slot])
        for size in searched:
            malloc(size)


def model(heap_bytes: int, word_bytes: int) -> Dlmalloc27:
    return Dlmalloc27(heap_bytes, word_bytes, threshold=THRESHOLD)


class TestDlmalloc27(Conformance):
    """With a threshold that small heaps reach."""

    subject: ClassVar[Subject] = Subject(
        "dlmalloc27", {"consolidation-threshold": THRESHOLD}, model=model, serves_zero=True
    )

    @pytest.fixture(autouse=True)
    def _huge_driver(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(conformance, "Driver", HugeDriver)

    def client(self, host: Host, heap_bytes: int) -> Client:
        assert host.init(heap_bytes) == 0
        assert host.check() == 0
        assert self.subject.model
        return DeferredClient(host, self.subject.model(heap_bytes, WORD))


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Host:
    return Host(Subject("dlmalloc27"), tmp_path_factory.mktemp("dlmalloc27"))


@pytest.mark.parametrize("values", [{"fast-request": 16}, {"fast-request": 80}])
def test_other_builds_do_what_the_specification_says(values: dict[str, int], tmp_path: Path) -> None:
    host = Host(Subject("dlmalloc27", values), tmp_path)
    draw = random.Random(7)
    assert host.init(HEAP) == 0
    client = DeferredClient(host, Dlmalloc27(HEAP, WORD, fast_request=values["fast-request"]))
    for _ in range(600):
        if client.live and draw.random() < 0.48:
            client.free(draw.choice(sorted(client.live)))
        else:
            client.malloc(int(2 ** draw.uniform(0, 12)))


def test_before_init_malloc_fails(tmp_path: Path) -> None:
    host = Host(Subject("dlmalloc27"), tmp_path)
    host.arena = 0
    assert host.check() == 1
    assert host.malloc(1) is None


def test_what_was_not_freed_is_cut_off_top(host: Host) -> None:
    assert host.init(HEAP) == 0
    assert [host.malloc(size) for size in (0, 3 * WORD, 3 * WORD + 1)] == [2 * WORD, 6 * WORD, 10 * WORD]
    words = Words(host)
    assert words[words.member("max_fast")] & FAST_FLAGS == 0
    host.free(2 * WORD)
    assert words[words.member("max_fast")] & FAST_FLAGS == FAST_FLAGS
    assert host.malloc(1) == 2 * WORD
    assert host.check() == 0


def test_of_equal_sizes_the_smallest_of_a_bin_stand_in_order_of_arrival(host: Host) -> None:
    """A size without its flag is compared with one that has it: an equal one is not put before the last."""
    host.init(HEAP)
    blocks = []
    for _ in range(3):
        blocks.append(host.malloc(40 * ALIGNMENT - WORD))
        host.malloc(1)
    for block in blocks:
        assert block is not None
        host.free(block)
    assert host.malloc(HEAP) is None
    assert [host.malloc(40 * ALIGNMENT - WORD) for _ in blocks] == blocks[::-1]


@pytest.mark.parametrize("threshold_reached", [False, True])
def test_free_consolidates_from_the_threshold_on(host: Host, threshold_reached: bool) -> None:  # noqa: FBT001
    host.init(1 << 18)
    words = Words(host)
    small = [host.malloc(1) for _ in range(10)]
    host.malloc(1)
    large = host.malloc(131072 - WORD - (0 if threshold_reached else ALIGNMENT))
    host.malloc(1)
    for offset in small:
        host.free(offset)
    assert words[words.member("max_fast")] & FAST_CHUNKS
    host.free(large)
    assert bool(words[words.member("max_fast")] & FAST_CHUNKS) is not threshold_reached
    assert host.check() == 0


# --------------------------------------------------------------------------------------------- the checker can fail

FAST_COUNT = 10 if WORD == 4 else 11
HEADS = 3 + FAST_COUNT
BITMAP = (HEADS + 2 * 96) * WORD
"""Offset in bytes; members below by index of the word."""
CONTROL = {
    "max_fast": 0,
    "top": 1 + FAST_COUNT,
    "first": (BITMAP + 16) // WORD,
    "arena_bytes": (BITMAP + 16) // WORD + 1,
}
PREV_IN_USE = FLAGS = 1
FAST_CHUNKS, FAST_FLAGS = 2, 3
SMALL_BIN, LARGE_BIN = 24, 40


class Violation(IntEnum):
    """enum dlmalloc27_violation."""

    HEAP_SOUND = 0
    NO_HEAP = 1
    BAD_SIZE_ALIGNMENT = 2
    BAD_SIZE_MINIMUM = 3
    BAD_CHAIN_END = 4
    BAD_ADJACENT_FREE = 5
    BAD_SIZE_BEFORE = 6
    BAD_TOP = 7
    BAD_LIST_ADDRESS = 8
    BAD_LIST_SIZE = 9
    BAD_LIST_IN_USE = 10
    BAD_LIST_LINK = 11
    BAD_LIST_ORDER = 12
    BAD_BITMAP = 13
    BAD_FAST_LENGTH = 14
    BAD_FLAGS = 15
    BAD_FREE_COUNT = 16
    BAD_FREE_MEMBERS = 17


class Words:
    """The words of the control structure and of the heap, by address."""

    def __init__(self, host: Host) -> None:
        self.control = ctypes.addressof(ctypes.c_char.in_dll(host.library, "dlmalloc27_control"))
        self.arena = host.arena

    def __getitem__(self, address: int) -> int:
        return ctypes.c_size_t.from_address(address).value

    def __setitem__(self, address: int, value: int) -> None:
        ctypes.c_size_t.from_address(address).value = value

    def member(self, name: str) -> int:
        return self.control + WORD * CONTROL[name]

    def head(self, number: int) -> int:
        """What the neighbours of a head link to, as payloads are counted: where its links are."""
        return self.control + (HEADS + 2 * number) * WORD

    def link(self, address: int, payload: int) -> None:
        """Makes the link there lead to the chunk of a payload, or to the head whose links are there."""
        self[address] = payload - ALIGNMENT

    def marks(self, number: int) -> ctypes.c_uint32:
        """The word of the bitmap that has the mark of a bin."""
        return ctypes.c_uint32.from_address(self.control + BITMAP + 4 * (number // 32))

    def clear_mark(self, number: int) -> None:
        marks = self.marks(number)
        assert marks.value >> number % 32 & 1
        marks.value &= ~(1 << number % 32)


@dataclass
class Heap:
    """A heap with chunks of every kind, by address of the payload."""

    words: Words
    used: int
    small: int
    """Alone in its bin."""
    after_small: int
    large: int
    larger: int
    """Both in one bin."""
    unsorted: int
    fast: int
    faster: int
    """Neighbours in one fast bin; faster is the first there."""


@pytest.fixture
def heap(host: Host) -> Heap:
    host.init(1 << 14)
    take = partial(_take, host)
    used = take(100)
    small, after_small = take(8 * SMALL_BIN - WORD), take(100)
    large, _ = take(1040 - WORD), take(100)
    larger, _ = take(1152 - WORD), take(100)
    unsorted, _ = take(20 * ALIGNMENT - WORD), take(100)
    fast, faster = take(1), take(1)
    for block in (small, large, larger):
        host.free(block - host.arena)
    take(4000)
    for block in (unsorted, fast, faster):
        host.free(block - host.arena)
    assert host.check() == 0
    return Heap(Words(host), used, small, after_small, large, larger, unsorted, fast, faster)


def _take(host: Host, size: int) -> int:
    offset = host.malloc(size)
    assert offset is not None
    return host.arena + offset


Spoil = Callable[[Heap, Words], None]
SPOILS: list[tuple[Violation, str, Spoil]] = []


def spoils(violation: Violation) -> Callable[[Spoil], Spoil]:
    def register(function: Spoil) -> Spoil:
        SPOILS.append((violation, function.__name__, function))
        return function

    return register


@spoils(Violation.NO_HEAP)
def first_forgotten(_: Heap, words: Words) -> None:
    words[words.member("first")] = 0


@spoils(Violation.BAD_SIZE_ALIGNMENT)
def unknown_flag_set(heap: Heap, words: Words) -> None:
    words[heap.used - WORD] |= 2


@spoils(Violation.BAD_SIZE_ALIGNMENT)
def half_a_granule_more(heap: Heap, words: Words) -> None:
    words[heap.used - WORD] += ALIGNMENT // 2


@spoils(Violation.BAD_SIZE_MINIMUM)
def size_zero(heap: Heap, words: Words) -> None:
    words[heap.used - WORD] = 1


@spoils(Violation.BAD_CHAIN_END)
def chunk_beyond_top(heap: Heap, words: Words) -> None:
    words[heap.used - WORD] = (1 << 30) + 1


@spoils(Violation.BAD_ADJACENT_FREE)
def neighbours_free(heap: Heap, words: Words) -> None:
    words[heap.small - 2 * WORD] = words[heap.used - WORD] & ~FLAGS
    words[heap.small - WORD] &= ~PREV_IN_USE


@spoils(Violation.BAD_ADJACENT_FREE)
def first_follows_a_free_one(heap: Heap, words: Words) -> None:
    words[heap.used - WORD] &= ~PREV_IN_USE


@spoils(Violation.BAD_ADJACENT_FREE)
def top_follows_a_free_one(_: Heap, words: Words) -> None:
    top = words[words.member("top")]
    before = words[words.member("first")]
    while before + (words[before + WORD] & ~FLAGS) != top:
        before += words[before + WORD] & ~FLAGS
    words[top] = words[before + WORD] & ~FLAGS
    words[top + WORD] &= ~PREV_IN_USE


@spoils(Violation.BAD_SIZE_BEFORE)
def size_before_zero(heap: Heap, words: Words) -> None:
    words[heap.after_small - 2 * WORD] = 0


@spoils(Violation.BAD_SIZE_BEFORE)
def size_before_with_flag(heap: Heap, words: Words) -> None:
    words[heap.after_small - 2 * WORD] |= PREV_IN_USE


@spoils(Violation.BAD_TOP)
def top_too_short(_: Heap, words: Words) -> None:
    words[words[words.member("top")] + WORD] -= ALIGNMENT


@spoils(Violation.BAD_TOP)
def top_empty(_: Heap, words: Words) -> None:
    top = words[words.member("top")]
    words[top + WORD] = 1
    words[words.member("arena_bytes")] = top - words[words.member("first")]


@spoils(Violation.BAD_LIST_ADDRESS)
def list_leads_below_the_arena(_: Heap, words: Words) -> None:
    words[words.head(SMALL_BIN)] = words.arena - 64


@spoils(Violation.BAD_LIST_ADDRESS)
def list_leads_above_the_arena(_: Heap, words: Words) -> None:
    words[words.head(SMALL_BIN)] = words.arena + (1 << 14)


@spoils(Violation.BAD_LIST_ADDRESS)
def list_leads_into_a_chunk(heap: Heap, words: Words) -> None:
    words.link(words.head(SMALL_BIN), heap.small + WORD)


@spoils(Violation.BAD_LIST_ADDRESS)
def fast_bin_leads_out(heap: Heap, words: Words) -> None:
    words[heap.faster] = 8


@spoils(Violation.BAD_LIST_SIZE)
def small_chunk_in_another_bin(heap: Heap, words: Words) -> None:
    words.link(words.head(SMALL_BIN - 1), heap.small)


@spoils(Violation.BAD_LIST_SIZE)
def large_chunk_in_a_small_bin(heap: Heap, words: Words) -> None:
    words.link(words.head(31), heap.large)


@spoils(Violation.BAD_LIST_SIZE)
def large_chunk_in_the_bin_before(heap: Heap, words: Words) -> None:
    words.link(words.head(LARGE_BIN - 1), heap.large)


@spoils(Violation.BAD_LIST_SIZE)
def large_chunk_in_the_bin_behind(heap: Heap, words: Words) -> None:
    words.link(words.head(LARGE_BIN + 1), heap.large)


@spoils(Violation.BAD_LIST_SIZE)
def large_chunk_in_the_last_bin(heap: Heap, words: Words) -> None:
    words.link(words.head(95), heap.large)


@spoils(Violation.BAD_LIST_SIZE)
def fast_bin_holds_another_size(heap: Heap, words: Words) -> None:
    words.link(heap.faster, heap.used)


@spoils(Violation.BAD_LIST_IN_USE)
def used_chunk_in_a_bin(heap: Heap, words: Words) -> None:
    words.link(words.head(1), heap.used)


@spoils(Violation.BAD_LIST_IN_USE)
def free_chunk_in_a_fast_bin(heap: Heap, words: Words) -> None:
    words[heap.faster - 2 * WORD] = words[heap.fast - WORD] & ~FLAGS
    words[heap.faster - WORD] &= ~PREV_IN_USE


@spoils(Violation.BAD_LIST_LINK)
def previous_link_wrong(heap: Heap, words: Words) -> None:
    words.link(heap.large + WORD, heap.large)


@spoils(Violation.BAD_LIST_LINK)
def list_has_a_cycle(heap: Heap, words: Words) -> None:
    words.link(heap.large, heap.larger)


@spoils(Violation.BAD_LIST_LINK)
def head_does_not_lead_to_the_last(_: Heap, words: Words) -> None:
    words.link(words.head(LARGE_BIN) + WORD, words.head(LARGE_BIN))


@spoils(Violation.BAD_LIST_ORDER)
def large_chunks_change_places(heap: Heap, words: Words) -> None:
    head = words.head(LARGE_BIN)
    for node, behind in ((head, heap.large), (heap.large, heap.larger), (heap.larger, head)):
        words.link(node, behind)
        words.link(behind + WORD, node)


@spoils(Violation.BAD_BITMAP)
def mark_of_a_small_bin_cleared(_: Heap, words: Words) -> None:
    words.clear_mark(SMALL_BIN)


@spoils(Violation.BAD_BITMAP)
def mark_of_a_large_bin_cleared(_: Heap, words: Words) -> None:
    words.clear_mark(LARGE_BIN)


@spoils(Violation.BAD_BITMAP)
def unused_bin_marked(_: Heap, words: Words) -> None:
    words.marks(0).value |= 1


@spoils(Violation.BAD_BITMAP)
def unsorted_bin_marked(_: Heap, words: Words) -> None:
    words.marks(1).value |= 2


@spoils(Violation.BAD_BITMAP)
def bin_behind_the_last_marked(_: Heap, words: Words) -> None:
    words.marks(96).value |= 1


@spoils(Violation.BAD_FAST_LENGTH)
def fast_bin_has_a_cycle(heap: Heap, words: Words) -> None:
    words.link(heap.fast, heap.faster)


@spoils(Violation.BAD_FLAGS)
def fast_chunks_forgotten(_: Heap, words: Words) -> None:
    words[words.member("max_fast")] &= ~FAST_CHUNKS


@spoils(Violation.BAD_FLAGS)
def free_chunks_forgotten(_: Heap, words: Words) -> None:
    words[words.member("max_fast")] &= ~1


@spoils(Violation.BAD_FLAGS)
def fast_bins_of_another_size(_: Heap, words: Words) -> None:
    words[words.member("max_fast")] += ALIGNMENT


@spoils(Violation.BAD_FREE_COUNT)
def unsorted_chunks_forgotten(_: Heap, words: Words) -> None:
    words.link(words.head(1), words.head(1))
    words.link(words.head(1) + WORD, words.head(1))


@spoils(Violation.BAD_FREE_MEMBERS)
def another_chunk_in_the_bin(heap: Heap, words: Words) -> None:
    """A chunk that looks free, forged in a used payload, takes a free one's place."""
    forged = heap.used + 2 * ALIGNMENT
    words[forged - WORD] = 2 * ALIGNMENT | PREV_IN_USE
    words[forged - WORD + 2 * ALIGNMENT] = 0
    for head, node in ((words.head(1), forged), (forged, words.head(1))):
        words.link(head, node)
        words.link(head + WORD, node)


@pytest.mark.parametrize(("violation", "spoil"), [pytest.param(v, f, id=name) for v, name, f in SPOILS])
def test_the_checker_finds(host: Host, heap: Heap, violation: Violation, spoil: Spoil) -> None:
    spoil(heap, heap.words)
    assert Violation(host.check()) is violation


def test_every_violation_is_tried() -> None:
    assert {violation for violation, _, _ in SPOILS} == set(Violation) - {Violation.HEAP_SOUND}
