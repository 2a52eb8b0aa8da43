"""The dossier as a PDF for paper and archive: set by typst, tagged for screen readers (PDF/UA-1), without a date."""

from __future__ import annotations

import json
import re
import textwrap
from typing import Any
from xml.etree import ElementTree as ET

import typst

from wcet_probe.catalog.resources import folder
from wcet_probe.errors import WcetProbeError
from wcet_probe.reports.dossier.blocks import Dossier
from wcet_probe.reports.dossier.columns import Setting, columns, layout, row_lines, text_lines
from wcet_probe.reports.dossier.numbered import Node, blocks, numbered

_WIDTH_POINTS, _HEIGHT_POINTS = 481, 640
_SETTINGS = (
    Setting("", 9, 4, _WIDTH_POINTS),
    Setting("", 8, 3.5, _WIDTH_POINTS),
    Setting("", 7, 2.5, _WIDTH_POINTS),
    Setting("", 7, 2.5, 728, is_across=True),
)
_VALUE_EM = 25
_LISTING_POINTS_BY_COLUMNS = ((96, 8.0), (110, 7.0))
_GOES_ON = "    ↪ "
_POINTS_PER_PIXEL = 0.75
_MOST_LINES_OF_A_WHOLE_ROW = 30
_MOST_LINES_OF_A_WHOLE_TABLE = 10
# What the fonts inside typst have; PDF/UA forbids signs without a picture.
_NOT_PRINTED = re.compile(
    "[^\n -~\u00a0-\u017f\u0370-\u0377\u037a-\u037f\u0384-\u038a\u038c\u038e-\u03a1\u03a3-\u03ff"
    "\u2000-\u200a\u2010-\u2027\u202f-\u2040\u2042\u2044-\u2052\u2054-\u205e\u2070\u2071\u2074-\u208e\u20a0-\u20bf"
    "\u2100-\u211e\u2126-\u214f\u2190-\u23ff\u2500-\u25ff\u2713\u2714\u2717\u2718]"
)


def render_pdf(dossier: Dossier) -> bytes:
    """``dossier`` as a PDF on A4, the same bytes for the same dossier.

    A character that the fonts inside typst do not have is written as its number, such as ``U+1F600``.

    Raises:
        ValueError: an anchor names two sections, or a table is not rectangular.
        WcetProbeError: typst refused the dossier.
    """
    content = numbered(dossier)
    for block in blocks(content):
        if dress := _DRESSES.get(block["kind"]):
            block.update(dress(block))
    template = (folder("reports") / "templates" / "dossier.typ").read_bytes()
    inputs = {"dossier": json.dumps(_printable(content))}
    try:
        # The time is fixed and not written: a report made twice is the same file.
        pdf = typst.compile(
            template, format="pdf", ignore_system_fonts=True, sys_inputs=inputs, pdf_standards=["ua-1"], timestamp=0
        )
    except typst.TypstError as error:
        raise WcetProbeError(f"the PDF could not be set ({error}): write the report as HTML and report this") from error
    return pdf


def _table(table: Node) -> Node:
    found = layout(columns(table), _SETTINGS)
    setting = found.setting
    lines = [row_lines(row, found) for row in table["rows"]]
    return {
        "rows": [
            {"cells": row, "is_breakable": count > _MOST_LINES_OF_A_WHOLE_ROW}
            for row, count in zip(table["rows"], lines, strict=True)
        ],
        "is_breakable": sum(lines) > _MOST_LINES_OF_A_WHOLE_TABLE,
        "widths_points": found.widths_points,
        "size_points": setting.size_points,
        "inset_points": setting.inset_points,
        "is_across": setting.is_across,
    }


def _keys(keys: Node) -> Node:
    most = _MOST_LINES_OF_A_WHOLE_ROW
    return {"rows": [row | {"is_breakable": text_lines(row["value"], _VALUE_EM) > most} for row in keys["rows"]]}


def _listing(listing: Node) -> Node:
    longest = max(map(len, listing["lines"]), default=0)
    room, size = next((fit for fit in _LISTING_POINTS_BY_COLUMNS if longest <= fit[0]), _LISTING_POINTS_BY_COLUMNS[-1])
    return {"text": "\n".join(part for line in listing["lines"] for part in _wrapped(line, room)), "size_points": size}


def _wrapped(line: str, room: int) -> list[str]:
    if len(line) <= room:
        return [line]
    return textwrap.wrap(line, room, subsequent_indent=_GOES_ON, drop_whitespace=False, replace_whitespace=False)


def _figure(figure: Node) -> Node:
    root = ET.fromstring(figure["svg"])  # noqa: S314  (drawn by this package)
    _, _, width, height = map(float, root.attrib["viewBox"].split())
    return {"width_points": min(_WIDTH_POINTS, width * _POINTS_PER_PIXEL, _HEIGHT_POINTS * width / height)}


_DRESSES = {"keys": _keys, "table": _table, "listing": _listing, "figure": _figure}


def _printable(value: Any) -> Any:  # noqa: ANN401  (whatever JSON holds)
    """``value`` with the numbers of the characters in its texts that the fonts do not have."""
    match value:
        case str():
            return _NOT_PRINTED.sub(lambda found: f"U+{ord(found[0]):04X}", value.replace("\t", " "))
        case dict():
            return {name: _printable(part) for name, part in value.items()}
        case list() | tuple():
            return [_printable(part) for part in value]
        case _:
            return value
