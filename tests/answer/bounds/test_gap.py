"""The gap between bound and observation, block by block, on a path and a run that are made up."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cli.conftest import BOUND, COUNTS, IMAGE
from wcet_probe.answer.bounds.gap import Cause, block_gaps
from wcet_probe.model.instruction import Instruction
from wcet_probe.model.measurement import Run
from wcet_probe.model.proof import PathBlock

CODE = tuple(Instruction(0x10000 + 4 * number, 4, "nop", "integer") for number in range(12))


def planned(*blocks):
    """A bound whose worst path is ``(first instruction, instructions, executions)``."""
    path = tuple(
        PathBlock("f", (), CODE[first].address, CODE[first].address + 4 * count, "", count, times, count * times)
        for first, count, times in blocks
    )
    return replace(BOUND, instructions=sum(block.cost for block in path), worst_path=path)


def executed(*runs):
    found = tuple(Run(CODE[first].address, count, times) for first, count, times in runs)
    return replace(COUNTS, runs=found, instructions=sum(run.instructions * run.executions for run in found))


def causes(bound, measurement):
    gaps = block_gaps(bound, measurement, IMAGE, CODE)
    return [(len(gap.instructions), gap.difference, gap.cause) for gap in gaps]


@pytest.mark.parametrize(
    ("most", "seen", "cause"),
    [
        (3, 2, Cause.MORE_OFTEN),
        (3, 0, Cause.OTHER_PATH),
        (3, 3, Cause.SAME),
        (1, 2, Cause.LESS_OFTEN),
        (0, 2, Cause.NOT_ON_PATH),
    ],
)
def test_the_cause(most, seen, cause):
    bound = planned(*[(0, 4, most)] * bool(most))
    assert causes(bound, executed(*[(0, 4, seen)] * bool(seen))) == [(4, 4 * (most - seen), cause)]


def test_a_block_is_cut_where_the_executions_change():
    found = causes(planned((0, 6, 2)), executed((0, 3, 2), (3, 3, 1)))
    assert found == [(3, 0, Cause.SAME), (3, 3, Cause.MORE_OFTEN)]


def test_contexts_are_put_together():
    assert causes(planned((0, 2, 1), (0, 2, 3)), executed((0, 2, 4))) == [(2, 0, Cause.SAME)]


def test_without_an_observation_all_is_the_worst_path():
    bound = planned((0, 2, 1), (4, 2, 5))
    assert sum(gap.difference for gap in block_gaps(bound, None, IMAGE, CODE)) == bound.instructions


PARTS = st.lists(st.tuples(st.integers(0, 11), st.integers(1, 12), st.integers(1, 9)), max_size=6).map(
    lambda parts: [(first, min(count, 12 - first), times) for first, count, times in parts]
)


@given(PARTS, PARTS)
def test_the_differences_add_up(path, runs):
    bound, measurement = planned(*path), executed(*runs)
    gaps = block_gaps(bound, measurement, IMAGE, CODE)
    assert sum(gap.difference for gap in gaps) == bound.instructions - measurement.instructions
