"""Values of an operation that keeps a path in an array on its stack: nothing of it is lost where loops have bounds."""

import pytest

from tests.support import images_dir
from wcet_probe.analyzer.frame_values import frame_values
from wcet_probe.analyzer.invariants.plain_frames import require_plain_frames
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.answer.facts.proved_facts import prepared_operations
from wcet_probe.build.program import load_program
from wcet_probe.catalog.lookup import load_allocator, load_target


@pytest.mark.slow
@pytest.mark.parametrize("target", ["mpc603e", "cortex-m7", "arm926ej-s"])
def test_a_path_in_an_array_stays_there_and_no_store_is_lost(target):
    program = load_program(load_allocator("avl-best-fit"), load_target(target), "zig", images_dir())
    malloc = prepared_operations(program, 5000)["malloc"]
    assert malloc.values.stack_escapes
    assert not malloc.values.assumes_plain_frames
    values, assumed = frame_values(malloc)
    assert values.graph is malloc.values.graph
    assert values.assumes_plain_frames
    assert not values.stack_escapes
    accesses = [one for own in values.accesses.values() for one in own]
    assert all(one.base is not Base.ANY for one in accesses)
    assert all(one.offset.extent < 64 for one in accesses if one.base is Base.STACK)
    assert {one.id for one in assumed} >= {
        fact.id for fact in malloc.bounded(malloc.request.parameters).loops.assumptions
    }


def test_nothing_that_is_known_of_its_loads_is_refused_without_an_array():
    program = load_program(load_allocator("first-fit"), load_target("mpc603e"), "zig", images_dir())
    free = prepared_operations(program, 5000)["free"]
    values, _ = frame_values(free)
    assert values.accesses.keys() == free.values.accesses.keys()
    require_plain_frames("free", ())
