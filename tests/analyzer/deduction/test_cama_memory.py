"""CAMA's memory as an operation sees it: words are found by their address, or the way ends."""

from dataclasses import replace

import pytest

from tests.analyzer.deduction.cama_builds import geometry, memory
from wcet_probe.analyzer.deduction.cama_memory import AT_STOP
from wcet_probe.analyzer.deduction.execution import Astray, Site
from wcet_probe.analyzer.deduction.formulas import unknown
from wcet_probe.analyzer.deduction.obligations import IN_THE_RESERVED_SETS, STORED_BEFORE_LOADED, Reached
from wcet_probe.analyzer.deduction.words import Word
from wcet_probe.analyzer.domains.congruences import Congruence

SITE = Site(0x1234, ())


def place(own, name):
    return Word(0, ((own.rules.terms.known(unknown(name), (1 << 27) - 1), 32),))


def test_a_place_that_is_not_known_to_be_one_is_an_open_obligation():
    own, obligations = memory()
    own.load(place(own, "somewhere").plus(Word(4)), SITE)
    assert obligations == [(IN_THE_RESERVED_SETS, 0x1234, False), (STORED_BEFORE_LOADED, 0x1234, False)]


def test_what_was_stored_is_loaded_of_the_same_place_only():
    own, _ = memory()
    one, other = place(own, "one"), place(own, "other")
    own.store(one.plus(Word(4)), other, SITE)
    assert own.load(one.plus(Word(4)), SITE) == other
    questions = own.rules.terms.questions
    loaded = own.load(other.plus(Word(4)), SITE)
    view = own.rules.before
    assert not questions.holds(own.rules.terms.value(loaded).equals(32 * view.right(unknown("other"))))
    questions.assume(unknown("one").differs(unknown("other")))
    assert questions.holds(own.rules.terms.value(loaded).equals(32 * view.right(unknown("other"))))


def test_the_stack_is_by_the_distance_from_its_pointer():
    own, obligations = memory()
    at = own.stack_pointer.plus(Word((1 << 32) - 8))
    own.store(at, Word(5), SITE)
    assert own.load(at, SITE) == Word(5)
    assert obligations == []
    with pytest.raises(Astray, match="that was not stored"):
        own.load(own.stack_pointer, SITE)


@pytest.mark.parametrize(
    ("address", "value", "reason"),
    [
        (lambda own: place(own, "one").plus(Word(24)), Word(0), "at offset 24 of a descriptor"),
        (lambda own: place(own, "one").plus(Word(16)), Word(4), "multiple of 8"),
        (lambda own: place(own, "one"), Word(4), "multiple of 32"),
        (lambda own: place(own, "one").plus(Word(20)), Word(2), "the lowest bits of a size"),
        (lambda own: own.stack_pointer.times(4), Word(0), "multiple of 32"),
        (lambda _: Word(geometry().tables), Word(0), "static data of which nothing is claimed"),
    ],
)
def test_what_no_claim_speaks_of_ends_the_way(address, value, reason):
    own, _ = memory()
    with pytest.raises(Astray, match=reason):
        own.store(address(own), value, SITE)


def test_words_of_the_stack_do_not_overlap():
    own, _ = memory()
    with pytest.raises(Astray, match="across words of the stack"):
        own.store(own.stack_pointer.plus(Word(2)), Word(0), SITE)


@pytest.mark.parametrize("is_found", [False, True])
def test_a_word_that_another_part_begins_with_is_left_to_it_unless_a_list_was_found(is_found):
    own, _ = memory()
    own.rules = replace(own.rules, stops_at="top")
    top = geometry().control + 8
    own.static[top] = Word(0x1000)
    own.found = {unknown("cell"): Word(3)} if is_found else {}
    with pytest.raises(Astray) as error:
        own.load(Word(top), SITE)
    assert (str(error.value) == AT_STOP) != is_found


def test_what_an_instruction_accesses_is_told():
    own, _ = memory()
    own.rules.terms.questions.assume(unknown("inner").equals(128 * 7 + 5))
    sites = {what: Site(0x1000 + number, ()) for number, what in enumerate(Reached)}
    own.name("place", unknown("inner"))
    own.store(own.stack_pointer.plus(Word(4), -1), Word(0), sites[Reached.STACK])
    own.store(Word(geometry().control), Word(0), sites[Reached.CONTROL])
    own.store(place(own, "inner"), Word(0), sites[Reached.DESCRIPTOR])
    own.store(place(own, "anywhere"), Word(0), sites[Reached.AREA])
    block = Word(0, ((own.rules.terms.known(unknown("start"), (1 << 29) - 1), 8),))
    own.starts[block] = unknown("start")
    own.store(block.plus(Word(4), -1), Word(1), sites[Reached.BLOCK])
    del sites[Reached.TABLES]
    assert own.rules.reached == {site.instruction_address: {what} for what, site in sites.items()}


def test_a_copy_is_changed_apart():
    own, _ = memory()
    other = own.copy()
    other.store(place(own, "one"), Word(0), SITE)
    assert other.stored
    assert not own.stored


def test_the_class_of_each_address_is_told():
    """Fields by their offset in a place, blocks by that of their start; of the stack nothing."""
    own, _ = memory()
    field, control, header, stack = (Site(0x1000 + 4 * number, ()) for number in range(4))
    own.store(place(own, "anywhere").plus(Word(12)), Word(0), field)
    own.store(Word(geometry().control + 4), Word(0), control)
    block = Word(0, ((own.rules.terms.known(unknown("start"), (1 << 29) - 1), 8),))
    own.starts[block] = unknown("start")
    own.store(block.plus(Word(4), -1), Word(1), header)
    own.store(own.stack_pointer.plus(Word(4), -1), Word(0), stack)
    classes = [Congruence(32, 12), Congruence(32, 4), Congruence(8, 4), Congruence(1, 0)]
    assert list(own.rules.aligned.values()) == [{one} for one in classes]


def test_the_sentinel_is_a_place_by_its_address():
    own, _ = memory()
    own.store(Word(geometry().control + 32 + 4), Word(0), SITE)
    assert own.rules.aligned == {SITE.instruction_address: {Congruence(32, 4)}}
