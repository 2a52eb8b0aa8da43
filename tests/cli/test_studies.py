"""growth, matrix and search on the command line, with the real engine on a small heap."""

from __future__ import annotations

import json

import pytest

from wcet_probe.cli import main

ARGUMENTS = {
    "growth": ("growth", "tlsf", "--heap", "16K", "--heap", "32K", "--heap", "64K"),
    "matrix": ("matrix", "--allocator", "tlsf", "--heap", "64K"),
    "search": ("search", "tlsf", "--operation", "free", "--evaluations", "50"),
}


@pytest.fixture
def run(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("WCET_PROBE_CACHE_DIR", str(tmp_path))
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        code = main(arguments)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def test_growth_says_what_was_claimed_and_what_was_found(run):
    code, out, _ = run(*ARGUMENTS["growth"])
    assert code == 0
    first = ["tlsf on cortex-m4, worst-alloc: constant", "claimed O(1): holds on these heaps"]
    assert out.splitlines()[:3] == [*first, "exactly: instructions = 112"]


def test_the_matrix_marks_its_diagonal(run):
    code, out, _ = run(*ARGUMENTS["matrix"])
    assert code == 0
    assert "[112]" in out


def test_search_says_whether_the_scenario_was_beaten(run):
    code, out, _ = run(*ARGUMENTS["search"])
    assert code == 0
    assert "not beaten" in out


@pytest.mark.parametrize("command", ARGUMENTS)
def test_json_is_one_document_and_the_same_each_time(run, command):
    first, second = (run(*ARGUMENTS[command], "--json") for _ in range(2))
    assert first == second
    assert json.loads(first[1])["format"] == f"wcet-probe-{command}"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("growth", "tslf"), "unknown allocator 'tslf': did you mean 'tlsf'?"),
        (("growth", "tlsf", "--heap", "16K"), "1 heap sizes show no growth; give at least 3 with --heap."),
        (("growth", "tlsf", "--preset", "p02"), "unknown preset of tlsf 'p02': known are: c06, h11, l11, m06."),
        (("search", "tlsf", "--operation", "fre"), "unknown operation 'fre': did you mean 'free'?"),
        (("search", "tlsf", "--evaluations", "0"), "0 evaluations search nothing; give at least 1."),
        (("matrix", "--target", "cortex-m44"), "unknown target 'cortex-m44': did you mean 'cortex-m4'?"),
    ],
)
def test_bad_input_is_one_sentence(run, arguments, sentence):
    assert run(*arguments) == (2, "", f"wcet-probe: {sentence}\n")
