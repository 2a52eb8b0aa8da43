import csv
import io
import json
import re
from dataclasses import replace
from urllib.parse import urlsplit
from xml.etree import ElementTree as ET

import fastjsonschema
from hypothesis import given
from hypothesis import strategies as st

from tests.ci_samples import BUDGET, RESULT, changed, golden, outcomes, read_tlsf
from wcet_probe.ci.judge import Counts, Finding, Outcome, Place, Rule, judge
from wcet_probe.reports.formats.csv_table import COLUMNS, csv_table
from wcet_probe.reports.formats.document import dumps
from wcet_probe.reports.formats.junit import junit
from wcet_probe.reports.formats.markdown import markdown
from wcet_probe.reports.formats.sarif import PACKAGE, SOURCE_ROOT, sarif

ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30)
FINDINGS = st.lists(
    st.builds(
        Finding,
        st.sampled_from(Rule),
        ANY_TEXT,
        st.lists(st.builds(Place, ANY_TEXT, ANY_TEXT, st.integers(0, 9)), max_size=3).map(tuple),
    ),
    max_size=3,
).map(tuple)
ANY_OUTCOME = st.builds(
    Outcome,
    st.builds(lambda name, budget: replace(budget, name=name), ANY_TEXT, st.sampled_from([BUDGET, read_tlsf()])),
    bound=st.none() | st.builds(Counts, st.integers(0, 9), st.integers(0, 9)),
    baseline=st.none() | st.builds(Counts, st.integers(0, 9), st.integers(0, 9)),
    findings=FINDINGS,
    notes=st.lists(ANY_TEXT, max_size=2).map(tuple),
    loops=st.lists(st.builds(Place, ANY_TEXT, ANY_TEXT, st.integers(0, 9)), max_size=2).map(tuple),
    compiler=ANY_TEXT,
)
ANY_OUTCOMES = st.lists(ANY_OUTCOME, min_size=1, max_size=3)


# ---------------------------------------------------------------------------------------------------------------- JUnit


def test_junit_of_every_verdict():
    golden("junit.xml", junit(outcomes()))


@given(ANY_OUTCOMES)
def test_junit_is_well_formed_whatever_the_names_and_counts_what_it_holds(found):
    root = ET.fromstring(junit(found).encode())  # noqa: S314  (our own text)
    assert (root.tag, {suite.tag for suite in root}) == ("testsuites", {"testsuite"})
    for element in (root, *root):
        assert int(element.attrib["tests"]) == len(list(element.iter("testcase")))
        assert int(element.attrib["failures"]) == len(list(element.iter("failure")))
        assert int(element.attrib["errors"]) == len(list(element.iter("error")))
    wrong = sum(bool(outcome.findings) for outcome in found)
    assert int(root.attrib["failures"]) + int(root.attrib["errors"]) == wrong


def test_junit_keeps_special_characters_and_replaces_those_that_xml_cannot_hold():
    budget = replace(BUDGET, name='<a & "b"> ä\x00\x1b')
    (case,) = ET.fromstring(junit([judge(budget, RESULT)]).encode()).iter("testcase")  # noqa: S314
    assert case.attrib["name"] == '<a & "b"> ä\ufffd\ufffd'


# ---------------------------------------------------------------------------------------------------------------- SARIF

TEXT = {"type": "object", "required": ["text"], "properties": {"text": {"type": "string", "minLength": 1}}}
LOCATION = {
    "type": "object",
    "additionalProperties": False,
    "required": ["physicalLocation"],  # optional in the standard; without it, code scanning shows nothing
    "properties": {
        "id": {"type": "integer", "minimum": -1},
        "message": TEXT,
        "physicalLocation": {
            "type": "object",
            "additionalProperties": False,
            "required": ["artifactLocation"],
            "properties": {
                "artifactLocation": {
                    "type": "object",
                    "additionalProperties": False,
                    "required": ["uri", "uriBaseId"],
                    "properties": {"uri": {"type": "string", "minLength": 1}, "uriBaseId": {"type": "string"}},
                },
                "region": {
                    "type": "object",
                    "additionalProperties": False,
                    "properties": {"startLine": {"type": "integer", "minimum": 1}},
                },
            },
        },
        "logicalLocations": {
            "type": "array",
            "items": {
                "type": "object",
                "additionalProperties": False,
                "properties": {"name": {"type": "string"}, "kind": {"type": "string"}},
            },
        },
    },
}
ESSENTIAL = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "description": "What SARIF 2.1.0 demands of the objects that are written here; no properties but those used.",
    "type": "object",
    "additionalProperties": False,
    "required": ["version", "runs"],
    "properties": {
        "$schema": {"type": "string", "format": "uri"},
        "version": {"const": "2.1.0"},
        "runs": {
            "type": "array",
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["tool", "results"],
                "properties": {
                    "tool": {
                        "type": "object",
                        "additionalProperties": False,
                        "required": ["driver"],
                        "properties": {
                            "driver": {
                                "type": "object",
                                "additionalProperties": False,
                                "required": ["name"],
                                "properties": {
                                    "name": {"type": "string"},
                                    "semanticVersion": {"type": "string"},
                                    "rules": {
                                        "type": "array",
                                        "uniqueItems": True,
                                        "items": {
                                            "type": "object",
                                            "additionalProperties": False,
                                            "required": ["id"],
                                            "properties": {
                                                "id": {"type": "string"},
                                                "name": {"type": "string"},
                                                "shortDescription": TEXT,
                                                "fullDescription": TEXT,
                                                "help": TEXT,
                                                "defaultConfiguration": {
                                                    "type": "object",
                                                    "properties": {"level": {"const": "error"}},
                                                },
                                            },
                                        },
                                    },
                                },
                            }
                        },
                    },
                    "originalUriBaseIds": {
                        "type": "object",
                        "additionalProperties": {"type": "object", "properties": {"description": TEXT}},
                    },
                    "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
                    "results": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "additionalProperties": False,
                            "required": ["message", "ruleId", "partialFingerprints"],
                            "properties": {
                                "ruleId": {"type": "string"},
                                "ruleIndex": {"type": "integer", "minimum": -1},
                                "level": {"enum": ["none", "note", "warning", "error"]},
                                "message": TEXT,
                                "locations": {"type": "array", "minItems": 1, "items": LOCATION},
                                "relatedLocations": {"type": "array", "uniqueItems": True, "items": LOCATION},
                                "partialFingerprints": {"type": "object", "additionalProperties": {"type": "string"}},
                            },
                        },
                    },
                },
            },
        },
    },
}
valid_sarif = fastjsonschema.compile(ESSENTIAL)


def results_of(found):
    return sarif(found, "wcet-probe.toml")["runs"][0]["results"]


def prints(found):
    return [result["partialFingerprints"]["wcetProbeFinding/v1"] for result in results_of(found)]


def test_sarif_of_every_verdict():
    log = sarif(outcomes(), "wcet-probe.toml")
    valid_sarif(log)
    golden("check.sarif", dumps(log))


@given(ANY_OUTCOMES)
def test_sarif_has_the_structure_of_the_standard_whatever_the_names(found):
    log = sarif(found, "wcet-probe.toml")
    valid_sarif(log)
    (run,) = log["runs"]
    rules = run["tool"]["driver"]["rules"]
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        for location in (*result["locations"], *result.get("relatedLocations", ())):
            artifact = location["physicalLocation"]["artifactLocation"]
            assert artifact["uriBaseId"] in run["originalUriBaseIds"]
            assert re.fullmatch(r"[!-~]+", artifact["uri"])
            assert not urlsplit(artifact["uri"]).scheme
    assert len(run["results"]) == sum(len(one.places) or 1 for outcome in found for one in outcome.findings)


def test_each_loop_without_a_bound_is_a_result_at_its_line():
    spots = [
        (
            result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"],
            result["locations"][0]["physicalLocation"]["region"]["startLine"],
        )
        for result in results_of(outcomes())
        if result["ruleId"] == "WCET002"
    ]
    assert spots == [("src/list.c", 17), ("src/list.c", 31)]


def test_a_finding_without_a_place_is_at_the_configuration():
    (result,) = results_of([Outcome(read_tlsf(), findings=(Finding(Rule.CONTRADICTION, "never."),))])
    artifact = result["locations"][0]["physicalLocation"]
    assert artifact == {"artifactLocation": {"uri": "wcet-probe.toml", "uriBaseId": SOURCE_ROOT}}


def test_sources_of_an_allocator_are_of_the_package():
    finding = Finding(Rule.OVER_BUDGET, "too long.", (Place("f", "allocators/tlsf/tlsf.c", 1),))
    (result,) = results_of([Outcome(read_tlsf(), findings=(finding,))])
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uriBaseId"] == PACKAGE


def test_fingerprints_stay_where_lines_and_numbers_change_and_tell_results_apart():
    assert len(set(prints(outcomes()))) == len(prints(outcomes())) == 5
    moved = changed("bound/worst_path/0/location", "find+0x0 (find.c:44)", changed("bound/instructions", 4000))
    assert prints([judge(BUDGET, moved)]) == prints([judge(BUDGET, RESULT)])
    assert prints([judge(replace(BUDGET, target="cortex-m4"), RESULT)]) != prints([judge(BUDGET, RESULT)])


# ----------------------------------------------------------------------------------------------------- Markdown and CSV


def test_markdown_of_every_verdict():
    golden("check.md", markdown(outcomes(), "main"))


def test_markdown_of_what_passes_has_no_details_of_failures():
    text = markdown(outcomes()[:1])
    assert text.startswith("### WCET bounds: passed\n\n1 bound checked: 1 within budget.\n")
    assert text.count("<details>") == 1


@given(ANY_OUTCOMES)
def test_no_name_breaks_the_table_or_the_folds_of_markdown(found):
    text = markdown(found, "main")
    rows = [line for line in text.split("\n") if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {9}
    assert len(rows) == 2 + 2 * len(found)
    assert text.count("<details>") == text.count("</details>") <= len(found) + 1
    assert not re.search(r"<(?!/?(details|summary)>)", text)


def test_csv_of_every_verdict():
    golden("check.csv", csv_table(outcomes()))


@given(ANY_OUTCOMES)
def test_csv_gives_back_what_was_written(found):
    text = csv_table(found)
    assert text.endswith("\r\n")
    head, *rows = csv.reader(io.StringIO(text, newline=""))
    assert tuple(head) == COLUMNS
    assert [row[0] for row in rows] == [outcome.budget.name for outcome in found]
    assert {len(row) for row in rows} == {len(COLUMNS)}
    assert [row[COLUMNS.index("compiler")] for row in rows] == [outcome.compiler for outcome in found]


def test_every_format_has_the_same_bytes_again():
    for write in (junit, markdown, csv_table, lambda found: json.dumps(sarif(found, "c"))):
        assert write(outcomes()) == write(outcomes())
