"""Loops that go on by an index of a ring, held against runs; and those that such an index does not end."""

import pytest

from tests.analyzer.loops.one_loop import hold, hold_random, refuse
from wcet_probe.analyzer.loops.few_values import _MOST_STATES, longest

THUMB, POWERPC = "cortex-m4", "mpc603e"


def ring(step, test, start="and r0, r0, #7\nand r1, r1, #7", before="", behind=""):
    return f"{start}\n{before}\n1: {step}\n{test}\n{behind}\nbne 1b\nbx lr"


ADVANCE = "adds r0, r0, #1\nand r0, r0, #7"
BACK_TO_0 = "adds r0, r0, #1\ncmp r0, #10\nit hs\nmovhs r0, #0"
TO_THE_WRITER = "1: cmp r0, r1\nbeq 3f\nadds r0, r0, #1\nand r0, r0, #7\nb 1b\n3: bx lr"
UNROLLED = "1: and r2, r0, #7\ncmp r2, #7\nbeq 3f\ncmp r2, #6\nbeq 3f\nadds r0, r2, #2\nb 1b\n3: bx lr"

BOUNDED = {
    "until it is 0": (THUMB, ring(ADVANCE, "cmp r0, #0"), 8, [(1, 0), (0, 0), (7, 3)]),
    "until it is another": (THUMB, f"and r0, r0, #7\nand r1, r1, #7\n{TO_THE_WRITER}", 8, [(3, 2), (3, 3), (0, 7)]),
    "put back to 0": (THUMB, ring(BACK_TO_0, "cmp r0, r1", "and r0, r0, #7\nand r1, r1, #7"), 10, [(3, 3), (7, 0)]),
    "masked where it is used": (THUMB, UNROLLED, 4, [(0,), (7,), (0xFFFFFFF9,)]),
    "by two": (THUMB, ring("adds r0, r0, #2\nand r0, r0, #7", "cmp r0, #6", "and r0, r0, #6"), 4, [(6,), (0,)]),
    "powerpc": (
        POWERPC,
        "clrlwi 3, 3, 29\nclrlwi 4, 4, 29\n1: addi 3, 3, 1\nclrlwi 3, 3, 29\ncmpw 3, 4\nbne 1b\nblr",
        8,
        [(3, 3), (5, 4)],
    ),
    "two words of a counter": (
        THUMB,
        "and r0, r0, #31\nmovs r1, #0\n1: subs r0, r0, #3\nsbc r1, r1, #0\ncmp r0, #1\nsbcs r2, r1, #0\nbge 1b\nbx lr",
        11,
        [(31,), (0,), (30,)],
    ),
}

REFUSED = {
    "past the end": ring("adds r0, r0, #2\nand r0, r0, #7", "cmp r0, r1"),
    "past the end if another number is odd": ring(
        "adds r0, r0, #2\nand r0, r0, #7", "cmp r0, r1", "and r0, r0, #6\nand r1, r1, #7"
    ),
    "by what is loaded": ring("ldr r0, [r2]\nand r0, r0, #7", "cmp r0, #0"),
    "with a limit that moves": ring(ADVANCE, "cmp r0, r1", behind="add r1, r1, #1\nand r1, r1, #7"),
    "by no step where a bit is not set": ring("and r3, r2, #1\nadds r0, r0, r3\nand r0, r0, #7", "cmp r0, #0"),
    "not to the end": ring("adds r0, r0, #1\ncmp r0, #5\nit hs\nmovhs r0, #0", "cmp r0, #6"),
}


@pytest.mark.parametrize("name", BOUNDED)
def test_each_value_is_followed_to_the_end(name):
    assert hold(*BOUNDED[name]).expression == "few values, each followed"


@pytest.mark.parametrize("name", REFUSED)
def test_what_may_come_back_is_not_bounded(name):
    refuse(THUMB, REFUSED[name])


def random_loop(draw):
    """A loop over r0, masked at first, that random steps lead on, until it is, or is not, a number or r1."""
    mask = draw.choice((3, 7, 15))
    steps = []
    chosen, end = draw.choice(("hs", "eq", "lo")), draw.choice(("ne", "ne", "hi", "lo"))
    for _ in range(draw.randrange(1, 4)):
        number = draw.randrange(1, mask + 1)
        steps.append(
            draw.choice(
                (
                    f"adds r0, r0, #{number}",
                    f"subs r0, r0, #{number}",
                    f"eor r0, r0, #{number}",
                    f"and r0, r0, #{draw.choice((mask, mask, mask - 1))}",
                    "lsrs r0, r0, #1",
                    "lsls r0, r0, #1",
                    f"cmp r0, #{number}\nit {chosen}\nmov{chosen} r0, #{draw.randrange(mask + 1)}",
                    f"cmp r0, #{number}\nbeq 3f",
                    "cmp r0, r1\nbeq 3f",
                    "cmp r2, #0\nit ne\naddne r0, r0, #1",
                )
            )
        )
    text = "\n".join(steps)
    test = draw.choice((f"cmp r0, #{draw.randrange(mask + 1)}", "cmp r0, r1"))
    return f"and r0, r0, #{mask}\nand r1, r1, #{mask}\n1: {text}\n{test}\nb{end} 1b\n3: bx lr"


@pytest.mark.parametrize("programs", [12, pytest.param(2000, marks=pytest.mark.slow)])
def test_random_loops_end_as_soon_as_is_proved(programs):
    hold_random(THUMB, programs, random_loop, lambda draw: [[draw.getrandbits(5) for _ in range(3)] for _ in range(6)])


def following(edges):
    return lambda at: [((one,), ()) for one in edges.get(at[0][0], ())]


@pytest.mark.parametrize(
    ("edges", "starts", "most"),
    [
        ({}, [], 0),
        ({}, [1], 1),
        ({1: [2, 3], 2: [3], 3: [4]}, [1, 3], 4),
        ({1: [2, 2], 2: [3], 5: [1]}, [1, 5, 1], 4),
        ({1: [1]}, [1], None),
        ({1: [2, 3], 3: [1]}, [2, 1], None),
        ({1: [2, 3], 2: [3], 3: [2]}, [1], None),
        ({1: [2, 3], 2: [3], 3: [2]}, [4], 1),
    ],
)
def test_the_longest_way_through_numbers_is_told_where_none_comes_back(edges, starts, most):
    assert longest([((one,), ()) for one in starts], following(edges)) == most


def test_too_many_numbers_are_not_followed():
    def numbers(last):
        return following({one: [one + 1] for one in range(1, last)})

    assert longest([((1,), ())], numbers(_MOST_STATES)) == _MOST_STATES
    assert longest([((1,), ())], numbers(_MOST_STATES + 1)) is None
