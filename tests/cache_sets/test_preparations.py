"""What is prepared for one size of the heap is taken for another only where no flow fact names the size."""

from dataclasses import replace

import pytest

from tests.support import images_dir
from wcet_probe.build.program import load_program
from wcet_probe.cache_sets.preparations import preparations
from wcet_probe.catalog.lookup import load_allocator, load_target


@pytest.mark.parametrize(("said", "is_same"), [("", True), ("# H11", True), ('[parameters]\nnodes = "H // 16"', False)])
def test_an_operation_is_prepared_anew_where_a_fact_names_the_heap(said, is_same):
    allocator = load_allocator("half-fit")
    facts = () if is_same and not said else (("own.toml", said),)
    program = load_program(replace(allocator, facts=facts), load_target("mpc603e"), "zig", images_dir())
    prepared = preparations(program)
    one, again, other = prepared("free", 1 << 16), prepared("free", 1 << 16), prepared("free", 1 << 17)
    assert one.values is again.values
    assert (one.values is other.values) is is_same
    assert [each.request.parameters["H"] for each in (one, other)] == [1 << 16, 1 << 17]
