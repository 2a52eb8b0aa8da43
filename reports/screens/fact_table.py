"""The table of allocators' facts about pointers and words, with what of each is proved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from wcet_probe.reports.screens.layout import table

if TYPE_CHECKING:
    from wcet_probe.answer.facts.fact_table import FactRow

_FUNCTIONS_SHOWN = 3
_HEADER = "fact", "speaks of", "alignment", "lemmas besides"


def fact_table_text(rows: Sequence[FactRow]) -> str:
    """The table of ``rows``, and how many facts there are of each kind.

    Args:
        rows: of all allocators that were asked for.
    """
    if not rows:
        return "no fact speaks of a pointer or a word\n"
    shown = [(_where(row), _speaks_of(row), row.alignment.value, ", ".join(row.lemmas) or "-") for row in rows]
    counts = Counter(row.alignment.value for row in rows)
    besides = sum(bool(row.lemmas) for row in rows)
    told = ", ".join(f"{name} of {counts[name]}" for name in ("proved", "lemma", "not needed") if counts[name])
    summary = f"{len(rows)} facts; alignment {told}; {besides} assert more, which is a lemma"
    return "\n".join([*table(shown, _HEADER), "", summary]) + "\n"


def _where(row: FactRow) -> str:
    return row.where if row.where.startswith(f"{row.allocator}/") else f"{row.allocator}: {row.where}"


def _speaks_of(row: FactRow) -> str:
    more = len(row.speaks_of) - _FUNCTIONS_SHOWN
    shown = ", ".join(row.speaks_of[:_FUNCTIONS_SHOWN]) or "what no other names"
    return f"{shown} and {more} more" if more > 0 else shown
