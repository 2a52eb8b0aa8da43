"""Words of CAMA's tables: they are found by their address, and words of bits are stored with one bit changed only."""

from dataclasses import replace

import pytest

from tests.analyzer.deduction.cama_builds import geometry, memory
from wcet_probe.analyzer.deduction.cama_tables import BOTH, LEFT_TO_ANOTHER_PART, SetWord, TableWord
from wcet_probe.analyzer.deduction.execution import Astray, Site
from wcet_probe.analyzer.deduction.formulas import FALSE, TRUE, condition, unknown
from wcet_probe.analyzer.deduction.word_terms import BitsAbout
from wcet_probe.analyzer.deduction.words import Word

SITE = Site(0x1234, ())
BIT_5 = TableWord(unknown("cell"), condition("bits constant", 5), False, True, (Word(0), Word(0)))


@pytest.mark.parametrize(("opcode", "mask", "filled"), [("INT_OR", 1 << 5, TRUE), ("INT_AND", ~(1 << 5), FALSE)])
def test_a_word_of_bits_is_stored_with_its_own_bit_changed(opcode, mask, filled):
    own, _ = memory()
    terms = own.rules.terms
    loaded = own.load_vector(BIT_5)
    changed = terms.operate(opcode, loaded, Word(mask % (1 << 32)))
    own.store_vector(BIT_5, changed, SITE)
    assert own.stored["filled"] == ((BIT_5.cell, filled),)
    with pytest.raises(Astray, match="one bit changed"):
        own.store_vector(BIT_5, changed, SITE)  # what was loaded is no longer the word


@pytest.mark.parametrize("mask", [1 << 4, 3 << 5])
def test_a_word_of_bits_with_another_bit_changed_ends_the_way(mask):
    own, _ = memory()
    changed = own.rules.terms.operate("INT_OR", own.load_vector(BIT_5), Word(mask))
    with pytest.raises(Astray, match="one bit changed"):
        own.store_vector(BIT_5, changed, SITE)


def test_a_word_of_bits_of_the_set_that_is_asked_for_is_found():
    own, _ = memory()
    own.rules = replace(own.rules, asked_set=Word(3))
    first = Word(geometry().word_at(3))
    assert own.is_vector_of_set(first, SITE)
    assert not own.is_vector_of_set(Word(geometry().word_at(4)), SITE)
    assert not own.is_vector_of_set(Word(geometry().word_at(3 + geometry().sets * geometry().vector_words)), SITE)
    loaded = own.load_set_word(first)
    assert own.set_words[loaded].address == first


SMALL_CLASS, LARGE_CLASS = Word(3), Word(20)
COMPARED = TableWord(unknown("own cell"), condition("bits constant", 20), True, False, (Word(0), Word(0)))


@pytest.mark.parametrize(
    ("number", "before", "reason"),
    [
        (SMALL_CLASS, {}, LEFT_TO_ANOTHER_PART),
        (LARGE_CLASS, {}, LEFT_TO_ANOTHER_PART),
        (SMALL_CLASS, {"found": {unknown("cell"): LARGE_CLASS}}, "a second list that was found"),
        (LARGE_CLASS, {"found": {unknown("cell"): SMALL_CLASS}}, "a second list that was found"),
        (SMALL_CLASS, {"cells": {Word(0x1000): COMPARED}}, "a list of small blocks where a large one was compared"),
    ],
)
def test_a_way_is_left_where_another_part_follows_it_and_else_ended(number, before, reason):
    """Each part leaves the lists of the others: a way with lists of two of them, none would follow."""
    own, _ = memory()
    own.rules = replace(own.rules, asked_set=Word(3), leaves_found=BOTH)
    for name, value in before.items():
        setattr(own, name, value)
    of = SetWord(Word(geometry().word_at(3)), 0)
    with pytest.raises(Astray, match=f"^{reason}$"):
        own._found_cell((Word(0), of), (Word(96), number), BitsAbout((), ()), is_vector=False)


def test_the_class_of_a_list_of_large_blocks_that_was_found_is_one_of_the_tables():
    own, _ = memory()
    for claim in own.rules.claims:
        if not claim.kinds:
            own.rules.terms.questions.assume(claim.of(own.rules.before))
    own.rules = replace(own.rules, asked_set=Word(3))
    of = SetWord(Word(geometry().word_at(3)), 0)
    assert own._found_cell((Word(0), of), (Word(96), LARGE_CLASS), BitsAbout((), ()), is_vector=False).is_large
    with pytest.raises(Astray, match="not shown to be one"):
        own._found_cell((Word(0), replace(of, version=1)), (Word(96), Word(21)), BitsAbout((), ()), is_vector=False)


def test_what_makes_the_heap_loads_no_table_that_it_has_not_cleared():
    own, _ = memory(begins=True)
    with pytest.raises(Astray, match="not cleared"):
        own.need_cleared()
    own.cleared.update(geometry().word_at(number) for number in range(geometry().table_words))
    own.need_cleared()
