"""CSV of a check (RFC 4180): a head, then a row for each entry; the columns stay as they are."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from wcet_probe.ci.budgets import AllocatorCall
from wcet_probe.ci.judge import Outcome

COLUMNS = (
    "name", "target", "verdict", "allocator", "operation", "heap_bytes", "image", "entry",
    "budget_instructions", "baseline_instructions", "bound_instructions", "observed_instructions",
    "budget_cycles", "baseline_cycles", "bound_cycles", "observed_cycles",
    "assumptions", "image_sha256", "compiler", "findings",
)  # fmt: skip
"""A column that is added later comes last."""


def csv_table(outcomes: Sequence[Outcome]) -> str:
    """The table; an empty field is a number that there is not, or does not apply."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, restval="", lineterminator="\r\n")
    writer.writeheader()
    writer.writerows(map(_row, outcomes))
    return text.getvalue()


def _row(outcome: Outcome) -> dict[str, object]:
    budget, call = outcome.budget, outcome.budget.call
    row: dict[str, object] = {"name": budget.name, "target": budget.target, "verdict": outcome.verdict}
    if isinstance(call, AllocatorCall):
        row |= {"allocator": call.allocator, "operation": call.operation, "heap_bytes": call.heap_bytes}
    else:
        row |= {"image": call.image.name, "entry": call.entry}
    for unit in ("instructions", "cycles"):
        row[f"budget_{unit}"] = budget.limit(unit)
        for key in ("baseline", "bound", "observed"):
            row[f"{key}_{unit}"] = getattr(getattr(outcome, key), unit, None)
    row["assumptions"] = outcome.assumptions
    row["findings"] = " ".join(finding.message for finding in outcome.findings)
    return row | {"image_sha256": outcome.image_sha256, "compiler": outcome.compiler}
