"""The words of dlmalloc27's control structure and of its heap, for tests to read and to spoil."""

from __future__ import annotations

import ctypes

from tests.allocators.conformance import WORD, Host

ALIGNMENT = 2 * WORD
FAST_COUNT = 10 if WORD == 4 else 11
HEADS = 3 + FAST_COUNT
BITMAP = (HEADS + 2 * 96) * WORD
"""Offset in bytes; members below by index of the word."""
CONTROL = {
    "max_fast": 0,
    "top": 1 + FAST_COUNT,
    "first": (BITMAP + 16) // WORD,
    "arena_bytes": (BITMAP + 16) // WORD + 1,
}
PREV_IN_USE = FLAGS = 1
FAST_CHUNKS, FAST_FLAGS = 2, 3


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
        """What the neighbours of a head link to, as payloads are counted: where its links are."""
        return self.control + (HEADS + 2 * number) * WORD

    def link(self, address: int, payload: int) -> None:
        """Makes the link there lead to the chunk of a payload, or to the head whose links are there."""
        self[address] = payload - ALIGNMENT

    def marks(self, number: int) -> ctypes.c_uint32:
        """The word of the bitmap that has the mark of a bin."""
        return ctypes.c_uint32.from_address(self.control + BITMAP + 4 * (number // 32))

    def clear_mark(self, number: int) -> None:
        marks = self.marks(number)
        assert marks.value >> number % 32 & 1
        marks.value &= ~(1 << number % 32)
