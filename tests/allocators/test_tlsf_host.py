"""TLSF on the host: the C against a specification, the checker against broken heaps, the guests' code for loops."""

from __future__ import annotations

import ctypes
import json
import platform
import random
import re
import shutil
import struct
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import Path

import capstone
import pytest
import ziglang
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import Symbol, SymbolTableSection
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .tlsf_model import Tlsf, class_bounds

HERE = Path(__file__).parent
TLSF = HERE.parents[1] / "allocators" / "tlsf"
COMMON = TLSF.parent / "common"
SOURCES = [str(TLSF / "tlsf.c"), str(TLSF / "tlsf_check.c")]
DRIVER = str(HERE / "tlsf_driver.c")
ZIG = Path(ziglang.__file__).with_name("zig")
CC = ["cc"] if shutil.which("cc") else [str(ZIG), "cc"]
WARNINGS = ["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror", f"-I{TLSF}", f"-I{COMMON}"]

WORD = ctypes.sizeof(ctypes.c_void_p)
ALIGNMENT = HEADER = 2 * WORD
SIZE_MAX = (1 << 8 * WORD) - 1
MINIMUM_HEAP = 3 * ALIGNMENT
MAXIMUM_HEAP = 1 << 28
CONFIGURATIONS = [(sl_bits, bit_search) for sl_bits in (4, 5) for bit_search in (0, 1)]

exhaustive = settings(
    max_examples=300,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


class Violation(IntEnum):
    """enum tlsf_violation."""

    HEAP_SOUND = 0
    NO_HEAP = 1
    BAD_PREV_PHYSICAL = 2
    BAD_SIZE_ALIGNMENT = 3
    BAD_SIZE_MINIMUM = 4
    BAD_CHAIN_END = 5
    BAD_ADJACENT_FREE = 6
    BAD_SENTINEL = 7
    BAD_LIST_ADDRESS = 8
    BAD_LIST_FREE_BIT = 9
    BAD_LIST_CLASS = 10
    BAD_LIST_LINK = 11
    BAD_SL_BITMAP = 12
    BAD_FL_BITMAP = 13
    BAD_FREE_COUNT = 14
    BAD_FREE_MEMBERS = 15


def macros(sl_bits: int, bit_search: int) -> list[str]:
    return [f"-DTLSF_SL_BITS={sl_bits}", f"-DBIT_SEARCH={bit_search}"]


def compile_or_fail(command: list[str], cwd: Path) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd)
    assert done.returncode == 0, done.stderr


class BlockStruct(ctypes.Structure):
    """struct tlsf_block."""

    _fields_ = (
        ("prev_physical", ctypes.c_size_t),
        ("size_and_free", ctypes.c_size_t),
        ("next_free", ctypes.c_size_t),
        ("prev_free", ctypes.c_size_t),
    )


@dataclass
class Host:
    """A build of the allocator, loaded, with the memory of the current arena."""

    library: ctypes.CDLL
    sl_bits: int
    arena: int = 0
    heap_bytes: int = 0

    def __post_init__(self) -> None:
        lists = 1 << self.sl_bits
        rows = len(class_bounds(self.sl_bits, ALIGNMENT)) // lists

        class ControlStruct(ctypes.Structure):
            """struct tlsf_control."""

            _fields_ = (
                ("first", ctypes.c_size_t),
                ("sentinel", ctypes.c_size_t),
                ("fl_bitmap", ctypes.c_uint32),
                ("sl_bitmap", ctypes.c_uint32 * rows),
                ("heads", ctypes.c_size_t * lists * rows),
            )

        self.control = ControlStruct.in_dll(self.library, "tlsf_control")
        self.library.tlsf_init.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
        self.library.tlsf_malloc.argtypes = [ctypes.c_size_t]
        self.library.tlsf_malloc.restype = ctypes.c_void_p
        self.library.tlsf_free.argtypes = [ctypes.c_void_p]
        self.library.tlsf_free.restype = None

    def init(self, size: int) -> int:
        """A new arena of `size` bytes, aligned."""
        self.memory = ctypes.create_string_buffer(size + ALIGNMENT)
        self.arena = -(-ctypes.addressof(self.memory) // ALIGNMENT) * ALIGNMENT
        self.heap_bytes = size
        return int(self.library.tlsf_init(self.arena, size))

    def malloc(self, size: int) -> int | None:
        """Offset of the payload in the arena."""
        address = self.library.tlsf_malloc(size)
        return None if address is None else address - self.arena

    def free(self, offset: int) -> None:
        self.library.tlsf_free(self.arena + offset)

    def check(self) -> Violation:
        return Violation(self.library.tlsf_check())

    def block(self, payload: int) -> BlockStruct:
        return BlockStruct.from_address(self.arena + payload - HEADER)

    def chain(self) -> list[tuple[int, int, bool]]:
        """All blocks as (offset, size, free)."""
        blocks, offset = [], 0
        while offset < self.heap_bytes - HEADER:
            size_and_free = self.block(offset + HEADER).size_and_free
            blocks.append((offset, size_and_free & ~1, bool(size_and_free & 1)))
            offset += HEADER + (size_and_free & ~1)
        return blocks

    def snapshot(self) -> bytes:
        return bytes(self.control) + ctypes.string_at(self.arena, self.heap_bytes)


@pytest.fixture(scope="session")
def build_host(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int, int], Path]:
    """Builds each shared library once a session."""
    folder = tmp_path_factory.mktemp("tlsf")
    built: dict[tuple[int, int], Path] = {}

    def build(sl_bits: int, bit_search: int) -> Path:
        output = folder / f"tlsf-{sl_bits}-{bit_search}.so"
        if (sl_bits, bit_search) not in built:
            freestanding = ["-O2", "-shared", "-fPIC", "-ffreestanding", "-nostdlib"]
            compile_or_fail(
                [*CC, *WARNINGS, *freestanding, *macros(sl_bits, bit_search), *SOURCES, "-o", str(output)], folder
            )
            built[sl_bits, bit_search] = output
        return built[sl_bits, bit_search]

    return build


@pytest.fixture(params=CONFIGURATIONS, ids=lambda pair: f"sl{pair[0]}-search{pair[1]}")
def host(request: pytest.FixtureRequest, build_host: Callable[[int, int], Path]) -> Iterator[Host]:
    sl_bits, bit_search = request.param
    host = Host(ctypes.CDLL(str(build_host(sl_bits, bit_search))), sl_bits)
    yield host
    ctypes.memset(ctypes.addressof(host.control), 0, ctypes.sizeof(host.control))


# ------------------------------------------------------------------------------------------------ random operations

near_a_power = st.builds(lambda bits, off: max(0, (1 << bits) + off), st.integers(3, 16), st.integers(-17, 17))
huge = st.one_of(
    st.integers(0, 2 * ALIGNMENT).map(lambda less: SIZE_MAX - less),
    st.integers(0, 8 * WORD - 1).map(lambda bits: 1 << bits),
    st.integers(0, SIZE_MAX),
)
sizes = st.one_of(st.integers(0, 300), st.integers(0, 6000), near_a_power, huge)
mallocs = st.tuples(st.just("malloc"), sizes)
frees = st.tuples(st.just("free"), st.integers(0, 1000))
step = st.one_of(mallocs, mallocs, frees)
operations = st.one_of(st.lists(step, max_size=10), st.lists(step, min_size=40, max_size=80))
heaps = st.one_of(st.integers(3, 40), st.integers(3, 1 << 11), st.just(1 << 12)).map(lambda units: units * ALIGNMENT)


def pattern(offset: int, size: int) -> bytes:
    return (offset.to_bytes(4, "little") * (size // 4 + 1))[:size]


@exhaustive
@given(heap_bytes=heaps, steps=operations)
def test_every_operation_does_what_the_specification_says(
    host: Host, heap_bytes: int, steps: list[tuple[str, int]]
) -> None:
    model = Tlsf(heap_bytes, host.sl_bits, WORD)
    live: dict[int, int] = {}

    def free(offset: int) -> None:
        size = live.pop(offset)
        assert ctypes.string_at(host.arena + offset, size) == pattern(offset, size)
        host.free(offset)
        model.free(offset)

    def compare() -> None:
        assert host.check() is Violation.HEAP_SOUND
        assert host.chain() == model.chain()

    assert host.init(heap_bytes) == 0
    compare()
    for action, argument in steps:
        if action == "malloc":
            before = host.snapshot()
            offset = host.malloc(argument)
            assert offset == model.malloc(argument)
            if offset is None:
                assert host.snapshot() == before
            else:
                assert (host.arena + offset) % ALIGNMENT == 0
                assert HEADER <= offset <= heap_bytes - HEADER - argument
                assert all(offset + argument <= o or o + s <= offset for o, s in live.items())
                live[offset] = argument
                ctypes.memmove(host.arena + offset, pattern(offset, argument), argument)
        elif live:
            free(sorted(live)[argument % len(live)])
        compare()
    while live:
        free(next(iter(live)))
        compare()
    assert host.chain() == [(0, heap_bytes - 2 * HEADER, True)]


# ---------------------------------------------------------------------------------------------------------- the edges


def test_before_init_malloc_fails(host: Host) -> None:
    assert host.check() is Violation.NO_HEAP
    assert host.malloc(1) is None


def test_size_zero_and_null(host: Host) -> None:
    host.init(4096)
    before = host.snapshot()
    assert host.malloc(0) is None
    host.library.tlsf_free(None)
    assert host.snapshot() == before


def test_huge_requests_fail_and_change_nothing(host: Host) -> None:
    host.init(4096)
    before = host.snapshot()
    largest_class = class_bounds(host.sl_bits, ALIGNMENT)[-1]
    for size in (
        SIZE_MAX,
        SIZE_MAX - 6,
        SIZE_MAX - 7,
        SIZE_MAX - ALIGNMENT,
        SIZE_MAX // 2 + 1,
        largest_class,
        largest_class + 1,
        1 << 28,
        (1 << 31) + 1,
        1 << 31,
    ):
        assert host.malloc(size) is None, size
        assert host.snapshot() == before


def test_init_refuses_and_changes_nothing(host: Host) -> None:
    host.init(4096)
    before, init, arena = host.snapshot(), host.library.tlsf_init, host.arena
    misaligned = [init(arena + off, 2048) for off in range(1, ALIGNMENT)]
    odd = [init(arena, 2048 + off) for off in range(1, ALIGNMENT)]
    small = [init(arena, size) for size in (0, ALIGNMENT, MINIMUM_HEAP - ALIGNMENT)]
    large = [init(arena, size) for size in (MAXIMUM_HEAP + ALIGNMENT, SIZE_MAX + 1 - ALIGNMENT)]
    assert 0 not in misaligned + odd + small + large + [init(None, 2048)]
    assert host.snapshot() == before
    assert host.check() is Violation.HEAP_SOUND


def test_init_forgets_the_heap_before(host: Host) -> None:
    host.init(8192)
    kept = [host.malloc(40 * i + 1) for i in range(20)]
    for offset in kept[::2]:
        assert offset is not None
        host.free(offset)
    assert host.init(512) == 0
    assert host.check() is Violation.HEAP_SOUND
    assert host.chain() == [(0, 512 - 2 * HEADER, True)]


def test_minimum_heap_serves_one_block(host: Host) -> None:
    assert host.init(MINIMUM_HEAP) == 0
    assert host.malloc(ALIGNMENT + 1) is None
    assert host.malloc(ALIGNMENT) == HEADER
    assert host.malloc(1) is None
    assert host.check() is Violation.HEAP_SOUND
    host.free(HEADER)
    assert host.malloc(1) == HEADER


def test_maximum_heap(host: Host) -> None:
    """The pages of the buffer stay untouched, but for the two at its ends."""
    assert host.init(MAXIMUM_HEAP) == 0
    assert host.check() is Violation.HEAP_SOUND
    largest = class_bounds(host.sl_bits, ALIGNMENT)[-1]
    assert host.malloc(largest + 1) is None
    assert host.malloc(largest) == HEADER
    assert host.check() is Violation.HEAP_SOUND
    host.free(HEADER)
    assert host.chain() == [(0, MAXIMUM_HEAP - 2 * HEADER, True)]


def test_largest_request_of_a_heap_is_the_lower_end_of_its_class(host: Host) -> None:
    bounds = class_bounds(host.sl_bits, ALIGNMENT)
    for heap_bytes in (1024, 10_000 // ALIGNMENT * ALIGNMENT, 65536 + ALIGNMENT):
        host.init(heap_bytes)
        largest = max(bound for bound in bounds if bound <= heap_bytes - 2 * HEADER)
        assert host.malloc(largest + 1) is None
        assert host.malloc(largest) == HEADER


def test_exhaustion_and_recovery(host: Host) -> None:
    host.init((1 << 16) + HEADER)
    first = []
    while (offset := host.malloc(1)) is not None:
        first.append(offset)
    assert len(first) == (1 << 16) // (2 * ALIGNMENT)
    assert host.check() is Violation.HEAP_SOUND
    for offset in first[::2]:
        host.free(offset)
    assert host.malloc(ALIGNMENT + 1) is None
    assert sorted(o for _ in first[::2] if (o := host.malloc(1)) is not None) == first[::2]
    random.Random(1).shuffle(first)
    for offset in first:
        host.free(offset)
        assert host.check() is Violation.HEAP_SOUND
    assert len(host.chain()) == 1


def test_a_block_once_cut_serves_its_whole_class(host: Host) -> None:
    """M06 section 4.3: cut for 130, reused for 132."""
    host.init(1 << 16)
    bounds = class_bounds(host.sl_bits, ALIGNMENT)
    for lower, upper in pairwise(bounds):
        if (cut := host.malloc(lower + 1)) is None:
            break
        fence = host.malloc(1)
        host.free(cut)
        assert host.malloc(upper) == cut
        assert fence is not None
        host.free(fence)
        host.free(cut)


# --------------------------------------------------------------------------------------------- the checker can fail

Spoil = Callable[[Host], None]
SPOILS: list[tuple[Violation, str, Spoil]] = []
A, B, C, D, E = (HEADER + i * (HEADER + 4 * ALIGNMENT) for i in range(5))
"""Payloads of five blocks of the same size: B and D are free, D at the head of their list."""


def spoils(violation: Violation) -> Callable[[Spoil], Spoil]:
    def register(function: Spoil) -> Spoil:
        SPOILS.append((violation, function.__name__, function))
        return function

    return register


def row_and_list(host: Host, payload: int) -> tuple[int, int]:
    index = class_bounds(host.sl_bits, ALIGNMENT).index(host.block(payload).size_and_free & ~1)
    return index >> host.sl_bits, index & ((1 << host.sl_bits) - 1)


@spoils(Violation.NO_HEAP)
def first_forgotten(host: Host) -> None:
    host.control.first = 0


@spoils(Violation.BAD_PREV_PHYSICAL)
def prev_physical_moved(host: Host) -> None:
    host.block(C).prev_physical += ALIGNMENT


@spoils(Violation.BAD_PREV_PHYSICAL)
def first_block_has_a_block_before_it(host: Host) -> None:
    host.block(A).prev_physical = host.arena


@spoils(Violation.BAD_PREV_PHYSICAL)
def sentinels_prev_physical_moved(host: Host) -> None:
    host.block(host.heap_bytes).prev_physical = host.arena


@spoils(Violation.BAD_SIZE_ALIGNMENT)
def unknown_flag_set(host: Host) -> None:
    host.block(B).size_and_free |= 2


@spoils(Violation.BAD_SIZE_MINIMUM)
def size_zero(host: Host) -> None:
    host.block(A).size_and_free = 0


@spoils(Violation.BAD_CHAIN_END)
def block_beyond_the_sentinel(host: Host) -> None:
    host.block(E + HEADER + 4 * ALIGNMENT).size_and_free += ALIGNMENT


@spoils(Violation.BAD_CHAIN_END)
def size_wraps_around(host: Host) -> None:
    host.block(A).size_and_free = SIZE_MAX + 1 - ALIGNMENT


@spoils(Violation.BAD_ADJACENT_FREE)
def used_block_between_free_ones_marked_free(host: Host) -> None:
    host.block(C).size_and_free |= 1


@spoils(Violation.BAD_SENTINEL)
def sentinel_free(host: Host) -> None:
    host.block(host.heap_bytes).size_and_free = 1


@spoils(Violation.BAD_SENTINEL)
def sentinel_has_a_size(host: Host) -> None:
    host.block(host.heap_bytes).size_and_free = ALIGNMENT


@spoils(Violation.BAD_LIST_ADDRESS)
def link_out_of_the_arena(host: Host) -> None:
    host.block(B).next_free = host.arena + host.heap_bytes


@spoils(Violation.BAD_LIST_ADDRESS)
def link_before_the_arena(host: Host) -> None:
    host.block(B).next_free = host.arena - ALIGNMENT


@spoils(Violation.BAD_LIST_ADDRESS)
def link_misaligned(host: Host) -> None:
    host.block(B).next_free = host.arena + 4


@spoils(Violation.BAD_LIST_FREE_BIT)
def free_block_marked_used(host: Host) -> None:
    host.block(B).size_and_free &= ~1


@spoils(Violation.BAD_LIST_CLASS)
def list_moved_to_another_class(host: Host) -> None:
    fl, sl = row_and_list(host, D)
    host.control.heads[fl][sl + 1] = host.control.heads[fl][sl]
    host.control.heads[fl][sl] = 0


@spoils(Violation.BAD_LIST_LINK)
def back_link_cleared(host: Host) -> None:
    host.block(B).prev_free = 0


@spoils(Violation.BAD_LIST_LINK)
def head_has_a_block_before_it(host: Host) -> None:
    host.block(D).prev_free = host.arena + B - HEADER


@spoils(Violation.BAD_LIST_LINK)
def cycle(host: Host) -> None:
    host.block(B).next_free = host.arena + D - HEADER


@spoils(Violation.BAD_LIST_LINK)
def cycle_of_one(host: Host) -> None:
    host.block(B).next_free = host.arena + B - HEADER


@spoils(Violation.BAD_SL_BITMAP)
def list_without_its_bit(host: Host) -> None:
    fl, sl = row_and_list(host, D)
    host.control.sl_bitmap[fl] &= ~(1 << sl)


@spoils(Violation.BAD_SL_BITMAP)
def bit_without_its_list(host: Host) -> None:
    host.control.sl_bitmap[3] |= 1


@spoils(Violation.BAD_FL_BITMAP)
def row_without_its_bit(host: Host) -> None:
    host.control.fl_bitmap &= ~1


@spoils(Violation.BAD_FL_BITMAP)
def bit_of_no_row(host: Host) -> None:
    host.control.fl_bitmap |= 1 << 31


@spoils(Violation.BAD_FREE_COUNT)
def free_block_in_no_list(host: Host) -> None:
    host.block(D).next_free = 0


def plant_stale_block(host: Host) -> int:
    """Address of a perfect copy of free block B inside the payload of E."""
    stale = host.block(E + HEADER)
    ctypes.pointer(stale)[0] = host.block(B)
    return ctypes.addressof(stale)


@spoils(Violation.BAD_FREE_COUNT)
def list_holds_a_stale_block_too(host: Host) -> None:
    host.block(B).next_free = stale = plant_stale_block(host)
    BlockStruct.from_address(stale).next_free = 0
    BlockStruct.from_address(stale).prev_free = host.arena + B - HEADER


@spoils(Violation.BAD_FREE_MEMBERS)
def list_holds_a_stale_block_instead(host: Host) -> None:
    host.block(D).next_free = plant_stale_block(host)


@pytest.mark.parametrize(("violation", "spoil"), [pytest.param(v, s, id=f"{v.name}-{n}") for v, n, s in SPOILS])
def test_check_names_the_violation(host: Host, violation: Violation, spoil: Spoil) -> None:
    host.init(4096)
    blocks = [host.malloc(4 * ALIGNMENT) for _ in range(5)]
    assert blocks == [A, B, C, D, E]
    host.free(B)
    host.free(D)
    assert host.check() is Violation.HEAP_SOUND
    spoil(host)
    before = host.snapshot() if host.control.first else b""
    assert host.check() is violation
    assert before == (host.snapshot() if host.control.first else b"")


def test_every_violation_of_the_header_is_provoked() -> None:
    declared = re.search(r"enum tlsf_violation \{(.*?)\}", (TLSF / "tlsf.h").read_text(), re.DOTALL)
    assert declared is not None
    assert re.findall(r"^ *TLSF_(\w+)", declared[1], re.MULTILINE) == [violation.name for violation in Violation]
    assert {violation for violation, _, _ in SPOILS} == set(Violation) - {Violation.HEAP_SOUND}


# ----------------------------------------------------------------------------- the driver: other builds, same answers

INIT, MALLOC, FREE, FREE_NULL, MALLOC_HUGE, INIT_AT_1, INIT_NULL = range(7)
NONE = 0xFFFFFFFF


def driver_operations(sl_bits: int, word_bytes: int) -> tuple[list[tuple[int, int]], list[int | None]]:
    """A fixed sequence that takes every branch, and the answer to each operation; None for "not 0"."""
    rng = random.Random(sl_bits)
    alignment = 2 * word_bytes
    steps: list[tuple[int, int]] = [(MALLOC, 8), (FREE_NULL, 0)]
    answers: list[int | None] = [NONE, 0]
    for heap_bytes in (0, 2 * alignment, 2048 + 4, MAXIMUM_HEAP + alignment):
        steps.append((INIT, heap_bytes))
        answers.append(None)
    for heap_bytes in (3 * alignment, 1024, 1 << 14, 1 << 17):
        model = Tlsf(heap_bytes, sl_bits, word_bytes)
        steps.extend([(INIT, heap_bytes), (INIT_AT_1, 1024), (INIT_NULL, 1024)])
        answers.extend([0, None, None])
        for less in (0, 1, 6, 7, 8, 15, 16, 1 << 20, 1 << 31):
            steps.append((MALLOC_HUGE, less))
            answers.append(NONE)
        for size in (model.bounds[-1], model.bounds[-1] + 1):
            steps.append((MALLOC, size))
            answers.append(NONE)
        slots: list[int] = []
        live: set[int] = set()
        for _ in range(1500):
            if rng.random() < 0.55:
                size = min(int(2 ** rng.uniform(0, 15)), heap_bytes) if rng.random() < 0.8 else rng.randrange(80)
                offset = model.malloc(size)
                steps.append((MALLOC, size))
                answers.append(NONE if offset is None else offset)
                if offset is not None:
                    live.add(len(slots))
                    slots.append(offset)
            elif live:
                slot = rng.choice(sorted(live))
                live.remove(slot)
                model.free(slots[slot])
                steps.append((FREE, slot))
                answers.append(0)
    return steps, answers


def drive(program: Path, sl_bits: int, word_bytes: int) -> None:
    steps, answers = driver_operations(sl_bits, word_bytes)
    stdin = b"".join(struct.pack("=II", *step) for step in steps)
    done = subprocess.run([program], input=stdin, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    results = list(struct.iter_unpack("=II", done.stdout))
    for step, expected, (answer, violation) in zip(steps, answers, results, strict=True):
        assert answer != 0 if expected is None else answer == expected, step
        assert violation in (Violation.HEAP_SOUND, Violation.NO_HEAP), step


@pytest.mark.parametrize(("sl_bits", "bit_search"), CONFIGURATIONS)
def test_sanitizers_find_nothing(tmp_path: Path, sl_bits: int, bit_search: int) -> None:
    sanitize = ["-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    empty = tmp_path / "empty.c"
    empty.write_text("int main(void) { return 0; }\n")
    for probe in ([*CC, *sanitize, str(empty), "-o", "empty"], ["./empty"]):
        done = subprocess.run(probe, capture_output=True, text=True, check=False, cwd=tmp_path)
        if done.returncode != 0:
            pytest.skip(f"{CC[0]} has no working sanitizers here: {done.stderr.strip()[-200:]}")
    program = tmp_path / "driver"
    compile_or_fail(
        [
            *CC,
            *sanitize,
            *WARNINGS[1:],
            "-std=gnu11",
            *macros(sl_bits, bit_search),
            *SOURCES,
            DRIVER,
            "-o",
            str(program),
        ],
        tmp_path,
    )
    drive(program, sl_bits, WORD)


@pytest.mark.parametrize(("sl_bits", "bit_search"), CONFIGURATIONS)
def test_32_bit_layout(tmp_path: Path, sl_bits: int, bit_search: int) -> None:
    """The guests' word size, executed natively: needs no 32-bit library."""
    if platform.machine() not in ("x86_64", "i686") or platform.system() != "Linux":
        pytest.skip("32-bit x86 code does not run on this machine")
    program = tmp_path / "driver"
    target = ["-target", "x86-linux-none", "-ffreestanding", "-nostdlib", "-static", "-DDRIVER_FREESTANDING"]
    compile_or_fail(
        [str(ZIG), "cc", "-O2", *WARNINGS, *target, *macros(sl_bits, bit_search), *SOURCES, DRIVER, "-o", str(program)],
        tmp_path,
    )
    try:
        subprocess.run([program], input=b"", check=True)
    except OSError as error:
        pytest.skip(f"the kernel does not run 32-bit code: {error}")
    drive(program, sl_bits, 4)


@pytest.mark.parametrize(("sl_bits", "bit_search"), CONFIGURATIONS)
def test_no_line_or_branch_stays_unexecuted(tmp_path: Path, sl_bits: int, bit_search: int) -> None:
    gcc, gcov = shutil.which("gcc"), shutil.which("gcov")
    if gcc is None or gcov is None:
        pytest.skip("needs gcc and gcov")
    command = [
        gcc,
        "-std=gnu11",
        "--coverage",
        "-O0",
        f"-I{TLSF}",
        f"-I{COMMON}",
        *macros(sl_bits, bit_search),
        *SOURCES,
        DRIVER,
    ]
    compile_or_fail([*command, "-o", "driver"], tmp_path)
    drive(tmp_path / "driver", sl_bits, WORD)
    data = next(tmp_path.glob("*tlsf.gcda"))
    done = subprocess.run(
        [gcov, "--branch-probabilities", "--json-format", "--stdout", data.name],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    (report,) = (file for file in json.loads(done.stdout)["files"] if file["file"].endswith("tlsf.c"))
    assert len(report["lines"]) > 80
    assert [line["line_number"] for line in report["lines"] if line["count"] == 0] == []
    assert [line["line_number"] for line in report["lines"] for b in line["branches"] if b["count"] == 0] == []


# -------------------------------------------------------------------------------------------------- code of the guests

GUESTS = {
    "cortex-m4": ["--target=arm-none-eabi", "-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=soft"],
    "arm926ej-s": ["--target=arm-none-eabi", "-mcpu=arm926ej-s", "-marm", "-mfloat-abi=soft"],
    "mpc603e": ["--target=powerpc-none-eabi", "-mcpu=603e", "-msoft-float"],
}
DECODERS = {
    "cortex-m4": (capstone.CS_ARCH_ARM, capstone.CS_MODE_THUMB | capstone.CS_MODE_MCLASS),
    "arm926ej-s": (capstone.CS_ARCH_ARM, capstone.CS_MODE_ARM),
    "mpc603e": (capstone.CS_ARCH_PPC, capstone.CS_MODE_32 | capstone.CS_MODE_BIG_ENDIAN),
}


def successors(instruction: capstone.CsInsn) -> set[int]:
    """Where a function goes on after an instruction that is no call."""
    mnemonic, operands = instruction.mnemonic.split(".")[0], instruction.op_str
    target = operands.rsplit(" ", 1)[-1].lstrip("#")
    is_branch = re.match(r"(cb|b(?!ic|fc|fi))", mnemonic) is not None and target.startswith("0x")
    returns = mnemonic in {"bx", "blr"} or (mnemonic in {"pop", "ldm"} and "pc" in operands)
    goes_on = set() if returns or mnemonic == "b" else {instruction.address + instruction.size}
    return goes_on | ({int(target, 16)} if is_branch else set())


def has_loop(code: list[capstone.CsInsn]) -> bool:
    try:
        TopologicalSorter({instruction.address: successors(instruction) for instruction in code}).prepare()
    except CycleError:
        return True
    return False


def symbols_of(elf: ELFFile) -> list[Symbol]:
    table = elf.get_section_by_name(".symtab")
    assert isinstance(table, SymbolTableSection)
    return list(table.iter_symbols())


def undefined(elf: ELFFile) -> set[str]:
    return {symbol.name for symbol in symbols_of(elf) if symbol["st_shndx"] == "SHN_UNDEF" and symbol.name}


def disassemble(elf: ELFFile, name: str, guest: str) -> list[capstone.CsInsn]:
    """Instructions of a function, without the literals behind them."""
    symbols = symbols_of(elf)
    (symbol,) = (s for s in symbols if s.name == name)
    start = symbol["st_value"] & ~1
    end = start + symbol["st_size"]
    literals = [s["st_value"] for s in symbols if s.name == "$d" and start < s["st_value"] < end]
    end = min([end, *literals])
    code = elf.get_section(symbol["st_shndx"]).data()[start:end]
    instructions = list(capstone.Cs(*DECODERS[guest]).disasm(code, start))
    assert sum(instruction.size for instruction in instructions) == end - start
    return instructions


@pytest.mark.parametrize("guest", GUESTS)
@pytest.mark.parametrize(("sl_bits", "bit_search"), CONFIGURATIONS)
def test_guest_code_has_no_loop_and_needs_nothing(tmp_path: Path, guest: str, sl_bits: int, bit_search: int) -> None:
    freestanding = ["-ffreestanding", "-nostdinc", "-isystem", str(ZIG.parent / "lib" / "include"), "-O2", "-c"]
    compile_or_fail(
        [str(ZIG), "clang", *GUESTS[guest], *freestanding, *WARNINGS, *macros(sl_bits, bit_search), *SOURCES], tmp_path
    )
    with (tmp_path / "tlsf_check.o").open("rb") as stream:
        assert undefined(ELFFile(stream)) == {"tlsf_control"}
    with (tmp_path / "tlsf.o").open("rb") as stream:
        elf = ELFFile(stream)
        assert undefined(elf) == set()
        assert has_loop(disassemble(elf, "tlsf_init", guest)), "a loop that is there must be seen"
        for name in ("tlsf_malloc", "tlsf_free"):
            code = disassemble(elf, name, guest)
            mnemonics = {instruction.mnemonic.split(".")[0] for instruction in code}
            assert not has_loop(code)
            assert mnemonics.isdisjoint({"bl", "blx", "udiv", "sdiv", "divw", "divwu", "bctr", "bctrl", "tbb", "tbh"})
            assert mnemonics.isdisjoint({"clz", "cntlzw"}) == (bit_search == 1)
