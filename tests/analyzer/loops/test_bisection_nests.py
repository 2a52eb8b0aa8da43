"""Nests of loops that halve one distance together, held against runs; those that do not, or that wrap around."""

import pytest

from tests.analyzer.loops.one_loop import hold_random, proof_of, refuse
from tests.analyzer.loops.test_bisection import WORDS, random_runs
from tests.path_check import attack

THUMB, ARM, POWERPC = "cortex-m4", "arm926ej-s", "mpc603e"
HALVED = "a distance that is halved"
LENGTHS = [(4095, pattern) for _, pattern in WORDS]
# r0: low, r1: high, r2: the way to go in each round, bit by bit, r3: middle
START = "mov r2, r1\nubfx r1, r0, #0, #12\nmovs r0, #0\n"
MIDDLE = "adds r3, r0, r1\nasrs r3, r3, #1\n"
UNRELATED = "movs r12, #5\n4: subs r12, #1\nbne 4b\n"


def nest(*, start=START, middle=MIDDLE, low="adds r0, r3, #1", high="subs r1, r3, #1", end="gt", going="le", more=""):
    """Steps of ``low`` in the inner loop, of ``high`` in the outer one."""
    return (
        f"{start}b 2f\n1: {high}\n2: cmp r0, r1\nb{end} 9f\n3: {middle}{more}lsrs r2, r2, #1\nbcc 1b\n{low}\n"
        f"cmp r0, r1\nb{going} 3b\n9: bx lr"
    )


BOUNDED = {
    "closed, signed": (THUMB, nest(), 14, LENGTHS),
    "half open, of any length": (
        THUMB,
        nest(
            start="mov r2, r1\nmov r1, r0\nmovs r0, #0\n",
            middle="subs r3, r1, r0\nadd r3, r0, r3, lsr #1\n",
            high="mov r1, r3",
            end="hs",
            going="lo",
        ),
        33,
        WORDS,
    ),
    "with another loop within": (THUMB, nest(more=UNRELATED), 14, LENGTHS),
    "PowerPC, divided": (
        POWERPC,
        (
            "clrlwi 5, 3, 20\nli 3, 0\nb 2f\n1: addi 5, 6, -1\n2: cmpw 3, 5\nbgt 9f\n3: add 6, 3, 5\nsrawi 6, 6, 1\n"
            "addze 6, 6\nandi. 7, 4, 1\nsrwi 4, 4, 1\nbeq 1b\naddi 3, 6, 1\ncmpw 3, 5\nble 3b\n9: blr"
        ),
        14,
        LENGTHS,
    ),
}

REFUSED = {
    "the middle stays low": nest(low="mov r0, r3"),
    "the middle stays high": nest(high="mov r1, r3", end="gt"),
    "the sum may wrap around": nest(
        start="mov r2, r1\nmov r1, r0\nmovs r0, #0\n",
        middle="adds r3, r0, r1\nlsrs r3, r3, #1\n",
        high="mov r1, r3",
        end="hs",
        going="lo",
    ),
    "below 0 without a sign": nest(middle="adds r3, r0, r1\nlsrs r3, r3, #1\n", end="hi", going="ls"),
    "an inner loop that only tests": nest(more="4: cmp r0, r1\nble 4b\n"),
    "the end is loaded anew": nest(start="mov r12, r1\n" + START, high="ldr r1, [r12]"),
}


def hold_halved(core, text, most, runs):
    """The greatest bound of the loops that halve a distance, held against ``runs``."""
    proof = proof_of(core, text)
    assert max(loop.max for loop in proof.bound.loops if loop.expression == HALVED) == most
    for arguments in runs:
        attack(proof, *arguments)


@pytest.mark.parametrize("name", BOUNDED)
def test_the_distance_is_followed_until_no_loop_goes_on(name):
    hold_halved(*BOUNDED[name])


def test_the_loops_of_a_nest_share_their_rounds():
    """12 rounds of a length of 12 bits, of five or six instructions each, whichever loop they are of."""
    assert proof_of(THUMB, nest()).bound.instructions < 12 * 8 + 10


@pytest.mark.parametrize("name", REFUSED)
def test_what_need_not_be_halved_is_not_bounded(name):
    refuse(THUMB, REFUSED[name])


def random_nest(draw):
    """Two loops whose steps may be wrong, and another one that may stand anywhere within."""
    middle = draw.choice(
        (
            "adds r3, r0, r1\nasrs r3, r3, #1\n",
            "adds r3, r0, r1\nlsrs r3, r3, #1\n",
            "subs r3, r1, r0\nadd r3, r0, r3, lsr #1\n",
            "subs r3, r1, r0\nadd r3, r0, r3, asr #1\n",
            "adds r3, r0, r1\nadds r3, r3, #1\nasrs r3, r3, #1\n",
            "adds r3, r0, r1\nadd r3, r3, r3, lsr #31\nasrs r3, r3, #1\n",
        )
    )
    mask = draw.choice((5, 12, 16, 31, 32))
    start = "" if mask == 32 else f"ubfx r1, r1, #0, #{mask}\n"
    end, going = draw.choice((("gt", "le"), ("ge", "lt"), ("hi", "ls"), ("hs", "lo"), ("gt", "lt"), ("hs", "ne")))
    return nest(
        start=f"mov r2, r1\nmov r1, r0\nmovs r0, #{draw.choice((0, 0, 3))}\n{start}",
        middle=middle,
        low=draw.choice(("adds r0, r3, #1", "adds r0, r3, #1", "mov r0, r3", "adds r0, r3, #2", "subs r0, r3, #1")),
        high=draw.choice(("subs r1, r3, #1", "mov r1, r3", "subs r1, r3, #3", "adds r1, r3, #1")),
        end=end,
        going=going,
        more=draw.choice(("", "", UNRELATED, "cmp r2, #9\nit hi\nsubhi r1, r1, #1\n", "eors r2, r3\n")),
    )


@pytest.mark.parametrize("programs", [10, pytest.param(2000, marks=pytest.mark.slow)])
def test_random_nests_end_as_soon_as_is_proved(programs):
    hold_random(THUMB, programs, random_nest, random_runs)
