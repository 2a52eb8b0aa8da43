"""How wide the columns of a printed table are, estimated from its characters: on paper nothing can be scrolled.

A column is never narrower than its longest part without a place to break, and a column of long texts never so narrow
that a line holds two words. A table that does not fit is set smaller, then across, on a page in landscape.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from wcet_probe.reports.dossier.numbered import Line, Node

_EM, _WIDE_EM, _CODE_EM, _BOLD = 0.46, 0.68, 0.5, 1.08
_WIDE = re.compile("[A-Zmw@%&#<>=+~…—\u00d7\u2190-\u2bff]")
_LEAST_LONG_EM = 9.0
_SHORT_EM = 6.5
_EAGERNESS = 0.75
_CAUTION = 1.15
_LONG_EM = 20.0


@dataclass(frozen=True, slots=True)
class Column:
    """What a column needs and what it would like to have, in widths of the letter m."""

    floor_em: float
    natural_em: float

    @property
    def is_long(self) -> bool:
        """Whether it holds sentences."""
        return self.natural_em >= _LONG_EM

    @property
    def is_short(self) -> bool:
        """Whether it is not worth to break its lines."""
        return self.natural_em <= _SHORT_EM


@dataclass(frozen=True, slots=True)
class Setting:
    """A way to set a table: size of its letters, space beside each cell and width of the page, in points."""

    name: str
    size_points: float
    inset_points: float
    page_points: float
    is_across: bool = False


@dataclass(frozen=True, slots=True)
class Layout:
    """How a table is set, and the width of its columns in points."""

    setting: Setting
    widths_points: tuple[float, ...]


def columns(table: Node) -> tuple[Column, ...]:
    """The columns of a table of :func:`wcet_probe.reports.dossier.numbered.numbered`."""
    return tuple(
        _column(letter, header, cells)
        for letter, header, *cells in zip(table["align"], table["header"], *table["rows"], strict=True)
    )


def layout(needs: Sequence[Column], settings: Sequence[Setting]) -> Layout:
    """The first of ``settings`` in which the columns ``needs`` fit, else the last one with columns that are cut."""
    for setting in settings:
        room = setting.page_points - 2 * setting.inset_points * len(needs)
        if sum(need.floor_em for need in needs) * setting.size_points <= room:
            break
    inset = 2 * setting.inset_points
    widths = _widths(needs, (setting.page_points - inset * len(needs)) / setting.size_points)
    return Layout(setting, tuple(round(width * setting.size_points + inset, 2) for width in widths))


def row_lines(row: Sequence[Sequence[Line]], found: Layout) -> int:
    """About how many lines ``row`` takes in ``found``, rather too many than too few."""
    em_by_column = (width / found.setting.size_points for width in found.widths_points)
    return max((text_lines(cell, width_em) for cell, width_em in zip(row, em_by_column, strict=True)), default=1)


def text_lines(text: Sequence[Line], width_em: float) -> int:
    """About how many lines ``text`` takes in a column of ``width_em``, rather too many than too few."""
    return sum(1 + int(_line_em(line) * _CAUTION / width_em) for line in text)


def _widths(needs: Sequence[Column], room_em: float) -> list[float]:
    """The natural widths if they fit, else what is left above the floors in proportion to what is wished for."""
    floors = [need.floor_em for need in needs]
    wishes = [need.natural_em - need.floor_em for need in needs]
    spare = room_em - sum(floors)
    if spare <= 0:
        return [floor * room_em / sum(floors) for floor in floors]
    if sum(wishes) <= spare:
        return [need.natural_em for need in needs]
    # Short columns first get all that they wish for; the power keeps one endless cell from taking the rest.
    open_columns = sorted(range(len(needs)), key=lambda index: wishes[index])
    widths = floors
    while open_columns:
        index, weights = open_columns[0], sum(wishes[other] ** _EAGERNESS for other in open_columns)
        share = spare * wishes[index] ** _EAGERNESS / weights if weights else 0.0
        given = min(wishes[index], share)
        widths[index] += given
        spare -= given
        open_columns = open_columns[1:]
    return widths


def _column(letter: str, header: Sequence[Line], cells: Sequence[Sequence[Line]]) -> Column:
    lines = [line for cell in cells for line in cell]
    wish = max(map(_line_em, lines), default=0.0)
    least = wish if letter == "r" else max([min(wish, _LEAST_LONG_EM), *map(_word_em, lines)])
    return Column(
        floor_em=max([least, *(_BOLD * _word_em(line) for line in header)]),
        # A title may stand in two lines: room is for what is below.
        natural_em=max([wish, *(_BOLD * max(_word_em(line), 0.6 * _line_em(line)) for line in header)]),
    )


def _word_em(line: Line) -> float:
    """The longest part of ``line`` that cannot be broken."""
    parts = ((word, run["code"]) for run in line for piece in run["pieces"] for word in piece.split())
    return max((_em(word, is_code=code) for word, code in parts), default=0.0)


def _line_em(line: Line) -> float:
    return sum(_em("".join(run["pieces"]), is_code=run["code"]) for run in line)


def _em(text: str, *, is_code: bool) -> float:
    return len(text) * _CODE_EM if is_code else _EM * len(text) + (_WIDE_EM - _EM) * len(_WIDE.findall(text))
