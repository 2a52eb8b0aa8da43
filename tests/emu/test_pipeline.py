"""What is charged for waits, against a pipeline that makes every instruction wait for what it needs, and the bounds.

Tests: emu.measurement, isa.stalls.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.emu.second_engine import expanded_path, pipeline_cycles, steps_of, traced_call
from tests.kernel_suite import KERNELS, SOURCES, guest
from wcet_probe.analyzer.bound import prove
from wcet_probe.analyzer.request import BoundRequest
from wcet_probe.catalog.lookup import target_names
from wcet_probe.isa.timing import costs
from wcet_probe.model.scenario import InitialCache
from wcet_probe.model.target import Basis, Need, Result, Stall

SHORT = ("binary_search", "bit_count", "local_arrays", "memory_copy", "nested_calls", "square_root", "state_machine")
CHOSEN = [kernel for kernel in KERNELS if kernel.name in SHORT]
HALVES = {"first": CHOSEN[::2], "second": CHOSEN[1::2]}


def on_slow_pipeline(name: str, cycles: int):
    """All kernels on a core whose every result comes so late: the waits reach over branches, calls and returns."""
    base = guest(name)
    every = tuple(base.target.timing)
    rule = Stall("late", every, every, Result.WRITTEN, Need.ANY, cycles, Basis.ASSUMED, "a test")
    rules = (*base.target.stalls, rule) if cycles else base.target.stalls
    target = replace(base.target, stalls=rules, icache=None, dcache=None, unified_cache=False)
    return replace(base, target=target, costs=costs(base.instructions, target))


@pytest.mark.covering(0)
@pytest.mark.parametrize("kernels", HALVES.values(), ids=HALVES)
@pytest.mark.parametrize("late", [0, 17])
@pytest.mark.parametrize("name", target_names())
def test_the_pipeline_is_never_slower_than_what_is_charged_and_that_never_above_the_bound(name, late, kernels):
    waited = 0
    on = on_slow_pipeline(name, late)
    for kernel in kernels:
        with on.machine() as machine, on.engine() as traced:
            for each in (machine, traced):
                if f"{kernel.name}_worst" in on.image.symbols:
                    each.call(f"{kernel.name}_worst")
            measured = machine.measure(kernel.name, kernel.worst, InitialCache.COLD)
            assert measured.path_complete
            path = expanded_path(on, measured)
            seen = traced_call(traced, on.target.isa, kernel.name, kernel.worst)
        slow = pipeline_cycles(on, path, seen)
        assert slow <= measured.instruction_cycles, kernel.name
        request = BoundRequest(on.image, on.target, on.instructions, on.costs, kernel.name, kernel.facts, SOURCES, {})
        assert measured.instruction_cycles <= prove(request).cycles, kernel.name
        without = sum(1 for _ in steps_of(on, path, seen))
        waited += slow > without
    assert waited
