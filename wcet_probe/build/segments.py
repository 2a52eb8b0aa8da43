"""Segments that are writable and executable, cut where their sections change from one to the other.

Linkers put all of a flash memory into one segment, which is writable where one of its sections is. What a section says
is closer to the program: code and constants keep their content, as those of a segment of their own do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from wcet_probe.model.image import Segment


class Part(NamedTuple):
    """A section that is in memory: its addresses, and whether the program writes to it, executes it."""

    start: int
    end: int
    writable: bool
    executable: bool


def apart(segments: Iterable[Segment], parts: Sequence[Part]) -> Iterator[Segment]:
    """``segments``, those that are writable and executable cut into such that are not both.

    One without sections stays what it is. What lies between two sections goes with the one before.
    """
    for one in segments:
        end = one.address + one.size_bytes
        inside = sorted(part for part in parts if one.address <= part.start < part.end <= end)
        if not (one.writable and one.executable and inside):
            yield one
            continue
        starts: list[tuple[int, bool, bool]] = []
        for part in inside:
            if not starts or part.writable is not starts[-1][1]:
                starts.append((part.start, part.writable, part.executable))
            elif part.executable and not starts[-1][2]:
                starts[-1] = (*starts[-1][:2], True)
        starts[0] = (one.address, *starts[0][1:])
        for (start, writable, executable), (stop, *_) in pairwise([*starts, (end, False, False)]):
            data = one.data[start - one.address : stop - one.address]
            yield Segment(start, data, stop - start, writable, executable and not writable)
