"""Tables and figures of papers as pictures: what was found in colour, the paper's own numbers in grey beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wcet_probe.reports.pictures.colours import DASHES, MUTED, SERIES, SHAPES
from wcet_probe.reports.pictures.documents import Document
from wcet_probe.reports.pictures.scales import Scale, counted, labelled, scale_for, ticks
from wcet_probe.reports.pictures.svg import (
    MARGIN,
    SMALL_SIZE,
    TEXT_SIZE,
    WIDTH,
    fit,
    heading,
    line,
    marker,
    picture,
    polyline,
    rectangle,
    text,
    text_width,
)

_HEIGHT, _LEGEND, _AXIS, _BAR, _BETWEEN_GROUPS = 280, 17, 36, 9, 8
_PAPER_GREYS = ("#8c8c8c", "#bdbdbd", "#6b6b6b", "#d9d9d9")
_WIDEST_LABEL = 150
_MARGIN_OF_BARS = 1.05
Curve = Mapping[str, object]
Points = Sequence[tuple[float, float]]


def exhibit_picture(exhibit: Document, paper: str) -> str | None:
    """The picture of one of the ``exhibits`` of a document ``wcet-probe-reproduction``; None where it has none."""
    drawing = exhibit.get("picture")
    if not drawing:
        return None
    title = f"{paper} {exhibit['name']}: {exhibit['title']}"
    return _bars(title, drawing) if drawing["groups"] else _curves(title, drawing)


def _colours(curves: Sequence[Document]) -> list[str]:
    """Our series in the order of the palette, the paper's in greys."""
    ours, theirs = iter(SERIES * 4), iter(_PAPER_GREYS * 4)
    return [next(theirs if one["paper"] else ours) for one in curves]


def _described(curves: Sequence[Document], groups: Sequence[str]) -> str:
    sentences = []
    for one in curves:
        points: Points = one["points"]
        if groups:
            values = ", ".join(f"{groups[int(x)]} {_number(y)}" for x, y in points)
        elif points:
            (x, y), (last_x, last_y) = points[0], points[-1]
            values = f"{_number(y)} at {_number(x)}, {_number(last_y)} at {_number(last_x)}"
        else:
            values = "nothing"
        sentences.append(f"{one['label']}: {values}.")
    return " ".join(sentences)


def _number(value: float) -> str:
    return counted(int(value)) if value == int(value) else f"{value:,.2f}"


def _legend(curves: Sequence[Document], colours: Sequence[str], y: float, *, filled: bool) -> tuple[list[str], float]:
    body, x = [], float(MARGIN)
    for index, (one, colour) in enumerate(zip(curves, colours, strict=True)):
        label = fit(str(one["label"]), 240)
        wide = 18 + text_width(label) + 18
        if x + wide > WIDTH - MARGIN and x > MARGIN:
            x, y = float(MARGIN), y + _LEGEND
        if filled:
            body.append(rectangle(x, y - 6, 12, 9, fill=colour))
        else:
            body.append(polyline([(x, y), (x + 14, y)], colour, 1.8, DASHES[index % len(DASHES)]))
            body.append(marker(SHAPES[index % len(SHAPES)], x + 7, y, colour, 3))
        body.append(text(x + 18, y + 3, label))
        x += wide
    return body, y + _LEGEND


def _bars(title: str, drawing: Document) -> str:
    """Groups below each other, a bar to the right for each series."""
    curves, groups = drawing["curves"], drawing["groups"]
    colours = _colours(curves)
    values = [float(y) for one in curves for _, y in one["points"]]
    least = min(values, default=0.0)
    body, y = heading(title, [f"To the right: {drawing['up']}. Grey: the paper's own numbers."])
    legend, y = _legend(curves, colours, y + 6, filled=True)
    body += legend
    labels = min(_WIDEST_LABEL, max(text_width(group) for group in groups))
    left, right = MARGIN + labels + 10, WIDTH - MARGIN - 70
    scale = scale_for([value for value in values if value > 0] or [1.0], left, right)
    if least < 0:  # bars to the left of zero: no logarithm has a place for them
        scale = Scale(least * _MARGIN_OF_BARS, max(0.0, *values) * _MARGIN_OF_BARS, left, right)
    zero = scale.at(0) if least < 0 else left
    bottom = y + len(groups) * (len(curves) * _BAR + _BETWEEN_GROUPS)
    for value, words in labelled(scale, ticks(scale), counted):
        body.append(line(scale.at(value), y, scale.at(value), bottom))
        place = scale.at(value)
        body.append(text(place, bottom + 14, words, size=SMALL_SIZE, anchor="middle", fill=MUTED, kind="tick"))
    for index, group in enumerate(groups):
        top = y + index * (len(curves) * _BAR + _BETWEEN_GROUPS)
        middle = top + len(curves) * _BAR / 2 + 4
        body.append(text(MARGIN, middle, fit(group, labels)))
        for row, (one, colour) in enumerate(zip(curves, colours, strict=True)):
            bar = dict(one["points"]).get(float(index))
            if bar is None:
                continue
            size = float(bar)
            end = scale.at(max(size, scale.low)) if size > 0 or least < 0 else left
            body.append(rectangle(min(zero, end), top + row * _BAR, abs(end - zero), _BAR - 1, fill=colour))
            place = top + row * _BAR + _BAR - 2
            body.append(
                text(max(zero, end) + 3, place, _number(round(size, 2)), size=_BAR - 1, fill=MUTED, kind="value")
            )
    words = f"{drawing['up']}{', logarithmic' if scale.logarithmic else ''}"
    body.append(text((left + right) / 2, bottom + 30, words, anchor="middle", fill=MUTED))
    return picture(title, _described(curves, groups), bottom + _AXIS + MARGIN, body)


def _curves(title: str, drawing: Document) -> str:
    curves = [one for one in drawing["curves"] if one["points"]]
    colours = _colours(curves)
    body, y = heading(title, ["Grey: the paper's own numbers."] if any(one["paper"] for one in curves) else [])
    legend, y = _legend(curves, colours, y + 6, filled=False)
    body += legend
    xs = [x for one in curves for x, _ in one["points"]]
    ys = [max(0.0, value) for one in curves for _, value in one["points"]]
    up = scale_for(ys, y + 16 + _HEIGHT, y + 16)
    left = MARGIN + 8 + max(text_width(counted(tick), SMALL_SIZE) for tick in ticks(up, 34))
    across = scale_for(xs, left, WIDTH - MARGIN - 12)
    words = f"{drawing['up']}{', logarithmic' if up.logarithmic else ''}"
    body.append(text(MARGIN, y + 6, words, fill=MUTED))
    for value, tick in labelled(up, ticks(up, 34), counted, upright=True):
        body.append(line(left, up.at(value), across.end, up.at(value)))
        place = up.at(value) + 3.5
        body.append(text(left - 6, place, tick, size=SMALL_SIZE, anchor="end", fill=MUTED, kind="tick"))
    for value, tick in labelled(across, ticks(across, 70), counted):
        body.append(line(across.at(value), up.start, across.at(value), up.start + 4, stroke=MUTED))
        place = across.at(value)
        body.append(text(place, up.start + 15, tick, size=SMALL_SIZE, anchor="middle", fill=MUTED, kind="tick"))
    for index, (one, colour) in enumerate(zip(curves, colours, strict=True)):
        points = _places(one["points"], across, up)
        body.append(polyline(points, colour, 1.4, DASHES[index % len(DASHES)]))
        if len(points) <= 24:
            body += [marker(SHAPES[index % len(SHAPES)], px, py, colour, 3) for px, py in points]
    words = f"{drawing['across']}{', logarithmic' if across.logarithmic else ''}"
    body.append(text((left + across.end) / 2, up.start + 32, words, anchor="middle", fill=MUTED, size=TEXT_SIZE))
    return picture(title, _described(curves, ()), up.start + _AXIS + MARGIN, body)


def _places(points: Points, across: Scale, up: Scale) -> list[tuple[float, float]]:
    return [(across.at(x), up.at(max(0.0, y))) for x, y in points]
