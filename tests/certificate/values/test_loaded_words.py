"""What is made of one word of a table has no more values than the table; what is made of two is not told.

Tests: certificate.values.state, certificate.machines.machine.
"""

from wcet_probe.certificate.values.numbers import TOP, add, constant, exclusive, number, shift_left
from wcet_probe.certificate.values.state import Loaded, computed, name_of_sum, words_named

TABLE = Loaded((3, 9, 40))
BASE = constant(0x801)


def test_sums_and_shifts_of_a_loaded_word_are_told():
    doubled = computed(shift_left, TABLE, constant(1))
    assert words_named(doubled) == (6, 18, 80)
    for name in (name_of_sum("lr", BASE, doubled, number(6, 80)), name_of_sum(doubled, number(6, 80), "lr", BASE)):
        assert words_named(name) == (0x807, 0x813, 0x851)
    assert words_named(name_of_sum(TABLE, number(3, 40), TABLE, number(3, 40))) == (6, 18, 80)
    assert words_named(computed(exclusive, TABLE, constant(0xFFFFFFFF)))[0] == 0xFFFFFFFC
    assert words_named(computed(add, Loaded((0xFFFFFFFF,)), constant(2))) == (1,)


def test_nothing_is_told_of_other_sums():
    other = Loaded(TABLE.words)
    assert other != TABLE
    assert words_named(name_of_sum(TABLE, number(3, 40), other, number(3, 40))) is None
    assert words_named(name_of_sum("r1", TOP, TABLE, number(3, 40))) is None
    assert words_named("r1") is words_named(None) is words_named(computed(add, "r1", BASE)) is None
