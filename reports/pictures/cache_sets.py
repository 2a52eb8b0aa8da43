"""Which sets of a cache are touched: a row for each region or each subject, a column for each set."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet

from wcet_probe.reports.pictures.colours import BLUE, INK, MUTED, PALE, RULE, SKY, VERMILLION, WORST_PALE
from wcet_probe.reports.pictures.documents import Document, name_of
from wcet_probe.reports.pictures.scales import counted
from wcet_probe.reports.pictures.svg import (
    MARGIN,
    SMALL_SIZE,
    WIDTH,
    fit,
    heading,
    line,
    path,
    picture,
    rectangle,
    text,
    text_width,
)

Rows = Sequence[tuple[str, AbstractSet[int]]]

_ROW, _BAR, _HEAD, _AXIS, _GAP = 20, 14, 24, 20, 12
_MOST_CELLS = 256
_WIDEST_LABEL, _NUMBERS = 170, 92
_PARTS = 8


def heat_rows(title: str, set_count: int, rows: Rows, marked: AbstractSet[int] = frozenset()) -> str:
    """The touched sets of a cache, a row for each subject.

    Parameters:
        title: what it is about.
        set_count: sets of the cache.
        rows: a label and the indices of the touched sets, for each row.
        marked: sets that are pointed at in all rows.
    """
    body, y = heading(title, _notes(set_count, marked))
    left = _left(rows)
    body += _grid("", set_count, rows, marked, top=y, left=left)
    height = y + _height(rows, has_title=False, has_marks=bool(marked)) + MARGIN - _GAP
    return picture(title, _described(set_count, rows), height, body)


def heat_strip(result: Document) -> str | None:
    """The cache sets that the observed call touched: of the I-cache by code, of the D-cache by region.

    Parameters:
        result: a document ``wcet-probe-result``.

    Returns:
        the SVG, or None where the target has no cache or nothing was observed.
    """
    caches, seen = result.get("caches") or {}, result.get("observed") or {}
    touched = seen.get("touched_sets") or {}
    parts: list[tuple[str, int, Rows]] = []
    if caches.get("icache") and "instruction" in touched:
        parts.append(("instruction cache", caches["icache"]["sets"], [("code", frozenset(touched["instruction"]))]))
    if caches.get("dcache") and "data" in touched:
        regions = (seen.get("touched_sets_by_region") or {}).items()
        by_region = [(name.replace("_", " "), frozenset(sets)) for name, sets in sorted(regions) if sets]
        parts.append(("data cache", caches["dcache"]["sets"], [("all data", frozenset(touched["data"])), *by_region]))
    if not parts:
        return None
    title = f"Touched cache sets: {name_of(result)}"
    most = max(set_count for _, set_count, _ in parts)
    body, y = heading(title, _notes(most, frozenset()))
    left = max(_left(rows) for _, _, rows in parts)
    for name, set_count, rows in parts:
        body += _grid(f"{name}, {counted(set_count)} sets", set_count, rows, frozenset(), top=y, left=left)
        y += _height(rows, has_title=True, has_marks=False)
    described = " ".join(f"{name}: {_described(set_count, rows)}" for name, set_count, rows in parts)
    return picture(title, described, y - _GAP + MARGIN, body)


def _notes(set_count: int, marked: AbstractSet[int]) -> list[str]:
    notes = ["Numbers: how many sets are touched."]
    if (per_cell := _per_cell(set_count)) > 1:
        notes.append(f"A cell is {per_cell} sets: high where all of them are touched, low where some are.")
    if marked:
        notes.append(f"Marked: {len(marked)} sets.")
    return [" ".join(notes)]


def _per_cell(set_count: int) -> int:
    return max(1, -(-set_count // _MOST_CELLS))


def _left(rows: Rows) -> float:
    return MARGIN + min(_WIDEST_LABEL, max((text_width(label) for label, _ in rows), default=0)) + 12


def _height(rows: Rows, *, has_title: bool, has_marks: bool) -> float:
    return (_HEAD if has_title else 4) + (10 if has_marks else 0) + _ROW * len(rows) + _AXIS + _GAP


def _grid(title: str, set_count: int, rows: Rows, marked: AbstractSet[int], *, top: float, left: float) -> list[str]:
    body = [text(MARGIN, top + 14, title, weight="bold")] if title else []
    end = WIDTH - MARGIN - _NUMBERS
    cell = (end - left) / set_count
    first = top + (_HEAD if title else 4) + (10 if marked else 0)
    bottom = first + _ROW * len(rows)
    for start, stop in _stretches(marked):
        x, width = left + cell * start, max(2.0, cell * (stop - start))
        body.append(rectangle(x, first, width, bottom - first, fill=WORST_PALE))
        body.append(path(f"M{x + width / 2:.2f} {first - 1:.2f}l-4 -7h8z", fill=VERMILLION))
    for index, (label, sets) in enumerate(rows):
        y = first + _ROW * index
        body.append(text(MARGIN, y + 14, fit(label, left - MARGIN - 8), fill=INK))
        body += [] if marked else [rectangle(left, y + 3, end - left, _BAR, fill=PALE)]
        body += _cells(sets, set_count, left, y + 3, cell)
        body.append(rectangle(left, y + 3, end - left, _BAR, fill="none", stroke=RULE))
        words = _touched(sets, set_count)
        body.append(text(WIDTH - MARGIN, y + 14, words, size=SMALL_SIZE, anchor="end", fill=MUTED))
    return body + _axis(set_count, left, cell, bottom)


def _touched(sets: AbstractSet[int], set_count: int) -> str:
    return f"{counted(len(sets))} of {counted(set_count)}"


def _cells(sets: AbstractSet[int], set_count: int, left: float, y: float, cell: float) -> list[str]:
    """Rectangles for the touched sets: neighbours in one; half as high and lighter where a cell is touched in part."""
    per_cell = _per_cell(set_count)
    share: dict[int, int] = {}
    for index in sets:
        share[index // per_cell] = share.get(index // per_cell, 0) + 1
    full = {index for index, found in share.items() if found == min(per_cell, set_count - index * per_cell)}
    width = cell * per_cell
    body = [
        rectangle(left + width * start, y + _BAR / 2, width * (stop - start), _BAR / 2, fill=SKY)
        for start, stop in _stretches(share.keys() - full)
    ]
    body += [
        rectangle(left + width * start, y, width * (stop - start), _BAR, fill=BLUE) for start, stop in _stretches(full)
    ]
    return body


def _stretches(indices: Iterable[int]) -> list[tuple[int, int]]:
    """Neighbouring ``indices`` as (first, behind the last)."""
    found: list[tuple[int, int]] = []
    for index in sorted(indices):
        if found and found[-1][1] == index:
            found[-1] = (found[-1][0], index + 1)
        else:
            found.append((index, index + 1))
    return found


def _axis(set_count: int, left: float, cell: float, y: float) -> list[str]:
    step = max(1, set_count // _PARTS)
    body = []
    for index in [*range(0, set_count, step)]:
        x = left + cell * (index + 0.5)
        body.append(line(x, y, x, y + 4, stroke=MUTED))
        body.append(text(x, y + 14, str(index), size=SMALL_SIZE, anchor="middle", fill=MUTED, kind="tick"))
    return body


def _described(set_count: int, rows: Rows) -> str:
    return " ".join(f"{label}: {_touched(sets, set_count)} sets." for label, sets in rows)
