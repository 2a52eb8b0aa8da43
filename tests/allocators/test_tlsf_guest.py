"""TLSF in the emulator, on every target and in every build: against the specification, after every operation."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support import CHOICES, TARGETS, tlsf_guest
from wcet_probe.emu.machine import Machine

from .tlsf_model import Tlsf

WORD_BYTES = 4
ALIGNMENT = HEADER = 8
MAXIMUM_HEAP = 1 << 28
BUILDS = [(target, values) for target in TARGETS for values in CHOICES]
IDS = [f"{target}-L{values['sl-bits']}-{'table' if values['bit-search'] else 'clz'}" for target, values in BUILDS]
HEAPS = (24, 32, 1000, 4096, 65536)

Operation = tuple[str, int]


@dataclass
class Session:
    """A guest's heap beside the specification's, and what stands in each live block."""

    machine: Machine
    sl_bits: int
    live: dict[int, tuple[int, bytes]] = field(default_factory=dict)
    """Size and content by offset."""

    def __post_init__(self) -> None:
        self.base, self.heap_bytes = self.machine.heap.base_address, self.machine.heap.size_bytes
        assert self.machine.call("tlsf_init", self.base, self.heap_bytes) == 0
        self.model = Tlsf(self.heap_bytes, self.sl_bits, WORD_BYTES)
        self._check()

    def malloc(self, size: int) -> int | None:
        address = self.machine.call("tlsf_malloc", size)
        offset = address - self.base if address else None
        assert offset == self.model.malloc(size)
        if offset is not None:
            assert offset % ALIGNMENT == 0
            assert HEADER <= offset <= self.heap_bytes - HEADER - size
            assert all(offset + size <= other or other + length <= offset for other, (length, _) in self.live.items())
            content = bytes((offset * 7 + i * 13 + size) & 0xFF for i in range(min(size, 64)))
            self.machine.memory.write(address, content)
            self.machine.memory.write(address + size - len(content), content)
            self.live[offset] = (size, content)
        self._check()
        return offset

    def free(self, offset: int | None) -> None:
        self.machine.call("tlsf_free", 0 if offset is None else self.base + offset)
        if offset is not None:
            self.model.free(offset)
            del self.live[offset]
        self._check()

    def free_one(self, choice: int) -> None:
        self.free(sorted(self.live)[choice % len(self.live)] if self.live else None)

    def chain(self) -> list[tuple[int, int, bool]]:
        """All blocks of the guest's heap: offset, payload, free."""
        blocks, offset = [], 0
        while offset < self.heap_bytes - HEADER:
            word = self.machine.memory.read_word(self.base + offset + WORD_BYTES)
            blocks.append((offset, word & ~1, bool(word & 1)))
            offset += HEADER + (word & ~1)
        return blocks

    def _check(self) -> None:
        """The heap is sound, is the specification's, and the blocks hold what was written into them."""
        assert self.machine.call("tlsf_check") == 0
        assert self.chain() == self.model.chain()
        for offset, (size, content) in self.live.items():
            end = self.base + offset + size
            assert self.machine.memory.read(end - len(content), len(content)) == content


def sizes(heap_bytes: int) -> st.SearchStrategy[int]:
    around_classes = [0, 1, 7, 8, 9, 127, 128, 129, 135, 255, 256, 257, 263, 264, 511, 512, 513]
    around_heap = [heap_bytes - 24, heap_bytes - 16, heap_bytes]
    huge = [MAXIMUM_HEAP - 1, MAXIMUM_HEAP, 1 << 31, 0xFFFFFFF8, 0xFFFFFFFF]
    edges = [*around_classes, *around_heap, *huge]
    return st.one_of(st.integers(1, 700), st.integers(1, max(1, heap_bytes // 2)), st.sampled_from(edges))


@st.composite
def workloads(draw: st.DrawFn) -> tuple[int, list[Operation]]:
    heap_bytes = draw(st.sampled_from(HEAPS))
    malloc = st.tuples(st.just("malloc"), sizes(heap_bytes))
    free = st.tuples(st.just("free"), st.integers(0, 99))
    return heap_bytes, draw(st.lists(malloc | malloc | free, min_size=1, max_size=25))


@pytest.mark.covering
@pytest.mark.parametrize(("target", "values"), BUILDS, ids=IDS)
@given(workload=workloads())
@settings(max_examples=12)
def test_random_operations(target, values, workload):
    heap_bytes, operations = workload
    with tlsf_guest(target, values).machine(heap_bytes) as machine:
        session = Session(machine, values["sl-bits"])
        for kind, value in operations:
            if kind == "malloc":
                session.malloc(value)
            else:
                session.free_one(value)
        while session.live:
            session.free_one(len(session.live) // 2)
        assert session.chain() == [(0, heap_bytes - 2 * HEADER, True)]


@pytest.fixture(params=BUILDS, ids=IDS)
def session(request):
    target, values = request.param
    with tlsf_guest(target, values).machine(4096) as machine:
        yield Session(machine, values["sl-bits"])


def test_exhaustion_and_recovery(session):
    blocks = []
    while (block := session.malloc(100)) is not None:
        blocks.append(block)
    assert len(blocks) == 4096 // 112
    assert session.malloc(100) is None
    session.free(blocks[7])
    assert session.malloc(100) == blocks[7]
    for block in blocks[::2]:
        session.free(block)
    assert session.malloc(400) is None
    for block in blocks[1::2]:
        session.free(block)
    assert session.chain() == [(0, 4096 - 16, True)]
    assert session.malloc(3840) == HEADER


@pytest.mark.parametrize("size", [0, 4096, 1 << 20, (1 << 28) - 1, 1 << 28, 1 << 31, 0xFFFFFFF8, 0xFFFFFFFF])
def test_sizes_that_no_heap_of_4096_bytes_can_serve(session, size):
    assert session.malloc(size) is None
    assert session.malloc(8) == HEADER


def test_freeing_null_does_nothing(session):
    block = session.malloc(24)
    session.free(None)
    assert session.live.keys() == {block}


@pytest.mark.parametrize(
    ("where", "heap_bytes"), [(0, 4096), (4, 4096), (8, 4092), (8, 16), (8, 0), (8, (1 << 28) + 8)]
)
def test_an_arena_that_is_refused_leaves_the_heap_as_it_was(session, where, heap_bytes):
    block = session.malloc(40)
    arena = session.base + where if where else 0
    assert session.machine.call("tlsf_init", arena, heap_bytes) != 0
    session.free(block)


def test_the_smallest_heap_holds_one_block_of_the_least_size():
    for target, values in BUILDS:
        with tlsf_guest(target, values).machine(24) as machine:
            session = Session(machine, values["sl-bits"])
            assert session.malloc(9) is None
            assert session.malloc(8) == HEADER
            assert session.malloc(1) is None
            session.free(HEADER)
            assert session.malloc(1) == HEADER


def test_before_init_every_allocation_is_refused():
    for target, values in BUILDS:
        with tlsf_guest(target, values).machine(4096) as machine:
            assert machine.call("tlsf_malloc", 8) == 0
            assert machine.call("tlsf_check") != 0
