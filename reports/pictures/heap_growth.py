"""WCET against the size of the heap. Source of the form: P02 figure 4."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from wcet_probe.certificate.results.witnessed import witnessed
from wcet_probe.reports.pictures.colours import DASHES, INK, MUTED, SERIES, SHAPES
from wcet_probe.reports.pictures.documents import GROWTH, Document, count, flattened, told_apart
from wcet_probe.reports.pictures.scales import Scale, counted, labelled, scale_for, ticks
from wcet_probe.reports.pictures.svg import (
    MARGIN,
    SMALL_SIZE,
    WIDTH,
    fit,
    heading,
    line,
    marker,
    picture,
    polyline,
    text,
    text_width,
)
from wcet_probe.sizes import format_size

_LEAST_HEIGHT, _LABEL, _AXIS, _TICK = 280, 14, 36, 70
_MOST_LINES = 30
_WIDEST_LABEL = 190
_LOGARITHMIC_HEAPS_FROM = 8


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of the picture: its points by heap size."""

    label: str
    proved: bool
    points: tuple[tuple[int, int], ...]


def wcet_against_heap(results: Sequence[Document]) -> str | None:
    """Instructions against heap size: bounds as full marks, observations as hollow ones, a line for each question.

    Parameters:
        results: documents ``wcet-probe-result`` of several heaps, or with a formula's samples, and
            ``wcet-probe-growth``.

    Returns:
        the SVG, or None where no question has two heaps.
    """
    documents = flattened(results)
    labels, common = told_apart([{**one, "heap_bytes": None} for one in documents], ("allocator",))
    found = _lines(documents, labels)
    growing = {one.label for one in found if len(one.points) > 1}
    lines = [one for one in found if one.label in growing]
    if not lines:
        return None
    note = f"{common}. " if common else ""
    marks = "Full marks: proved bound; hollow marks: observed worst state."
    if len(lines) > _MOST_LINES:
        bounded = {one.label for one in lines if one.proved}
        lines = [one for one in lines if one.proved or one.label not in bounded]
        marks += " Observations beside a bound are left out."
    heaps = [heap for one in lines for heap, _ in one.points]
    counts = [value for one in lines for _, value in one.points]
    log_heaps = max(heaps) / min(heaps) >= _LOGARITHMIC_HEAPS_FROM
    body, y = heading("WCET against heap size", [f"{note}{marks}"])
    height = max(_LEAST_HEIGHT, _LABEL * len(lines))
    up = scale_for(counts, y + 26 + height, y + 26)
    label_width = min(_WIDEST_LABEL, max(text_width(_words(one)) for one in lines))
    left = MARGIN + 8 + max(text_width(counted(tick), SMALL_SIZE) for tick in ticks(up, 34))
    right = WIDTH - MARGIN - label_width - 26
    low = min(heaps) if log_heaps else 0
    across = Scale(low, max(heaps), left + (10 if log_heaps else 0), right, logarithmic=log_heaps)
    body.append(text(MARGIN, y + 10, f"instructions{', logarithmic' if up.logarithmic else ''}", fill=MUTED))
    body += _axes(across, up, left, log_heaps=log_heaps)
    body += _drawn(lines, across, up, label_width)
    words = f"heap{', logarithmic' if log_heaps else ''}"
    body.append(text((left + right) / 2, up.start + 32, words, anchor="middle", fill=MUTED))
    described = " ".join(
        f"{_words(one)}: {counted(one.points[0][1])} instructions at {format_size(one.points[0][0])}, "
        f"{counted(one.points[-1][1])} at {format_size(one.points[-1][0])}."
        for one in lines
    )
    return picture("WCET against heap size", described, up.start + _AXIS + MARGIN, body)


def _words(one: _Line) -> str:
    return f"{one.label}, {'bound' if one.proved else 'observed'}"


def _lines(documents: Sequence[Document], labels: Sequence[str]) -> list[_Line]:
    found: dict[tuple[str, bool], dict[int, int]] = {}
    for one, label in zip(documents, labels, strict=True):
        if one.get("format") == GROWTH:
            points = {s["heap_bytes"]: s["instructions"] for s in one.get("samples") or ()}
            found.setdefault((label, False), {}).update(points)
            continue
        heap = count(one, "heap_bytes")
        formula = one.get("formula") or {}
        samples = formula.get("samples") or () if formula.get("parameter") == "H" else ()
        for sample in samples:
            found.setdefault((label, True), {})[sample["H"]] = sample["instructions"]
        for proved, section in ((True, one.get("bound")), (False, witnessed(one))):
            value = count(section, "instructions")
            if heap and value is not None:
                found.setdefault((label, proved), {})[heap] = value
    return [_Line(label, proved, tuple(sorted(points.items()))) for (label, proved), points in found.items()]


def _axes(across: Scale, up: Scale, left: float, *, log_heaps: bool) -> list[str]:
    body = []
    for value, words in labelled(up, ticks(up, 34), counted, upright=True):
        y = up.at(value)
        body.append(line(left, y, across.end, y))
        body.append(text(left - 6, y + 3.5, words, size=SMALL_SIZE, anchor="end", fill=MUTED, kind="tick"))
    body.append(line(left, up.start, across.end, up.start, stroke=MUTED))
    for value, words in labelled(across, _sizes(across, log_heaps=log_heaps), format_size):
        x = across.at(value)
        body.append(line(x, up.start, x, up.start + 4, stroke=MUTED))
        body.append(text(x, up.start + 15, words, size=SMALL_SIZE, anchor="middle", fill=MUTED, kind="tick"))
    return body


def _sizes(across: Scale, *, log_heaps: bool) -> list[int]:
    """Round heap sizes: powers of two, or multiples of one."""
    most = int(across.high)
    if log_heaps:
        shifts = range(max(0, math.ceil(math.log2(across.low))), most.bit_length())
        each = max(1, math.ceil(len(shifts) / max(1, int((across.end - across.start) / _TICK))))
        return [1 << shift for shift in reversed(shifts) if (shifts[-1] - shift) % each == 0][::-1]
    step = max(1, 1 << max(0, (most // 4).bit_length() - 1))
    return list(range(0, most + 1, step))[1:]


def _drawn(lines: Sequence[_Line], across: Scale, up: Scale, label_width: float) -> list[str]:
    ends = [up.at(one.points[-1][1]) for one in lines]
    places = _spread(ends, up.end + 4, up.start + 4)
    subjects = list(dict.fromkeys(one.label for one in lines))
    body = []
    for one, end, place in zip(lines, ends, places, strict=True):
        index = subjects.index(one.label)
        colour, shape = SERIES[index % len(SERIES)], SHAPES[index % len(SHAPES)]
        points = [(across.at(heap), up.at(value)) for heap, value in one.points]
        body.append(polyline(points, colour, 1.8 if one.proved else 1.2, DASHES[index % len(DASHES)]))
        body += [marker(shape, x, y, colour, 3.6) for x, y in points]
        if not one.proved and shape not in {"cross", "plus"}:
            body += [marker(shape, x, y, "#ffffff", 1.8) for x, y in points]
        x = across.end + 20
        body.append(polyline([(points[-1][0] + 5, end), (x - 3, place)], MUTED, 0.7))
        words = "bound" if one.proved else "observed"
        label = fit(one.label, label_width - text_width(f", {words}"))
        body.append(text(x, place + 4, f"{label}, {words}", fill=INK))
    return body


def _spread(wished: Sequence[float], low: float, high: float) -> list[float]:
    """Places near the ``wished`` ones, ``_LABEL`` apart, between ``low`` and ``high`` if there is room."""
    order = sorted(range(len(wished)), key=lambda index: (wished[index], index))
    places = [0.0] * len(wished)
    floor = low
    for index in order:
        places[index] = max(floor, wished[index])
        floor = places[index] + _LABEL
    ceiling = high
    for index in reversed(order):
        places[index] = min(ceiling, places[index])
        ceiling = places[index] - _LABEL
    return places
