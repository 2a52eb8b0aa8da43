"""Following what holds: what is known besides narrows it, what keeps changing is not followed; no word gets lost."""

from tests.certificate.values.test_numbers import holds, pairs
from wcet_probe.certificate.flow.walk import _dropped, narrowed
from wcet_probe.certificate.values.numbers import ANY, TOP, join, number, within
from wcet_probe.certificate.values.state import State


def test_a_word_that_both_hold_is_in_what_holds_besides():
    tried = 0
    for own, value, *words in pairs(1, 6000):
        found = narrowed(State({"r0": own}), {"r0": value}).read("r0")
        both = [word for word in words if holds(own, word) and holds(value, word)]
        tried += len(both)
        assert all(holds(found, word) for word in both), (own, value, found)
        assert within(found, own) or within(found, value)
    assert tried > 500


def test_what_is_known_besides_takes_nothing_from_what_was_followed():
    own, value = number(9, 2**32 - 1), number(0, 2**32 - 2)
    assert narrowed(State({"r0": own}), {"r0": value}).read("r0") == number(9, 2**32 - 2)


def test_what_keeps_changing_holds_all_that_it_was():
    for old, other, word, another in pairs(2):
        for first in (old, other, TOP, None):
            found = _dropped(old, join(old, other), first)
            assert holds(found, word)
            assert holds(found, another)


def test_what_keeps_changing_within_what_it_began_as_is_that_and_else_anything():
    first = number(9, 100)
    assert _dropped(number(81, 90), number(9, 90), first) == first
    assert _dropped(number(81, 90), number(8, 90), first) == TOP
    assert _dropped(first, number(8, 100), first) == TOP
    assert _dropped(number(81)._replace(base="any"), number(9, 81)._replace(base="any"), first) == ANY
