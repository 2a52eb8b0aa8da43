"""Bounds by the size of the request, as text, as a JSON document, and as a picture in the form of H11 figure 9."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console

from wcet_probe.reports.formats.records import Document
from wcet_probe.reports.pictures.colours import DASHES, INK, MUTED, SERIES
from wcet_probe.reports.pictures.scales import Scale, counted, labelled, ticks
from wcet_probe.reports.pictures.svg import MARGIN, SMALL_SIZE, WIDTH, heading, line, picture, polyline, text
from wcet_probe.reports.screens.terminal import render_table
from wcet_probe.sizes import format_size

if TYPE_CHECKING:
    from wcet_probe.answer.bounds.per_size import PerSize

_HEIGHT, _LABEL, _TICKS_APART = 260, 16, 34


def render_per_size(found: Sequence[PerSize], console: Console) -> None:
    """Print a table for each allocator, and its bound of free."""
    for number, one in enumerate(found):
        if number:
            console.print()
        console.print(f"{_title(one)}: proved, at most", soft_wrap=True)
        rows = [(f"malloc {_bytes(size.first_bytes, size.last_bytes)}", *size.cost) for size in one.malloc]
        render_table(("", "instructions", "cycles"), [*rows, ("free", *one.free)], console)


def per_size_document(found: Sequence[PerSize]) -> Document:
    """The document ``wcet-probe-per-size``."""
    return {"format": "wcet-probe-per-size", "version": 1, "results": [_result(one) for one in found]}


def per_size_picture(found: Sequence[PerSize]) -> str:
    """Cycles of malloc against the size of the request, logarithmic: a line for each of ``found``. An SVG."""
    first = found[0].request
    title = "Bound of malloc by the size of the request"
    told = f"{first.program.target.name}, heap {format_size(first.heap_bytes)}. Proved for every state of the heap."
    body, top = heading(title, [told])
    most = max(size.cost.cycles for one in found for size in one.malloc)
    left, right = MARGIN + 50, WIDTH - MARGIN - 10
    up = Scale(0, most * 1.05, top + 30 + _HEIGHT, top + 30)
    across = Scale(1, max(one.malloc[-1].last_bytes for one in found), left, right, logarithmic=True)
    body.append(text(MARGIN, top + 12, "cycles", fill=MUTED))
    for value, words in labelled(up, ticks(up, _TICKS_APART), counted, upright=True):
        body.append(line(left, up.at(value), right, up.at(value)))
        body.append(text(left - 6, up.at(value) + 3.5, words, size=SMALL_SIZE, anchor="end", fill=MUTED, kind="tick"))
    powers = [1 << shift for shift in range(0, int(across.high).bit_length(), 2)]
    for value, words in labelled(across, powers, format_size):
        body.append(line(across.at(value), up.start, across.at(value), up.start + 4, stroke=MUTED))
        place = across.at(value), up.start + 16
        body.append(text(*place, words, size=SMALL_SIZE, anchor="middle", fill=MUTED, kind="tick"))
    below = up.start + 36
    for number, one in enumerate(found):
        steps = [(across.at(x), up.at(s.cost.cycles)) for s in one.malloc for x in (s.first_bytes, s.last_bytes)]
        colour, dash = SERIES[number % len(SERIES)], DASHES[number % len(DASHES)]
        body.append(polyline(steps, colour, 2, dash))
        y = below + number * _LABEL
        body.append(polyline([(left, y), (left + 28, y)], colour, 2, dash))
        body.append(text(left + 36, y + 4, _described(one), fill=INK))
    return picture(title, " ".join(map(_described, found)), below + len(found) * _LABEL + MARGIN, body)


def _described(one: PerSize) -> str:
    cycles = [size.cost.cycles for size in one.malloc]
    return f"{one.request.program.allocator.name}: {_range(min(cycles), max(cycles))} cycles."


def _title(one: PerSize) -> str:
    request = one.request
    program = request.program
    sets = ""
    if program.allocator.takes_cache_set:
        sets = f", cache sets {_range(*request.cache_sets)}" if request.cache_sets else ", every cache set"
    return f"{program.allocator.name} on {program.target.name}, heap {format_size(request.heap_bytes)}{sets}"


def _range(first: int, last: int) -> str:
    return f"{first:,}" if first == last else f"{first:,} to {last:,}"


def _bytes(first: int, last: int) -> str:
    return f"{_range(first, last)} {'byte' if last == 1 else 'bytes'}"


def _result(one: PerSize) -> Document:
    program = one.request.program
    return {
        "allocator": program.allocator.name,
        "parameters": dict(program.allocator.values),
        "target": program.target.name,
        "heap_bytes": one.request.heap_bytes,
        "cache_sets": list(one.request.cache_sets) if one.request.cache_sets else None,
        "compiler": program.image.compiler,
        "image_sha256": program.image.sha256,
        "malloc": [
            {"first_bytes": size.first_bytes, "last_bytes": size.last_bytes, **size.cost._asdict()}
            for size in one.malloc
        ],
        "free": one.free._asdict(),
    }
