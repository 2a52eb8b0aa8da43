"""Half-fit's memory: what is loaded is what was stored there, or what the claims say; an access that strays is told."""

import pytest

from tests.analyzer.deduction.half_fit_builds import geometry
from wcet_probe.analyzer.deduction.asked import BY_Z3
from wcet_probe.analyzer.deduction.execution import Astray, Site
from wcet_probe.analyzer.deduction.formulas import unknown
from wcet_probe.analyzer.deduction.half_fit_claims import is_free_block, is_held, view_of
from wcet_probe.analyzer.deduction.half_fit_operations import _Run
from wcet_probe.analyzer.deduction.obligations import IN_ITS_MEMORY
from wcet_probe.analyzer.deduction.words import Word
from wcet_probe.analyzer.domains.congruences import Congruence

SITE = Site(0x1234, ())


@pytest.fixture
def entry():
    """The memory at entry, a free block, and the address of its payload."""
    run = _Run(geometry(), view_of(""), begins=False, course=BY_Z3)
    memory = run.memory()
    block = run.terms.known(unknown("a block"))
    memory.name(block)
    run.terms.questions.assume(is_free_block(run.rules.before, block))
    return run, memory, block, Word(0, ((block, 8),))


def test_a_link_and_a_tag_are_loaded_as_claimed(entry):
    run, memory, block, payload = entry
    view = run.rules.before
    assert memory.load(payload, SITE) == Word(0, ((view.link(block), 8),))
    assert memory.load(payload.plus(Word(4)), SITE) == Word(0, ((view.back(block), 8),))
    assert memory.load(payload.plus(Word(2**32 - 4)), SITE) == Word(0, ((view.size(block), 8), (view.free(block), 1)))
    assert run.rules.aligned == {0x1234: {Congruence(8, 0), Congruence(8, 4)}}
    assert all(shown for _, what, shown in run.answers._pending if what == IN_ITS_MEMORY)


def test_what_was_stored_is_loaded_where_it_may_be(entry):
    run, memory, block, payload = entry
    other = run.terms.known(unknown("another block"))
    memory.name(other)
    run.terms.questions.assume(is_free_block(run.rules.before, other))
    before = memory.copy()
    memory.store(payload, Word(64), SITE)
    assert memory.load(payload, SITE) == Word(64)
    assert before.load(payload, SITE) != Word(64)
    found = run.terms.value(memory.load(Word(0, ((other, 8),)), SITE))
    assert not run.terms.questions.holds(found.equals(64))
    run.terms.questions.assume(other.equals(block))
    assert run.terms.questions.holds(found.equals(64))


def test_what_the_caller_may_have_written_is_not_known(entry):
    run, memory, _, _ = entry
    held = run.terms.known(unknown("a held block"))
    memory.name(held)
    run.terms.questions.assume(is_held(run.rules.before, held))
    with pytest.raises(Astray, match="of which nothing is claimed"):
        memory.load(Word(0, ((held, 8),)), SITE)


def test_an_access_that_strays_is_told(entry):
    run, memory, _, payload = entry
    with pytest.raises(Astray, match="across words"):
        memory.load(payload.plus(Word(2)), SITE)
    with pytest.raises(Astray, match="multiple of 8"):
        memory.store(Word(0, ((unknown("anything"), 1),)).plus(payload), Word(0), SITE)
    anywhere = run.terms.known(unknown("anywhere"))
    with pytest.raises(Astray, match="may be to the bitmap"):
        memory.store(Word(0, ((anywhere, 8),)), Word(0), SITE)
    assert (0x1234, IN_ITS_MEMORY, False) in run.answers._pending
    memory.store(run.stack_pointer.plus(Word(2**32 - 8)), Word(7), SITE)
    assert memory.load(run.stack_pointer.plus(Word(2**32 - 8)), SITE) == Word(7)
    with pytest.raises(Astray, match="the caller's frame"):
        memory.store(run.stack_pointer.plus(Word(8)), Word(7), SITE)
