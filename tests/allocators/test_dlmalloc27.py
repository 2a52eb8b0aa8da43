"""dlmalloc27: the conformance suite against a specification, and its own rules."""

from __future__ import annotations

import ctypes
import random
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
from tests.allocators.dlmalloc27_words import FAST_CHUNKS, FAST_FLAGS, Words

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
