"""Loops that count in two words, held against runs; those whose end may be passed by have no bound."""

import pytest

from tests.analyzer.loops.one_loop import hold, hold_random, refuse

THUMB = "cortex-m4"
WIDE = "two words that count as one"
LIMITED = "ubfx r0, r0, #0, #8\nmovs r1, #0\n"
"""The end, r0 and r1: up to 255."""
RUNS = [(0, 0), (1, 1), (255, 0), (0xFFFFFFFF, 0xFFFFFFFF), (100, 7)]


BOTH = "cmp r1, r3\nit eq\ncmpeq r0, r2"
NONE = "orrs r12, r0, r1\nbeq 2f\n"
"""Goes around the loop where the end is 0."""


def counting(*, low=1, high=0, first=0, start=LIMITED, test=BOTH, skip=NONE):
    """r2 and r3 count from ``first`` to the end."""
    return (
        f"push {{r4}}\nmovw r4, #{first & 0xFFFF}\nmovs r3, #0\n{start}{skip}mov r2, r4\n1: adds r2, r2, #{low}\n"
        f"adc r3, r3, #{high}\n{test}\nbne 1b\n2: pop {{r4}}\nbx lr"
    )


def test_both_words_are_met():
    assert hold(THUMB, counting(), 255, RUNS).expression == WIDE


def test_the_test_may_join_both_words():
    text = counting(test="eors r12, r2, r0\neor r4, r3, r1\norrs r12, r12, r4")
    assert hold(THUMB, text, 255, RUNS).expression == WIDE


def test_a_borrow_is_counted_down():
    text = (
        "ubfx r0, r0, #0, #8\nadd r0, r0, #1\nmovs r1, #2\nmovs r3, #2\n1: subs r0, r0, #1\nsbc r1, r1, #0\n"
        "cmp r1, r3\nit eq\ncmpeq r0, #0\nbne 1b\nbx lr"
    )
    assert hold(THUMB, text, 256, RUNS).max == 256


# The upper word steps on behind 16 rounds, and the first step is left out where r1 is odd.
ENTERED = (
    "push {{r4}}\nand r12, r1, #1\nand r0, r0, #255\nmovs r1, #1\nmvn r2, #15\nmovs r3, #0\n{start}cmp r12, #0\n"
    "bne 3f\n1: adds r2, r2, #1\nadc r3, r3, #0\n3: " + BOTH + "\nbne 1b\npop {{r4}}\nbx lr"
)


def test_the_loop_may_be_entered_by_two_ways():
    assert hold(THUMB, ENTERED.format(start=""), 272, [(255, 0), (255, 1), (0, 0), (0, 1)]).expression == WIDE


def test_one_of_two_ways_may_begin_at_the_end():
    refuse(THUMB, ENTERED.format(start="mov r2, r0\nmov r3, r1\n"))


REFUSED = {
    "an end of 0 is passed by": counting(skip=""),
    "steps of two": counting(low=2),
    "the upper word is added 1": counting(high=1),
    "the end may be behind": counting(first=5),
    "the upper word of the end is not known": counting(start="mov r1, r0\n" + LIMITED[: LIMITED.index("movs")]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_may_be_passed_by_is_no_end(name):
    refuse(THUMB, REFUSED[name])


def random_loop(draw):
    """Two words that count by any amounts, whose end may be missed."""
    width = draw.choice((7, 8))
    shift = draw.choice(("", "", "lsls r0, r0, #2"))
    upper = draw.choice((0, 0, 0, 1))
    return counting(
        low=draw.choice((1, 1, 1, 1, 2, 4)),
        high=draw.choice((0, 0, 0, 0, 0, 1)),
        first=draw.choice((0, 0, 0, 1, 300)),
        start=f"ubfx r0, r0, #0, #{width}\n{shift}\nmovs r1, #{upper}\nmovs r3, #{draw.choice((0, upper))}\n",
        test=draw.choice((BOTH, "eors r12, r2, r0\neor r4, r3, r1\norrs r12, r12, r4")),
        skip=draw.choice((NONE, NONE, NONE, "")),
    )


def random_runs(draw):
    return [(number, 0) for number in (1, 2, draw.getrandbits(8))]


@pytest.mark.parametrize("programs", [7, pytest.param(1000, marks=pytest.mark.slow)])
def test_random_loops_end_as_soon_as_is_proved(programs):
    hold_random(THUMB, programs, random_loop, random_runs)
