"""Bound and observation in one answer, with the real engines on a small heap.

Tests: cli.run, answer.witness.probe.
"""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support import images_dir
from wcet_probe.catalog import lookup as catalog
from wcet_probe.cli import main


@pytest.fixture
def run(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("WCET_PROBE_CACHE_DIR", str(images_dir()))
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


@pytest.fixture
def with_facts(monkeypatch):
    """Makes the allocator's facts what a function makes of their text."""
    load = catalog.load_allocator

    def change(edit):
        def loaded(*arguments):
            found = load(*arguments)
            return replace(found, facts=tuple((name, edit(text)) for name, text in found.facts))

        monkeypatch.setattr(catalog, "load_allocator", loaded)

    return change


BUDDY = ("buddy-binary", "--heap", "64K")
WHY: list[str] = []


@pytest.fixture
def why(run):
    """The document of both sides with its gap, and the bound over heap sizes; for all tests that read it."""
    if not WHY:
        WHY.append(run(*BUDDY, "--why", "--json")[1])
    return json.loads(WHY[0])


def test_the_first_screen_shows_both_sides(run):
    code, out, err = run("tlsf", "--heap", "64K")
    assert (code, err) == (0, "")
    first, _, verdict, _, titles, instructions, cycles, *_ = out.splitlines()
    (most,) = re.findall(r"^tlsf on cortex-m4: malloc takes at most (\d+) instructions, \d+ cycles$", first)
    assert verdict.startswith("BOUNDED: a witness below, a proven upper bound above, under 6 assumptions")
    assert titles.split() == ["bound", "observed", "slack"]
    assert instructions.split() == ["instructions", most, most, "0", "exact"]
    unit, bound, observed, slack, *_ = cycles.split()
    assert (unit, int(bound) - int(observed)) == ("cycles", int(slack))


@pytest.mark.parametrize("scenario", ["random", "best-alloc"])
def test_other_scenarios_are_bounded_as_well(run, scenario):
    code, out, _ = run("tlsf", "--heap", "64K", "--scenario", scenario)
    assert code == 0
    assert f"{scenario} does not look for the dearest call of all" in out


def test_a_document_is_verified(run, tmp_path):
    code, out, _ = run(*BUDDY, "--target", "mpc603e", "--target", "cortex-m4", "--json")
    assert code == 0
    document = json.loads(out)
    for result in document["results"]:
        for unit, slack in result["slack"].items():
            assert slack == result["bound"][unit] - result["observed"][unit] >= 0
    file = tmp_path / "results.json"
    file.write_text(out)
    code, out, err = run("verify", file)
    assert (code, err, len(out.splitlines())) == (6, "", 6)
    document["results"][1]["slack"]["cycles"] += 1
    file.write_text(json.dumps(document))
    code, _, err = run("verify", file)
    assert code == 1
    assert "the slack in cycles is not bound minus observation" in err


def test_a_result_without_bound_is_not_verified(run, tmp_path):
    _, out, _ = run("tlsf", "--heap", "64K", "--no-bound", "--json")
    (tmp_path / "result.json").write_text(out)
    code, _, err = run("verify", "result.json")
    assert code == 1
    assert "result.json: not verified: a result has no bound" in err


@pytest.mark.covering(0)
@pytest.mark.parametrize("allocator", ["tlsf", "djgpp-quarters", "buddy-fibonacci"])
@pytest.mark.parametrize("scenario", ["worst-alloc", "best-free"])
def test_the_gap_adds_up(run, allocator, scenario):
    code, out, _ = run(allocator, "--heap", "64K", "--scenario", scenario, "--why", "--json")
    assert code == 0
    result = json.loads(out)
    gap = result["gap"]
    assert gap["instructions"] == result["slack"]["instructions"]
    assert sum(block["instructions"] for block in gap["blocks"]) + gap["above_worst_path"] == gap["instructions"]
    for block in gap["blocks"]:
        difference = block["bound_executions"] - block["observed_executions"]
        assert block["instructions"] == difference * len(block["code"])
        assert (block["cause"] == "same") is (difference == 0)
    seen = sum(block["observed_executions"] * len(block["code"]) for block in gap["blocks"])
    assert seen == result["witnesses"]["instructions"]["value"]


def test_why_shows_source_code_and_table(run):
    code, out, _ = run("djgpp-quarters", "--heap", "64K", "--why")
    assert code == 0
    table = out.partition("Where bound and observation differ")[2].partition("\nThe bound over")[0]
    *rows, last = [line for line in table.splitlines() if line]
    blocks = [int(line.split()[-1].replace(",", "")) for line in rows if line.startswith("    ")]
    (slack,) = re.findall(r"^  instructions +\d+ +\d+ +(\d+)", out, re.MULTILINE)
    assert last.split() == ["bound", "-", "observed", slack]
    assert sum(blocks) == int(slack)
    assert re.search(r"^  djgpp_buckets\.h:\d+  for \(", out, re.MULTILINE)
    assert "no-interference" in out


def test_why_tells_the_bound_over_heap_sizes(run, why):
    document, formula = why, why["formula"]
    assert [term["expression"] for term in formula["terms"]] == ["levels"]
    assert formula["samples"][-1] == {"H": 65536, "instructions": document["bound"]["instructions"]}
    levels = document["bound"]["parameters"]["levels"]
    (factor,) = (int(term["factor"]) for term in formula["terms"])
    assert int(formula["constant"]) + factor * levels == document["bound"]["instructions"]
    out = run(*BUDDY, "--why")[1]
    assert f"  {formula['constant']} + {factor} * (levels)\n" in out
    assert "proved to hold at 8 values of H, from 8,192 to 65,536\n" in out


def test_why_of_several_answers(run):
    code, out, _ = run("tlsf", "--heap", "64K", "--heap", "128K", "--why")
    assert code == 0
    assert out.count("Worst path beside the observed one") == 2


def test_a_wrong_fact_is_contradicted(run, with_facts):
    with_facts(lambda text: text.replace('max = "levels"', 'max = "levels - 5"'))
    code, out, err = run(*BUDDY)
    assert (code, out) == (5, "")
    assert re.match(r"wcet-probe: CONTRADICTED: .*at most [\d,]+ (are|is|were) (claimed|proved)", err)
    assert err.count("\n") == 1


def test_a_missing_fact_leaves_no_bound(run, with_facts):
    with_facts(lambda _: "")
    code, out, err = run(*BUDDY)
    assert (code, err) == (4, "")
    assert "UNBOUNDED: a witness" in out
    assert "no bound for the loops at buddy_binary_malloc+0x" in " ".join(out.split())
    code, out, _ = run(*BUDDY, "--json", "--why")
    result = json.loads(out)
    assert (code, result["verdict"], result["bound"], result["slack"], result["gap"]) == (4, "UNBOUNDED", *[None] * 3)
    assert result["no_bound"].startswith("no bound for the loops at buddy_binary_malloc+0x")


def test_the_largest_exit_code_of_several_answers(run, with_facts):
    with_facts(lambda text: "" if "buddy" in text else text)
    code, out, _ = run(*BUDDY, "--heap", "128K")
    assert code == 4
    assert out.count("no bound for the loops at") == 2


def test_every_key_of_the_document_is_in_the_reference(why):
    reference = (Path(__file__).parents[2] / "docs/reference/json.md").read_text("utf-8")
    document = why
    bound, gap = document["bound"], document["gap"]
    parts = (document, bound, gap, bound["loops"][0], bound["worst_path"][0], bound["assumptions"][0], gap["blocks"][0])
    keys = {key for part in (*parts, document["formula"], document["formula"]["terms"][0]) for key in part}
    assert [key for key in sorted(keys) if not re.search(rf"`(\w+\.)?{key}\b", reference)] == []
