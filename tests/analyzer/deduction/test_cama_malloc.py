"""What parts of CAMA's malloc have in common: which words may be the size, and what is known of it behind a join."""

from types import SimpleNamespace

import pytest

from tests.analyzer.deduction.cama_builds import geometry
from wcet_probe.analyzer.deduction.cama_joins import Join
from wcet_probe.analyzer.deduction.cama_malloc import any_request, begun, grown, size_behind, unchanged
from wcet_probe.analyzer.deduction.formulas import FALSE, TRUE, unknown
from wcet_probe.analyzer.deduction.words import Word, less

JOIN = Join(0x100000, {"r6": frozenset({"size"}), "r8": frozenset({"class r8"})}, 0, frozenset())


def end(memory, words, *conditions):
    return SimpleNamespace(memory=memory, words=lambda: words, conditions=conditions)


@pytest.mark.parametrize(
    ("added", "mask", "is_size"), [(11, -8, True), (7, -8, False), (11, -4, False), (19, -8, True), (11, 0xF8, False)]
)
def test_a_size_is_a_multiple_of_8_that_holds_what_is_wanted_and_its_header(added, mask, is_size):
    request = any_request()
    run = begun(geometry(), asked_set=request.asked_set)
    request.given_to(run)
    terms = run.terms
    word = terms.operate("INT_AND", request.wanted.plus(Word(added)), Word(mask % (1 << 32)))
    bounds = less(request.wanted, Word(1 << 20)), less(Word(5), request.wanted)
    way = end(run.memory, {"r3": request.wanted, "r6": word}, *bounds)
    assert (word in tuple(request.sizes(run, way))) == is_size


def test_a_class_behind_a_join_is_that_of_the_size_if_that_is_small():
    run = begun(geometry())
    size = size_behind(run, JOIN)
    (number,) = size.classes.values()
    questions = run.terms.questions
    questions.assume(size.starts.equals(geometry().small_sizes[2]))
    assert questions.holds(number.equals(2))
    assert not begun(geometry()).terms.questions.holds(number.equals(2))


def test_a_small_size_is_the_least_of_its_class():
    run = begun(geometry())
    size = size_behind(run, JOIN)
    questions = run.terms.questions
    questions.assume(size.starts < geometry().threshold // 8)
    odd = next(one for one in range(2, geometry().threshold // 8) if one not in geometry().small_sizes.values())
    assert questions.holds(size.starts.differs(odd))


def test_nothing_is_changed_where_nothing_is_stored_and_no_block_is_accessed():
    run = begun(geometry())
    assert unchanged(run, end(run.memory.copy(), {}))[1] is TRUE
    stored, touched, static = (run.memory.copy() for _ in range(3))
    stored.write("left", unknown("place"), unknown("other"))
    touched.touched[unknown("start")] = 0x100000
    static.static[geometry().control] = Word(0)
    assert [unchanged(run, end(one, {}))[1] for one in (stored, touched, static)] == [FALSE] * 3


def test_a_descriptor_that_is_described_anew_is_not_taken_from_the_spare_ones():
    run = begun(geometry())
    view, memory, place = run.rules.before, run.memory.copy(), unknown("place")
    memory.write("start", place, unknown("start"))
    assert grown(memory, view, kept=place).used is view.used
    assert grown(memory, view).used is not view.used
