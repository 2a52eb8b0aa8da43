"""What is said of a counted loop: each number is held against counting the loop by hand."""

from dataclasses import FrozenInstanceError

import pytest

from tests.path_check import proved
from tests.support import assembler, guest_of
from wcet_probe.analyzer.loops.counting import count_loops
from wcet_probe.analyzer.values.properties.loop_shapes import loop_shapes
from wcet_probe.catalog.lookup import load_target

LOOP = "    movs r1, #{first}\n1:  adds r1, r1, #{step}\n    cmp r1, #{last}\n    b{again} 1b\n    bx lr"
CASES = [
    (first, step, last, again) for first in (0, 3) for step in (1, 3) for last in (9, 90) for again in ("lo", "ne")
]


@pytest.fixture(scope="module")
def guest():
    target = load_target("cortex-m4")
    functions = {
        f"f{number}": LOOP.format(first=first, step=step, last=last, again=again)
        for number, (first, step, last, again) in enumerate(CASES)
    }
    functions["masked"] = LOOP.format(first=0, step=1, last=9, again="lo").replace("movs r1, #0", "and r1, r0, #3")
    return guest_of(assembler(functions, target), target)


def counted(guest, name):
    values = proved(guest, name).values
    (count,) = count_loops(values, loop_shapes(values)).values()
    return count


def executions(first, step, last, again):
    """How often the loop's block is executed."""
    value, times = first + step, 1
    while value < last if again == "lo" else value != last:
        value, times = value + step, times + 1
    return times


def rounds(relation, step, distance):
    """For how many iterations ``first relation second`` holds, where the distance shrinks as a count says."""
    holds = {"<=": lambda left: left >= 0, "<": lambda left: left > 0, "!=": lambda left: left != 0}[relation]
    times = 0
    while holds(distance):
        distance, times = distance - step, times + 1
    return times


@pytest.mark.parametrize("number", range(len(CASES)), ids=[" ".join(map(str, case)) for case in CASES])
def test_a_loop_is_executed_as_often_as_its_count_says(guest, number):
    times = executions(*CASES[number])
    count = counted(guest, f"f{number}")
    assert (count.max_header, count.is_exact) == (times, True)
    if count.relation != "==":  # which holds in one round at most
        assert rounds(count.relation, count.step, count.distance_high) + 1 == times


def test_a_count_of_an_unknown_start_is_that_of_the_longest_distance(guest):
    count = counted(guest, "masked")
    assert (count.max_header, count.is_exact) == (executions(0, 1, 9, "lo"), False)
    assert rounds(count.relation, count.step, count.distance_high) + 1 == count.max_header


def test_a_count_is_a_value(guest):
    count = counted(guest, "masked")
    assert count == counted(guest, "masked")
    with pytest.raises(FrozenInstanceError):
        count.step = 2
