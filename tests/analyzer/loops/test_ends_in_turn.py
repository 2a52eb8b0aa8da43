"""Unrolled loops with an exit in each copy, held against runs; and those whose exits may be jumped over."""

import random
import tracemalloc

import pytest

from tests.analyzer.loops.one_loop import hold, proof_of
from tests.path_check import attack
from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.loops.ends_in_turn import End, first_met
from wcet_probe.analyzer.values.symbolic.linear import Linear, combined
from wcet_probe.errors import AnalysisError

THUMB, POWERPC = "cortex-m4", "mpc603e"
BY_INDEX = (
    "cmp r0, #64\nbhi 3f\ncbz r0, 3f\nsubs r1, r0, #1\nmovs r2, #0\n"
    "1: cmp r1, r2\nbeq 3f\nsubs r3, r0, r2\nsubs r3, #{second}\nbeq 3f\nsubs r3, #{third}\nbeq 3f\n"
    "adds r2, #{step}\ncmp r0, r2\nbne 1b\n3: bx lr"
)
BY_ADDRESS = (
    "and r0, r0, #15\nlsls r0, r0, #2\nadds r0, #4\nmov r1, sp\nadds r0, r1, r0\n"
    "1: adds r2, r1, #4\ncmp r2, r0\nbeq 3f\nadds r1, #8\ncmp r1, r0\nbne 1b\n3: bx lr"
)
POWERPC_END = "addi 4, 4, 2\ncmpw 4, 3\nbne 1b\n3: blr"

BOUNDED = {
    "four copies": (THUMB, BY_INDEX.format(second=2, third=1, step=4), 16, [(1,), (63,), (64,), (0,), (65,)]),
    "words, by address": (THUMB, BY_ADDRESS, 8, [(0,), (15,), (14,), (7,)]),
    "powerpc": (
        POWERPC,
        "clrlwi 3, 3, 27\naddi 3, 3, 1\nli 4, 0\n1: addi 5, 4, 1\ncmpw 5, 3\nbeq 3f\n" + POWERPC_END,
        16,
        [(0,), (30,), (31,)],
    ),
}

REFUSED = {
    "a distance is not tested": BY_INDEX.format(second=3, third=1, step=4),
    "a step too far": BY_INDEX.format(second=2, third=1, step=5),
    "it may begin behind the end": BY_INDEX.replace("cbz r0, 3f\n", "").format(second=2, third=1, step=4),
    "half words by address": BY_ADDRESS.replace("lsls r0, r0, #2", "lsls r0, r0, #1"),
    "a test that not every round passes": BY_ADDRESS.replace(
        "adds r2, r1, #4", "cmp r3, #0\nbeq 2f\nadds r2, r1, #4"
    ).replace("adds r1, #8", "2: adds r1, #8"),
    "a limit that moves": BY_ADDRESS.replace("adds r1, #8", "adds r1, #8\nldr r0, [r3]"),
}


@pytest.mark.parametrize("name", BOUNDED)
def test_tests_that_meet_each_distance_end_the_loop(name):
    hold(*BOUNDED[name])


@pytest.mark.parametrize("name", REFUSED)
def test_a_distance_that_may_be_jumped_over_is_no_bound(name):
    try:
        proof = proof_of(THUMB, REFUSED[name])
    except AnalysisError:
        return
    assert proof.bound.by_type


def test_of_a_large_step_not_every_remainder_is_kept():
    """Of steps by 2**24 a set of them all took 1 GB, and of the greatest ones more than there is."""
    gap = Linear({1: 1}, 0, 32)
    ends = [End(gap, 1 << 24), End(combined(gap, Linear({}, 1, 32), -1), 1 << 24)]
    tracemalloc.start()
    assert not list(first_met(ends, lambda _: strided.between(32, 0, 254)))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 1 << 20


@pytest.mark.parametrize("programs", [6, pytest.param(1000, marks=pytest.mark.slow)])
def test_random_steps_and_exits_end_as_soon_as_is_proved(programs):
    bounded = 0
    for number in range(programs):
        draw = random.Random(f"{programs} {number}")
        step = draw.randrange(1, 7)
        exits = sorted(draw.sample(range(8), draw.randrange(1, 8)))
        tests = "".join(f"subs r3, r0, r2\nsubs r3, #{one}\nbeq 3f\n" for one in exits)
        start = draw.choice(("and r0, r0, #31\nadds r0, #1", "and r0, r0, #28\nadds r0, #4", "and r0, r0, #31"))
        back = draw.choice(("subs r3, r0, r2\nbne 1b", "b 1b", "cmp r2, r0\nblo 1b"))
        text = f"{start}\nmovs r2, #{draw.randrange(2)}\n1: {tests}adds r2, #{step}\n{back}\n3: bx lr"
        try:
            proof = proof_of(THUMB, text)
        except AnalysisError:
            continue
        if proof.bound.by_type:
            continue
        bounded += 1
        for argument in (0, 1, 31, 30, draw.randrange(32)):
            attack(proof, argument)
    assert bounded > 0.2 * programs
