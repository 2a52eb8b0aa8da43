"""replay on the command line: which operations of a workload are counted."""

from __future__ import annotations

from itertools import islice

from wcet_probe.cli import replay
from wcet_probe.traces.operations import heap_operations


def test_a_workload_is_as_long_as_it_is_asked_to_be():
    asked = 3 * replay.DEFAULT_ALLOCATIONS
    _, rows = replay._rows("m06-test3", 0, asked)
    assert sum(1 for _ in islice(heap_operations(rows), asked)) == asked
