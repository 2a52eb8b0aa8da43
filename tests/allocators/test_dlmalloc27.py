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
from tests.allocators.conformance import FREE, HEAP, INIT, MALLOC, WORD, Client, Conformance, Driver, Host, Subject
from tests.allocators.dlmalloc27_model import Dlmalloc27

THRESHOLD = 4096
ALIGNMENT = 2 * WORD
GRANULE = 4 * WORD
"""Of the default build."""
HUGE_HEAP = 8 << 20


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
    """With a heap at the end for what random operations do not reach."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
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
        sizes, searched = (3 << 20, 1240, 1200, 1140, 1150), (2 << 20, 1210)
        for size in sizes:
            malloc(size)
            malloc(200)
        for slot in range(0, 2 * len(sizes), 2):
            self._add(FREE, slot, 0)
            heap.free(offsets[slot])
        for size in searched:
            malloc(size)


def model(heap_bytes: int, word_bytes: int, granule: int = 16) -> Dlmalloc27:
    return Dlmalloc27(heap_bytes, word_bytes, threshold=THRESHOLD, granule=granule)


class TestDlmalloc27(Conformance):
    """With a threshold that small heaps reach."""

    subject: ClassVar[Subject] = Subject("dlmalloc27", {"consolidation-threshold": THRESHOLD}, model=model)

    @pytest.fixture(autouse=True)
    def _huge_driver(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(conformance, "Driver", HugeDriver)

    def client(self, host: Host, heap_bytes: int) -> Client:
        assert host.init(heap_bytes) == 0
        assert host.check() == 0
        assert self.subject.model
        return DeferredClient(host, self.subject.model(heap_bytes, WORD))


class TestDlmalloc27OfGranule8(TestDlmalloc27):
    """With sizes that are any multiple of the alignment."""

    subject: ClassVar[Subject] = Subject(
        "dlmalloc27", {"consolidation-threshold": THRESHOLD, "granule": 8}, model=partial(model, granule=8)
    )


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Host:
    return Host(Subject("dlmalloc27"), tmp_path_factory.mktemp("dlmalloc27"))


@pytest.mark.parametrize("granule", [8, 16])
@pytest.mark.parametrize("values", [{"fast-request": 16, "bit-search": 1}, {"fast-request": 80}])
def test_other_builds_do_what_the_specification_says(values: dict[str, int], granule: int, tmp_path: Path) -> None:
    host = Host(Subject("dlmalloc27", values | {"granule": granule}), tmp_path)
    draw = random.Random(7)
    assert host.init(HEAP) == 0
    client = DeferredClient(host, Dlmalloc27(HEAP, WORD, fast_request=values["fast-request"], granule=granule))
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


def test_the_arena_starts_at_a_granule_and_what_is_beyond_the_last_one_is_left(host: Host) -> None:
    assert host.init(HEAP + ALIGNMENT) == 0
    words = Words(host)
    assert words[words.member("arena_bytes")] == HEAP
    assert words[words[words.member("top")] + WORD] == HEAP | PREV_IN_USE
    assert host.init_at(host.arena + ALIGNMENT, HEAP) != 0
    assert words[words.member("first")] == host.arena
    assert host.check() == 0


@pytest.mark.parametrize("threshold_reached", [False, True])
def test_free_consolidates_from_the_threshold_on(host: Host, threshold_reached: bool) -> None:  # noqa: FBT001
    host.init(1 << 18)
    words = Words(host)
    small = [host.malloc(1) for _ in range(10)]
    host.malloc(1)
    large = host.malloc(131072 - WORD - (0 if threshold_reached else GRANULE))
    host.malloc(1)
    for offset in small:
        host.free(offset)
    assert words[words.member("has_fast")]
    host.free(large)
    assert bool(words[words.member("has_fast")]) is not threshold_reached
    assert host.check() == 0


# --------------------------------------------------------------------------------------------- the checker can fail

CONTROL = {"first": 0, "arena_bytes": 1, "top": 2, "last_remainder": 3, "has_fast": 4}
"""Members by index of the word."""
BITMAP = 5 * WORD
BINS = -(-(BITMAP + 16) // GRANULE) * GRANULE
PREV_IN_USE, IS_FREE = 1, 2
FLAGS = PREV_IN_USE | IS_FREE


class Violation(IntEnum):
    """enum dlmalloc27_violation."""

    HEAP_SOUND = 0
    NO_HEAP = 1
    BAD_SIZE_ALIGNMENT = 2
    BAD_SIZE_MINIMUM = 3
    BAD_CHAIN_END = 4
    BAD_ADJACENT_FREE = 5
    BAD_FREE_FLAG = 6
    BAD_PREV_TAG = 7
    BAD_TOP = 8
    BAD_LIST_ADDRESS = 9
    BAD_LIST_SIZE = 10
    BAD_LIST_IN_USE = 11
    BAD_LIST_LINK = 12
    BAD_LIST_ORDER = 13
    BAD_BITMAP = 14
    BAD_FAST_LENGTH = 15
    BAD_HAS_FAST = 16
    BAD_FREE_COUNT = 17
    BAD_FREE_MEMBERS = 18


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
        return self.control + BINS + 2 * WORD * number

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
    """Both in bin 65."""
    unsorted: int
    fast: int
    faster: int
    """Neighbours in one fast bin; faster is the first there."""


@pytest.fixture
def heap(host: Host) -> Heap:
    host.init(1 << 14)
    take = partial(_take, host)
    used = take(100)
    small, after_small = take(30 * ALIGNMENT - WORD), take(100)
    large, _ = take(74 * ALIGNMENT - WORD), take(100)
    larger, _ = take(75 * ALIGNMENT - WORD), take(100)
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
    words[heap.used - WORD] |= 4


@spoils(Violation.BAD_SIZE_ALIGNMENT)
def half_a_granule_more(heap: Heap, words: Words) -> None:
    words[heap.used - WORD] += GRANULE // 2


@spoils(Violation.BAD_SIZE_MINIMUM)
def size_zero(heap: Heap, words: Words) -> None:
    words[heap.used - WORD] = 1


@spoils(Violation.BAD_CHAIN_END)
def chunk_beyond_top(heap: Heap, words: Words) -> None:
    words[heap.used - WORD] = (1 << 30) + 1


@spoils(Violation.BAD_ADJACENT_FREE)
def neighbours_free(heap: Heap, words: Words) -> None:
    words[heap.used - WORD] |= IS_FREE
    words[heap.small - WORD] &= ~PREV_IN_USE
    words[heap.small - 2 * WORD] = words[heap.used - WORD]


@spoils(Violation.BAD_ADJACENT_FREE)
def first_follows_a_free_one(heap: Heap, words: Words) -> None:
    words[heap.used - WORD] &= ~PREV_IN_USE


@spoils(Violation.BAD_ADJACENT_FREE)
def top_follows_a_free_one(_: Heap, words: Words) -> None:
    top = words[words.member("top")]
    before = words[words.member("first")]
    while before + (words[before + WORD] & ~FLAGS) != top:
        before += words[before + WORD] & ~FLAGS
    words[before + WORD] |= IS_FREE
    words[top] = words[before + WORD]
    words[top + WORD] &= ~PREV_IN_USE


@spoils(Violation.BAD_FREE_FLAG)
def used_chunk_says_it_is_free(heap: Heap, words: Words) -> None:
    words[heap.used - WORD] |= IS_FREE


@spoils(Violation.BAD_FREE_FLAG)
def fast_chunk_says_it_is_free(heap: Heap, words: Words) -> None:
    words[heap.faster - WORD] |= IS_FREE


@spoils(Violation.BAD_FREE_FLAG)
def free_chunk_says_it_is_used(heap: Heap, words: Words) -> None:
    words[heap.small - WORD] &= ~IS_FREE
    words[heap.after_small - 2 * WORD] &= ~IS_FREE


@spoils(Violation.BAD_FREE_FLAG)
def chunk_behind_a_free_one_says_that_is_used(heap: Heap, words: Words) -> None:
    words[heap.after_small - WORD] |= PREV_IN_USE


@spoils(Violation.BAD_FREE_FLAG)
def top_says_it_is_free(_: Heap, words: Words) -> None:
    words[words[words.member("top")] + WORD] |= IS_FREE


@spoils(Violation.BAD_PREV_TAG)
def prev_tag_zero(heap: Heap, words: Words) -> None:
    words[heap.after_small - 2 * WORD] = 0


@spoils(Violation.BAD_PREV_TAG)
def prev_tag_without_flags(heap: Heap, words: Words) -> None:
    words[heap.after_small - 2 * WORD] &= ~FLAGS


@spoils(Violation.BAD_TOP)
def top_too_short(_: Heap, words: Words) -> None:
    words[words[words.member("top")] + WORD] -= GRANULE


@spoils(Violation.BAD_TOP)
def top_empty(_: Heap, words: Words) -> None:
    top = words[words.member("top")]
    words[top + WORD] = 1
    words[words.member("arena_bytes")] = top - words[words.member("first")]


@spoils(Violation.BAD_LIST_ADDRESS)
def list_leads_below_the_arena(_: Heap, words: Words) -> None:
    words[words.head(30)] = words.arena - 64


@spoils(Violation.BAD_LIST_ADDRESS)
def list_leads_above_the_arena(_: Heap, words: Words) -> None:
    words[words.head(30)] = words.arena + (1 << 14)


@spoils(Violation.BAD_LIST_ADDRESS)
def list_leads_into_a_chunk(heap: Heap, words: Words) -> None:
    words[words.head(30)] = heap.small + 8


@spoils(Violation.BAD_LIST_ADDRESS)
def list_leads_between_granules(heap: Heap, words: Words) -> None:
    words[words.head(30)] = heap.small + ALIGNMENT


@spoils(Violation.BAD_LIST_ADDRESS)
def fast_bin_leads_out(heap: Heap, words: Words) -> None:
    words[heap.faster] = 8


@spoils(Violation.BAD_LIST_SIZE)
def small_chunk_in_another_bin(heap: Heap, words: Words) -> None:
    words[words.head(29)] = heap.small


@spoils(Violation.BAD_LIST_SIZE)
def large_chunk_in_another_bin(heap: Heap, words: Words) -> None:
    words[words.head(64)] = heap.large


@spoils(Violation.BAD_LIST_SIZE)
def chunk_in_bin_127(heap: Heap, words: Words) -> None:
    words[words.head(127)] = heap.large


@spoils(Violation.BAD_LIST_SIZE)
def large_chunk_in_the_last_bin(heap: Heap, words: Words) -> None:
    words[words.head(126)] = heap.large


@spoils(Violation.BAD_LIST_SIZE)
def fast_bin_holds_another_size(heap: Heap, words: Words) -> None:
    words[heap.faster] = heap.used


@spoils(Violation.BAD_LIST_IN_USE)
def used_chunk_in_a_bin(heap: Heap, words: Words) -> None:
    words[words.head(1)] = heap.used


@spoils(Violation.BAD_LIST_IN_USE)
def free_chunk_in_a_fast_bin(heap: Heap, words: Words) -> None:
    words[heap.fast - WORD] |= IS_FREE
    words[heap.faster - WORD] &= ~PREV_IN_USE
    words[heap.faster - 2 * WORD] = words[heap.fast - WORD]


@spoils(Violation.BAD_LIST_LINK)
def previous_link_wrong(heap: Heap, words: Words) -> None:
    words[heap.large + WORD] = heap.large


@spoils(Violation.BAD_LIST_LINK)
def list_has_a_cycle(heap: Heap, words: Words) -> None:
    words[heap.large] = heap.larger


@spoils(Violation.BAD_LIST_LINK)
def head_does_not_lead_to_the_last(_: Heap, words: Words) -> None:
    words[words.head(65) + WORD] = words.head(65)


@spoils(Violation.BAD_LIST_ORDER)
def large_chunks_change_places(heap: Heap, words: Words) -> None:
    head = words.head(65)
    for node, behind in ((head, heap.large), (heap.large, heap.larger), (heap.larger, head)):
        words[node] = behind
        words[behind + WORD] = node


@spoils(Violation.BAD_BITMAP)
def mark_of_a_small_bin_cleared(_: Heap, words: Words) -> None:
    words.clear_mark(30)


@spoils(Violation.BAD_BITMAP)
def mark_of_a_large_bin_cleared(_: Heap, words: Words) -> None:
    words.clear_mark(65)


@spoils(Violation.BAD_BITMAP)
def unused_bin_marked(_: Heap, words: Words) -> None:
    words.marks(0).value |= 1


@spoils(Violation.BAD_BITMAP)
def unsorted_bin_marked(_: Heap, words: Words) -> None:
    words.marks(1).value |= 2


@spoils(Violation.BAD_FAST_LENGTH)
def fast_bin_has_a_cycle(heap: Heap, words: Words) -> None:
    words[heap.fast] = heap.faster


@spoils(Violation.BAD_HAS_FAST)
def fast_chunks_forgotten(_: Heap, words: Words) -> None:
    words[words.member("has_fast")] = 0


@spoils(Violation.BAD_FREE_COUNT)
def unsorted_chunks_forgotten(_: Heap, words: Words) -> None:
    words[words.head(1)] = words[words.head(1) + WORD] = words.head(1)


@spoils(Violation.BAD_FREE_MEMBERS)
def another_chunk_in_the_bin(heap: Heap, words: Words) -> None:
    """A chunk that looks free, forged in a used payload, takes a free one's place."""
    forged = heap.used + 2 * ALIGNMENT
    words[forged - WORD] = 2 * ALIGNMENT | FLAGS
    words[forged - WORD + 2 * ALIGNMENT] = 0
    words[words.head(1)] = words[words.head(1) + WORD] = forged
    words[forged] = words[forged + WORD] = words.head(1)


@pytest.mark.parametrize(("violation", "spoil"), [pytest.param(v, f, id=name) for v, name, f in SPOILS])
def test_the_checker_finds(host: Host, heap: Heap, violation: Violation, spoil: Spoil) -> None:
    spoil(heap, heap.words)
    assert Violation(host.check()) is violation


def test_every_violation_is_tried() -> None:
    assert {violation for violation, _, _ in SPOILS} == set(Violation) - {Violation.HEAP_SOUND}
