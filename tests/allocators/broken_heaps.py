"""Heaps of least blocks side by side that are broken on purpose: the checkers of buddies and buckets must notice."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass

from .conformance import WORD, Host

CONTROL = -1
"""Stands for the control structure in place of a block."""


@dataclass(frozen=True)
class Tiles:
    """A heap filled with least blocks, some of them freed; blocks are counted from its start."""

    host: Host
    control: str
    tile: int

    def address(self, block: int, extra: int = 0) -> int:
        return self.host.arena + block * self.tile + extra

    def word(self, block: int, index: int) -> ctypes.c_size_t:
        if block == CONTROL:
            return (ctypes.c_size_t * 8).in_dll(self.host.library, self.control)[index]
        return ctypes.c_size_t.from_address(self.address(block, index * WORD))

    def set(self, block: int, index: int, value: int) -> None:
        if block == CONTROL:
            (ctypes.c_size_t * 8).in_dll(self.host.library, self.control)[index] = value
        else:
            self.word(block, index).value = value


Value = int | Callable[[Tiles], int]


@dataclass(frozen=True)
class Breakage:
    """Words that are overwritten: block, index of the word, new value."""

    name: str
    violation: int
    words: tuple[tuple[int, int, Value], ...]


def at(block: int, extra: int = 0) -> Callable[[Tiles], int]:
    """The address of a block as a value."""
    return lambda tiles: tiles.address(block, extra)


def marked_free(block: int) -> tuple[int, int, Value]:
    """The free bit set in the tag of a block."""
    return block, 0, lambda tiles: tiles.word(block, 0).value | 1


def assert_noticed(tiles: Tiles, heap_bytes: int, freed: tuple[int, ...], breakage: Breakage) -> None:
    host = tiles.host
    assert host.init(heap_bytes) == 0
    payloads = sorted(host.fill())
    assert len(payloads) == heap_bytes // tiles.tile
    for block in freed:
        host.free(payloads[block])
    assert host.check() == 0
    for block, index, value in breakage.words:
        tiles.set(block, index, value if isinstance(value, int) else value(tiles))
    assert host.check() == breakage.violation
    assert host.init(heap_bytes) == 0
    assert host.check() == 0
