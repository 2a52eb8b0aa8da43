"""Words that are no numbers: what is computed of them is never more than is known."""

import operator

import pytest

from wcet_probe.certificate.runs.words import LINK, NOTHING, LostError, Rests, Stack

OPERATIONS = [
    getattr(operator, name) for name in ("add", "sub", "mul", "and_", "or_", "xor", "lshift", "rshift", "lt", "eq")
]


@pytest.mark.parametrize("operation", OPERATIONS)
def test_nothing_is_known_of_what_is_computed_from_what_is_not_known(operation):
    for unknown in (NOTHING, LINK):
        assert operation(unknown, 3) is NOTHING
        assert operation(unknown, Stack(4, Rests())) is NOTHING
        if operation not in {operator.lt, operator.eq}:
            assert operation(3, unknown) is NOTHING


@pytest.mark.parametrize("ask", [bool, hash, int, lambda word: [1, 2][word], lambda word: word.bit_length()])
def test_who_asks_what_is_not_known_is_lost(ask):
    for unknown in (NOTHING, LINK, Stack(4, Rests()), Stack(4, Rests()) == 3, Stack(4, Rests()) < Stack(8, Rests())):
        with pytest.raises(LostError):
            ask(unknown)


def test_distances_are_added_up_and_their_lowest_bits_rest_on_the_alignment_of_the_stack():
    used = Rests()
    one, other = Stack(-16, used), Stack(20, used)
    assert ((one + 4).offset, (4 + one).offset, (one - 4).offset, other - one, one - other) == (-12, -12, -20, 36, -36)
    assert (100 - one).times == -1
    assert (100 - one + other) == 136
    assert ((one + other) is NOTHING, one * 2 is NOTHING, (one | 4) + 1 is NOTHING) == (True, True, True)
    assert (one == Stack(-16, used), one != other, one != Stack(-16, used)) == (True, True, False)
    assert (Stack((1 << 31) + 4, used).offset, (one & (1 << 32) - 1) is one) == (4 - (1 << 31), True)
    assert not used
    assert (other & 7, other & 3, (Stack(-13, used) & (1 << 32) - 8).offset) == (4, 0, -16)
    assert used == {"stack-alignment"}
    assert (other & 15) is NOTHING
    assert (other & (1 << 32) - 16) is NOTHING


def test_addresses_of_the_stack_are_not_0_and_in_order_as_far_as_is_said_and_not_without():
    used = Rests()
    used.margin = 32
    low, high, far = Stack(-16, used), Stack(31, used), Stack(-32, used)
    assert (low == 0, low != 0, low > 0, low >= 0, low < 0, low <= 0) == (False, True, True, True, False, False)
    assert (low < high, low <= high, low > high, low >= high, high >= low) == (True, True, False, False, True)
    assert used == {"stack-bounds"}
    for unknown in (far > 0, far != 0, low < far, low == 1, low > 4, (8 - low) != 0, Stack(-16, Rests()) != 0):
        assert unknown is NOTHING


def test_the_lowest_bits_of_addresses_put_together_rest_on_the_alignment_of_the_stack_once_they_are_asked_for():
    used = Rests()
    one, other = Stack(-14, used), Stack(20, used)
    assert not used
    assert ((one | other) & 3, (one ^ other) & 7, (0x2001 | one) & 7, (one | other | 1) & 1) == (2, 6, 3, NOTHING)
    assert used == {"stack-alignment"}
    for unknown in ((one | other) & 8, (one | NOTHING), (one | LINK), (one | other) | 4, (one | other) >> 1):
        assert unknown is NOTHING
