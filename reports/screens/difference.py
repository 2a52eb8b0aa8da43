"""What changed between two results, in lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from wcet_probe.ci.compare import Change, Comparison, Move
from wcet_probe.ci.judge import percent
from wcet_probe.reports.screens.layout import cut, paragraph, table

_LONGEST = 300


def difference_lines(comparison: Comparison, width: int) -> Iterator[str]:
    """For each pair what changed, then one table of all numbers that moved."""
    for one in comparison.differences:
        yield one.subject
        for change in one.changes:
            yield from paragraph("", f"{change.kind}{_where(change)}: {_both(change)}", width, 1)
        if not one.changes:
            yield from paragraph("", "nothing changed that the bound depends on", width, 1)
    for text, names in (("only in the first", comparison.only_old), ("only in the second", comparison.only_new)):
        yield from (f"{name}: {text}" for name in names)
    yield ""
    yield from _moved(comparison) or ["No bound moved."]


def _moved(comparison: Comparison) -> list[str]:
    """The table; a single pair, whose name stands above, needs no column for it."""
    moves = [(one.subject, move) for one in comparison.differences for move in one.moves]
    steps = [_step(move) for _, move in moves]
    widths = [max(map(len, column)) for column in zip(*steps, strict=True)]
    rows = [
        (subject, f"{move.quantity}, {move.unit}", *map(_cell, (move.old, move.new)), *map(str.rjust, step, widths))
        for (subject, move), step in zip(moves, steps, strict=True)
    ]
    first = 1 if len(comparison.differences) == 1 else 0
    return table([row[first:] for row in rows], ("moved", "", "old", "new", "difference", "")[first:])


def _where(change: Change) -> str:
    return f" {change.where}" if change.where else ""


def _both(change: Change) -> str:
    old, new = cut(change.old, _LONGEST), cut(change.new, _LONGEST)
    if not old:
        return f"new: {new}"
    return f"{old} -> {new}" if new else f"gone: {old}"


def _cell(count: int | None) -> object:
    return "none" if count is None else count


def _step(move: Move) -> tuple[str, str]:
    """The difference, and in per cent."""
    if move.old is None or move.new is None:
        return "", ""
    return f"{move.new - move.old:+,}", percent(move.old, move.new)
