"""Semantic mutation: no mutant of a true certificate is accepted that claims less than the original."""

from collections import Counter
from functools import cache

import pytest

from tests.certificate.mutants import OPERATORS, SECTIONS, verdict_of
from tests.results import result as result_of
from tests.support import images_dir
from wcet_probe.build.program import load_program
from wcet_probe.catalog.lookup import load_allocator, load_target
from wcet_probe.certificate.check import check_bound
from wcet_probe.evidence.checking import allocator_binary

SPECIMENS = ("tlsf", "djgpp-quarters", "first-fit", "kingsley", "buddy-binary")
HEAP_BYTES = 8192


@cache
def specimen(name):
    program = load_program(load_allocator(name, {}), load_target("cortex-m4"), "zig", images_dir())
    return result_of(name, "cortex-m4", heap_bytes=HEAP_BYTES), allocator_binary(program, HEAP_BYTES)


def tally(name, seeds):
    document, binary = specimen(name)
    assert check_bound(document, binary).is_full
    return Counter(verdict_of(document, binary, seed) for seed in seeds)


@pytest.mark.parametrize("name", SPECIMENS)
def test_no_mutant_that_claims_less_is_accepted(name):
    found = tally(name, range(60))
    assert not [each for each in found if each[1] == "less"]
    assert sum(count for (_, verdict), count in found.items() if verdict == "refused") > 20


@pytest.mark.slow
@pytest.mark.parametrize("slice_", range(20))
@pytest.mark.parametrize("name", SPECIMENS)
def test_no_mutant_of_many_that_claims_less_is_accepted(name, slice_):
    found = tally(name, range(1000 * (slice_ + 1), 1000 * (slice_ + 2)))
    assert not [each for each in found if each[1] == "less"]
    assert {each for each, _ in found} == OPERATORS.keys() | SECTIONS.keys()
