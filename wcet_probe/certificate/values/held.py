# SPDX-License-Identifier: 0BSD
"""Where on the stack the checker has seen addresses of it stored, and where it took it that none stands.

A word of the stack that the call has not written may be left of an earlier call: no address that is derived from the
stack pointer of this one, which is what *stack-separation* speaks of.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from wcet_probe.certificate.values.numbers import WORD

Range = tuple[int, int]
WHOLE: Range = (-WORD, WORD)
"""All distances from the stack pointer at entry."""


@dataclass(slots=True)
class HeldWords:
    """What a check has found of all code that it follows, in whichever order.

    Attributes:
        ranges: first distance, and the one behind the last, of bytes that may be of an address of the stack.
        is_refuted: whether one may be stored where it was taken that none stands.
    """

    ranges: tuple[Range, ...] = ()
    is_refuted: bool = False
    _trusted: tuple[Range, ...] = ()

    def may_hold(self, low: int, end: int) -> bool:
        """Whether a byte from ``low`` on, before ``end``, may be of one; that none is, `note` remembers."""
        if _meet(self.ranges, low, end):
            return True
        self._trusted = _union((*self._trusted, _within(low, end)))
        return False

    def note(self, low: int, end: int) -> None:
        """One may be stored there."""
        if any(first <= low and end <= last for first, last in self.ranges):
            return
        self.ranges = _union((*self.ranges, _within(low, end)))
        self.is_refuted |= _meet(self._trusted, low, end)

    def again(self) -> HeldWords:
        """The same for who follows code once more."""
        return HeldWords(self.ranges)


def _within(low: int, end: int) -> Range:
    """The bytes, or all where they may go round: what is behind the last distance is at the first one."""
    return (low, end) if low >= -WORD // 2 and end <= WORD // 2 else WHOLE


def _meet(ranges: Iterable[Range], low: int, end: int) -> bool:
    low, end = _within(low, end)
    return any(first < end and low < last for first, last in ranges)


def _union(ranges: Iterable[Range]) -> tuple[Range, ...]:
    found: list[Range] = []
    for low, end in sorted(ranges):
        if found and low <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], end)
        else:
            found.append((low, end))
    return tuple(found)
