"""Semantic mutation: no mutant of a true certificate is accepted that claims less than the original.

Tests: certificate.check.
"""

import pytest

from tests.certificate.forgeries import name_dead_ends, problem_of, sealed, solved_again, without_edges
from tests.certificate.mutants import OPERATORS, SECTIONS, outcome, tally, verdict_of
from tests.certificate.specimens import SPECIMENS, specimen
from wcet_probe.errors import AnalysisError

SEEDS = 12
"""Of each specimen in the ordinary run, each of them others, so that all operators have their turn."""
DEAR = ("nest", "cama")
"""For campaigns, as seven of eight of the others are: what ends no more in a mutant of the nest is followed as far as
may be, and cama has large graphs."""
SLICES = 20
SEEDS_PER_SLICE = 417
"""Times slices and specimens more than 100,000 mutants."""


@pytest.mark.parametrize(("name", "target", "role"), [one for one in SPECIMENS if one[0] not in DEAR][::8])
def test_no_mutant_that_claims_less_is_accepted(name, target, role):
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


def test_names_of_dead_ends_are_read_as_the_analysis_writes_them():
    """What `name_dead_ends` forges of any way is the list of a true certificate where it is of true ones."""
    document, binary = specimen("panic", "cortex-m4", "f")
    before = {one["id"]: one["statement"] for one in document["bound"]["assumptions"]}
    named = {**document, "bound": {**document["bound"]}}
    name_dead_ends(named, binary.image)
    assert {one["id"]: one["statement"] for one in named["bound"]["assumptions"]} == before


def solved_without(document, victim):
    """``document`` without an edge, whose target is said to be excluded; None where no path is left."""

    def change(problem, derivations, followed):
        target = next(node.address for node in problem.nodes if node.name == victim.target)
        said = f"excluded {victim.source} {target:#x}"
        return without_edges(problem, [victim.name]), derivations, [*followed, said]

    try:
        return solved_again(document, change)
    except AnalysisError:
        return None


@pytest.mark.parametrize("one", [one for one in SPECIMENS if one[0] in {"panic", "handlers"}])
def test_no_edge_is_left_out_as_one_to_a_dead_end(one):
    """The assumption names where it leads; code returns from there."""
    document, binary = specimen(*one)
    for victim in problem_of(document["bound"]["certificates"][0])[0].edges:
        forged = solved_without(document, victim)
        if forged is not None:
            name_dead_ends(forged, binary.image)
            assert outcome(sealed(forged), binary) in {"refused", "not checked"}, victim
