"""A native loop of calls that all find the same state: what a search for dear inputs runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from ctypes import c_uint64, c_void_p
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from wcet_probe.errors import UsageError

_AT_ONCE = 1 << 12
"""Calls between two moments at which an interrupt is heard: a millisecond, where a call takes 100 instructions."""


@dataclass(frozen=True, slots=True, eq=False)
class CallCounts:
    """Of each call in order: its instructions, and its result."""

    instructions: NDArray[np.uint32]
    results: NDArray[np.uint32]


class RepeatedCalls:
    """A native loop of calls that all find the same state."""

    def __init__(self, loop: Callable[..., int], width: int, most_instructions: int, kept: tuple[object, ...]) -> None:
        self._loop, self._width, self._most, self._kept = loop, width, most_instructions, kept
        self._row = np.zeros(max(1, width), np.uint32)
        self._counts = np.zeros(2, np.uint32)
        row, found, result = (c_void_p(each.ctypes.data) for each in (self._row, self._counts, self._counts[1:]))
        self._one = partial(loop, row, c_uint64(1), c_uint64(most_instructions), found, result)

    def count(self, arguments: NDArray[np.uint32] | Sequence[Sequence[int]]) -> CallCounts:
        """What each call takes, a row of arguments each; up to the first that translated code does not finish.

        Raises:
            UsageError: a row has another number of words than was said.
        """
        rows: NDArray[np.int64] = np.asarray(arguments, np.int64)
        if len(rows) and (rows.ndim != 2 or rows.shape[1] != self._width):
            raise self._wrong_width()
        words = np.ascontiguousarray(np.bitwise_and(rows, 0xFFFFFFFF), np.uint32)
        instructions, results = (np.zeros(len(rows), np.uint32) for _ in range(2))
        done = 0
        while done < len(rows):
            part = slice(done, done + _AT_ONCE)
            places = (words[part].ctypes.data, len(rows[part]), self._most)
            made = self._loop(*places, instructions[part].ctypes.data, results[part].ctypes.data)
            done += made
            if made < len(rows[part]):
                break
        return CallCounts(instructions[:done], results[:done])

    def count_one(self, *arguments: int) -> tuple[int, int] | None:
        """Instructions and result of one call; None where translated code does not finish it.

        Raises:
            UsageError: these are more or fewer words than was said.
        """
        if len(arguments) != self._width:
            raise self._wrong_width()
        for place, argument in enumerate(arguments):
            self._row[place] = argument & 0xFFFFFFFF
        if not self._one():
            return None
        return int(self._counts[0]), int(self._counts[1])

    def _wrong_width(self) -> UsageError:
        return UsageError(f"each call takes {self._width} words; give as many, or say another argument_count.")
