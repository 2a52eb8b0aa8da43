"""Callees that are called for more than they were certified for."""

import pytest

from wcet_probe.analyzer.callee_table import UnmetError, demand_met


def test_registers_that_a_callee_was_not_certified_for_are_told():
    demand_met({})
    with pytest.raises(UnmetError) as caught:
        demand_met({0x100: {"r0", "r4"}})
    assert caught.value.registers == {0x100: frozenset({"r0", "r4"})}
