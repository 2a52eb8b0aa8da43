"""Heaps with boundary tags and lists that are broken on purpose, and what the checkers must say to each."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import ClassVar

import pytest

from .conformance import WORD, Conformance, Host

(
    NO_HEAP,
    LOWER_FENCE,
    SIZE_ALIGNMENT,
    SIZE_MINIMUM,
    CHAIN_END,
    FOOTER,
    ADJACENT_FREE,
    UPPER_FENCE,
    LIST_ADDRESS,
    LIST_FREE_BIT,
    LIST_LINK,
    FREE_BLOCKS,
) = range(1, 13)
"""enum bt_violation, then enum list_fit_violation."""

HEAP_BYTES = 4096
BLOCK_WORDS = 10
A, B, C, D, E = (WORD * (2 + BLOCK_WORDS * i) for i in range(5))
"""Payloads of five blocks of the same size: B and D are free."""


@dataclass(frozen=True)
class Breakage:
    """Words that are overwritten, by offset in the arena or, if ``in_control``, in the control structure."""

    name: str
    violation: int
    words: tuple[tuple[int, int], ...]
    in_control: bool = False
    relative: bool = False
    """Whether the values are offsets in the arena."""


def tags(payload: int, value: int) -> tuple[tuple[int, int], ...]:
    return (payload - WORD, value), (payload + WORD * (BLOCK_WORDS - 2), value)


SIZE = BLOCK_WORDS * WORD
BROKEN = (
    Breakage("no heap", NO_HEAP, ((0, 0),), in_control=True),
    Breakage("lower fence has a size", LOWER_FENCE, ((0, 16),)),
    Breakage("lower fence free", LOWER_FENCE, ((0, 1),)),
    Breakage("unknown flag", SIZE_ALIGNMENT, tags(A, SIZE | 2)),
    Breakage("size zero", SIZE_MINIMUM, tags(A, 0)),
    Breakage("size below the least", SIZE_MINIMUM, tags(A, 2 * WORD)),
    Breakage("beyond the upper fence", CHAIN_END, tags(A, HEAP_BYTES)),
    Breakage("size wraps around", CHAIN_END, tags(A, (1 << 8 * WORD) - 2 * WORD)),
    Breakage("footer differs in size", FOOTER, tags(A, SIZE + 2 * WORD)[1:]),
    Breakage("footer differs in the bit", FOOTER, tags(A, SIZE | 1)[1:]),
    Breakage("used block marked free", ADJACENT_FREE, tags(C, SIZE | 1)),
    Breakage("upper fence free", UPPER_FENCE, ((HEAP_BYTES - WORD, 1),)),
    Breakage("upper fence has a size", UPPER_FENCE, ((HEAP_BYTES - WORD, 16),)),
    Breakage("link above the arena", LIST_ADDRESS, ((B, HEAP_BYTES + WORD * 2),), relative=True),
    Breakage("link below the arena", LIST_ADDRESS, ((B, -4096),), relative=True),
    Breakage("link misaligned", LIST_ADDRESS, ((B, D + 1),), relative=True),
    Breakage("link is null", LIST_ADDRESS, ((B, 0),)),
    Breakage("free block marked used", LIST_FREE_BIT, tags(B, SIZE)),
    Breakage("cycle of one", LIST_LINK, ((B, B),), relative=True),
    Breakage("back link elsewhere", LIST_LINK, ((B + WORD, B),), relative=True),
)


def assert_noticed(host: Host, control_name: str, breakage: Breakage) -> None:
    host.init(HEAP_BYTES)
    assert [host.malloc(SIZE - 2 * WORD) for _ in range(5)] == [A, B, C, D, E]
    host.free(B)
    host.free(D)
    assert host.check() == 0
    base = address_of_control(host, control_name) if breakage.in_control else host.arena
    old = []
    for offset, value in breakage.words:
        word = ctypes.c_size_t.from_address(base + offset)
        old.append((word, word.value))
        word.value = value + (host.arena if breakage.relative else 0)
    before = host.contents()
    assert host.check() == breakage.violation
    assert host.contents() == before
    for word, value in old:
        word.value = value
    assert host.check() == 0


def address_of_control(host: Host, name: str) -> int:
    return ctypes.addressof(ctypes.c_size_t.in_dll(host.library, name))


class ListFitConformance(Conformance):
    """What first-fit and best-fit must do besides: their checker finds every way in which tags and list can be broken.

    A subclass says where its control structure is.
    """

    control: ClassVar[str]

    @pytest.mark.parametrize("breakage", BROKEN, ids=lambda b: b.name)
    def test_check_names_the_violation(self, host: Host, breakage: Breakage) -> None:
        assert_noticed(host, self.control, breakage)

    def test_check_misses_no_free_block(self, host: Host) -> None:
        """The list is empty, the heap is one free block."""
        host.init(HEAP_BYTES)
        head = address_of_control(host, self.control) + 2 * WORD
        for word in range(2):
            ctypes.c_size_t.from_address(head + WORD * word).value = head
        assert host.check() == FREE_BLOCKS
