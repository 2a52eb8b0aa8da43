"""A table or figure of a paper in a terminal, with its claims below."""

from __future__ import annotations

from collections.abc import Iterator

from wcet_probe.answer.papers.exhibit import Exhibit, Paper
from wcet_probe.reports.screens.layout import paragraph, table

_LABEL_WIDTH = 14


def exhibit_lines(paper: Paper, exhibit: Exhibit, width: int) -> Iterator[str]:
    """The lines of one table or figure."""
    yield f"{paper.name} {exhibit.name}: {exhibit.title}"
    yield from table(exhibit.rows, exhibit.header)
    for shape in exhibit.shapes:
        yield from paragraph(shape.verdict, f"{shape.name}: {shape.why}", width, _LABEL_WIDTH)
    for note in exhibit.notes:
        yield from paragraph("note", note, width, _LABEL_WIDTH)
    yield ""
