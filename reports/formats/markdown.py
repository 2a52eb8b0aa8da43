"""A check in Markdown, for a comment on a pull request: the summary first, then the table, details folded away."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Sequence

from wcet_probe.ci.judge import UNITS, Counts, Finding, Outcome, percent
from wcet_probe.reports.formats.check_document import summary

_SPECIAL = re.compile(r"([\\`*_\[\]|~#@])")
_DIGITS_SHOWN = 16


def markdown(outcomes: Sequence[Outcome], baseline: str | None = None) -> str:
    """The comment, in GitHub's Markdown; ``baseline`` is the name of the one that was compared with."""
    return "\n".join(_lines(outcomes, baseline)) + "\n"


def _lines(outcomes: Sequence[Outcome], baseline: str | None) -> Iterator[str]:
    passed = not any(outcome.findings for outcome in outcomes)
    yield f"### WCET bounds: {'passed' if passed else 'failed'}"
    yield ""
    yield f"{_text(summary(outcomes))}."
    yield ""
    yield from _table(outcomes, baseline)
    for outcome in outcomes:
        if outcome.findings:
            yield ""
            yield from _folded(f"{_name(outcome)}: {outcome.verdict}", _details(outcome))
    identities = [line for outcome in outcomes for line in _identity(outcome)]
    if identities:
        yield ""
        yield from _folded("What was checked", identities)


def _table(outcomes: Sequence[Outcome], baseline: str | None) -> Iterator[str]:
    titles = ["entry", "target", "unit", "budget", *([f"baseline {baseline}"] if baseline else []), "bound", "observed"]
    yield _row([*map(_text, titles), "verdict"])
    yield _row([*(["---"] * 3), *(["---:"] * (len(titles) - 3)), "---"])
    for outcome in outcomes:
        budget = outcome.budget
        for unit in UNITS:
            limit = budget.limit(unit)
            accepted = [_number(outcome.baseline, unit)] if baseline else []
            yield _row(
                [
                    _text(budget.name),
                    _text(budget.target),
                    unit,
                    "" if limit is None else f"{limit:,}",
                    *accepted,
                    _number(outcome.bound, unit) + _moved(outcome, unit),
                    _number(outcome.observed, unit),
                    f"**{_text(outcome.verdict)}**" if outcome.findings else outcome.verdict,
                ]
            )


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _number(counts: Counts | None, unit: str) -> str:
    return "" if counts is None else f"{getattr(counts, unit):,}"


def _moved(outcome: Outcome, unit: str) -> str:
    if outcome.baseline is None or outcome.bound is None:
        return ""
    old, new = getattr(outcome.baseline, unit), getattr(outcome.bound, unit)
    return "" if old == new else f" ({percent(old, new)})"


def _folded(title: str, lines: Iterable[str]) -> Iterator[str]:
    yield f"<details><summary>{html.escape(title, quote=False)}</summary>"
    yield ""  # without it, GitHub takes what follows for HTML
    yield from lines
    yield ""
    yield "</details>"


def _details(outcome: Outcome) -> Iterator[str]:
    for finding in outcome.findings:
        yield f"* {_text(finding.rule.value)}: {_text(finding.message)}"
        yield from _places(finding)
    for note in outcome.notes:
        yield f"* {_text(note)}"


def _places(finding: Finding) -> Iterator[str]:
    for place in finding.places:
        if place.file:
            yield f"  * {_text(f'{place.function}, {place.file}:{place.line}')}"


def _identity(outcome: Outcome) -> Iterator[str]:
    if outcome.image_sha256:
        built = f", {_text(outcome.compiler)}" if outcome.compiler else ""
        image = f"image {outcome.image_sha256[:_DIGITS_SHOWN]}{built}"
        number = outcome.assumptions
        assumed = "" if number is None else f"; {number} assumption{'' if number == 1 else 's'}"
        yield f"* {_text(_name(outcome))}: {image}{assumed}"


def _name(outcome: Outcome) -> str:
    return f"{outcome.budget.name} on {outcome.budget.target}"


def _text(text: str) -> str:
    """``text`` as it is: nothing in it is markup, nobody is mentioned."""
    return _SPECIAL.sub(r"\\\1", html.escape(" ".join(text.split()), quote=False))
