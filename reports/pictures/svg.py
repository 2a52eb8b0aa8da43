"""Elements of an SVG as text: escaped, with short numbers, in plain attributes that every renderer knows.

No identifiers, style sheets, patterns or variables: several pictures can stand in one page, and a PDF renderer draws
the same as a browser. Widths of text are estimated from a wide sans-serif, so that narrower ones fit as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from xml.sax.saxutils import escape, quoteattr

from wcet_probe.reports.pictures.colours import INK, MUTED, PAPER, RULE

WIDTH = 720
"""Of every picture in its own units; on paper, 170 mm."""

MARGIN = 16
TITLE_SIZE, TEXT_SIZE, SMALL_SIZE = 14, 11, 10
_FONTS = "Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif"
_LINE = 1.35
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_NARROW, _SLIM, _WIDE = frozenset("iljI|.,:;'!()[]/ "), frozenset('ftr-"`{}*°'), frozenset("mwMW%@&#+<>=~…→≈")
_AVERAGE_EM, _NARROW_EM, _SLIM_EM, _DIGIT_EM, _CAPITAL_EM, _WIDE_EM = 0.62, 0.36, 0.46, 0.64, 0.72, 0.96


def number(value: float) -> str:
    """``value`` with at most two decimals."""
    if isinstance(value, int):
        return str(value)
    written = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if written == "-0" else written


def element(tag: str, /, *children: str, **attributes: str | float | None) -> str:
    """An element of ``children``; ``stroke_width=2`` becomes ``stroke-width="2"``, None is left out."""
    names = ((name.rstrip("_").replace("_", "-"), value) for name, value in attributes.items() if value is not None)
    written = "".join(f" {name}={quoteattr(v if isinstance(v, str) else number(v))}" for name, v in names)
    return f"<{tag}{written}>{''.join(children)}</{tag}>" if children else f"<{tag}{written}/>"


def text(
    x: float,
    y: float,
    content: str,
    *,
    size: float = TEXT_SIZE,
    anchor: str | None = None,
    weight: str | None = None,
    fill: str = INK,
    kind: str | None = None,
) -> str:
    """A line of text, whose baseline is at ``y``; ``kind`` ``value`` marks what the document says, ``tick`` an axis."""
    attributes = {"font_size": size, "text_anchor": anchor, "font_weight": weight, "fill": fill, "class_": kind}
    return element("text", escape(clean(content)), x=float(x), y=float(y), **attributes)


def line(x1: float, y1: float, x2: float, y2: float, *, stroke: str = RULE, width: float = 1) -> str:
    """A straight line."""
    ends = {"x1": float(x1), "y1": float(y1), "x2": float(x2), "y2": float(y2)}
    return element("line", stroke=stroke, stroke_width=width, **ends)


def rectangle(
    x: float, y: float, width: float, height: float, *, fill: str, stroke: str | None = None, stroke_width: float = 1
) -> str:
    """A rectangle."""
    edges = {"stroke": stroke, "stroke_width": stroke_width if stroke else None}
    return element("rect", x=float(x), y=float(y), width=float(width), height=float(height), fill=fill, **edges)


def path(steps: str, *, stroke: str = "none", width: float = 1, dash: str = "", fill: str = "none") -> str:
    """A path of ``steps`` in the language of SVG."""
    line_width = None if stroke == "none" else width
    return element("path", d=steps, fill=fill, stroke=stroke, stroke_width=line_width, stroke_dasharray=dash or None)


def polyline(points: Iterable[tuple[float, float]], stroke: str, width: float, dash: str = "") -> str:
    """Straight lines from point to point."""
    steps = "L".join(f"{number(float(x))} {number(float(y))}" for x, y in points)
    return path(f"M{steps}", stroke=stroke, width=width, dash=dash)


def marker(shape: str, x: float, y: float, colour: str, radius: float = 4) -> str:
    """A mark of ``shape`` (``circle``, ``square``, ``triangle``, ``diamond``, ``cross``, ``plus``) around a point."""
    outline = _OUTLINES[shape](float(x), float(y), float(radius))
    if shape in {"cross", "plus"}:
        return path(outline, stroke=colour, width=1.6)
    return path(outline, fill=colour, stroke=PAPER, width=0.6)


def _circle(x: float, y: float, r: float) -> str:
    arc = f"{number(r)} {number(r)} 0 1 1"
    return f"M{number(x - r)} {number(y)}a{arc} {number(2 * r)} 0a{arc} {number(-2 * r)} 0z"


def _polygon(x: float, y: float, corners: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{number(x + dx)} {number(y + dy)}" for dx, dy in corners) + "z"


def _square(x: float, y: float, r: float) -> str:
    return _polygon(x, y, [(dx * 0.9 * r, dy * 0.9 * r) for dx, dy in ((-1, -1), (1, -1), (1, 1), (-1, 1))])


def _triangle(x: float, y: float, r: float) -> str:
    return _polygon(x, y, ((0.0, -1.1 * r), (1.1 * r, 0.9 * r), (-1.1 * r, 0.9 * r)))


def _diamond(x: float, y: float, r: float) -> str:
    return _polygon(x, y, ((0.0, -1.2 * r), (1.2 * r, 0.0), (0.0, 1.2 * r), (-1.2 * r, 0.0)))


def _cross(x: float, y: float, r: float) -> str:
    there, back = number(2 * r), number(-2 * r)
    return f"M{number(x - r)} {number(y - r)}l{there} {there}m0 {back}l{back} {there}"


def _plus(x: float, y: float, r: float) -> str:
    return f"M{number(x - r)} {number(y)}h{number(2 * r)}M{number(x)} {number(y - r)}v{number(2 * r)}"


_OUTLINES = {
    "circle": _circle,
    "square": _square,
    "triangle": _triangle,
    "diamond": _diamond,
    "cross": _cross,
    "plus": _plus,
}


def picture(title: str, description: str, height: float, body: Iterable[str], width: float = WIDTH) -> str:
    """The whole SVG: ``title`` and ``description`` for those who do not see it, white paper below ``body``."""
    paper = element(
        "rect", x=0.5, y=0.5, width=width - 1.0, height=height - 1.0, rx=6, fill=PAPER, stroke=RULE, stroke_width=1
    )
    return (
        element(
            "svg",
            "\n",
            "\n".join(
                [
                    element("title", escape(clean(title))),
                    element("desc", escape(clean(description))),
                    paper,
                    *body,
                ]
            ),
            "\n",
            xmlns="http://www.w3.org/2000/svg",
            viewBox=f"0 0 {number(width)} {number(height)}",
            width=width,
            height=height,
            role="img",
            aria_label=clean(title),
            font_family=_FONTS,
        )
        + "\n"
    )


def heading(title: str, notes: Sequence[str]) -> tuple[list[str], float]:
    """``title`` and, wrapped, ``notes`` below it at the top of a picture; and the y below them."""
    room = WIDTH - 2 * MARGIN
    titles = wrap(title, room, TITLE_SIZE * 1.08)
    body = [
        text(MARGIN, MARGIN + 10 + TITLE_SIZE * _LINE * row, words, size=TITLE_SIZE, weight="bold")
        for row, words in enumerate(titles)
    ]
    y = MARGIN + 10 + TITLE_SIZE * _LINE * (len(titles) - 1)
    for words in (part for note in notes for part in wrap(note, room, TEXT_SIZE)):
        y += TEXT_SIZE * _LINE + 1
        body.append(text(MARGIN, y, words, fill=MUTED))
    return body, y + 12


def clean(content: str) -> str:
    """``content`` without the characters that XML has no place for."""
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", content)


def text_width(content: str, size: float = TEXT_SIZE) -> float:
    """About how wide ``content`` is, rather too much than too little."""
    return size * sum(map(_em, content))


def _em(character: str) -> float:
    if character in _NARROW:
        return _NARROW_EM
    if character in _SLIM:
        return _SLIM_EM
    if character in _WIDE:
        return _WIDE_EM
    if character.isdigit():
        return _DIGIT_EM
    return _CAPITAL_EM if character.isupper() or ord(character) > 0x2FF else _AVERAGE_EM


def fit(content: str, room: float, size: float = TEXT_SIZE) -> str:
    """``content``, cut so that it and the dots for what is left out fit into ``room``."""
    if text_width(content, size) <= room:
        return content
    kept = content
    while kept and text_width(f"{kept}…", size) > room:
        kept = kept[:-1]
    return f"{kept.rstrip()}…"


def wrap(content: str, room: float, size: float = TEXT_SIZE) -> list[str]:
    """``content`` in lines that fit into ``room``; a word that does not is cut."""
    lines: list[str] = []
    for word in content.split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and text_width(longer, size) <= room:
            lines[-1] = longer
        else:
            lines.append(fit(word, room, size))
    return lines
