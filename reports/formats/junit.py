"""JUnit XML of a check: a suite for each target, a case for each entry.

The elements are those that build servers share (there is no standard; the reference is the schema of Ant's and
Jenkins' readers): no times and no host, so that the same outcomes give the same bytes.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Sequence

from wcet_probe.ci.judge import UNITS, Outcome
from wcet_probe.errors import ExitCode
from wcet_probe.reports.formats.check_document import summary

_NO_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What no XML document may contain, escaped or not (XML 1.0, section 2.2)."""


def junit(outcomes: Sequence[Outcome]) -> str:
    """The document: contradictions are errors, everything else that is wrong is a failure."""
    root = ET.Element("testsuites", _numbers("wcet-probe", outcomes))
    for target in dict.fromkeys(outcome.budget.target for outcome in outcomes):
        group = [outcome for outcome in outcomes if outcome.budget.target == target]
        suite = ET.SubElement(root, "testsuite", _numbers(target, group))
        for outcome in group:
            _case(suite, outcome)
        ET.SubElement(suite, "system-out").text = _xml(summary(group))
    ET.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def _numbers(name: str, outcomes: Sequence[Outcome]) -> dict[str, str]:
    errors = sum(_is_error(outcome) for outcome in outcomes)
    failures = sum(bool(outcome.findings) for outcome in outcomes) - errors
    numbers = {"tests": len(outcomes), "failures": failures, "errors": errors}
    return {"name": _xml(name), **{key: str(number) for key, number in numbers.items()}}


def _is_error(outcome: Outcome) -> bool:
    return outcome.exit_code is ExitCode.CONTRADICTION


def _case(suite: ET.Element, outcome: Outcome) -> None:
    names = {"name": _xml(outcome.budget.name), "classname": _xml(f"wcet.{outcome.budget.target}")}
    case = ET.SubElement(suite, "testcase", names)
    properties = ET.SubElement(case, "properties")
    for name, value in _properties(outcome):
        ET.SubElement(properties, "property", {"name": name, "value": _xml(value)})
    if outcome.findings:
        text = {"message": _xml(outcome.findings[0].message), "type": outcome.verdict}
        found = ET.SubElement(case, "error" if _is_error(outcome) else "failure", text)
        found.text = _xml("\n".join(_lines(outcome)))


def _properties(outcome: Outcome) -> Iterable[tuple[str, str]]:
    yield "verdict", outcome.verdict
    for unit in UNITS:
        limit = outcome.budget.limit(unit)
        values = {key: getattr(getattr(outcome, key), unit, None) for key in ("bound", "observed", "baseline")}
        for key, value in {"budget": limit, **values}.items():
            if value is not None:
                yield f"{key}_{unit}", str(value)
    if outcome.assumptions is not None:
        yield "assumptions", str(outcome.assumptions)
    if outcome.image_sha256:
        yield "image_sha256", outcome.image_sha256
    if outcome.compiler:
        yield "compiler", outcome.compiler


def _lines(outcome: Outcome) -> Iterable[str]:
    for finding in outcome.findings:
        yield f"{finding.rule.value}: {finding.message}"
        for place in finding.places:
            if place.file:
                yield f"{place.file}:{place.line}: {place.function}"
    yield from outcome.notes


def _xml(text: str) -> str:
    return _NO_XML.sub("\ufffd", text)
