"""The document ``wcet-probe-reproduction``: tables and figures of a paper as found here, and its claims as checks."""

from __future__ import annotations

from collections.abc import Sequence

from wcet_probe import __version__
from wcet_probe.answer.papers.exhibit import Drawing, Exhibit, Paper
from wcet_probe.reports.formats.records import Document


def reproduction_document(
    paper: Paper, target: str, exhibits: Sequence[Exhibit], *, quick: bool, most_seeds: int | None = None
) -> Document:
    """All ``exhibits`` of ``paper`` that were asked for, in order; ``shapes`` are those of all of them."""
    return {
        "format": "wcet-probe-reproduction",
        "version": 1,
        "tool": {"name": "wcet-probe", "version": __version__},
        "paper": paper.name,
        "citation": paper.citation,
        "target": target,
        "quick": quick,
        "most_seeds": most_seeds,
        "exhibits": [
            {
                "name": exhibit.name,
                "title": exhibit.title,
                "header": [title.replace("\n", " ").strip() for title in exhibit.header],
                "rows": [list(row) for row in exhibit.rows],
                "notes": list(exhibit.notes),
                "picture": _picture(exhibit.drawing),
            }
            for exhibit in exhibits
        ],
        "shapes": [
            {
                "exhibit": exhibit.name,
                "name": shape.name,
                "holds": shape.holds,
                "verdict": shape.verdict,
                "why": shape.why,
            }
            for exhibit in exhibits
            for shape in exhibit.shapes
        ],
    }


def _picture(drawing: Drawing | None) -> Document | None:
    """What is drawn, as numbers."""
    if drawing is None:
        return None
    return {
        "across": drawing.across,
        "up": drawing.up,
        "groups": list(drawing.groups),
        "curves": [
            {"label": one.label, "paper": one.paper, "points": [list(point) for point in one.points]}
            for one in drawing.curves
        ],
    }
