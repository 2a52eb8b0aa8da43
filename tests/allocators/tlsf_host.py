"""TLSF built for the host and loaded: its entry points, and its data structures to look at and to spoil."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

from .tlsf_model import class_bounds

HERE = Path(__file__).parent
TLSF = HERE.parents[1] / "allocators" / "tlsf"
COMMON = TLSF.parent / "common"
SOURCES = [str(TLSF / "tlsf.c"), str(TLSF / "tlsf_check.c")]
DRIVER = str(HERE / "driver.c")
ENTRIES = [f"-DWP_{role.upper()}=tlsf_{role}" for role in ("init", "malloc", "free", "check")]
WARNINGS = ["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror", f"-I{TLSF}", f"-I{COMMON}"]

WORD = ctypes.sizeof(ctypes.c_void_p)
ALIGNMENT = HEADER = 2 * WORD
SIZE_MAX = (1 << 8 * WORD) - 1
MINIMUM_HEAP = 3 * ALIGNMENT
MAXIMUM_HEAP = 1 << 28
CONFIGURATIONS = [(sl_bits, bit_search) for sl_bits in (4, 5) for bit_search in (0, 1)]


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
    return [f"-DTLSF_SL_BITS={sl_bits}", f"-DBIT_SEARCH={bit_search}", *ENTRIES]


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


def configuration_id(pair: tuple[int, int]) -> str:
    return f"sl{pair[0]}-search{pair[1]}"


def loaded(library: Path, sl_bits: int) -> Iterator[Host]:
    """The library without a heap. It is cleared afterwards, for loading it again would give the same memory."""
    host = Host(ctypes.CDLL(str(library)), sl_bits)
    yield host
    ctypes.memset(ctypes.addressof(host.control), 0, ctypes.sizeof(host.control))
