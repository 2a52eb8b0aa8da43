"""Semantic mutation: no mutant of a true certificate is accepted that claims less than the original."""

import pytest

from tests.certificate.mutants import OPERATORS, SECTIONS, SPECIMENS, tally

SLICES = 20
SEEDS_PER_SLICE = 417
"""Times slices and specimens 100,080 mutants."""


@pytest.mark.parametrize("one", SPECIMENS, ids=" ".join)
def test_no_mutant_that_claims_less_is_accepted(one):
    found = tally(one, range(25))
    assert not [each for each in found if each[1] == "less"]
    assert sum(count for (_, verdict), count in found.items() if verdict == "refused") > 8


@pytest.mark.slow
@pytest.mark.parametrize("slice_", range(SLICES))
@pytest.mark.parametrize("one", SPECIMENS, ids=" ".join)
def test_no_mutant_of_many_that_claims_less_is_accepted(one, slice_):
    found = tally(one, range(SEEDS_PER_SLICE * (slice_ + 1), SEEDS_PER_SLICE * (slice_ + 2)))
    assert not [each for each in found if each[1] == "less"]
    assert {each for each, _ in found} == OPERATORS.keys() | SECTIONS.keys()
