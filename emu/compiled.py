"""Translated code beside the engine: one frame for each library, entered and left with the guest's registers.

The engine stays the reference. Translated code counts into the same observer, and what it cannot do it leaves to the
engine in the middle of a call, with memory, registers and counts as if the engine had run as far.
"""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Callable, Iterable, Mapping, Sequence
from ctypes import POINTER, Structure, c_int64, c_uint8, c_uint32, c_uint64, c_void_p
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from wcet_probe.emu import native
from wcet_probe.emu.guest_registers import register_names
from wcet_probe.emu.memory import Region, advise_large_pages, reserved
from wcet_probe.model.target import Isa

if TYPE_CHECKING:
    from wcet_probe.emu.repeated_calls import RepeatedCalls

_RANGES = ("heap", "stack", "static", "operations", "code")
_REGISTERS = 64
_WORD_BYTES = 4
_LONG = (1 << 64) - 1
_MOST_ARGUMENTS = 4
_QUANTUM = 1 << 26
"""Instructions after which a run pauses, so that an interrupt is heard: a tenth of a second at most."""

RETURNED, PAUSED, AT_BLOCK, INSIDE, DISAGREED = range(5)
"""Why translated code was left: ``enum wp_left``."""


class Detail(StrEnum):
    """What is counted of a run, and whether the core is told of blocks that watched loops and claims want to know of.

    With data accesses it is always told, for the path.
    """

    NOTHING = "nothing"
    FETCHES = "fetches"
    DATA = "data"
    NOTHING_TOLD = "nothing, blocks told"
    FETCHES_TOLD = "fetches, blocks told"

    @property
    def counted(self) -> Detail:
        """What is counted: one of the first three."""
        return {Detail.NOTHING_TOLD: Detail.NOTHING, Detail.FETCHES_TOLD: Detail.FETCHES}.get(self, self)

    @property
    def told(self) -> Detail:
        """The same, with the core told of blocks."""
        return {Detail.NOTHING: Detail.NOTHING_TOLD, Detail.FETCHES: Detail.FETCHES_TOLD}.get(self, self)

    @property
    def tells(self) -> bool:
        """Whether the core is told of blocks."""
        return self.told is self


Translations = Callable[[Detail, int], "Path | None"]
"""``translations(detail, operations)``: the library for a run of so many operations, or None: it does not pay."""


class _FrameLayout(Structure):
    """``struct wp_frame``."""

    _fields_ = [
        *((name, c_int64) for name in ("limit", "instructions", "cycles", "loads", "stores")),
        *((name, c_int64) for name in ("counted_loads", "counted_stores", "region_loads", "region_stores")),
        ("fetched_slowly", c_uint64),
        ("path_length", c_uint64),
        *((name, c_uint32) for name in ("pc", "why", "block")),
        *((name, c_uint32) for name in ("lowest_stack_pointer", "stack_pointer", "first_register")),
        *((name, c_uint32) for name in ("watches", "follows", "heap_bytes", "path_capacity")),
        ("guest", c_uint64),
        ("marks", c_uint64),
        *((name, c_void_p) for name in ("lines", "lines_kept", "fetched", "data_cache", "fetch_cache", "fetch_counts")),
        *((name, c_void_p) for name in ("path", "runs", "events", "access", "accesses", "event", "cross")),
        ("registers", c_uint32 * _REGISTERS),
        *((name, c_void_p) for name in ("observer", "blocks", "range_memory")),
        ("fast_range", c_uint32 * len(_RANGES)),
        ("block_count", c_uint32),
        ("observes", c_uint32),
        ("spent", c_int64),
        *((name, c_uint32) for name in ("region_read_cycles", "region_write_cycles")),
        *((name, c_void_p) for name in ("no_lines", "events_of_core", "every_event")),
        *((name, c_uint32) for name in ("known_lines", "known_fetches")),
    ]


class _RestoredLayout(Structure):
    """``struct wp_restored``."""

    _fields_ = [("memory", c_void_p), ("content", c_void_p), ("bytes", c_uint64)]


_BLOCK_WORDS = 3
_KNOWN_LINE_BYTES = 8
"""Of ``struct wp_known_line``."""


@dataclass(frozen=True, slots=True)
class RepeatedCall:
    """A call that is made again and again from one state.

    Attributes:
        entry_address: of the function.
        registers: as each call finds them, but for its arguments.
        argument_names, result_name: registers.
        restored: regions that each call finds with this content.
        most_instructions: that one call may take.
    """

    entry_address: int
    registers: Mapping[str, int]
    argument_names: tuple[str, ...]
    result_name: str
    restored: tuple[tuple[Region, bytes], ...]
    most_instructions: int


def repeated_call(
    isa: Isa,
    entry_address: int,
    registers: Mapping[str, int],
    given: Mapping[str, int],
    *,
    kept: Mapping[Region, bytes],
    most_instructions: int,
) -> RepeatedCall:
    """Calls of the function at ``entry_address`` that all begin alike.

    Parameters:
        isa: of the image.
        entry_address: of the function.
        registers: the guest's, by the names of translated code.
        given: those that each call finds otherwise, arguments among them, by the machine's names.
        kept: what regions hold at the beginning.
        most_instructions: that one call may take.
    """
    names = {"r13": "sp", "r14": "lr"} if isa is not Isa.POWERPC else {}
    first = 3 if isa is Isa.POWERPC else 0
    arguments = [f"r{first + number}" for number in range(_MOST_ARGUMENTS)]
    return RepeatedCall(
        entry_address=entry_address,
        registers={**registers, **{names.get(name, name): value for name, value in given.items()}},
        argument_names=tuple(name for name in arguments if name in given),
        result_name=f"r{first}",
        restored=tuple((each, content) for each, content in kept.items() if each.name != "stack"),
        most_instructions=most_instructions,
    )


class TranslatedCode:
    """A library of translated code, and the frame through which it runs on one guest.

    Parameters:
        library: as ``wcet_probe.compiled`` makes it, of the very image and target.
        detail: what it was made to count.
        isa: of the image.
        regions: the guest's memory, in the order that the observer knows it, all in one buffer.
        event_tables: running sums over rows; where one grows in a block, the core is told of the block. There are none
            where ``detail`` does not tell of blocks.

    Raises:
        OSError: the library cannot be loaded, or the host allows no more memory.
    """

    def __init__(
        self,
        library: Path,
        detail: Detail,
        isa: Isa,
        regions: Sequence[Region],
        event_tables: Iterable[ctypes.Array[c_uint32]],
    ) -> None:
        self._core = native.load()
        _declare(self._core)
        self._names = register_names(isa)
        self._library = ctypes.CDLL(str(library))
        self._run = self._library.wp_translated_run
        self._run.argtypes, self._run.restype = [c_void_p], None
        count = c_uint32.in_dll(self._library, "wp_translated_block_count").value
        blocks = (c_uint32 * (_BLOCK_WORDS * max(1, count))).in_dll(self._library, "wp_translated_blocks")
        tables = list(event_tables)
        rows = [(blocks[_BLOCK_WORDS * n], blocks[_BLOCK_WORDS * n + 1]) for n in range(count)]
        events = bytes(any(t[first] != t[behind] for t in tables) for first, behind in rows)
        self._events = (c_uint8 * max(1, count))(*events)
        self._memory = (c_void_p * len(regions))(*map(_address, regions))
        memory, origin = regions[0].buffer, regions[0].origin
        self._marks = reserved(len(memory) // _WORD_BYTES)
        frame = self._frame = _FrameLayout()
        frame.guest, frame.marks = _start(memory) - origin & _LONG, _start(self._marks) - origin // _WORD_BYTES & _LONG
        frame.block_count = count
        frame.blocks = ctypes.addressof(blocks)
        self._every_event = (c_uint8 * max(1, count))(*bytes([1]) * count)
        frame.runs = c_void_p.in_dll(self._library, "wp_translated_runs").value
        frame.events_of_core, frame.every_event = map(ctypes.addressof, (self._events, self._every_event))
        lines, fetches = (
            c_uint32.in_dll(self._library, f"wp_translated_known_{name}").value for name in ("lines", "fetches")
        )
        frame.known_lines, frame.known_fetches = lines, fetches
        self._lines, self._no_lines = (mmap.mmap(-1, _KNOWN_LINE_BYTES * max(1, lines)) for _ in range(2))
        self._no_lines.write(b"\xff" * len(self._no_lines))
        self._fetched = (c_uint32 * max(1, fetches))()
        frame.lines_kept, frame.no_lines = map(_start, (self._lines, self._no_lines))
        frame.fetched = ctypes.addressof(self._fetched)
        frame.range_memory = ctypes.addressof(self._memory)
        frame.observes = list(Detail).index(detail.counted)
        numbers = {region.name: number for number, region in enumerate(regions)}
        for place, name in enumerate(_RANGES):
            if name not in numbers:
                continue
            region = regions[numbers[name]]
            first = (region.extent.base_address - origin) // _WORD_BYTES
            advise_large_pages(self._marks, first, first + region.extent.size_bytes // _WORD_BYTES)
            frame.fast_range[place] = 0 if region.harness else numbers[name] + 1
            if name == "heap":
                frame.heap_bytes = region.extent.size_bytes

    def run(self, observer: int, entry_address: int, registers: Mapping[str, int], stack_pointer: int) -> int:
        """Run from ``entry_address`` until the code is left for good; why, one of the constants above.

        Raises:
            KeyboardInterrupt: the user interrupted it, at a moment at which all counts are the observer's.
        """
        frame = self._frame
        for slot, name in enumerate(self._names):
            frame.registers[slot] = registers[name]
        frame.pc, frame.stack_pointer = entry_address, stack_pointer
        is_start = True
        while True:
            if not self._core.wp_frame_enter(observer, ctypes.byref(frame), _QUANTUM, is_start):
                if is_start:
                    return AT_BLOCK
                frame.why = AT_BLOCK
                self._core.wp_frame_leave(ctypes.byref(frame))
                return AT_BLOCK
            is_start = False
            self._run(ctypes.byref(frame))
            self._core.wp_frame_leave(ctypes.byref(frame))
            if frame.why != PAUSED:
                return int(frame.why)

    @property
    def program_counter(self) -> int:
        """Where the code was left."""
        return int(self._frame.pc)

    def registers(self) -> dict[str, int]:
        """Registers by name as they were left."""
        return dict(zip(self._names, self._frame.registers, strict=False))

    def repeated(self, observer: int, asked: RepeatedCall) -> RepeatedCalls:
        """Calls from the same state again and again; the counts of the ``observer`` stay what they are."""
        frame = self._frame
        for slot, name in enumerate(self._names):
            frame.registers[slot] = asked.registers[name]
        rows = (_RestoredLayout * max(1, len(asked.restored)))()
        kept: list[object] = [self, rows]
        for row, (region, content) in zip(rows, asked.restored, strict=False):
            copy = ctypes.create_string_buffer(content, len(content))
            kept.append(copy)
            row.memory, row.content, row.bytes = _address(region), ctypes.addressof(copy), len(content)
        width = len(asked.argument_names)
        slots = (c_uint32 * max(1, width))(*map(self._names.index, asked.argument_names))
        frame_and_code = (observer, ctypes.byref(frame), ctypes.cast(self._run, c_void_p), asked.entry_address)
        places = (width, slots, self._names.index(asked.result_name))
        loop = partial(self._core.wp_frame_calls, *frame_and_code, rows, len(asked.restored), *places)
        # Only searches want it; NumPy takes a tenth of the time of a first answer.
        from wcet_probe.emu.repeated_calls import RepeatedCalls  # noqa: PLC0415

        return RepeatedCalls(loop, width, asked.most_instructions, tuple(kept))


def _address(region: Region) -> int:
    """Where the first byte of a region is in the host's memory."""
    return _start(region.buffer) + region.extent.base_address - region.origin


def _start(memory: mmap.mmap) -> int:
    return ctypes.addressof(ctypes.c_char.from_buffer(memory))


def _declare(library: ctypes.CDLL) -> None:
    """The core's functions for frames."""
    library.wp_frame_enter.restype = ctypes.c_bool
    library.wp_frame_enter.argtypes = [c_void_p, POINTER(_FrameLayout), c_uint64, ctypes.c_bool]
    library.wp_frame_leave.argtypes = [POINTER(_FrameLayout)]
    library.wp_frame_leave.restype = None
    library.wp_frame_calls.restype = c_uint64
    library.wp_frame_calls.argtypes = [
        *(c_void_p, POINTER(_FrameLayout), c_void_p, c_uint32, POINTER(_RestoredLayout), c_uint32),
        *(c_uint32, POINTER(c_uint32), c_uint32, c_void_p, c_uint64, c_uint64, c_void_p, c_void_p),
    ]
