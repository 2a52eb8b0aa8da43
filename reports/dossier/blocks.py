"""What a dossier is made of, whatever it is printed as: sections of paragraphs, tables, figures and blanks.

Texts are plain; what stands between backticks is code. Renderers number the sections, tables and figures.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph; a ``lead`` answers the question of its section, a ``note`` stands back."""

    text: str
    style: Literal["normal", "lead", "note"] = "normal"


@dataclass(frozen=True, slots=True)
class Items:
    """A list of sentences or paragraphs of equal rank."""

    items: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Blank:
    """Something that only the reader can know: a marked blank, with what belongs there."""

    prompt: str


@dataclass(frozen=True, slots=True)
class Table:
    """A table; ``align`` has a letter for each column: ``l`` for text, ``r`` for numbers, ``c`` for code."""

    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    align: str


@dataclass(frozen=True, slots=True)
class KeyValues:
    """Names and what belongs to them; what is empty is a marked blank."""

    rows: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Code:
    """Preformatted text."""

    caption: str
    text: str


@dataclass(frozen=True, slots=True)
class Figure:
    """A picture as SVG, and in words for those who do not see it."""

    caption: str
    alternative: str
    svg: str


Block = Paragraph | Items | Blank | Table | KeyValues | Code | Figure


@dataclass(frozen=True, slots=True)
class Section:
    """A numbered part; ``anchor`` names it for links, and stays the same when parts are added before it."""

    title: str
    anchor: str
    blocks: tuple[Block, ...]
    sections: tuple[Section, ...] = ()


@dataclass(frozen=True, slots=True)
class Dossier:
    """A report: what it is about, in a title and a line, and its sections."""

    title: str
    subtitle: str
    sections: tuple[Section, ...]
