"""No mutant of sources, marks, facts and hashes is accepted of which a sum that is rested on says too much.

Tests: certificate.facts.source_counts.
"""

import pytest

from tests.certificate.source_mutants import OPERATORS, SPECIMENS, rests_on, tally

SLICES = 20
SEEDS_PER_SLICE = 120


def _check(found):
    assert not [each for each in found if each[1] == "less"]
    assert {verdict for _, verdict in found} >= {"refused", "not checked", "no less"}


def test_no_mutant_of_the_sources_that_claims_less_is_accepted():
    """Of a bound whose sum takes off what a loop of the source executes."""
    assert [place.name for place in rests_on(SPECIMENS[0])] == ["pushed"]
    _check(tally(SPECIMENS[0], range(24)))


@pytest.mark.slow
@pytest.mark.parametrize("slice_", range(SLICES))
@pytest.mark.parametrize("one", SPECIMENS, ids=" ".join)
def test_no_mutant_of_many_of_the_sources_is_accepted(one, slice_):
    found = tally(one, range(SEEDS_PER_SLICE * slice_, SEEDS_PER_SLICE * (slice_ + 1)))
    _check(found)
    assert {each for each, _ in found} == OPERATORS.keys() | {"constrained", "unlisted"}
