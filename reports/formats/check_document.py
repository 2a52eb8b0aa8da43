"""The outcome of ``wcet-probe check`` as a document, and its summary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict

from wcet_probe import __version__
from wcet_probe.ci.budgets import AllocatorCall
from wcet_probe.ci.judge import UNITS, Counts, Outcome, decimal
from wcet_probe.reports.formats.records import Document

_VERDICTS = ("CONTRADICTED", "UNBOUNDED", "OVER_BUDGET", "WORSE", "BOUNDED")
_WORDS = {
    "CONTRADICTED": "contradicted",
    "UNBOUNDED": "without a bound",
    "OVER_BUDGET": "over budget",
    "WORSE": "worse than the baseline",
    "BOUNDED": "within budget",
}


def summary(outcomes: Sequence[Outcome]) -> str:
    """How many entries came out how: ``3 bounds checked: 1 over budget, 2 within budget``."""
    found = Counter(outcome.verdict for outcome in outcomes)
    words = ", ".join(f"{found[verdict]} {_WORDS[verdict]}" for verdict in _VERDICTS if found[verdict])
    return f"{len(outcomes)} bound{'' if len(outcomes) == 1 else 's'} checked: {words}"


def check_document(outcomes: Sequence[Outcome], baseline: str | None) -> Document:
    """The document ``wcet-probe-check``: an entry for each budget; ``baseline`` is the compared one's name."""
    return {
        "format": "wcet-probe-check",
        "version": 1,
        "tool": {"name": "wcet-probe", "version": __version__},
        "baseline": baseline,
        "exit_code": max((int(outcome.exit_code) for outcome in outcomes), default=0),
        "entries": [_entry(outcome) for outcome in outcomes],
    }


def _entry(outcome: Outcome) -> Document:
    budget, call = outcome.budget, outcome.budget.call
    if isinstance(call, AllocatorCall):
        what: Document = asdict(call)
    else:
        what = {"image": call.image.name, "entry": call.entry}
    return {
        "name": budget.name,
        "target": budget.target,
        **what,
        "parameters": dict(budget.parameters),
        "caches": list(budget.caches),
        "budget": {unit: budget.limit(unit) for unit in UNITS},
        "tolerance_percent": decimal(budget.tolerance_percent),
        "baseline": _counts(outcome.baseline),
        "bound": _counts(outcome.bound),
        "observed": _counts(outcome.observed),
        "assumptions": outcome.assumptions,
        "verdict": outcome.verdict,
        "findings": [
            {"rule": finding.rule.value, "message": finding.message, "places": [asdict(one) for one in finding.places]}
            for finding in outcome.findings
        ],
        "notes": list(outcome.notes),
        "image_sha256": outcome.image_sha256 or None,
        "compiler": outcome.compiler or None,
    }


def _counts(counts: Counts | None) -> Document | None:
    return asdict(counts) if counts else None
