"""dlmalloc27: the conformance suite against a specification, the checker against broken heaps, its own rules."""

from __future__ import annotations

import ctypes
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest

from tests.allocators import conformance
from tests.allocators.conformance import FREE, HEAP, INIT, MALLOC, WORD, Client, Conformance, Driver, Host, Subject
from tests.allocators.dlmalloc27_model import Dlmalloc27

THRESHOLD = 4096
ALIGNMENT = 2 * WORD
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
    """With a heap that the last bin holds chunks of."""

    def __init__(self, subject: Subject, heap_bytes: int, word_bytes: int, count: int = 1200) -> None:
        super().__init__(subject, heap_bytes, word_bytes, count)
        if word_bytes == WORD and subject.model:
            model = subject.model(HUGE_HEAP, word_bytes)
            self._add(INIT, HUGE_HEAP, 0)
            for slot, (code, argument) in enumerate(((MALLOC, 3 << 20), (MALLOC, 200), (FREE, 0), (MALLOC, 2 << 20))):
                if code == MALLOC:
                    self._add(code, argument, model.malloc(argument))
                else:
                    self._add(code, argument, 0)
                    model.free(ALIGNMENT)
                assert slot < len(self.steps)


def model(heap_bytes: int, word_bytes: int) -> Dlmalloc27:
    return Dlmalloc27(heap_bytes, word_bytes, threshold=THRESHOLD)


class TestDlmalloc27(Conformance):
    """With a threshold that small heaps reach."""

    subject: ClassVar[Subject] = Subject("dlmalloc27", {"consolidation-threshold": THRESHOLD}, model=model)

    @pytest.fixture(autouse=True)
    def _huge_driver(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(conformance, "Driver", HugeDriver)

    def client(self, host: Host, heap_bytes: int) -> Client:
        assert host.init(heap_bytes) == 0
        assert host.check() == 0
        return DeferredClient(host, model(heap_bytes, WORD))


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Host:
    return Host(Subject("dlmalloc27"), tmp_path_factory.mktemp("dlmalloc27"))


@pytest.mark.parametrize("values", [{"fast-request": 16, "bit-search": 1}, {"fast-request": 80}])
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


@pytest.mark.parametrize("threshold_reached", [False, True])
def test_free_consolidates_from_the_threshold_on(host: Host, threshold_reached: bool) -> None:  # noqa: FBT001
    host.init(1 << 18)
    small = [host.malloc(1) for _ in range(10)]
    host.malloc(1)
    large = host.malloc(131072 - WORD - (0 if threshold_reached else ALIGNMENT))
    host.malloc(1)
    for offset in small:
        host.free(offset)
    assert Control(host).read("has_fast")
    host.free(large)
    assert bool(Control(host).read("has_fast")) is not threshold_reached
    assert host.check() == 0


# --------------------------------------------------------------------------------------------- the checker can fail

OFFSETS = {"first": 0, "arena_bytes": WORD, "top": 2 * WORD, "last_remainder": 3 * WORD, "has_fast": 4 * WORD}
BITMAP, BINS = 5 * WORD, 5 * WORD + 16
FAST = BINS + 2 * WORD * 128
(
    NO_HEAP,
    SIZE_ALIGNMENT,
    SIZE_MINIMUM,
    CHAIN_END,
    ADJACENT_FREE,
    PREV_SIZE,
    TOP,
    LIST_ADDRESS,
    LIST_SIZE,
    LIST_IN_USE,
    LIST_LINK,
    LIST_ORDER,
    BITMAP_BIT,
    FAST_LENGTH,
    HAS_FAST,
    FREE_COUNT,
    FREE_MEMBERS,
) = range(1, 18)


class Control:
    """The words of the control structure, and of the heap by payload."""

    def __init__(self, host: Host) -> None:
        self.base = ctypes.addressof(ctypes.c_char.in_dll(host.library, "dlmalloc27_control"))
        self.arena = host.arena

    def word(self, address: int) -> ctypes.c_size_t:
        return ctypes.c_size_t.from_address(address)

    def read(self, name: str) -> int:
        return self.word(self.base + OFFSETS[name]).value

    def write(self, name: str, value: int) -> None:
        self.word(self.base + OFFSETS[name]).value = value

    def tag(self, payload: int) -> ctypes.c_size_t:
        return self.word(self.arena + payload - WORD)

    def next(self, payload: int) -> ctypes.c_size_t:
        return self.word(self.arena + payload)

    def prev(self, payload: int) -> ctypes.c_size_t:
        return self.word(self.arena + payload + WORD)

    def head(self, number: int) -> ctypes.c_size_t:
        return self.word(self.base + BINS + 2 * WORD * number)


@dataclass
class Broken:
    """A heap with chunks of every kind, by payload."""

    control: Control
    used: int
    small: int
    """Alone in its bin."""
    large: int
    larger: int
    """Both in one bin."""
    unsorted: int
    fast: int
    faster: int
    """Both in one fast bin, faster first."""
    after_small: int


def broken(host: Host) -> Broken:
    host.init(1 << 14)
    used = host.malloc(100)
    sizes = (30 * ALIGNMENT, 74 * ALIGNMENT, 75 * ALIGNMENT, 30 * ALIGNMENT - 2 * ALIGNMENT)
    blocks, fences = [], []
    for size in sizes:
        blocks.append(host.malloc(size - WORD))
        fences.append(host.malloc(100))
    fast = [host.malloc(1), host.malloc(1)]
    for block in blocks[:3]:
        host.free(block)
    host.malloc(4000)
    host.free(blocks[3])
    for block in fast:
        host.free(block)
    assert host.check() == 0
    assert used is not None
    small, large, larger, unsorted = (block or 0 for block in blocks)
    return Broken(Control(host), used, small, large, larger, unsorted, fast[0] or 0, fast[1] or 0, fences[0] or 0)


def _set(word: ctypes.c_size_t, value: int) -> None:
    word.value = value


SPOILS: dict[str, tuple[int, Callable[[Broken], None]]] = {
    "no heap": (NO_HEAP, lambda b: b.control.write("first", 0)),
    "size not aligned": (SIZE_ALIGNMENT, lambda b: _set(b.control.tag(b.used), b.control.tag(b.used).value | 4)),
    "size 0": (SIZE_MINIMUM, lambda b: _set(b.control.tag(b.used), 1)),
    "beyond top": (CHAIN_END, lambda b: _set(b.control.tag(b.used), (1 << 40) + 1)),
    "neighbours free": (ADJACENT_FREE, lambda b: _set(b.control.tag(b.small), b.control.tag(b.small).value & ~1)),
    "first follows a free one": (ADJACENT_FREE, lambda b: _set(b.control.tag(b.used), b.control.tag(b.used).value & ~1)),
    "top follows a free one": (
        PREV_SIZE,
        lambda b: _set(b.control.word(b.control.read("top") + WORD), b.control.word(b.control.read("top") + WORD).value & ~1),
    ),
    "prev_size": (PREV_SIZE, lambda b: _set(b.control.word(b.control.arena + b.after_small - 2 * WORD), 0)),
    "top too short": (
        TOP,
        lambda b: _set(b.control.word(b.control.read("top") + WORD), b.control.word(b.control.read("top") + WORD).value - 16),
    ),
    "list leads out": (LIST_ADDRESS, lambda b: _set(b.control.head(30), b.control.arena - 64)),
    "list leads to odd": (LIST_ADDRESS, lambda b: _set(b.control.head(30), b.control.arena + b.small + 8)),
    "small in another bin": (LIST_SIZE, lambda b: _set(b.control.head(29), b.control.arena + b.small)),
    "large in another bin": (LIST_SIZE, lambda b: _set(b.control.head(66), b.control.arena + b.large)),
    "large in the last bin": (LIST_SIZE, lambda b: _set(b.control.head(126), b.control.arena + b.large)),
    "anything in bin 127": (LIST_SIZE, lambda b: _set(b.control.head(127), b.control.arena + b.large)),
    "used in unsorted": (LIST_IN_USE, lambda b: _set(b.control.head(1), b.control.arena + b.used)),
    "prev link": (LIST_LINK, lambda b: _set(b.control.prev(b.large), b.control.arena)),
    "cycle": (LIST_LINK, lambda b: _set(b.control.next(b.large), b.control.arena + b.larger)),
    "head's prev link": (LIST_LINK, lambda b: _set(b.control.word(b.control.base + BINS + 2 * WORD * 65 + WORD), 0)),
    "bit cleared": (BITMAP_BIT, lambda b: _set(b.control.word(b.control.base + BITMAP), 0)),
    "bit set": (
        BITMAP_BIT,
        lambda b: _set(b.control.word(b.control.base + BITMAP + 8), 1 | b.control.word(b.control.base + BITMAP + 8).value),
    ),
    "fast leads out": (LIST_ADDRESS, lambda b: _set(b.control.next(b.faster), 8)),
    "fast of another size": (LIST_SIZE, lambda b: _set(b.control.next(b.faster), b.control.arena + b.used)),
    "free one in a fast bin": (
        LIST_IN_USE,
        lambda b: _set(
            b.control.tag(b.faster + 2 * ALIGNMENT), b.control.tag(b.faster + 2 * ALIGNMENT).value
        ),  # replaced below
    ),
    "fast cycle": (FAST_LENGTH, lambda b: _set(b.control.next(b.fast), b.control.arena + b.faster)),
    "has_fast": (HAS_FAST, lambda b: b.control.write("has_fast", 0)),
}


def order_spoiled(b: Broken) -> None:
    """The two chunks of the large bin change places."""
    head = b.control.base + BINS + 2 * WORD * 65
    large, larger = b.control.arena + b.large, b.control.arena + b.larger
    for before, behind in ((head, large), (large, larger), (larger, head)):
        b.control.word(before).value = behind
        b.control.word(behind + WORD).value = before


def forgotten(b: Broken) -> None:
    """The unsorted bin is empty."""
    head = b.control.base + BINS + 2 * WORD
    b.control.word(head).value = b.control.word(head + WORD).value = head


def free_one_fast(b: Broken) -> None:
    """The fast bin leads to a free chunk of its size, which is in the unsorted bin in place of its right chunk."""
    b.control.word(b.control.base + FAST + WORD * 0).value = b.control.arena + b.small
    b.control.tag(b.small).value = 2 * ALIGNMENT | 1


SPOILS["order"] = (LIST_ORDER, order_spoiled)
SPOILS["forgotten"] = (FREE_COUNT, forgotten)
del SPOILS["free one in a fast bin"]


@pytest.mark.parametrize("name", SPOILS)
def test_the_checker_finds(host: Host, name: str) -> None:
    violation, spoil = SPOILS[name]
    heap = broken(host)
    spoil(heap)
    assert host.check() == violation
