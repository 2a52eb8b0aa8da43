"""Text layout in fixed-width characters: aligned tables, labelled paragraphs, strips of cache sets."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Iterable, Sequence

_INDENT = "  "
_LABEL_WIDTH = 10
_STRIP_COLUMNS = 64


def table(rows: Iterable[Sequence[object]], header: Sequence[str] = ()) -> list[str]:
    """Lines of ``rows`` in aligned columns; a column that holds an integer is aligned to the right.

    Args:
        rows: cells of each row; integers get separated thousands.
        header: a title for each column, of one or more lines; none for a table without header.
    """
    body = [tuple(row) for row in rows]
    if not body:
        return []
    right = [any(type(cell) is int for cell in column) for column in zip(*body, strict=True)]
    titles = [title.split("\n") for title in header]
    depth = max(map(len, titles), default=0)
    head = [tuple(([""] * (depth - len(title)) + title)[line] for title in titles) for line in range(depth)]
    texts = [[f"{cell:,}" if type(cell) is int else str(cell) for cell in row] for row in (*head, *body)]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    padded = (map(_padded, row, widths, right) for row in texts)
    return [(_INDENT + _INDENT.join(row)).rstrip() for row in padded]


def _padded(text: str, width: int, to_the_right: bool) -> str:  # noqa: FBT001  (an argument of map)
    return text.rjust(width) if to_the_right else text.ljust(width)


def paragraph(label: str, text: str, width: int, label_width: int = _LABEL_WIDTH) -> list[str]:
    """``text`` behind ``label``, wrapped at ``width`` characters, the further lines indented."""
    head = f"{label:<{label_width}} "
    return textwrap.wrap(text, width, initial_indent=head, subsequent_indent=" " * len(head), break_on_hyphens=False)


def cut(text: str, width: int) -> str:
    """``text`` in at most ``width`` characters; dots stand for what is left out."""
    return text if len(text) <= width else f"{text[: width - 3].rstrip()}..."


def glyphs(encoding: str) -> str:
    """Characters for no, some and every set, as ``encoding`` can write them."""
    return "·▒█" if encoding.lower().startswith("utf") else ".+#"


def strip(touched: Collection[int], sets: int, columns: int, characters: str) -> str:
    """``columns`` characters that show which of ``sets`` sets are touched; see :func:`glyphs`."""
    per_column = sets // columns
    counts = [0] * columns
    for index in touched:
        counts[index // per_column] += 1
    return "".join(characters[(count > 0) + (count == per_column)] for count in counts)


def strip_columns(sets: int, room: int) -> int:
    """Columns of a strip of ``sets`` sets, a power of two, in ``room`` characters: a power of two, at most 64."""
    return min(sets, _STRIP_COLUMNS, 1 << max(0, room.bit_length() - 1))
