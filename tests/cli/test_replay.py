"""replay on the command line: which operations of a workload are counted."""

from __future__ import annotations

from itertools import islice

from wcet_probe.cli import main, replay
from wcet_probe.traces.operations import heap_operations


def test_a_workload_is_as_long_as_it_is_asked_to_be():
    asked = 3 * replay.DEFAULT_ALLOCATIONS
    _, rows = replay._rows("m06-test3", 0, asked)
    assert sum(1 for _ in islice(heap_operations(rows), asked)) == asked


def test_where_nothing_is_served_no_factor_of_fragmentation_is_told(capsys):
    asked = ("m06-test4-immediate", "--allocator", "tlsf", "--operations", "40", "--no-bound")
    assert main(["replay", *asked, "--heap", "1000"]) == 0
    text = capsys.readouterr().out
    assert "factor F = -" in text
    assert "factor F = -100" not in text
