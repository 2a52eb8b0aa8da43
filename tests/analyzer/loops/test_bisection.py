"""Loops that halve the distance of two numbers, held against runs; those that do not, or whose numbers wrap around."""

import pytest

from tests.analyzer.loops.one_loop import hold, hold_random, proof_of, refuse
from tests.path_check import attack

THUMB, ARM, POWERPC = "cortex-m4", "arm926ej-s", "mpc603e"
WORDS = [(0xFFFFFFFF, pattern) for pattern in (0, 0xFFFFFFFF, 0x55555555, 0x12345678, 1)]
HALVED = "a distance that is halved"
# r0: low, r1: high, r2: the way to go in each round, bit by bit, r3: middle
NEXT = "lsrs r2, r2, #1\nite cs\n{low}\n{high}"
LOW, HIGH = "addcs r0, r3, #1", "subcc r1, r3, #1"

BOUNDED = {
    "closed, signed": (
        THUMB,
        (
            f"ubfx r1, r0, #0, #12\nmovs r0, #0\n1: cmp r0, r1\nbgt 3f\nadds r3, r0, r1\nasrs r3, r3, #1\n"
            f"{NEXT.format(low=LOW, high=HIGH)}\nb 1b\n3: bx lr"
        ),
        14,
        [(4095, 0xFFFFFFFF), (4095, 0), (0, 0), (1, 1), (4095, 0x555)],
    ),
    "half open, of any length, by the distance": (
        THUMB,
        (
            "mov r2, r1\nmov r1, r0\nmovs r0, #0\n1: cmp r0, r1\nbhs 3f\nsubs r3, r1, r0\nadd r3, r0, r3, lsr #1\n"
            f"{NEXT.format(low=LOW, high='movcc r1, r3')}\nb 1b\n3: bx lr"
        ),
        33,
        WORDS,
    ),
    "until two are left": (
        ARM,
        (
            "mov r2, r1\nmov r1, r0, lsr #16\nmov r0, #0\n1: sub r3, r1, r0\ncmp r3, #1\nble 3f\nadd r3, r0, r1\n"
            "add r3, r3, r3, lsr #31\nmov r3, r3, asr #1\ntst r2, #1\nmovne r0, r3\nmoveq r1, r3\nmov r2, r2, lsr #1\n"
            "b 1b\n3: bx lr"
        ),
        17,
        WORDS,
    ),
    "PowerPC": (
        POWERPC,
        (
            "clrlwi 5, 3, 20\nli 3, 0\n1: cmplw 3, 5\nbge 3f\nadd 6, 3, 5\nsrwi 6, 6, 1\nandi. 7, 4, 1\nsrwi 4, 4, 1\n"
            "beq 2f\naddi 3, 6, 1\nb 1b\n2: mr 5, 6\nb 1b\n3: blr"
        ),
        13,
        [(4095, pattern) for _, pattern in WORDS],
    ),
}

REFUSED = {
    "the middle stays": f"ubfx r1, r0, #0, #12\nmovs r0, #0\n1: cmp r0, r1\nbge 3f\nadds r3, r0, r1\nasrs r3, r3, #1\n"
    f"{NEXT.format(low='movcs r0, r3', high='movcc r1, r3')}\nb 1b\n3: bx lr",
    "the sum may wrap around": "mov r2, r1\nmov r1, r0\nmovs r0, #0\n1: cmp r0, r1\nbhs 3f\nadds r3, r0, r1\n"
    f"lsrs r3, r3, #1\n{NEXT.format(low=LOW, high='movcc r1, r3')}\nb 1b\n3: bx lr",
    "below 0 without a sign": "ubfx r1, r0, #0, #12\nmovs r0, #0\n1: cmp r0, r1\nbhi 3f\nadds r3, r0, r1\n"
    f"lsrs r3, r3, #1\n{NEXT.format(low=LOW, high=HIGH)}\nb 1b\n3: bx lr",
    "the end is loaded anew": "mov r2, r1\nubfx r1, r0, #0, #12\nmovs r0, #0\n1: cmp r0, r1\nbge 3f\nadds r3, r0, r1\n"
    f"asrs r3, r3, #1\nldr r1, [r2]\n{NEXT.format(low=LOW, high=HIGH)}\nb 1b\n3: bx lr",
}


@pytest.mark.parametrize("name", BOUNDED)
def test_the_distance_is_followed_until_the_loop_ends(name):
    assert hold(*BOUNDED[name]).expression == HALVED


@pytest.mark.parametrize("name", REFUSED)
def test_what_need_not_be_halved_is_not_bounded(name):
    refuse(THUMB, REFUSED[name])


@pytest.mark.parametrize(("length", "rounds"), [(400, 10), pytest.param(2000, 12, marks=pytest.mark.slow)])
def test_the_length_may_be_a_counter_of_the_loop_around(length, rounds):
    """Of which ranges alone know no end, as another counter ends that loop."""
    text = (
        "mov r2, r1\nmov r12, r0\nmovs r3, #0\npush {r4, r5}\nmovs r4, #0\n"
        f"movw r5, #{length}\n2: mov r1, r4\nmovs r0, #0\n"
        f"1: cmp r0, r1\nbgt 3f\nadds r3, r0, r1\nasrs r3, r3, #1\n{NEXT.format(low=LOW, high=HIGH)}\nb 1b\n"
        "3: adds r4, #1\nsubs r5, #1\nbne 2b\npop {r4, r5}\nbx lr"
    )
    proof = proof_of(THUMB, text)
    assert [(one.max, one.expression) for one in proof.bound.loops if one.expression == HALVED] == [(rounds, HALVED)]
    for ways in (0, 0xFFFFFFFF, 0x5A5A5A5A):
        attack(proof, 0, ways)


def random_loop(draw):
    """A search whose steps may be wrong: the middle may be rounded otherwise, kept, or passed by any number."""
    mask = draw.choice((5, 12, 16, 31, 32))
    middle = draw.choice(
        (
            "adds r3, r0, r1\nasrs r3, r3, #1",
            "adds r3, r0, r1\nlsrs r3, r3, #1",
            "subs r3, r1, r0\nadd r3, r0, r3, lsr #1",
            "subs r3, r1, r0\nadd r3, r0, r3, asr #1",
            "adds r3, r0, r1\nadds r3, r3, #1\nasrs r3, r3, #1",
            "subs r3, r1, r0\nsub r3, r1, r3, lsr #1",
            "adds r3, r0, r1\nadd r3, r3, r3, lsr #31\nasrs r3, r3, #1",
        )
    )
    low = draw.choice(("addcs r0, r3, #1", "movcs r0, r3", "addcs r0, r3, #2", "subcs r0, r3, #1"))
    high = draw.choice(("subcc r1, r3, #1", "movcc r1, r3", "subcc r1, r3, #3", "addcc r1, r3, #1"))
    end = draw.choice(("gt", "ge", "hi", "hs", "eq"))
    start = "" if mask == 32 else f"ubfx r1, r1, #0, #{mask}\n"
    return (
        f"mov r2, r1\nmov r1, r0\nmovs r0, #{draw.choice((0, 0, 3))}\n{start}1: cmp r0, r1\nb{end} 3f\n{middle}\n"
        f"{NEXT.format(low=low, high=high)}\nb 1b\n3: bx lr"
    )


def random_runs(draw):
    lengths = (0, 1, 2, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, draw.getrandbits(32), draw.getrandbits(8))
    return [(length, draw.choice((0, 0xFFFFFFFF, draw.getrandbits(32)))) for length in lengths]


@pytest.mark.parametrize("programs", [12, pytest.param(2000, marks=pytest.mark.slow)])
def test_random_searches_end_as_soon_as_is_proved(programs):
    hold_random(THUMB, programs, random_loop, random_runs)
