"""The dossier as one HTML page that needs nothing beside it: no network, no script, pictures and style inside."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from wcet_probe.catalog.resources import folder
from wcet_probe.reports.dossier.blocks import Dossier
from wcet_probe.reports.dossier.columns import Column, Setting, columns, layout, row_lines
from wcet_probe.reports.dossier.numbered import Node, blocks, numbered

_SVG = "http://www.w3.org/2000/svg"
_KEPT = re.compile(r"\B--?\w[\w=./+:-]{0,38}|\b[A-Z]{1,4}-[0-9]{1,4}\b")
_REFERENCE = re.compile(r"#([\w.-]+)")
# As the style sheet prints them on A4, the letters an eighth larger than they are: a page does not know its fonts.
_SETTINGS = (Setting("", 9, 7, 500), Setting("dense", 7.7, 4, 500), Setting("across", 7.9, 7, 740, is_across=True))
_MOST_LINES_OF_A_WHOLE_TABLE = 10


def render_html(dossier: Dossier) -> str:
    """``dossier`` as an HTML page, the same text for the same dossier.

    Raises:
        ValueError: an anchor names two sections, or a table is not rectangular.
        xml.etree.ElementTree.ParseError: a figure is no well-formed SVG.
    """
    templates = folder("reports") / "templates"
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {"breakable": _breakable, "inline": _inline}
    template = environment.from_string((templates / "dossier.html").read_text("utf-8"))
    content = numbered(dossier)
    for block in blocks(content):
        if block["kind"] == "table":
            _dress(block)
    style = Markup((templates / "dossier.css").read_text("utf-8"))  # noqa: S704  (our own style sheet)
    return template.render(dossier=content, style=style) + "\n"


def _dress(table: Node) -> None:
    needs = columns(table)
    found = layout(needs, _SETTINGS)
    is_whole = sum(row_lines(row, found) for row in table["rows"]) <= _MOST_LINES_OF_A_WHOLE_TABLE
    table["size"] = f"{found.setting.name} {'whole' if is_whole else ''}".strip()
    table["classes"] = [_classes(*both) for both in zip(table["align"], needs, strict=True)]


def _classes(letter: str, need: Column) -> str:
    width = "short" if need.is_short else "long" if need.is_long and letter != "r" else ""
    return f"{letter} {width}".rstrip()


def _breakable(pieces: list[str]) -> Markup:
    """``pieces`` between which a line may be broken, which it may not be behind the hyphens of an option or number."""
    text = Markup("<wbr>").join(pieces)
    return Markup(_KEPT.sub(r'<span class="kept">\g<0></span>', str(text)))  # noqa: S704  (was escaped before)


def _inline(svg: str, figure: Node) -> Markup:
    """``svg`` without prolog, named by its alternative text, its identifiers kept apart from those of other figures."""
    ET.register_namespace("", _SVG)
    root = ET.fromstring(svg)  # noqa: S314  (drawn by this package)
    root.attrib |= {"role": "img", "aria-label": figure["alternative"]}
    prefix = f"{figure['anchor']}-"
    own = {part.attrib["id"] for part in root.iter() if "id" in part.attrib}
    for part in root.iter():
        for name, value in part.attrib.items():
            if name == "id":
                part.attrib[name] = prefix + value
            elif "#" in value:
                part.attrib[name] = _REFERENCE.sub(lambda m: f"#{prefix}{m[1]}" if m[1] in own else m[0], value)
    return Markup(ET.tostring(root, encoding="unicode"))  # noqa: S704  (serialised from a tree)
