"""The tally of long campaigns: what has passed is not repeated, what has not ended or failed is."""

import importlib.util
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
