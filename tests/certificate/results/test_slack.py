"""The distance between bound and witnesses, as a result says it, is computed again.

Tests: certificate.results.observed.
"""

from __future__ import annotations

import copy

import pytest

from wcet_probe.certificate.results.observed import verify_slack
from wcet_probe.errors import VerificationError

DOCUMENT = {
    "bound": {"instructions": 67, "cycles": 1024},
    "observed": {"instructions": 62, "cycles": 1000},
    "witnesses": {
        "instructions": {"value": 67, "instructions": 67, "cycles": 996},
        "cycles": {"value": 1000, "instructions": 62, "cycles": 1000},
    },
    "slack": {"instructions": 0, "cycles": 24},
}


def changed(*path: str, to: int) -> dict:
    document = copy.deepcopy(DOCUMENT)
    section = document
    for key in path[:-1]:
        section = section[key]
    section[path[-1]] = to
    return document


def test_slack_is_bound_minus_the_witness_in_the_unit():
    verify_slack(DOCUMENT)
    earlier = {**DOCUMENT, "slack": {"instructions": 5, "cycles": 24}}
    del earlier["witnesses"]  # as it was saved before there was a witness for each unit
    verify_slack(earlier)


@pytest.mark.parametrize(
    ("document", "sentence"),
    [
        (changed("slack", "instructions", to=5), "the slack in instructions"),
        (changed("slack", "cycles", to=23), "the slack in cycles"),
        (changed("witnesses", "instructions", "value", to=66), "the slack in instructions"),
        (changed("witnesses", "instructions", "instructions", to=66), "the witness in instructions has two values"),
        (changed("observed", "cycles", to=999), "the witness in cycles is not the observed call"),
        (changed("observed", "instructions", to=61), "the witness in cycles is not the observed call"),
        (changed("bound", "cycles", to=999), "the slack in cycles"),
    ],
)
def test_what_does_not_agree_is_refused(document, sentence):
    with pytest.raises(VerificationError, match=sentence):
        verify_slack(document)
