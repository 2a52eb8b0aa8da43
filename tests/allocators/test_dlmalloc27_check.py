"""dlmalloc27's own checker finds each way in which a heap can be broken."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from functools import partial

import pytest

from tests.allocators.conformance import WORD, Host, Subject
from tests.allocators.dlmalloc27_words import ALIGNMENT, FAST_CHUNKS, FLAGS, PREV_IN_USE, Words

SMALL_BIN, LARGE_BIN = 24, 40


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Host:
    return Host(Subject("dlmalloc27"), tmp_path_factory.mktemp("dlmalloc27"))


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
