"""States of any allocator, on trees of the package: what knows nothing of them comes to their deep places."""

from __future__ import annotations

from tests.support import images_dir
from wcet_probe.answer.witness.bench import ProbeRequest
from wcet_probe.answer.witness.probe import measure_in_state
from wcet_probe.catalog.lookup import load_allocator, load_target
from wcet_probe.scenarios.families import HeapRequest
from wcet_probe.scenarios.generic import FAMILY

HEAP_BYTES = 16 << 10


def dearest(name: str, scenario: str, words: str) -> tuple[int, int]:
    """Most instructions of the states of ``scenario`` with ``words`` in their names, and of those without."""
    allocator, target, found = load_allocator(name), load_target("cortex-m4"), {True: 0, False: 0}
    asked = ProbeRequest(allocator, target, scenario, HEAP_BYTES, 0, None, "zig", False, images_dir())
    for plan in FAMILY.builders[scenario](HeapRequest(allocator, HEAP_BYTES, None, 0)):
        measured, refused, _ = measure_in_state(asked, plan)
        assert measured
        assert not (refused and words in plan.variant)
        is_one = words in plan.variant
        found[is_one] = max(found[is_one], measured.instructions)
    return found[True], found[False]


def test_a_hole_at_the_end_of_a_path_in_a_tree_of_sizes_is_dearer_than_between_two():
    path, others = dearest("btree-best-fit", "worst-free", "share leading bits")
    assert path > 1.5 * others
