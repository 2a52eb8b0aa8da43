"""What changed between two results, in lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from wcet_probe.compare import Change, Comparison, Move
from wcet_probe.judge import percent
from wcet_probe.reports.layout import cut, paragraph, table

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
    rows = [_row(one.subject, move) for one in comparison.differences for move in one.moves]
    yield from table(rows, ("moved", "", "old", "new", "difference", "")) or ["No bound moved."]


def _where(change: Change) -> str:
    return f" {change.where}" if change.where else ""


def _both(change: Change) -> str:
    old, new = cut(change.old, _LONGEST), cut(change.new, _LONGEST)
    if not old:
        return f"new: {new}"
    return f"{old} -> {new}" if new else f"gone: {old}"


def _row(subject: str, move: Move) -> tuple[object, ...]:
    both = move.old is not None and move.new is not None
    return (
        subject,
        f"{move.quantity}, {move.unit}",
        "none" if move.old is None else move.old,
        "none" if move.new is None else move.new,
        f"{move.new - move.old:+,}" if both else "",  # type: ignore[operator]
        percent(move.old, move.new) if both else "",  # type: ignore[arg-type]
    )
