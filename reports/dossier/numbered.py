"""A dossier with its numbers, as plain data: what the templates of all renderers read.

Sections, tables, figures and listings are numbered here, once, so that "table 12" is the same table in every
output. Texts are taken apart into lines, runs (plain or code) and pieces, between which a line may be broken.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from wcet_probe.reports.dossier.blocks import (
    Blank,
    Block,
    Code,
    Dossier,
    Figure,
    Items,
    KeyValues,
    Paragraph,
    Section,
    Table,
)

Node = dict[str, Any]
Line = list[Node]

_LONGEST_NAME = 90
_CODE = re.compile(r"`([^`]+)`")
_LONG_WORD = re.compile(r"(\S{25,})")
_LONG_PIECE = 16
_DIGITS_IN_A_PIECE = 8
_HEXADECIMAL = re.compile(r"(?:0x)?[0-9a-fA-F]{20,}")
_OPTION = re.compile(r"--?\w[\w=./+:-]{0,38}")
_AFTER_SEPARATOR = re.compile(r"(?<=[/_.,:;=()\[\]|&+@\\-])(?=\w)")


def numbered(dossier: Dossier) -> Node:
    """``dossier`` as nested dictionaries and lists with numbers and anchors, see the templates for the keys.

    The anchor of a table, figure or listing is that of its section with a number that starts over in each section,
    so that it stays the same when something is added elsewhere.

    Raises:
        ValueError: two sections have the same anchor, or a table is not rectangular.
    """
    anchors = Counter(section.anchor for section in _all(dossier.sections))
    if twice := [anchor for anchor, count in anchors.items() if count > 1]:
        raise ValueError(f"these anchors name two sections: {', '.join(twice)}")
    numbers = _Numbers()
    name = " · ".join([dossier.title, *dossier.subtitle.splitlines()[:1]]).replace("`", "")
    return {
        "name": name if len(name) <= _LONGEST_NAME else dossier.title,
        "title": dossier.title,
        "subtitle": lines(dossier.subtitle),
        "sections": [_section(part, str(place), numbers) for place, part in enumerate(dossier.sections, 1)],
    }


def blocks(node: Node) -> Iterator[Node]:
    """All blocks of a section, or of the whole, and of the sections in it."""
    yield from node.get("blocks", ())
    for section in node["sections"]:
        yield from blocks(section)


def lines(text: str, *, code: bool = False) -> list[Line]:
    """The lines of ``text``; each is a list of runs with ``code`` and ``pieces``. Everything is code if ``code``."""
    return [_runs(line.strip(), code=code) for line in text.splitlines()]


def pieces(text: str) -> list[str]:
    """``text`` cut where a long word may be broken: between groups of digits of a hash, behind separators of a path."""
    found: list[str] = [""]
    for place, part in enumerate(_LONG_WORD.split(text)):
        first, *rest = _word_pieces(part) if place % 2 else [part]
        found[-1] += first
        found += rest
    return found


@dataclass(slots=True)
class _Numbers:
    """The last number that was given to each kind of block, in the dossier and in the section."""

    in_dossier: Counter[str] = field(default_factory=Counter)
    in_section: Counter[str] = field(default_factory=Counter)


def _all(sections: Iterable[Section]) -> Iterable[Section]:
    for section in sections:
        yield section
        yield from _all(section.sections)


def _section(section: Section, number: str, numbers: _Numbers) -> Node:
    numbers.in_section.clear()
    return {
        "number": number,
        "title": _runs(section.title),
        "anchor": section.anchor,
        "blocks": [_block(block, section.anchor, numbers) for block in section.blocks],
        "sections": [_section(part, f"{number}.{place}", numbers) for place, part in enumerate(section.sections, 1)],
    }


def _block(block: Block, anchor: str, numbers: _Numbers) -> Node:
    match block:
        case Paragraph(text, style):
            return {"kind": "paragraph", "style": style, "text": lines(text)}
        case Items(items):
            return {"kind": "items", "items": [lines(item) for item in items]}
        case Blank(prompt):
            return {"kind": "blank", "text": lines(prompt)}
        case KeyValues(rows):
            return {"kind": "keys", "rows": [{"name": lines(name), "value": lines(value)} for name, value in rows]}
        case _:
            return _labelled(block, anchor, numbers)


def _labelled(block: Table | Code | Figure, anchor: str, numbers: _Numbers) -> Node:
    match block:
        case Table(caption, header, rows, align):
            return _label("table", caption, anchor, numbers) | _table(caption, header, rows, align)
        case Code(caption, text):
            return _label("listing", caption, anchor, numbers) | {"lines": text.expandtabs(4).rstrip().splitlines()}
        case Figure(caption, alternative, svg):
            return _label("figure", caption, anchor, numbers) | {"alternative": alternative, "svg": svg}


def _label(kind: str, caption: str, anchor: str, numbers: _Numbers) -> Node:
    numbers.in_dossier[kind] += 1
    numbers.in_section[kind] += 1
    return {
        "kind": kind,
        "number": f"{kind.capitalize()} {numbers.in_dossier[kind]}",
        "anchor": f"{anchor}-{kind}-{numbers.in_section[kind]}",
        "caption": _runs(caption),
    }


def _table(caption: str, header: tuple[str, ...], rows: tuple[tuple[str, ...], ...], align: str) -> Node:
    if any(len(row) != len(align) for row in (header, *rows)):
        raise ValueError(f"the rows, the header and the letters of alignment of the table {caption!r} differ in number")
    return {
        "align": list(align),
        "header": [lines(cell) for cell in header],
        "rows": [[lines(cell, code=kind == "c") for cell, kind in zip(row, align, strict=True)] for row in rows],
    }


def _runs(text: str, *, code: bool = False) -> Line:
    if code:
        return [{"code": True, "pieces": pieces(text.replace("`", ""))}] if text else []
    parts = enumerate(_CODE.split(text))
    return [{"code": bool(place % 2), "pieces": pieces(part)} for place, part in parts if part]


def _word_pieces(word: str) -> list[str]:
    if _OPTION.fullmatch(word):
        return [word]
    return [
        part[start : start + size]
        for part in _AFTER_SEPARATOR.split(word)
        for size in (_DIGITS_IN_A_PIECE if _HEXADECIMAL.fullmatch(part) else _LONG_PIECE,)
        for start in range(0, len(part), size)
    ]
