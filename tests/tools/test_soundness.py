"""The tally of long campaigns: what has passed is not repeated, what has not ended or failed is."""

import importlib.util
import json
import os
import signal
import sys
from pathlib import Path

import pytest

spec = importlib.util.spec_from_file_location("soundness", Path(__file__).parents[2] / "tools" / "soundness.py")
soundness = importlib.util.module_from_spec(spec)
spec.loader.exec_module(soundness)

TESTS = ("tests/a/test_x.py::test_one[1]", "tests/a/test_x.py::TestY::test_two", "tests/test_z.py::test_three")
JUNIT = """<testsuites><testsuite>
<testcase classname="tests.a.test_x" name="test_one[1]"/>
<testcase classname="tests.a.test_x.TestY" name="test_two"><failure message="no"/></testcase>
</testsuite></testsuites>"""


def test_outcomes_are_told_by_test(tmp_path):
    results = tmp_path / "results.xml"
    results.write_text(JUNIT)
    assert soundness.outcomes_of(results, TESTS) == dict(zip(TESTS, ("passed", "failed", "not ended"), strict=True))


def test_only_what_has_passed_or_cannot_run_is_left_out():
    outcomes = dict(zip(TESTS, ("passed", "failed", "not ended"), strict=True))
    assert list(soundness.slices(TESTS, outcomes, 1)) == [[TESTS[1]], [TESTS[2]]]
    assert list(soundness.slices(TESTS, outcomes, 5)) == [[*TESTS[1:]]]
    assert not list(soundness.slices(TESTS[:1], {TESTS[0]: "skipped"}, 5))


@pytest.mark.parametrize("text", ["", "{", "[]", '{"tree": "abc"}'])
def test_a_tally_that_cannot_be_read_is_no_tally(tmp_path, text):
    path = tmp_path / "tally.json"
    assert soundness.load_tally(path, "abc") == {}
    path.write_text(text)
    assert soundness.load_tally(path, "abc") == {}


def test_a_tally_holds_for_the_same_files_only(tmp_path):
    path = tmp_path / "build" / "tally.json"
    soundness.save_tally(path, "abc", {TESTS[0]: "passed"})
    assert soundness.load_tally(path, "abc") == {TESTS[0]: "passed"}
    assert soundness.load_tally(path, "abd") == {}


def test_a_change_of_a_file_is_another_tree(tmp_path):
    (tmp_path / "analyzer").mkdir()
    file = tmp_path / "analyzer" / "a.py"
    file.write_text("1")
    before = soundness.tree_digest(tmp_path)
    assert soundness.tree_digest(tmp_path) == before
    file.write_text("2")
    assert soundness.tree_digest(tmp_path) != before


def test_what_pytest_did_not_write_has_not_ended(tmp_path):
    assert set(soundness.outcomes_of(tmp_path / "none.xml", TESTS).values()) == {"not ended"}


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project of two campaigns, of which the second one takes until it is stopped."""
    file = tmp_path / "tests" / "test_long.py"
    file.parent.mkdir()
    file.write_text(
        "import time\nimport pytest\npytestmark = pytest.mark.slow\n"
        "def test_quick():\n    pass\n"
        "def test_endless():\n    time.sleep(0 if __import__('os').path.exists('quick') else 600)\n"
    )
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = slow\n")
    monkeypatch.setattr(soundness, "ROOT", tmp_path)
    monkeypatch.setattr(soundness, "TALLY", tmp_path / "build" / "soundness.json")
    monkeypatch.setattr(soundness, "RESULTS", tmp_path / "build" / "slice.xml")
    monkeypatch.setattr(sys, "argv", ["soundness.py"])
    return tmp_path


@pytest.mark.slow
def test_what_was_stopped_is_told_and_goes_on(project, monkeypatch, capsys):
    told = print

    def interrupt_at_the_first(*words, **options):
        """As Ctrl-C does, which the whole group of processes gets."""
        told(*words, **options)
        if "test_quick" in words[0]:
            for child in Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split():
                os.kill(int(child), signal.SIGINT)
            raise KeyboardInterrupt

    monkeypatch.setattr(soundness, "print", interrupt_at_the_first, raising=False)
    assert soundness.main() == 130
    assert "the same command goes on from there" in capsys.readouterr().out
    outcomes = json.loads(soundness.TALLY.read_text())["outcomes"]
    assert outcomes == {"tests/test_long.py::test_quick": "passed", "tests/test_long.py::test_endless": "not ended"}
    (project / "quick").touch()
    monkeypatch.setattr(soundness, "print", told)
    assert soundness.main() == 0
    said = capsys.readouterr().out
    assert "test_quick" not in said
    assert "slice 1 of 1\n  passed   tests/test_long.py::test_endless\nof 2 campaigns 2 passed\n" in said


def test_a_file_that_cannot_be_read_is_no_campaign_less(project):
    (project / "tests" / "test_broken.py").write_text("import nothing_of_that_name\n")
    with pytest.raises(SystemExit, match="not all campaigns could be collected"):
        soundness.main()


@pytest.mark.usefixtures("project")
def test_a_name_that_no_campaign_has_is_told(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["soundness.py", "--only", "test_lnog"])
    with pytest.raises(SystemExit, match="no campaign has 'test_lnog' in its name"):
        soundness.main()
