"""Which places are equal: what is told of a branch on the way taken, and nothing where the ways differ."""

import pytest

from tests.analyzer.ipet.hand_made import at_entries, graph_of
from wcet_probe.analyzer.ipet.decided_flags import Execution
from wcet_probe.analyzer.ipet.equal_places import equal_places
from wcet_probe.certificate.machines.machine import Machine

TEXT = """
    {first}
    cmp r0, #7
    bne 1f
    {between}
1:  cmp r1, r2
    beq 2f
    bx lr
2:  bx lr
"""
NODES = {"f": 0, "between": 6, "again": 8, "label": 14}
EDGES = (("f", "again"), ("f", "between"), ("between", "again"), ("again", "label"))


def equal(first, between):
    """What is told of a graph without the way on which r1 and r2 differ, and the ways that are left to exclude."""
    code, graph = graph_of(TEXT.format(first=first, between=between), NODES, EDGES, ["label"])
    told, excluded = equal_places(Execution(code, graph, Machine(code.image), at_entries(code, graph)), {})
    return told, {node: [one - graph.nodes["f"][0] for one in ways] for node, ways in excluded.items()}


def test_what_is_equal_on_both_ways_is_told_where_it_is_needed_and_where_it_comes_from():
    told, excluded = equal("mov r2, r1", "mov r3, r1")
    assert told == {"again": {"r2": "r1"}, "between": {"r2": "r1"}}
    assert excluded == {}


def test_another_pair_may_give_a_pair():
    told, excluded = equal("mov r2, r1", "mov r1, r2")
    assert (told["again"], excluded) == ({"r2": "r1"}, {})


def test_what_differs_on_one_way_is_left_to_exclude():
    assert equal("mov r2, r1", "adds r2, #1") == ({}, {"again": [12]})
    assert equal("nop", "mov r2, r1") == ({}, {"again": [12]})


APART = """
    mov r2, r1
    cmp r0, #7
    bne 1f
    {one}
    b 2f
1:  {other}
2:  cmp r4, r5
    beq 4f
    cmp r1, r2
    beq 3f
    bx lr
3:  bx lr
4:  bx lr
"""
WAYS = {"f": 0, "one": 6, "other": 10, "meeting": 12, "again": 16, "label": 22, "out": 24}
BETWEEN = (("f", "one"), ("f", "other"), ("one", "meeting"), ("other", "meeting"))
BETWEEN += (("meeting", "again"), ("meeting", "out"), ("again", "label"))


@pytest.mark.parametrize("texts", [("mov r5, r4", "mov r3, r4"), ("mov r3, r4", "mov r5, r4")])
def test_a_way_that_is_excluded_by_what_one_way_tells_takes_nothing_away(texts):
    """Until the other way is followed r4 and r5 seem equal, and r1 and r2 are known behind where they are not."""
    code, graph = graph_of(APART.format(one=texts[0], other=texts[1]), WAYS, BETWEEN, ["label", "out"])
    told, excluded = equal_places(Execution(code, graph, Machine(code.image), at_entries(code, graph)), {})
    assert excluded == {}
    assert told["again"] == told["meeting"] == {"r2": "r1"}
