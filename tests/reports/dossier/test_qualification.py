"""The data that stand in every dossier: what they name exists, and their numbers are those of the documentation."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from wcet_probe.reports.dossier.qualification import load_qualification

ROOT = Path(__file__).parents[3]
DATA = load_qualification()


@cache
def functions(file):
    tree = ast.parse((ROOT / file).read_text("utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("requirement", DATA.requirements, ids=lambda one: one.id)
def test_every_requirement_has_test_cases_that_exist(requirement):
    assert requirement.tests
    for test in requirement.tests:
        file, _, function = test.partition("::")
        assert file.startswith("tests/")
        assert function in functions(file), test


@pytest.mark.parametrize("name", ["requirements", "problems", "failures"])
def test_identifiers_count_up(name):
    ids = [one.id for one in getattr(DATA, name)]
    prefixes = {one.partition("-")[0] for one in ids}
    assert len(prefixes) == 1
    assert [int(one.partition("-")[2]) for one in ids] == list(range(1, len(ids) + 1))


def test_statuses_are_those_that_the_report_explains():
    assert {one.status for one in DATA.objectives} == {"covered", "not covered", "user"}
    assert {one.safe for one in DATA.problems} == {"yes", "no"}


def test_a_problem_that_is_named_exists():
    known = {one.id for one in DATA.problems}
    named = {name for one in DATA.failures for name in re.findall(r"KP-\d+", f"{one.mitigation} {one.residual}")}
    assert named
    assert named <= known


def test_every_assumption_of_the_analyzer_is_discharged_by_somebody():
    text = "\n".join(path.read_text("utf-8") for path in sorted((ROOT / "analyzer").rglob("*.py")))
    ids = set(re.findall(r'Assumption\(\s*f?"([a-z-]+)', text))
    assert {"no-interference", "timing-model", "fact", "lemma"} <= ids
    assert not [one for one in ids if DATA.discharge(one) is None]
    assert DATA.discharge("pragma find.c:3")
    assert DATA.discharge("something new") is None


@pytest.mark.parametrize("suite", DATA.suites, ids=lambda one: one.id)
def test_validation_results_are_those_of_the_documentation(suite):
    text = (ROOT / "docs/explanation/bounds.md").read_text("utf-8")
    assert suite.command in text
    found = {}
    cycles = text.index("## Allocators, in cycles")
    for line in (text[:cycles] + text[text.index("\n## ", cycles + 1) :]).splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")] if "|" in line else [""] * 4
        # The table of allocators has the ratio of the version before, too.
        *name, bound, seen, ratio = cells[:6] if suite.id == "allocators" else cells
        if re.fullmatch(r"\d+\.\d{3}", ratio) and len(name) == (3 if suite.id == "allocators" else 2):
            subject = f"{name[0]}, {name[2]}" if suite.id == "allocators" else name[0]
            found[subject, name[1]] = (int(bound.replace(",", "")), int(seen.replace(",", "")))
    held = {
        (name, target): pair
        for name, pairs in suite.rows.items()
        for target, pair in zip(suite.targets, pairs, strict=True)
    }
    assert held == found


def test_no_bound_of_the_validation_is_below_its_observation():
    assert all(ratio >= 1 for suite in DATA.suites for ratio in suite.ratios())


def test_every_check_of_a_lemma_is_explained():
    facts = "\n".join(path.read_text("utf-8") for path in sorted((ROOT / "allocators").glob("*/facts.toml")))
    used = set(re.findall(r'^check = "(.+)"', facts, re.MULTILINE))
    assert used
    assert used <= {name for name, _ in DATA.checks}
