"""What an operation stored, as functions: an argument that may be another one's may have its value."""

import pytest

from tests.analyzer.deduction.cama_builds import memory
from wcet_probe.analyzer.deduction.execution import Astray
from wcet_probe.analyzer.deduction.formulas import term, unknown
from wcet_probe.analyzer.deduction.words import Word

ONE, OTHER = unknown("one"), unknown("other")


def test_the_last_store_at_the_same_argument_is_read():
    own, _ = memory()
    own.write("right", ONE, term(3))
    own.write("right", ONE, term(4))
    assert own.read("right", ONE, 9) == term(4)
    assert list(own.all_stored()) == [("right", ONE)] * 2


def test_an_argument_that_may_be_the_same_has_either_value():
    own, _ = memory()
    questions, before = own.rules.terms.questions, own.rules.before.right(OTHER)
    own.write("right", ONE, term(3))
    found = own.read("right", OTHER, 9)
    assert not questions.holds(found.equals(3))
    assert not questions.holds(found.equals(before))
    questions.assume(ONE.differs(OTHER))
    assert questions.holds(found.equals(before))


def test_a_word_is_divided_only_where_that_is_shown():
    own, _ = memory()
    size = own.rules.terms.known(unknown("size"), 99)
    assert own.divided(Word(16, ((size, 8),)), 8) == size + 2
    assert own.split(Word(5, ((size, 8),)), 8) == (Word(0, ((size, 8),)), Word(5))
    with pytest.raises(Astray, match="multiple of 8"):
        own.divided(Word(4, ((size, 8),)), 8)
