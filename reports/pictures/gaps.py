"""Where the distance between bound and observation is: instructions by cause and by block."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from wcet_probe.reports.pictures.colours import BLUE, INK, MUTED, RULE, VERMILLION
from wcet_probe.reports.pictures.documents import Document, name_of
from wcet_probe.reports.pictures.scales import Scale, counted
from wcet_probe.reports.pictures.svg import (
    MARGIN,
    SMALL_SIZE,
    WIDTH,
    fit,
    heading,
    line,
    picture,
    rectangle,
    text,
    text_width,
)

_ROW, _CAUSE_BAR, _BLOCK_BAR, _SPACE = 18, 13, 7, 8
_BLOCKS_SHOWN = 4
_LABEL = 250


@dataclass(frozen=True, slots=True)
class _Bar:
    label: str
    instructions: int
    is_cause: bool
    in_document: bool


def gap_bars(result: Document) -> str | None:
    """The slack of a result by cause, and of each cause the blocks that contribute most.

    Parameters:
        result: a document ``wcet-probe-result`` with its ``gap`` (asked for with ``--why``).

    Returns:
        the SVG, or None where there is no gap, or nothing in it.
    """
    gap = result.get("gap")
    bars = _bars(gap) if gap else []
    if not gap or not bars:
        return None
    title = f"Where the slack is: {name_of(result)}"
    slack = counted(gap["instructions"])
    words = f"Bound minus observation: {slack} instructions."
    sides = "To the right: only the bound has them; to the left: only the observation has them."
    body, y = heading(title, [f"{words} {sides}"])
    widest = max(text_width(_signed(bar.instructions)) for bar in bars)
    low, high = min(0, *(bar.instructions for bar in bars)), max(0, *(bar.instructions for bar in bars))
    start, end = MARGIN + _LABEL + 12 + (widest + 8 if low < 0 else 0.0), WIDTH - MARGIN - widest - 8
    scale = Scale(low, high, start, end)
    top = y
    for bar in bars:
        y += _SPACE if bar.is_cause and y > top else 0
        body += _drawn(bar, scale, y)
        y += _ROW
    body.append(line(scale.at(0), top - 2, scale.at(0), y + 2, stroke=MUTED))
    described = " ".join(f"{bar.label}: {_signed(bar.instructions)} instructions." for bar in bars if bar.is_cause)
    return picture(title, described, y + MARGIN, body)


def _bars(gap: Mapping[str, Any]) -> list[_Bar]:
    """Causes by what they contribute, each followed by its largest blocks."""
    by_cause: dict[str, list[tuple[int, str]]] = {}
    for block in gap.get("blocks") or ():
        if block["instructions"]:
            by_cause.setdefault(block["cause"], []).append((block["instructions"], block["location"]))
    above = gap.get("above_worst_path") or 0
    causes = [(sum(size for size, _ in blocks), cause, blocks) for cause, blocks in by_cause.items()]
    bars = [_Bar("above the worst path", above, is_cause=True, in_document=True)] if above else []
    for total, cause, blocks in sorted(causes, key=lambda item: (-abs(item[0]), item[1])):
        bars.append(_Bar(cause, total, is_cause=True, in_document=False))
        bars += _largest(blocks)
    return bars


def _largest(blocks: Sequence[tuple[int, str]]) -> list[_Bar]:
    ranked = sorted(blocks, key=lambda block: (-abs(block[0]), block[1]))
    bars = [_Bar(place, size, is_cause=False, in_document=True) for size, place in ranked[:_BLOCKS_SHOWN]]
    if rest := ranked[_BLOCKS_SHOWN:]:
        words = f"{len(rest)} more blocks" if len(rest) > 1 else "1 more block"
        bars.append(_Bar(words, sum(size for size, _ in rest), is_cause=False, in_document=False))
    return bars


def _drawn(bar: _Bar, scale: Scale, y: float) -> list[str]:
    zero, tip = scale.at(0), scale.at(bar.instructions)
    thick = _CAUSE_BAR if bar.is_cause else _BLOCK_BAR
    colour = VERMILLION if bar.instructions > 0 else BLUE
    body = [
        rectangle(
            min(zero, tip),
            y + (_ROW - thick) / 2,
            max(1.0, abs(tip - zero)),
            thick,
            fill=colour if bar.is_cause else RULE,
            stroke=colour,
        )
    ]
    right = bar.instructions > 0
    words = _signed(bar.instructions)
    x, anchor = (tip + 5, "start") if right else (tip - 5, "end")
    size = 11 if bar.is_cause else SMALL_SIZE
    kind = "value" if bar.in_document else None
    body.append(text(x, y + 13, words, size=size, anchor=anchor, fill=INK, kind=kind))
    indent = 0 if bar.is_cause else 12
    label = fit(bar.label, _LABEL - indent, size)
    weight = "bold" if bar.is_cause else None
    body.append(text(MARGIN + indent, y + 13, label, size=size, weight=weight, fill=INK if bar.is_cause else MUTED))
    return body


def _signed(value: int) -> str:
    return f"+{value:,}" if value > 0 else f"-{-value:,}"
