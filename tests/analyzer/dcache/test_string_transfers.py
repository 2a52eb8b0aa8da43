"""Strings of PowerPC are bytes to the emulator and words to SLEIGH: bounds are told only where that is the same."""

from dataclasses import replace

import pytest

from tests.support import assembler, guest_of
from wcet_probe.analyzer.bound import prove
from wcet_probe.analyzer.facts.language import Facts
from wcet_probe.analyzer.request import BoundRequest
from wcet_probe.catalog.lookup import load_target
from wcet_probe.errors import AnalysisError
from wcet_probe.model.scenario import InitialCache

TARGET = load_target("mpc603e")
CODE = assembler({"loads": "lswi 5, 3, 20\nblr", "stores": "stswi 5, 3, 16\nblr", "words": "lwz 3, 0(3)\nblr"}, TARGET)


def bound_and_run(target, entry):
    guest = guest_of(CODE, target)
    with guest.machine() as machine:
        run = machine.measure(entry, (machine.heap.base_address,), InitialCache.DIRTY)
    question = (guest.image, target, guest.instructions, guest.costs, entry)
    return prove(BoundRequest(*question, Facts(), {}, {})), run


def with_cache(dcache):
    return replace(TARGET, dcache=dcache if dcache is None else replace(TARGET.dcache, **dcache))


@pytest.mark.parametrize(
    ("dcache", "entry"),
    [(None, "loads"), (None, "stores"), ({"write_back": False}, "stores"), ({"write_allocate": False}, "stores")],
)
def test_a_string_whose_bytes_may_wait_each_is_refused(dcache, entry):
    """Without a cache 162 cycles were proved of the loads, and 522 were run; of the stores 137 and 425."""
    with pytest.raises(AnalysisError, match=rf"^{entry}\+0x0 .*string of bytes \((lsw|stsw)i .*transfer words"):
        bound_and_run(with_cache(dcache), entry)


@pytest.mark.parametrize(
    ("dcache", "entry"),
    [({}, "loads"), ({}, "stores"), ({"write_back": False}, "loads"), ({"write_allocate": False}, "loads")],
)
def test_a_string_whose_lines_are_filled_first_is_bounded(dcache, entry):
    bound, run = bound_and_run(with_cache(dcache), entry)
    assert run.cycles <= bound.cycles


def test_words_are_bounded_without_a_cache():
    bound, run = bound_and_run(replace(TARGET, dcache=None), "words")
    assert run.cycles == bound.cycles
