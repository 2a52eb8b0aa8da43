"""dlmalloc27: chunks that are merged and put first among the unsorted ones, wherever their neighbours are.

Each operation is predicted by the specification; on the host all lists are compared with it too.
"""

from __future__ import annotations

import ctypes
import itertools
import random
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from tests.allocators.conformance import FREE, INIT, MALLOC, NONE, WARNINGS, WORD, Driver, Host, Subject, driver_command
from tests.allocators.dlmalloc27_model import Chunk, Dlmalloc27
from tests.allocators.host_compiler import CC, compile_or_fail, sanitizing

UNIT = 2 * WORD
THRESHOLD = 4096
HEAP_BYTES = 1 << 15
BINS, FAST_COUNT = 96, 10 if WORD == 4 else 11
BUILDS = [{"fast-request": fast, "consolidation-threshold": THRESHOLD} for fast in (16, 64, 80)]
DEFAULT = BUILDS[1]


def name_of(values: dict[str, int]) -> str:
    return "-".join(str(value) for value in values.values())


class Lists:
    """What the control structure of a host build leads to, as offsets of chunks in the order of links.next."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.control = ctypes.addressof(ctypes.c_char.in_dll(host.library, "dlmalloc27_control"))
        self.heads = self.control + (3 + FAST_COUNT) * WORD

    def filled(self) -> dict[int, list[int]]:
        """The bins that are not empty, each followed both ways."""
        heads = (ctypes.c_size_t * (2 * BINS)).from_address(self.heads)
        lists = {}
        for number, (chunk, last) in enumerate(zip(heads[::2], heads[1::2], strict=True)):
            before = head = self.heads + 2 * WORD * (number - 1)
            chunks = []
            while chunk != head:
                assert _word(chunk + UNIT + WORD) == before
                chunks.append(chunk - self.host.arena)
                chunk, before = _word(chunk + UNIT), chunk  # noqa: PLW2901
            assert last == before
            if chunks:
                lists[number] = chunks
        return lists

    def fast(self) -> dict[int, list[int]]:
        lists: dict[int, list[int]] = {}
        for number in range(FAST_COUNT):
            chunk = _word(self.control + WORD * (1 + number))
            while chunk:
                lists.setdefault(8 * (number + 2), []).append(chunk - self.host.arena)
                chunk = _word(chunk + UNIT)
        return lists

    def compare(self, heap: Dlmalloc27) -> None:
        bins = {1: heap.unsorted[::-1], **heap.bins}
        assert self.filled() == {number: _offsets(chunks) for number, chunks in bins.items() if chunks}
        assert self.fast() == {size: _offsets(reversed(chunks)) for size, chunks in heap.fast.items() if chunks}
        assert _word(self.control + (1 + FAST_COUNT) * WORD) - self.host.arena == heap.chunks[-1].offset


def _word(address: int) -> int:
    return ctypes.c_size_t.from_address(address).value


def _offsets(chunks: Iterable[Chunk]) -> list[int]:
    return [chunk.offset for chunk in chunks]


class Script(Driver):
    """Operations with the answers of the specification, done on a host build at once if there is one."""

    def __init__(self, values: dict[str, int], host: Host | None = None) -> None:
        self.steps: list[tuple[int, int]] = []
        self.expected: list[int | None] = []
        self.values = values
        self.host = host
        self.lists = Lists(host) if host else None

    def init(self, heap_bytes: int = HEAP_BYTES) -> None:
        self.heap = Dlmalloc27(
            heap_bytes,
            WORD,
            fast_request=self.values["fast-request"],
            threshold=THRESHOLD,
        )
        self.offsets: list[int] = []
        self._add(INIT, heap_bytes, 0)
        if self.host:
            assert self.host.init(heap_bytes) == 0

    def malloc(self, size: int) -> int | None:
        """The block's number, for free."""
        offset = self.heap.malloc(size)
        self._add(MALLOC, size, NONE if offset is None else offset)
        if self.host:
            assert self.host.malloc(size) == offset
        self._compare()
        if offset is None:
            return None
        self.offsets.append(offset)
        return len(self.offsets) - 1

    def take(self, chunk_bytes: int) -> int:
        """A block in a chunk of a size."""
        slot = self.malloc(chunk_bytes - WORD)
        assert slot is not None
        return slot

    def free(self, slot: int) -> None:
        self.heap.free(self.offsets[slot])
        self._add(FREE, slot, 0)
        if self.host:
            self.host.free(self.offsets[slot])
        self._compare()

    def sort(self) -> None:
        """Puts the unsorted chunks into their bins."""
        assert self.malloc(HEAP_BYTES - 4 * UNIT) is None

    def _compare(self) -> None:
        if self.host and self.lists:
            assert self.host.check() == 0
            self.lists.compare(self.heap)


# ------------------------------------------------------------------------------------------------- constructed heaps

USED, BINNED, UNSORTED = range(3)
SIZES = {
    "small": (224,) * 4,
    "large": (1088, 1056, 1152, 1120),  # of one bin
    "various": (224, 512, 224, 512),
}


def arrangements() -> Iterator[tuple[list[int], list[int]]]:
    """Which of four chunks are in bins, and which are unsorted, in every order."""
    for states in itertools.product((USED, BINNED, UNSORTED), repeat=4):
        binned = [number for number, state in enumerate(states) if state == BINNED]
        unsorted = [number for number, state in enumerate(states) if state == UNSORTED]
        for order in itertools.permutations(unsorted):
            yield binned, list(order)


def free_before(script: Script, slots: list[int], binned: list[int], unsorted: list[int]) -> None:
    for number in binned:
        script.free(slots[number])
    if binned:
        script.sort()
    for number in unsorted:
        script.free(slots[number])


def between(script: Script, sizes: tuple[int, ...], binned: list[int], unsorted: list[int]) -> None:
    """A chunk between the first two of the four is freed; it is in no fast bin."""
    script.init()
    before, middle, behind, _ = (script.take(size) for size in (sizes[0], 12 * UNIT, sizes[1], 2 * UNIT))
    others = [script.take(size) for size in (sizes[2], 2 * UNIT, sizes[3], 2 * UNIT)]
    free_before(script, [before, behind, others[0], others[2]], binned, unsorted)
    script.free(middle)


def at_top(script: Script, sizes: tuple[int, ...], binned: list[int], unsorted: list[int]) -> None:
    """A chunk between the first of the four and top is freed."""
    script.init()
    others = [script.take(size) for size in (sizes[1], 2 * UNIT, sizes[2], 2 * UNIT, sizes[3], 2 * UNIT)]
    before, last = script.take(sizes[0]), script.take(12 * UNIT)
    free_before(script, [before, *others[::2]], binned, unsorted)
    script.free(last)


def consolidated(script: Script, sizes: tuple[int, ...], binned: list[int], unsorted: list[int]) -> None:
    """Chunks of fast bins between the first two of the four, beside the third one, and between the last one and top."""
    script.init()
    before, low, high, behind, _ = (script.take(size) for size in (sizes[0], 2 * UNIT, 2 * UNIT, sizes[1], 2 * UNIT))
    third, beside, _ = (script.take(size) for size in (sizes[2], 2 * UNIT, 2 * UNIT))
    huge, _ = script.take(THRESHOLD), script.take(2 * UNIT)
    fourth, last = script.take(sizes[3]), script.take(2 * UNIT)
    free_before(script, [before, behind, third, fourth], binned, unsorted)
    for slot in (low, beside, last, high):
        script.free(slot)
    script.free(huge)
    assert not any(script.heap.fast.values())


HEAPS: list[Callable[[Script, tuple[int, ...], list[int], list[int]], None]] = [between, at_top, consolidated]


def constructed(script: Script, sizes: tuple[int, ...]) -> None:
    for heap in HEAPS:
        for binned, unsorted in arrangements():
            heap(script, sizes, binned, unsorted)
            for size in (208, 1040, 208):
                script.take(size)


# ------------------------------------------------------------------------------------------------------ random heaps


def at_random(script: Script, seed: int, count: int = 250) -> None:
    """Few sizes, so that neighbours merge and lists are long; a chunk of the threshold's size now and then."""
    draw = random.Random(seed)
    script.init(HEAP_BYTES + UNIT * draw.randrange(4))
    small = [draw.randrange(1, 12 * UNIT) for _ in range(3)]
    sizes = [*small, *small, *small, 240, 520, 520 + UNIT, draw.randrange(1, 200 * UNIT)]
    live: list[int] = []
    most = draw.choice((20, 60, 120))
    for _ in range(count):
        if draw.random() < 0.03:
            slot = script.malloc(THRESHOLD)
            if slot is not None:
                script.free(slot)
        elif live and (len(live) > most or draw.random() < 0.45):
            beside_last = draw.random() < 0.3
            script.free(live.pop(-1 if beside_last else draw.randrange(len(live))))
        else:
            slot = script.malloc(draw.choice(sizes))
            if slot is not None:
                live.append(slot)


# ------------------------------------------------------------------------------------------------------------- tests


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Callable[[dict[str, int]], Host]:
    return lambda values: Host(Subject("dlmalloc27", values), tmp_path_factory.mktemp(name_of(values)))


@pytest.mark.parametrize("values", [DEFAULT], ids=name_of)
def test_lists_of_constructed_heaps(build: Callable[[dict[str, int]], Host], values: dict[str, int]) -> None:
    constructed(Script(values, build(values)), SIZES["various"])


@pytest.mark.parametrize("values", BUILDS, ids=name_of)
def test_lists_of_random_heaps(build: Callable[[dict[str, int]], Host], values: dict[str, int]) -> None:
    script = Script(values, build(values))
    for seed in range(2):
        at_random(script, seed)


@pytest.mark.parametrize("values", [DEFAULT], ids=name_of)
def test_sanitizers_find_nothing(values: dict[str, int], tmp_path: Path) -> None:
    subject = Subject("dlmalloc27", values)
    command = [*CC, *sanitizing(tmp_path), "-std=gnu11", *WARNINGS, *driver_command(subject, tmp_path)]
    compile_or_fail([*command, "-o", "driver"], tmp_path)
    for sizes in (SIZES["small"], SIZES["large"]):
        script = Script(values)
        constructed(script, sizes)
        script.run(tmp_path / "driver")
    script = Script(values)
    for seed in range(5):
        at_random(script, seed)
    script.run(tmp_path / "driver")
