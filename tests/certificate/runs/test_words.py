"""Words that are no numbers: what is computed of them is never more than is known."""

import operator

import pytest

from wcet_probe.certificate.runs.words import LINK, NOTHING, LostError, Stack

OPERATIONS = [
    getattr(operator, name) for name in ("add", "sub", "mul", "and_", "or_", "xor", "lshift", "rshift", "lt", "eq")
]


@pytest.mark.parametrize("operation", OPERATIONS)
def test_nothing_is_known_of_what_is_computed_from_what_is_not_known(operation):
    for unknown in (NOTHING, LINK):
        assert operation(unknown, 3) is NOTHING
        assert operation(unknown, Stack(4, set())) is NOTHING
        if operation not in {operator.lt, operator.eq}:
            assert operation(3, unknown) is NOTHING


@pytest.mark.parametrize("ask", [bool, hash, int, lambda word: [1, 2][word], lambda word: word.bit_length()])
def test_who_asks_what_is_not_known_is_lost(ask):
    for unknown in (NOTHING, LINK, Stack(4, set()), Stack(4, set()) == 3, Stack(4, set()) < Stack(8, set())):
        with pytest.raises(LostError):
            ask(unknown)


def test_distances_are_added_up_and_their_lowest_bits_rest_on_the_alignment_of_the_stack():
    used = set()
    one, other = Stack(-16, used), Stack(20, used)
    assert ((one + 4).offset, (4 + one).offset, (one - 4).offset, other - one, one - other) == (-12, -12, -20, 36, -36)
    assert (100 - one).times == -1
    assert (100 - one + other) == 136
    assert ((one + other) is NOTHING, one * 2 is NOTHING, (one | 4) is NOTHING) == (True, True, True)
    assert (one == Stack(-16, used), one != other, one != Stack(-16, used)) == (True, True, False)
    assert (Stack((1 << 31) + 4, used).offset, (one & (1 << 32) - 1) is one) == (4 - (1 << 31), True)
    assert not used
    assert (other & 7, other & 3, (Stack(-13, used) & (1 << 32) - 8).offset) == (4, 0, -16)
    assert used == {"stack-alignment"}
    assert (other & 15) is NOTHING
    assert (other & (1 << 32) - 16) is NOTHING
