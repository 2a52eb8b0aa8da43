"""Judging: a result held against its budget and a baseline. Values to values; nothing is run or written here."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from typing import Any

from wcet_probe.certificate.results.witnessed import witnessed
from wcet_probe.ci.baseline import BaselineEntry, facts_hash, target_hash
from wcet_probe.ci.budgets import Budget
from wcet_probe.errors import ExitCode, UsageError
from wcet_probe.model.proof import PROVED

UNITS = ("instructions", "cycles")
_DIGITS_SHOWN = 16
_PLACE = re.compile(r"([\w.$]+)\+0x[0-9a-f]+(?: \(([^():]+):([0-9]+)\))?")
"""How `wcet_probe.model.image.Image.location` writes a place."""


class Rule(StrEnum):
    """What can be wrong with an entry; the graver, the later."""

    WORSE = "worse than the baseline"
    OVER_BUDGET = "over budget"
    NO_BOUND = "no bound"
    CONTRADICTION = "contradiction"

    @property
    def exit_code(self) -> ExitCode:
        """The exit code of a check in which this is the gravest."""
        return _EXIT_CODES[self]

    @property
    def verdict(self) -> str:
        """The verdict of an entry of which this is the gravest."""
        return _VERDICTS[self]


_EXIT_CODES = {
    Rule.WORSE: ExitCode.OVER_BUDGET,
    Rule.OVER_BUDGET: ExitCode.OVER_BUDGET,
    Rule.NO_BOUND: ExitCode.NO_BOUND,
    Rule.CONTRADICTION: ExitCode.CONTRADICTION,
}
_VERDICTS = {
    Rule.WORSE: "WORSE",
    Rule.OVER_BUDGET: "OVER_BUDGET",
    Rule.NO_BOUND: "UNBOUNDED",
    Rule.CONTRADICTION: "CONTRADICTED",
}
_GRAVITY = tuple(Rule)


@dataclass(frozen=True, slots=True)
class Place:
    """A function, and a line of a source file in it; empty and 0 where the debug information tells none."""

    function: str
    file: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True)
class Finding:
    """Something wrong: which rule, one sentence, and where: the loops or the entry of the function."""

    rule: Rule
    message: str
    places: tuple[Place, ...] = ()


@dataclass(frozen=True, slots=True)
class Counts:
    """A number of instructions and one of cycles."""

    instructions: int
    cycles: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a check says of one entry.

    Attributes:
        budget: the entry.
        bound: proved, or None.
        observed: the largest call that was seen, or None where nothing was run.
        baseline: the bound that was accepted, or None.
        findings: all that is wrong, the gravest first.
        notes: what is to be known and is not wrong.
        assumptions: how many the bound rests on; None without a bound.
        loops: places of the loops that the bound rests on.
        image_sha256, compiler: which binary this is about; empty where that is not known.
    """

    budget: Budget
    bound: Counts | None = None
    observed: Counts | None = None
    baseline: Counts | None = None
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    assumptions: int | None = None
    loops: tuple[Place, ...] = ()
    image_sha256: str = ""
    compiler: str = ""

    @property
    def verdict(self) -> str:
        """``BOUNDED``, or the verdict of the gravest finding."""
        return self.findings[0].rule.verdict if self.findings else "BOUNDED"

    @property
    def exit_code(self) -> ExitCode:
        """0, or that of the gravest finding."""
        return self.findings[0].rule.exit_code if self.findings else ExitCode.OK


def judge(budget: Budget, document: Mapping[str, Any], accepted: BaselineEntry | None = None) -> Outcome:
    """What is to be said of ``budget``.

    Args:
        budget: the entry.
        document: its result, a ``wcet-probe-result`` or ``wcet-probe-bound``.
        accepted: its entry in the baseline, if there is any.

    Raises:
        UsageError: the document is damaged.
    """
    bound, observed = counts(document, "bound"), counts(document, "observed")
    baseline = Counts(accepted.instructions, accepted.cycles) if accepted else None
    findings = list[Finding]()
    if bound is None:
        reason = document.get("no_bound") or "no bound was asked for; run it without --no-bound."
        findings.append(Finding(Rule.NO_BOUND, reason, places(reason)))
    else:
        start = entry_place(document)
        contradictions = _contradictions(document, bound, observed)
        findings += [Finding(Rule.CONTRADICTION, text, (start,)) for text in contradictions]
        for loop in document["bound"].get("by_type", ()):
            reason = f"the bound of the loop at {loop['location']} is the width of a type: add {loop['remedy']}"
            findings.append(Finding(Rule.NO_BOUND, reason, places(loop["location"])))
        findings += [Finding(Rule.OVER_BUDGET, text, (start,)) for text in _excesses(budget, bound)]
        if baseline:
            worse = _worsenings(budget.tolerance_percent, bound, baseline)
            findings += [Finding(Rule.WORSE, text, (start,)) for text in worse]
    image = document.get("image") or {}
    return Outcome(
        budget=budget,
        bound=bound,
        observed=observed,
        baseline=baseline,
        findings=tuple(sorted(findings, key=lambda one: -_GRAVITY.index(one.rule))),
        notes=tuple(_changes(document, accepted)) if accepted and bound else (),
        assumptions=_assumed(document) if bound else None,
        loops=_loop_places(document),
        image_sha256=image.get("sha256") or "",
        compiler=image.get("compiler") or "",
    )


def _assumed(document: Mapping[str, Any]) -> int:
    """How many assumptions the bound of ``document`` rests on; facts that are proved are none."""
    return sum(not one["id"].startswith(PROVED) for one in document["bound"]["assumptions"])


def contradicted(budget: Budget, text: str) -> Outcome:
    """The outcome of an entry whose run ended with the contradiction ``text``."""
    return Outcome(budget, findings=(Finding(Rule.CONTRADICTION, text, places(text)),))


def unbounded(budget: Budget, text: str) -> Outcome:
    """The outcome of an entry whose analysis ended with ``text``, which says why there is no bound."""
    return Outcome(budget, findings=(Finding(Rule.NO_BOUND, text, places(text)),))


def located(outcome: Outcome, paths: Mapping[str, str]) -> Outcome:
    """``outcome`` with the files of its places under their ``paths``; the debug information has their names only."""

    def moved(found: tuple[Place, ...]) -> tuple[Place, ...]:
        return tuple(replace(place, file=paths.get(place.file, place.file)) for place in found)

    findings = tuple(replace(one, places=moved(one.places)) for one in outcome.findings)
    return replace(outcome, findings=findings, loops=moved(outcome.loops))


def counts(document: Mapping[str, Any], key: str) -> Counts | None:
    """The counts under ``key`` of a result document, ``bound`` or ``observed``; None where there are none.

    Observed is the dearest known call, in each unit.

    Raises:
        UsageError: they are not whole numbers.
    """
    section = witnessed(document) if key == "observed" else document.get(key)
    if section is None:
        return None
    instructions, cycles = ((section.get(unit) if isinstance(section, Mapping) else None) for unit in UNITS)
    if type(instructions) is int and type(cycles) is int:
        return Counts(instructions, cycles)
    raise UsageError(f"a result has no whole numbers under {key}; give what --json printed, unchanged.")


def places(text: str) -> tuple[Place, ...]:
    """The places that the message ``text`` names, each once."""
    found = (Place(function, file, int(line or 0)) for function, file, line in _PLACE.findall(text))
    return tuple(dict.fromkeys(found))


def entry_place(document: Mapping[str, Any]) -> Place:
    """Where the function starts that the bound of ``document`` is of."""
    bound = document["bound"]
    function = bound["entry"]
    listed = [row for row in document.get("listing") or () if row["function"] == function]
    if listed:
        first = min(listed, key=lambda row: row["address"])
        return Place(function, first["file"] or "", first["line"] or 0)
    on_path = [block["location"] for block in bound["worst_path"] if block["location"].startswith(f"{function}+0x0")]
    return next((place for text in on_path for place in places(text)), Place(function))


def percent(old: int, new: int) -> str:
    """The difference between two counts in per cent of the old one, to a tenth: ``+5.7 %``; empty where that is 0."""
    if not old:
        return ""
    tenths = (abs(new - old) * 2000 + old) // (2 * old)
    if not tenths:
        return "0 %" if new == old else f"{'+' if new > old else '-'}<0.1 %"
    return f"{'+' if new > old else '-'}{tenths // 10}.{tenths % 10} %"


def decimal(number: Fraction) -> str:
    """A decimal fraction as people write it: ``2``, ``2.5``."""
    return str(number) if number.denominator == 1 else str(float(number))


def _loop_places(document: Mapping[str, Any]) -> tuple[Place, ...]:
    loops = (document.get("bound") or {}).get("loops") or ()
    found = (Place(loop["function"], loop["file"] or "", loop["line"] or 0) for loop in loops)
    return tuple(sorted(dict.fromkeys(found), key=lambda place: (place.file, place.line, place.function)))


def _contradictions(document: Mapping[str, Any], bound: Counts, observed: Counts | None) -> Iterator[str]:
    if document.get("verdict") == "CONTRADICTED":
        yield "observation and proof contradict each other: report this with the result."
    for unit in UNITS if observed else ():
        seen, proved = getattr(observed, unit), getattr(bound, unit)
        if seen > proved:
            yield f"{seen:,} {unit} were observed, above the bound of {proved:,}: report this with the result."


def _excesses(budget: Budget, bound: Counts) -> Iterator[str]:
    for unit in UNITS:
        limit, proved = budget.limit(unit), getattr(bound, unit)
        if limit is not None and proved > limit:
            change = f" ({percent(limit, proved)})" if limit else ""
            yield f"the bound of {proved:,} {unit} is {proved - limit:,} above the budget of {limit:,}{change}."


def _worsenings(tolerance_percent: Fraction, bound: Counts, baseline: Counts) -> Iterator[str]:
    for unit in UNITS:
        old, new = getattr(baseline, unit), getattr(bound, unit)
        if new > old * (1 + tolerance_percent / 100):
            beyond = f", beyond the tolerance of {decimal(tolerance_percent)} %" if tolerance_percent else ""
            change = f" ({percent(old, new)})" if old else ""
            yield f"the bound of {new:,} {unit} is {new - old:,} above the baseline's {old:,}{change}{beyond}."


def _changes(document: Mapping[str, Any], accepted: BaselineEntry) -> Iterator[str]:
    """What else is not as it was for the baseline."""
    image = document["image"]
    if accepted.compiler and image.get("compiler") and image["compiler"] != accepted.compiler:
        yield f"since the baseline the compiler changed from {accepted.compiler} to {image['compiler']}"
    elif image["sha256"] != accepted.image_sha256:
        old, new = accepted.image_sha256[:_DIGITS_SHOWN], image["sha256"][:_DIGITS_SHOWN]
        yield f"since the baseline the image changed from {old} to {new}"
    if facts_hash(document) != accepted.facts_sha256:
        yield "since the baseline the flow facts or assumptions changed"
    hashes = target_hash(document), accepted.target_sha256
    if None not in hashes and len(set(hashes)) > 1:
        yield "since the baseline the target's numbers changed"
