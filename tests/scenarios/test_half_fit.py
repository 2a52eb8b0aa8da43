"""Half-fit in its worst states: the same for every heap, and nothing known is worse."""

from __future__ import annotations

import pytest

from tests.scenarios.tagged_scenarios import dearest_of_random_replay, instructions, report
from tests.support import TARGETS
from wcet_probe.errors import UsageError
from wcet_probe.scenarios.lookup import scenario_names

NAME = "half-fit"


@pytest.mark.covering(0)
@pytest.mark.parametrize("heap_bytes", [4 << 10, 64 << 10])
@pytest.mark.parametrize("target_name", TARGETS)
def test_every_scenario_reaches_its_state(target_name, heap_bytes):
    for scenario in scenario_names(NAME):
        assert all(c.predicted == c.found for c in report(NAME, scenario, target_name, heap_bytes).checks)
    for operation in ("alloc", "free"):
        worst = instructions(NAME, f"worst-{operation}", target_name, heap_bytes)
        assert instructions(NAME, f"best-{operation}", target_name, heap_bytes) < worst
    failing = instructions(NAME, "worst-failing-alloc", target_name, heap_bytes)
    assert failing < instructions(NAME, "worst-alloc", target_name, heap_bytes)


@pytest.mark.parametrize(
    "values",
    [
        (("alignment", 4), ("bit-search", 1)),
        (("alignment", 8), ("minimum-block", 64), ("split-threshold", 128)),
        (("alignment", 4), ("minimum-block", 24), ("split-threshold", 32)),
    ],
    ids=["fine", "coarse", "middle"],
)
def test_every_scenario_under_other_parameters(values):
    for scenario in scenario_names(NAME):
        assert report(NAME, scenario, "mpc603e", 8192, values).checks


@pytest.mark.parametrize("target_name", ["cortex-m4", "mpc603e"])
@pytest.mark.parametrize("scenario", ["worst-alloc", "worst-free"])
def test_independent_of_the_heap_and_cheaper_than_tlsf(scenario, target_name):
    costs = {instructions(NAME, scenario, target_name, heap_bytes) for heap_bytes in (4096, 1 << 16, 1 << 20)}
    assert len(costs) == 1
    if scenario == "worst-alloc":
        assert costs.pop() < instructions("tlsf", scenario, target_name, 4096)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_no_operation_of_a_random_workload_is_dearer(seed):
    dearest = dearest_of_random_replay(NAME, "cortex-m4", 4096, seed)
    assert dearest[0] <= instructions(NAME, "worst-alloc")
    assert dearest[1] <= instructions(NAME, "worst-free")


def test_a_heap_without_room_is_refused():
    with pytest.raises(UsageError, match="too small"):
        report(NAME, "worst-alloc", "cortex-m4", 256)
