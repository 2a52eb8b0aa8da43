"""Candidates of a scenario are told apart by their variants: a result names its state by one, and an audit finds it."""

import pytest

from wcet_probe.catalog.lookup import allocator_names, load_allocator
from wcet_probe.errors import WcetProbeError
from wcet_probe.scenarios.families import HeapRequest
from wcet_probe.scenarios.lookup import family_of


@pytest.mark.parametrize("line_bytes", [None, 32])
def test_no_two_candidates_have_one_variant(line_bytes):
    checked = 0
    for name in allocator_names():
        allocator = load_allocator(name, {})
        for scenario, build in family_of(allocator).builders.items():
            try:
                plans = build(HeapRequest(allocator, 5000, line_bytes, 0))
            except WcetProbeError:
                continue  # the heap is too small for it
            assert len({plan.variant for plan in plans}) == len(plans), (name, scenario)
            checked += len(plans) > 1
    assert checked > len(allocator_names())
