"""Bound against observed: for each result how far the witness and the proof are apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from wcet_probe.certificate.results.witnessed import witnessed
from wcet_probe.reports.pictures.colours import BOUND, INK, MUTED, OBSERVED, PALE
from wcet_probe.reports.pictures.documents import Document, count, flattened, told_apart
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
    rectangle,
    text,
    text_width,
)

_ROW, _HEAD, _AXIS, _GAP = 20, 22, 22, 14
_WIDEST_LABEL = 210
_ROWS_WITH_BOTH_UNITS = 20
_UNITS = ("instructions", "cycles")


@dataclass(frozen=True, slots=True)
class _Row:
    label: str
    observed: int | None
    bound: int | None

    @property
    def cells(self) -> tuple[str, str, str]:
        seen = counted(self.observed) if self.observed is not None else "-"
        most = counted(self.bound) if self.bound is not None else "no bound"
        ratio = f"{self.bound / self.observed:.2f}" if self.bound is not None and self.observed else "-"
        return seen, most, ratio


@dataclass(frozen=True, slots=True)
class _Columns:
    """Places: where labels end, where the plot begins and ends, and the right edges of the three columns of numbers."""

    plot_start: float
    plot_end: float
    edges: tuple[float, float, float]


def bound_against_observed(results: Sequence[Document], unit: str | None = None) -> str | None:
    """Witness and proven bound of each of ``results`` on a common axis, with both numbers and their ratio.

    Parameters:
        results: documents ``wcet-probe-result`` or ``wcet-probe-bound``; one without any number is left out.
        unit: ``instructions`` or ``cycles``; without it both, but of more than twenty results cycles only.

    Returns:
        the SVG, or None where there is no number.
    """
    documents = [one for one in flattened(results) if _rows([one], [""], "instructions")]
    labels, common = told_apart(documents, ("allocator", "operation"))
    units = (unit,) if unit else _UNITS if len(documents) <= _ROWS_WITH_BOTH_UNITS else _UNITS[1:]
    panels = {unit: rows for unit in units if (rows := _rows(documents, labels, unit))}
    if not panels:
        return None
    columns = _columns([row for rows in panels.values() for row in rows])
    notes = [f"{common}." if common else "", "Ratio: bound divided by observation; at 1.00 both are the same."]
    body, y = heading("Proven bound against observation", [note for note in notes if note])
    body += _legend(y + 8)
    y += 24
    for unit_name, rows in panels.items():
        body += _panel(unit_name, rows, columns, y)
        y += _HEAD + _ROW * len(rows) + _AXIS + _GAP
    return picture("Proven bound against observation", _described(panels), y - _GAP + MARGIN, body)


def _rows(documents: Sequence[Document], labels: Sequence[str], unit: str) -> list[_Row]:
    rows = [
        _Row(label, count(witnessed(one), unit), count(one.get("bound"), unit))
        for one, label in zip(documents, labels, strict=True)
    ]
    return [row for row in rows if row.observed is not None or row.bound is not None]


def _columns(rows: Sequence[_Row]) -> _Columns:
    label_width = min(_WIDEST_LABEL, max(text_width(row.label) for row in rows))
    titles = ("observed", "bound", "ratio")
    widths = [
        max(text_width(title), *(text_width(row.cells[index]) for row in rows)) for index, title in enumerate(titles)
    ]
    third = float(WIDTH - MARGIN)
    second = third - widths[2] - 14
    first = second - widths[1] - 14
    return _Columns(MARGIN + label_width + 16, first - widths[0] - 22, (first, second, third))


def _legend(y: float) -> list[str]:
    witness = "observed: a state that was reached, and replayed"
    second = MARGIN + 14 + text_width(witness) + 24
    return [
        marker("circle", MARGIN + 5, y, OBSERVED),
        text(MARGIN + 14, y + 4, witness),
        line(second, y - 6, second, y + 6, stroke=BOUND, width=3),
        text(second + 9, y + 4, "bound: no call takes more, proved"),
    ]


def _panel(unit: str, rows: Sequence[_Row], columns: _Columns, top: float) -> list[str]:
    values = [value for row in rows for value in (row.observed, row.bound) if value is not None]
    scale = scale_for(values, columns.plot_start, columns.plot_end)
    first, bottom = top + _HEAD, top + _HEAD + _ROW * len(rows)
    shown = labelled(scale, ticks(scale), counted)
    kind = f"{unit}, logarithmic" if scale.logarithmic else unit
    body = [text(MARGIN, top + 14, kind, weight="bold")]
    body += [
        text(edge, top + 14, title, anchor="end", fill=MUTED)
        for edge, title in zip(columns.edges, ("observed", "bound", "ratio"), strict=True)
    ]
    body += [
        rectangle(MARGIN - 4, first + _ROW * i, WIDTH - 2 * MARGIN + 8, _ROW, fill=PALE) for i in range(0, len(rows), 2)
    ]
    for value, words in shown:
        body.append(line(scale.at(value), first, scale.at(value), bottom))
        body.append(
            text(scale.at(value), bottom + 14, words, size=SMALL_SIZE, anchor="middle", fill=MUTED, kind="tick")
        )
    for index, row in enumerate(rows):
        body += _row(row, scale, columns, first + _ROW * (index + 0.5))
    return body


def _row(row: _Row, scale: Scale, columns: _Columns, y: float) -> list[str]:
    body = [text(MARGIN, y + 4, fit(row.label, columns.plot_start - MARGIN - 10), fill=INK)]
    seen = scale.at(row.observed) if row.observed is not None else None
    most = scale.at(row.bound) if row.bound is not None else None
    if seen is not None and most is not None:
        body.append(line(seen, y, most, y, stroke=MUTED, width=2))
    if most is not None:
        body.append(line(most, y - 7, most, y + 7, stroke=BOUND, width=3))
    if seen is not None:
        body.append(marker("circle", seen, y, OBSERVED))
    known = (row.observed is not None, row.bound is not None, False)
    for edge, cell, is_value in zip(columns.edges, row.cells, known, strict=True):
        body.append(text(edge, y + 4, cell, anchor="end", size=TEXT_SIZE, kind="value" if is_value else None))
    return body


def _described(panels: dict[str, list[_Row]]) -> str:
    sentences = [
        f"{row.label}: observed {row.cells[0]}, bound {row.cells[1]} {unit}."
        for unit, rows in panels.items()
        for row in rows
    ]
    return " ".join(sentences)
