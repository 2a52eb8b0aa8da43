"""A replay: instructions against operation number, and how often an operation took how many.

Source of the first: M06 figure 3.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from wcet_probe.reports.pictures.colours import BLUE, MUTED, VERMILLION
from wcet_probe.reports.pictures.documents import Samples
from wcet_probe.reports.pictures.scales import Scale, counted, labelled, scale_for, ticks
from wcet_probe.reports.pictures.svg import (
    MARGIN,
    SMALL_SIZE,
    WIDTH,
    heading,
    line,
    number,
    path,
    picture,
    rectangle,
    text,
    text_width,
)

_KINDS = (("malloc", BLUE), ("free", VERMILLION))
_PANEL, _GAP, _AXIS, _HEAD = 150, 14, 34, 22
_MOST_BINS = 60
_LEFT_LABEL_GAP = 8


@dataclass(frozen=True, slots=True)
class _Series:
    """The operations of one kind: their numbers, from 1 on, and instructions."""

    kind: str
    colour: str
    numbers: tuple[int, ...]
    instructions: tuple[int, ...]

    @property
    def summary(self) -> str:
        least, most = min(self.instructions), max(self.instructions)
        ordered = sorted(self.instructions)
        median = ordered[(len(ordered) - 1) // 2]
        calls = f"{counted(len(ordered))} calls" if len(ordered) > 1 else "1 call"
        return f"{calls}, {counted(least)} to {counted(most)} instructions, median {counted(median)}"


def instructions_by_operation(samples: Samples, title: str = "Instructions by operation") -> str | None:
    """Each operation of a replay as a mark at its number and its instructions, malloc above free.

    Parameters:
        samples: kind (``malloc``, ``free``) and instructions of each operation, in order.
        title: of the picture.

    Returns:
        the SVG, or None where there are no operations.
    """
    found = _series(samples)
    if not found:
        return None
    body, y = heading(title, ["The dearest operation of each kind is marked."])
    counts = [value for series in found for value in series.instructions]
    left = MARGIN + _axis_width(counts) + _LEFT_LABEL_GAP
    across = Scale(0, len(samples), left, WIDTH - MARGIN - 8)
    for series in found:
        body.append(text(MARGIN, y + 14, series.kind, weight="bold"))
        body.append(text(MARGIN + 62, y + 14, series.summary, fill=MUTED, kind="value"))
        up = scale_for(counts, y + _HEAD + _PANEL, y + _HEAD + 12)
        body += _frame(across, up)
        body.append(_marks(series, across, up))
        body += _dearest(series, across, up)
        y += _HEAD + _PANEL + _GAP
    body += _across(across, y - _GAP, "operation number")
    return picture(title, _described(found), y - _GAP + _AXIS + MARGIN, body)


def histogram(samples: Samples, title: str = "Instructions of an operation") -> str | None:
    """How many operations of a replay took how many instructions, malloc above free, on one axis.

    The heights are logarithmic where they span decades, so that the rare and dear operations are seen.

    Parameters:
        samples: kind (``malloc``, ``free``) and instructions of each operation, in order.
        title: of the picture.

    Returns:
        the SVG, or None where there are no operations.
    """
    found = _series(samples)
    if not found:
        return None
    counts = [value for series in found for value in series.instructions]
    width = _bin_width(min(counts), max(counts))
    first, last = min(counts) // width, max(counts) // width
    bins = {series.kind: Counter(value // width for value in series.instructions) for series in found}
    heights = [height for one in bins.values() for height in one.values()]
    note = f"A bar: {counted(width)} instructions wide." if width > 1 else "A bar: one number of instructions."
    body, y = heading(title, [note])
    left = MARGIN + _axis_width(heights) + _LEFT_LABEL_GAP
    across = Scale(first * width, (last + 1) * width, left, WIDTH - MARGIN - 8)
    logarithmic = max(heights) / min(heights) >= 20
    for series in found:
        top = max(heights)
        up = (
            Scale(0.7, top * 1.3, y + _HEAD + _PANEL, y + _HEAD, logarithmic=True)
            if logarithmic
            else Scale(0, top * 1.05, y + _HEAD + _PANEL, y + _HEAD)
        )
        body.append(text(MARGIN, y + 14, series.kind, weight="bold"))
        body.append(text(MARGIN + 62, y + 14, series.summary, fill=MUTED, kind="value"))
        body += _frame(across, up)
        body += _bars(bins[series.kind], width, series.colour, across, up)
        y += _HEAD + _PANEL + _GAP
    body += _across(across, y - _GAP, f"instructions; upwards: operations{', logarithmic' if logarithmic else ''}")
    return picture(title, _described(found), y - _GAP + _AXIS + MARGIN, body)


def _series(samples: Samples) -> list[_Series]:
    found = []
    for kind, colour in _KINDS:
        rows = [(index, value) for index, (name, value) in enumerate(samples, 1) if name == kind]
        if rows:
            numbers, instructions = zip(*rows, strict=True)
            found.append(_Series(kind, colour, numbers, instructions))
    return found


def _axis_width(values: Sequence[int]) -> float:
    return text_width(counted(int(max(values) * 1.3)), SMALL_SIZE)


def _frame(across: Scale, up: Scale) -> list[str]:
    """Rules at the ticks of the upright axis, with their labels."""
    body = []
    for value, words in labelled(up, ticks(up, 34), counted, upright=True):
        y = up.at(value)
        body.append(line(across.start, y, across.end, y))
        label = text(across.start - 6, y + 3.5, words, size=SMALL_SIZE, anchor="end", fill=MUTED, kind="tick")
        body.append(label)
    return [*body, line(across.start, up.start, across.end, up.start, stroke=MUTED)]


def _across(across: Scale, y: float, title: str) -> list[str]:
    body = []
    for value, words in labelled(across, ticks(across, 70), counted):
        body.append(line(across.at(value), y, across.at(value), y + 4, stroke=MUTED))
        label = text(across.at(value), y + 15, words, size=SMALL_SIZE, anchor="middle", fill=MUTED, kind="tick")
        body.append(label)
    return [*body, text((across.start + across.end) / 2, y + 31, title, anchor="middle", fill=MUTED)]


def _marks(series: _Series, across: Scale, up: Scale) -> str:
    """All marks of a kind in one path: upright bars for malloc, crosses for free; one for those at the same place."""
    places = {
        (round(across.at(index) * 2) / 2, round(up.at(value) * 2) / 2): None
        for index, value in zip(series.numbers, series.instructions, strict=True)
    }
    shape = "m0 -2v4" if series.kind == "malloc" else "m-1.5 -1.5l3 3m0 -3l-3 3"
    steps = "".join(f"M{number(x)} {number(y)}{shape}" for x, y in places)
    return path(steps, stroke=series.colour, width=1.4 if series.kind == "malloc" else 0.9)


def _dearest(series: _Series, across: Scale, up: Scale) -> list[str]:
    most = max(series.instructions)
    index = series.numbers[series.instructions.index(most)]
    x, y = across.at(index), up.at(most)
    words = f"{counted(most)} at {counted(index)}"
    to_the_left = x + 8 + text_width(words, SMALL_SIZE) > across.end
    ring = f"M{number(x - 5)} {number(y)}a5 5 0 1 1 10 0a5 5 0 1 1 -10 0z"
    anchor = "end" if to_the_left else "start"
    label = text(x - 9 if to_the_left else x + 9, y - 5, words, size=SMALL_SIZE, anchor=anchor, kind="value")
    return [path(ring, stroke=series.colour, width=1.4), label]


def _bin_width(least: int, most: int) -> int:
    """A round number of instructions, such that there are at most ``_MOST_BINS`` bars."""
    rough = max(1.0, (most - least + 1) / _MOST_BINS)
    decade: int = 10 ** math.floor(math.log10(rough))
    return next(factor * decade for factor in (1, 2, 5, 10) if factor * decade >= rough)


def _bars(bins: Counter[int], width: int, colour: str, across: Scale, up: Scale) -> list[str]:
    body = []
    for index, height in sorted(bins.items()):
        start, end, top = across.at(index * width), across.at((index + 1) * width), up.at(height)
        gap = min(1.0, (end - start) / 8)
        body.append(rectangle(start + gap, top, max(1.0, end - start - 2 * gap), up.start - top, fill=colour))
    return body


def _described(found: Sequence[_Series]) -> str:
    return " ".join(f"{series.kind}: {series.summary}." for series in found)
