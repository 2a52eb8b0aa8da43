"""Points that define two numbers anew: nests of which a third number is carried along, and ways that meet in a loop."""

import pytest

from tests.analyzer.loops.one_loop import refuse
from tests.analyzer.loops.test_bisection_nests import LENGTHS, MIDDLE, START, THUMB, hold_halved

BOUNDED = {
    "the middle is carried": (
        THUMB,
        (
            f"{START}{MIDDLE}b 2f\n1: subs r1, r3, #1\n{MIDDLE}2: cmp r0, r1\nbgt 9f\n3: lsrs r2, r2, #1\nbcc 1b\n"
            f"adds r0, r3, #1\n{MIDDLE}cmp r0, r1\nble 3b\n9: bx lr"
        ),
        14,
        LENGTHS,
    ),
    "the sum is carried": (
        THUMB,
        (
            f"{START}adds r3, r0, r1\nb 2f\n1: asrs r3, r3, #1\nsubs r1, r3, #1\nadds r3, r0, r1\n2: cmp r0, r1\n"
            "bgt 9f\n3: lsrs r2, r2, #1\nbcc 1b\nasrs r3, r3, #1\nadds r0, r3, #1\nadds r3, r0, r1\ncmp r0, r1\n"
            "ble 3b\n9: bx lr"
        ),
        14,
        LENGTHS,
    ),
    "one loop, unrolled": (
        THUMB,
        (
            f"{START}1: cmp r0, r1\nbgt 9f\n{MIDDLE}lsrs r2, r2, #1\nbcc 2f\nadds r0, r3, #1\nb 3f\n"
            f"2: subs r1, r3, #1\n3: cmp r0, r1\nbgt 9f\n{MIDDLE}lsrs r2, r2, #1\nbcc 4f\nadds r0, r3, #1\nb 1b\n"
            "4: subs r1, r3, #1\nb 1b\n"
            "9: bx lr"
        ),
        7,
        LENGTHS,
    ),
}
REFUSED = {
    "the middle that is carried is not that of one way": (
        f"{START}{MIDDLE}b 2f\n1: subs r1, r3, #1\n2: cmp r0, r1\nbgt 9f\n3: lsrs r2, r2, #1\nbcc 1b\n"
        f"adds r0, r3, #1\n{MIDDLE}cmp r0, r1\nble 3b\n9: bx lr"
    ),
    "one way of those that meet goes back": (
        f"{START}1: cmp r0, r1\nbgt 9f\n{MIDDLE}lsrs r2, r2, #1\nbcc 2f\nadds r0, r3, #1\nb 3f\n"
        "2: mov r0, r0, lsr #1\n3: cmp r0, r1\nble 1b\n9: bx lr"
    ),
}


@pytest.mark.parametrize("name", BOUNDED)
def test_what_is_carried_is_known_by_both_numbers(name):
    hold_halved(*BOUNDED[name])


@pytest.mark.parametrize("name", REFUSED)
def test_what_one_way_changes_otherwise_is_not_bounded(name):
    refuse(THUMB, REFUSED[name])
