"""SARIF of a check (OASIS, Static Analysis Results Interchange Format 2.1.0): a result for each finding.

Sections of the standard: 3.27 result, 3.49 rules, 3.14.14 base of URIs, 3.27.17 partial fingerprints.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from hashlib import sha256
from urllib.parse import quote

from wcet_probe import __version__
from wcet_probe.ci.budgets import AllocatorCall
from wcet_probe.ci.judge import Finding, Outcome, Place, Rule

Document = dict[str, object]
SOURCE_ROOT = "%SRCROOT%"
PACKAGE = "WCET_PROBE"
_FINGERPRINT = "wcetProbeFinding/v1"
_RULES = {
    Rule.OVER_BUDGET: (
        "WCET001",
        "OverBudget",
        "The proved bound is above the budget.",
        "Make the function's worst path shorter (wcet-probe … --why shows it), or raise the budget in wcet-probe.toml.",
    ),
    Rule.NO_BOUND: (
        "WCET002",
        "NoBound",
        "A loop without a bound, or something else that leaves the function without one.",
        "Say how often the loop repeats by a flow fact or a loopbound pragma.",
    ),
    Rule.CONTRADICTION: (
        "WCET003",
        "Contradiction",
        "Observation and proof contradict each other.",
        "A flow fact is false, or the model or the tool has a bug: correct the fact, or report it with the result.",
    ),
    Rule.WORSE: (
        "WCET004",
        "WorseThanBaseline",
        "The proved bound is above the accepted one and its tolerance.",
        "Find what changed with wcet-probe diff, or accept the new bound with wcet-probe check --save-baseline.",
    ),
}
_IDS = {rule: row[0] for rule, row in _RULES.items()}


def sarif(outcomes: Sequence[Outcome], configuration: str) -> Document:
    """The log, one run.

    Args:
        outcomes: of the check; files of their places as paths from the project's folder, or from the package's.
        configuration: path of the configuration file from the project's folder: where a finding is that has no place.
    """
    results = [result for outcome in outcomes for result in _results(outcome, configuration)]
    driver: Document = {"name": "wcet-probe", "semanticVersion": __version__, "rules": [_rule(rule) for rule in _RULES]}
    run: Document = {
        "tool": {"driver": driver},
        "originalUriBaseIds": {
            SOURCE_ROOT: {"description": {"text": "The folder of the configuration file."}},
            PACKAGE: {"description": {"text": "The installed package wcet_probe."}},
        },
        "columnKind": "unicodeCodePoints",
        "results": results,
    }
    return {"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0", "runs": [run]}


def _rule(rule: Rule) -> Document:
    identifier, name, short, remedy = _RULES[rule]
    return {
        "id": identifier,
        "name": name,
        "shortDescription": {"text": short},
        "fullDescription": {"text": short},
        "help": {"text": remedy},
        "defaultConfiguration": {"level": "error"},
    }


def _results(outcome: Outcome, configuration: str) -> Iterator[Document]:
    seen = Counter[str]()
    for finding in outcome.findings:
        for place in finding.places or (Place(""),):
            key = "\n".join((_IDS[finding.rule], outcome.budget.target, outcome.budget.name, place.function))
            seen[key] += 1
            yield _result(outcome, finding, place, configuration, sha256(f"{key}\n{seen[key]}".encode()).hexdigest())


def _result(outcome: Outcome, finding: Finding, place: Place, configuration: str, fingerprint: str) -> Document:
    related = [one for one in outcome.loops if one.file and one != place] if finding.rule is not Rule.NO_BOUND else []
    result: Document = {
        "ruleId": _IDS[finding.rule],
        "ruleIndex": list(_RULES).index(finding.rule),
        "level": "error",
        "message": {"text": f"{outcome.budget.name} on {outcome.budget.target}: {finding.message}"},
        "locations": [_location(outcome, place, configuration)],
        "partialFingerprints": {_FINGERPRINT: fingerprint},
    }
    if related:
        text = "a loop that the bound rests on"
        places = [_location(outcome, one, configuration) | {"message": {"text": text}} for one in related]
        result["relatedLocations"] = [one | {"id": number} for number, one in enumerate(places, 1)]
    return result


def _location(outcome: Outcome, place: Place, configuration: str) -> Document:
    of_package = bool(place.file) and isinstance(outcome.budget.call, AllocatorCall)
    artifact: Document = {
        "uri": quote(place.file or configuration),
        "uriBaseId": PACKAGE if of_package else SOURCE_ROOT,
    }
    physical: Document = {"artifactLocation": artifact}
    if place.line:
        physical["region"] = {"startLine": place.line}
    location: Document = {"physicalLocation": physical}
    if place.function:
        location["logicalLocations"] = [{"name": place.function, "kind": "function"}]
    return location
