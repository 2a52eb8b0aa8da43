"""The outcome of ``wcet-probe check`` in lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from wcet_probe.ci.judge import UNITS, Counts, Outcome
from wcet_probe.reports.formats.check_document import summary
from wcet_probe.reports.screens.layout import paragraph, table


def check_lines(outcomes: Sequence[Outcome], width: int) -> Iterator[str]:
    """The table of all entries, a sentence for each finding and note, and the summary."""
    with_baseline = any(outcome.baseline for outcome in outcomes)
    accepted = ("baseline",) if with_baseline else ()
    titles = ("entry", "target", "", "budget", *accepted, "bound", "observed", "assumed", "verdict")
    rows = [row for outcome in outcomes for row in _rows(outcome, with_baseline=with_baseline)]
    yield from table(rows, titles)
    for outcome in outcomes:
        for finding in outcome.findings:
            text = f"{outcome.budget.name} on {outcome.budget.target}: {finding.rule.value}: {finding.message}"
            yield from ("", *paragraph("", text, width, 1))
        for note in outcome.notes:
            yield from paragraph("", f"{outcome.budget.name} on {outcome.budget.target}: {note}.", width, 1)
    yield from ("", summary(outcomes))


def _rows(outcome: Outcome, *, with_baseline: bool) -> Iterator[tuple[object, ...]]:
    budget = outcome.budget
    for number, unit in enumerate(UNITS):
        head = ("", "") if number else (budget.name, budget.target)
        limit = budget.limit(unit)
        yield (
            *head,
            unit,
            "" if limit is None else limit,
            *((_cell(outcome.baseline, unit),) if with_baseline else ()),
            _cell(outcome.bound, unit),
            _cell(outcome.observed, unit),
            "" if number or outcome.assumptions is None else outcome.assumptions,
            "" if number else outcome.verdict,
        )


def _cell(counts: Counts | None, unit: str) -> object:
    return "" if counts is None else getattr(counts, unit)
