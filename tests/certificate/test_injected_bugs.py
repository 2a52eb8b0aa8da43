"""Soundness bugs put into the analyzer: no wrong certificate that comes of one is accepted.

Tests: certificate.check.
"""

import pytest

from tests.certificate.injected_bugs import BUGS, bounds, build, run, verdict


@pytest.fixture(scope="module")
def true(tmp_path_factory):
    folder = tmp_path_factory.mktemp("programs")
    build(folder)
    return folder, bounds(folder, None, {})


@pytest.mark.slow
@pytest.mark.parametrize("name", BUGS)
def test_a_wrong_certificate_is_not_accepted(true, name):
    folder, found = true
    wanted = {key: one for key, one in found.items() if isinstance(one, list)}
    assert len(wanted) > 12
    wrong = run(folder, name, wanted)
    assert verdict(found, wrong) != "ACCEPTED", {key: one for key, one in wrong.items() if isinstance(one, str)}


def test_every_bug_can_be_put_in():
    for name, bug in BUGS.items():
        assert bug.file.read_text("utf-8").count(bug.old) == 1, name
        assert bug.new != bug.old
