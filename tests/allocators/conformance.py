"""What every allocator must do, whatever its algorithm.

A test file derives a class from ``Conformance`` and names the allocator in ``subject``: pytest then runs each test
below on a host build of it, on sanitized, 32-bit and covered builds, and on the guests. A ``model`` in Python, where
there is one, predicts the offset of every block, with a word of 8 bytes on the host and of 4 on the guests.
"""

from __future__ import annotations

import ctypes
import json
import platform
import random
import shutil
import struct
import subprocess
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Protocol

import pytest

from tests.support import TARGETS, guest_on, images_dir
from wcet_probe.build.compilation import build_image
from wcet_probe.build.toolchain import PACKAGED
from wcet_probe.catalog.lookup import load_allocator, load_target
from wcet_probe.model.allocator import Allocator

from .host_compiler import CC, ZIG, compile_or_fail, sanitizing

HERE = Path(__file__).parent
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror"]
WORD = ctypes.sizeof(ctypes.c_void_p)
SIZE_MAX = (1 << 8 * WORD) - 1
SMALL_HEAP, HEAP, LARGE_HEAP = 1 << 10, 1 << 13, 1 << 17
INIT, MALLOC, FREE, FREE_NULL, MALLOC_HUGE, INIT_AT_1, INIT_NULL = range(7)
NONE = 0xFFFFFFFF


class Model(Protocol):
    """A heap in Python; offsets are those of payloads."""

    def malloc(self, size: int) -> int | None: ...

    def free(self, offset: int) -> None: ...


@dataclass(frozen=True)
class Subject:
    """What the suite must know of an allocator.

    Attributes:
        name: its folder.
        values: build parameters that are not the default.
        coalesces: whether a heap is one piece again when everything is freed, at the latest when a request needs it.
        model: the heap after init, of bytes of arena and bytes of a word; None without a model.
        too_large_bytes: a size of arena that init refuses.
        serves_zero: whether a request of 0 bytes gets a block, which a model must predict then.
    """

    name: str
    values: Mapping[str, int] = field(default_factory=dict)
    coalesces: bool = True
    model: Callable[[int, int], Model] | None = None
    too_large_bytes: int = 1 << 30
    serves_zero: bool = False

    def allocator(self) -> Allocator:
        return load_allocator(self.name, self.values)

    def alignment(self, word_bytes: int) -> int:
        """Of payloads: a build parameter of some; on 64-bit hosts all lengths are twice as long."""
        allocator = self.allocator()
        return allocator.values.get("alignment", allocator.alignment_bytes) * word_bytes // 4

    def macros(self) -> list[str]:
        allocator = self.allocator()
        return [f"-D{p.macro}={allocator.values[p.name]}" for p in allocator.parameters]

    def write_sources(self, folder: Path) -> list[str]:
        """Puts all sources into ``folder``; the names of the translation units."""
        sources = self.allocator().sources
        for name, text in sources:
            (folder / name).write_text(text, "utf-8")
        return [name for name, _ in sources if name.endswith(".c")]


class Host:
    """A build of the allocator, loaded, with the memory of the current arena. Blocks are offsets of payloads."""

    def __init__(self, subject: Subject, folder: Path) -> None:
        units = subject.write_sources(folder)
        freestanding = ["-std=c11", "-O2", "-shared", "-fPIC", "-ffreestanding", "-nostdlib", "-I."]
        compile_or_fail([*CC, *WARNINGS, *freestanding, *subject.macros(), *units, "-o", "host.so"], folder)
        self.library = ctypes.CDLL(str(folder / "host.so"))
        self.alignment = subject.alignment(WORD)
        self.payload_alignment = WORD if subject.allocator().values.get("header-apart") else self.alignment
        names = subject.allocator().entry_points
        self._init, self._malloc, self._free, self._check = (
            getattr(self.library, names[role]) for role in ("init", "malloc", "free", "check")
        )
        self._init.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
        self._malloc.argtypes, self._malloc.restype = [ctypes.c_size_t], ctypes.c_void_p
        self._free.argtypes, self._free.restype = [ctypes.c_void_p], None

    def init(self, heap_bytes: int) -> int:
        """A new arena, aligned as a page is."""
        self.memory = ctypes.create_string_buffer(heap_bytes + 4096)
        self.arena = -(-ctypes.addressof(self.memory) // 4096) * 4096
        self.heap_bytes = heap_bytes
        return self.init_at(self.arena, heap_bytes)

    def init_at(self, arena: int | None, heap_bytes: int) -> int:
        return int(self._init(arena, heap_bytes))

    def malloc(self, size: int) -> int | None:
        address = self._malloc(size)
        return None if address is None else address - self.arena

    def free(self, offset: int | None) -> None:
        self._free(None if offset is None else self.arena + offset)

    def check(self) -> int:
        return int(self._check())

    def contents(self) -> bytes:
        return ctypes.string_at(self.arena, self.heap_bytes)

    def fill(self) -> list[int]:
        """Smallest blocks until the heap is exhausted."""
        offsets = []
        while (offset := self.malloc(1)) is not None:
            offsets.append(offset)
        return offsets

    def largest(self) -> int:
        """The largest request that is served."""
        for size in range(self.heap_bytes, 0, -self.alignment // 2):
            if (offset := self.malloc(size)) is not None:
                self.free(offset)
                return size
        return 0


class Driver:
    """Operations of the driver program, and what each must answer: None is "not 0" for init and open for malloc."""

    def __init__(self, subject: Subject, word_bytes: int) -> None:
        self.steps: list[tuple[int, int]] = []
        self.expected: list[int | None] = []
        self._subject, self._word = subject, word_bytes
        self._refused_inits(subject.alignment(word_bytes))
        for heap_bytes in (SMALL_HEAP, HEAP, LARGE_HEAP):
            self._workload(heap_bytes, 500)

    def _add(self, code: int, argument: int, answer: int | None) -> None:
        self.steps.append((code, argument))
        self.expected.append(answer)

    def _refused_inits(self, alignment: int) -> None:
        for size in (0, alignment, HEAP + alignment // 2, self._subject.too_large_bytes):
            self._add(INIT, size, None)

    def _workload(self, heap_bytes: int, count: int) -> None:
        """Random operations, predicted by the model; without one the requests are too small ever to be refused."""
        model = self._subject.model(heap_bytes, self._word) if self._subject.model else None
        draw = random.Random(heap_bytes)
        self._add(INIT, heap_bytes, 0)
        for code in (INIT_AT_1, INIT_NULL):
            self._add(code, heap_bytes, None)
        self._add(FREE_NULL, 0, 0)
        slots: list[int | None] = []
        live: list[int] = []
        if self._subject.serves_zero:
            assert model
            slots.append(model.malloc(0))
            live.append(0)
        self._add(MALLOC, 0, NONE if not slots else slots[0])
        for less in (0, 1, 6, 7, 8, 15, 16, 1 << 20, 1 << 31):
            self._add(MALLOC_HUGE, less, NONE)
        most = 1 << 30 if model else heap_bytes // 512
        largest = heap_bytes // 2 if model else 64
        for _ in range(count):
            if not live or (len(live) < most and draw.random() < 0.58):
                size = min(largest, int(2 ** draw.uniform(0, heap_bytes.bit_length())))
                offset = model.malloc(size) if model else None
                self._add(MALLOC, size, NONE if model and offset is None else offset)
                if offset is not None or model is None:
                    live.append(len(slots))
                    slots.append(offset)
            else:
                slot = live.pop(draw.randrange(len(live)))
                self._add(FREE, slot, 0)
                if model:
                    model.free(slots[slot])  # type: ignore[arg-type]
        draw.shuffle(live)
        for slot in live:
            self._add(FREE, slot, 0)

    def run(self, program: Path) -> list[tuple[int, int]]:
        """Every answer as predicted, every heap sound."""
        stdin = b"".join(struct.pack("=II", *step) for step in self.steps)
        done = subprocess.run([program], input=stdin, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr.decode()
        results = list(struct.iter_unpack("=II", done.stdout))
        founded = False
        for step, expected, (answer, violation) in zip(self.steps, self.expected, results, strict=True):
            founded |= step[0] == INIT and answer == 0
            if expected is not None:
                assert answer == expected, step
            elif step[0] in (INIT, INIT_AT_1, INIT_NULL):
                assert answer != 0, step
            else:
                assert answer != NONE, step
            assert (violation == 0) is founded, step
        return results


def driver_command(subject: Subject, folder: Path) -> list[str]:
    """The driver's units and macros, after the sources were put into ``folder``."""
    names = subject.allocator().entry_points
    entries = [f"-DWP_{role.upper()}={symbol}" for role, symbol in names.items()]
    return [*subject.macros(), *entries, "-I.", *subject.write_sources(folder), str(HERE / "driver.c")]


def pattern(offset: int, size: int) -> bytes:
    return (offset.to_bytes(4, "little") * (size // 4 + 1))[:size]


@dataclass
class Client:
    """Uses a host heap and verifies after every operation what a client may rely on, and the heap's invariants."""

    host: Host
    model: Model | None

    def __post_init__(self) -> None:
        self.live: dict[int, int] = {}

    def malloc(self, size: int) -> int | None:
        before = zlib.crc32(self.host.contents())
        offset = self.host.malloc(size)
        if self.model:
            assert offset == self.model.malloc(size), size
        if offset is None:
            assert zlib.crc32(self.host.contents()) == before
        else:
            assert offset % self.host.payload_alignment == 0
            assert 0 <= offset <= self.host.heap_bytes - size
            assert all(offset + size <= other or other + bytes_ <= offset for other, bytes_ in self.live.items())
            self.live[offset] = size
            ctypes.memmove(self.host.arena + offset, pattern(offset, size), size)
        assert self.host.check() == 0
        return offset

    def free(self, offset: int) -> None:
        size = self.live.pop(offset)
        assert ctypes.string_at(self.host.arena + offset, size) == pattern(offset, size)
        self.host.free(offset)
        if self.model:
            self.model.free(offset)
        assert self.host.check() == 0


class Conformance:
    """Derive from it, with a name that starts with Test."""

    subject: ClassVar[Subject]

    @pytest.fixture(scope="class")
    @classmethod
    def host(cls, tmp_path_factory: pytest.TempPathFactory) -> Host:
        return Host(cls.subject, tmp_path_factory.mktemp(cls.subject.name))

    def client(self, host: Host, heap_bytes: int) -> Client:
        assert host.init(heap_bytes) == 0
        assert host.check() == 0
        return Client(host, self.subject.model(heap_bytes, WORD) if self.subject.model else None)

    @pytest.mark.parametrize("seed", range(12))
    def test_random_operations(self, host: Host, seed: int) -> None:
        draw = random.Random(seed)
        heap_bytes = draw.choice((SMALL_HEAP, HEAP, HEAP, 1 << 16)) + host.alignment * draw.randrange(8)
        client = self.client(host, heap_bytes)
        fresh = host.largest()
        small = draw.choice((32, 300, heap_bytes // 2))
        for _ in range(300):
            if client.live and draw.random() < 0.45:
                client.free(draw.choice(sorted(client.live)))
            elif draw.random() < 0.1:
                client.malloc(draw.choice((0, heap_bytes, SIZE_MAX, SIZE_MAX >> 1, draw.randrange(SIZE_MAX))))
            else:
                client.malloc(draw.choice((draw.randrange(small), 1 << draw.randrange(12))))
        for offset in draw.sample(sorted(client.live), len(client.live)):
            client.free(offset)
        assert not self.subject.coalesces or host.malloc(fresh) is not None

    @pytest.mark.parametrize("order", ["upwards", "downwards", "alternating", "shuffled"])
    def test_exhaustion_and_recovery(self, host: Host, order: str) -> None:
        client = self.client(host, HEAP)
        fresh = host.largest()
        while client.malloc(1) is not None:
            pass
        offsets = sorted(client.live)
        assert len(offsets) > 10
        if order == "downwards":
            offsets.reverse()
        elif order == "alternating":
            offsets = offsets[::2] + offsets[1::2]
        elif order == "shuffled":
            random.Random(1).shuffle(offsets)
        for number, offset in enumerate(offsets):
            client.free(offset)
            if number % 16 == 0 and (again := client.malloc(1)) is not None:
                client.free(again)
        assert not self.subject.coalesces or host.malloc(fresh) is not None

    def test_what_was_served_once_is_served_again(self, host: Host) -> None:
        client = self.client(host, HEAP)
        for size in (1, host.largest()):
            for _ in range(2):
                offset = client.malloc(size)
                assert offset is not None
                client.free(offset)
        first = host.fill()
        for offset in first:
            host.free(offset)
        assert len(host.fill()) == len(first)

    def test_holes_are_used_again(self, host: Host) -> None:
        client = self.client(host, HEAP)
        while client.malloc(32) is not None:
            pass
        holes = sorted(client.live)[1::2]
        for offset in holes:
            client.free(offset)
        for _ in holes:
            assert client.malloc(32) is not None

    def test_zero_null_and_huge_change_nothing(self, host: Host) -> None:
        client = self.client(host, HEAP)
        client.malloc(40)
        before = host.contents()
        zero = () if self.subject.serves_zero else (0,)
        huge = (SIZE_MAX, SIZE_MAX - 1, *(SIZE_MAX + 1 - (1 << bits) for bits in range(3, 8 * WORD)), HEAP)
        for size in (*zero, *huge):
            assert client.malloc(size) is None, size
        host.free(None)
        assert host.contents() == before

    def test_init_refuses_and_changes_nothing(self, host: Host) -> None:
        client = self.client(host, HEAP)
        client.malloc(40)
        before = host.contents()
        assert all(host.init_at(host.arena + off, SMALL_HEAP) for off in range(1, host.alignment))
        assert all(host.init_at(host.arena, SMALL_HEAP + off) for off in range(1, host.alignment))
        assert all(host.init_at(host.arena, size) for size in (0, host.alignment))
        assert host.init_at(host.arena, SIZE_MAX + 1 - host.alignment)
        assert host.init_at(None, SMALL_HEAP)
        assert host.contents() == before
        assert host.check() == 0

    def test_init_forgets_the_heap_before(self, host: Host) -> None:
        host.init(HEAP)
        fresh = host.largest()
        for offset in host.fill()[::2]:
            host.free(offset)
        assert host.init(HEAP) == 0
        assert host.check() == 0
        assert host.malloc(fresh) is not None

    def test_least_heap(self, host: Host) -> None:
        client = self.client(host, self.subject.allocator().minimum_heap_bytes * WORD // 4)
        for _ in range(2):
            offset = client.malloc(1)
            assert offset is not None
            client.free(offset)

    def test_sanitizers_find_nothing(self, tmp_path: Path) -> None:
        command = [
            *CC,
            *sanitizing(tmp_path),
            "-std=gnu11",
            *WARNINGS,
            *driver_command(self.subject, tmp_path),
            "-o",
            "driver",
        ]
        compile_or_fail(command, tmp_path)
        Driver(self.subject, WORD).run(tmp_path / "driver")

    def test_32_bit_layout(self, tmp_path: Path) -> None:
        """The guests' word size, executed natively: needs no 32-bit library."""
        if platform.machine() not in ("x86_64", "i686") or platform.system() != "Linux":
            pytest.skip("32-bit x86 code does not run on this machine")
        target = ["-target", "x86-linux-none", "-ffreestanding", "-nostdlib", "-static", "-DDRIVER_FREESTANDING"]
        command = [str(ZIG), "cc", "-O2", "-std=c11", *WARNINGS, *target, *driver_command(self.subject, tmp_path)]
        compile_or_fail([*command, "-o", "driver"], tmp_path)
        try:
            subprocess.run([tmp_path / "driver"], input=b"", check=True)
        except OSError as error:
            pytest.skip(f"the kernel does not run 32-bit code: {error}")
        Driver(self.subject, 4).run(tmp_path / "driver")

    def test_no_line_or_branch_stays_unexecuted(self, tmp_path: Path) -> None:
        gcc, gcov = shutil.which("gcc"), shutil.which("gcov")
        if gcc is None or gcov is None:
            pytest.skip("needs gcc and gcov")
        command = [gcc, "-std=gnu11", "--coverage", "-O0", *driver_command(self.subject, tmp_path), "-o", "driver"]
        compile_or_fail(command, tmp_path)
        Driver(self.subject, WORD).run(tmp_path / "driver")
        units = [name for name, _ in self.subject.allocator().sources if name.endswith(".c") and "check" not in name]
        done = subprocess.run(
            [gcov, "--branch-probabilities", "--json-format", "--stdout", *(f"driver-{name}" for name in units)],
            capture_output=True,
            text=True,
            check=True,
            cwd=tmp_path,
        )
        files = [file for line in done.stdout.splitlines() for file in json.loads(line)["files"]]
        lines = [(file["file"], line) for file in files for line in file["lines"]]
        assert len(lines) > 30
        idle = [(file, line["line_number"]) for file, line in lines if line["count"] == 0]
        assert not idle, idle
        idle = [(file, line["line_number"]) for file, line in lines for b in line["branches"] if b["count"] == 0]
        assert not idle, idle

    @pytest.mark.covering(0)
    @pytest.mark.parametrize("target_name", TARGETS)
    def test_guest(self, target_name: str) -> None:
        """On a guest: sound after every operation, offsets as the model predicts."""
        allocator, target = self.subject.allocator(), load_target(target_name)
        guest = guest_on(build_image(allocator, target, PACKAGED, images_dir()), target)
        init, malloc, free, check = (allocator.entry_points[role] for role in ("init", "malloc", "free", "check"))
        model = self.subject.model(1 << 12, 4) if self.subject.model else None
        draw = random.Random(3)
        with guest.machine(1 << 12) as machine:
            base = machine.heap.base_address
            assert machine.call(init, base, 1 << 12) == 0
            assert machine.call(check) == 0
            live: dict[int, bytes] = {}
            for _ in range(150):
                if live and draw.random() < 0.4:
                    offset = draw.choice(sorted(live))
                    content = live.pop(offset)
                    assert machine.memory.read(base + offset, len(content)) == content
                    machine.call(free, base + offset)
                    if model:
                        model.free(offset)
                else:
                    size = draw.choice((0, 1 << 31, 4000, draw.randrange(1, 200), draw.randrange(1, 200)))
                    address = machine.call(malloc, size)
                    if model:
                        predicted = model.malloc(size)
                        assert address == (0 if predicted is None else base + predicted)
                    if address:
                        offset = address - base
                        assert offset % self.subject.alignment(4) == 0
                        assert all(offset + size <= o or o + len(c) <= offset for o, c in live.items())
                        live[offset] = pattern(offset, size)
                        machine.memory.write(address, live[offset])
                assert machine.call(check) == 0
            for offset in live:
                machine.call(free, base + offset)
            assert machine.call(check) == 0
