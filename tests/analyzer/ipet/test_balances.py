"""What is left of a constraint on misses where nodes begin is what the checker accepts."""

from dataclasses import replace
from unittest.mock import patch

import pytest

from tests.analyzer.ipet.hand_made import at_most, hand_made
from tests.path_check import proved
from tests.support import assembler, guest_of
from wcet_probe.analyzer.ipet.balances import left_of
from wcet_probe.analyzer.ipet.joined_lines import joined_balance
from wcet_probe.catalog.lookup import load_target

FIRST, SAME_WORD, NEXT_WORD = ("f", 0), ("meeting", 0), ("meeting", 1)


@pytest.mark.parametrize(
    ("places", "least"),
    [((FIRST,), 1), ((FIRST, SAME_WORD), 1), ((FIRST, NEXT_WORD), 2), ((NEXT_WORD,), 1)],
)
def test_so_many_misses_as_words_may_be_missed_are_accepted_and_no_less(places, least):
    """The word that is loaded first is in the cache where it is stored to, and the next one may be in another line."""
    made = hand_made()
    annotations = made.counting(*places)
    for count in range(3):
        constraint = at_most(count)
        left = left_of(made.caches, constraint, annotations, made.flow)
        assert made.caches.is_limited(constraint, replace(annotations, held={"c": left})) == (count >= least)


def test_nothing_is_said_behind_the_last_miss():
    made = hand_made()
    assert set(left_of(made.caches, at_most(1), made.counting(FIRST), made.flow)) <= {"f"}


MACHINE = """
    andi. 3, 3, 31
    beq 9f
    lis 4, bytes@ha
    lbzu 5, bytes@l(4)
    lbz 6, 1(4)
    lbz 7, 2(4)
    mtctr 3
    add 3, 5, 6
    add 3, 3, 7
    li 6, 3
    addi 5, 4, -1
    mr 4, 3
    li 3, 0
    b 2f
1:  lbz 6, 1(7)
    clrlwi 6, 6, 30
    bdzlr
2:  mr 7, 5
    cmpwi 6, 1
    addi 5, 5, 1
    ble 4f
    cmplwi 6, 4
    beq 1b
    cmplwi 6, 3
    beq 5f
    cmplwi 6, 2
    bne 3f
    add 3, 3, 4
    li 6, 1
    bdnz 2b
    blr
3:  bdzlr
    b 2b
4:  cmplwi 6, 0
    beq 6f
    addi 3, 3, 2
    li 6, 0
    bdnz 2b
    blr
5:  li 6, 2
    bdnz 2b
    blr
6:  addi 3, 3, 1
    li 6, 4
    bdnz 2b
    blr
9:  li 3, 0
    blr
    .pushsection .bss
    .globl bytes
    .type bytes, @object
bytes: .skip 64
    .size bytes, 64
    .popsection
"""
"""A machine of five states that reads a byte of a table in one of them."""


def test_a_pointer_that_goes_on_by_a_byte_in_each_round_comes_to_an_end():
    """Its offset was another one in each round of the search, which did not end.

    Where all lines of the call are counted together, little is followed: here they are not.
    """
    joined, target = [], load_target("mpc603e")

    def noted(residents, a, b):
        joined.append(joined_balance(residents, a, b))
        assert len(joined) < 5_000
        return joined[-1]

    with (
        patch("wcet_probe.analyzer.bound._solved_cycles", lambda stage: (stage, stage.solved("cycles"))),
        patch("wcet_probe.analyzer.ipet.balances.joined_balance", noted),
    ):
        proof = proved(guest_of(assembler({"f": MACHINE}, target), target), "f")
        assert len(proof.bound.certificates) == 2
    assert len(joined) > 128
