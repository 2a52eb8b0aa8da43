"""What a block takes is measured, and what is wasted is what blocks take and what lies between them."""

from fractions import Fraction

import pytest

from tests.answer.workloads.test_workload_run import request
from tests.support import images_dir
from wcet_probe.answer.workloads.fragmentation_parts import block_bytes, fragmentation_parts
from wcet_probe.answer.workloads.workload_run import run_workload
from wcet_probe.build.program import load_program
from wcet_probe.traces.operations import HeapOperation

SETS = (0,) * 9


def taken(name, *sizes):
    wanted = request(name)
    program = load_program(wanted.allocator, wanted.target, "zig", images_dir())
    return block_bytes(program, 64 << 10, dict.fromkeys(sizes, SETS))


@pytest.mark.parametrize(
    ("name", "small", "large"),
    [("tlsf", 112, 1016), ("buddy-binary", 128, 1024), ("kingsley", 128, 1024), ("djgpp-sbrk", 128, 1024)],
)
def test_what_a_block_takes_is_the_distance_of_neighbours_in_a_fresh_heap(name, small, large):
    """Whatever was measured before: the heap is made anew for each size. TLSF rounds 1,000 up to its class, 1,008."""
    assert taken(name, 100, 1000, 60_000) == {100: small, 1000: large, 60_000: 60_000}
    assert taken(name, 1000) == {1000: large}


def test_parts_add_up_to_what_was_reached():
    found = fragmentation_parts({100: 128, 1000: 1024}, {100: 3, 1000: 1}, 2000)
    assert (found.live_bytes, found.internal_bytes, found.external_bytes) == (1300, 108, 592)
    assert (found.internal, found.external) == (Fraction(108, 1300), Fraction(592, 1300))
    tight = fragmentation_parts({100: 128}, {100: 3}, 310)
    assert (tight.internal_bytes, tight.external_bytes) == (10, 0)


@pytest.mark.parametrize(("name", "internal"), [("buddy-binary", True), ("half-fit", False)])
def test_the_binary_buddy_wastes_within_blocks_and_half_fit_between_them(name, internal):
    """M06 §4.3 says so. Half-fit takes no block of a request's own list, where this one's free ones are."""
    rows = [HeapOperation(is_free=False, slot=n, size_bytes=1000, row=n) for n in range(20)]
    rows += [HeapOperation(is_free=True, slot=n, size_bytes=0, row=n) for n in range(0, 20, 2)]
    rows += [HeapOperation(is_free=False, slot=n, size_bytes=1000, row=n) for n in range(0, 20, 2)]
    rows += [HeapOperation(is_free=False, slot=20, size_bytes=1000, row=40)]
    parts = run_workload(request(name, heap_bytes=64 << 10, parts=True), rows).parts
    assert parts.live_bytes == 21_000
    assert (parts.internal_bytes > parts.external_bytes) == internal
