"""Semantic mutation: no mutant of a true certificate is accepted that claims less than the original.

Tests: certificate.check.
"""

import pytest

from tests.certificate.mutants import OPERATORS, SECTIONS, tally, verdict_of
from tests.certificate.specimens import SPECIMENS, specimen

SEEDS = 8
"""Of each specimen in the ordinary run, each of them others, so that all operators have their turn."""
SLICES = 20
SEEDS_PER_SLICE = 417
"""Times slices and specimens more than 100,000 mutants."""


@pytest.mark.covering(1)
@pytest.mark.parametrize(("name", "target", "role"), [one for one in SPECIMENS if one[0] != "nest"])
def test_no_mutant_that_claims_less_is_accepted(name, target, role):
    """But of the nest: what ends no more in a mutant is followed as far as may be, which is slow."""
    first = SEEDS * SPECIMENS.index((name, target, role))
    found = tally((name, target, role), range(first, first + SEEDS))
    assert not [each for each in found if each[1] == "less"]
    assert sum(count for (_, verdict), count in found.items() if verdict == "refused") > SEEDS // 4


def test_passes_of_a_header_limit_no_edge_that_is_taken_without_it():
    """The mutant limited an edge of one call by the entries of another one, which no path through the edge passes."""
    assert verdict_of(*specimen("quick-fit", "cortex-m4", "malloc"), 4740)[1] != "less"


@pytest.mark.slow
@pytest.mark.parametrize("slice_", range(SLICES))
@pytest.mark.parametrize("one", SPECIMENS, ids=" ".join)
def test_no_mutant_of_many_that_claims_less_is_accepted(one, slice_):
    found = tally(one, range(SEEDS_PER_SLICE * slice_, SEEDS_PER_SLICE * (slice_ + 1)))
    assert not [each for each in found if each[1] == "less"]
    assert {each for each, _ in found} == OPERATORS.keys() | SECTIONS.keys()
