"""Branches that the ways to them have decided: what flags tell there, and ways that are left to exclude."""

from tests.analyzer.ipet.hand_made import at_entries, graph_of
from wcet_probe.analyzer.ipet.decided_flags import Execution, decided_flags
from wcet_probe.certificate.machines.machine import Machine

TWICE = """
    cmp r0, #7
    bne 1f
    {between}
1:  beq 2f
    bx lr
2:  bx lr
"""
NODES = {"f": 0, "between": 4, "again": 6, "last": 8}


def decided(between, edges, exits):
    """Of a graph without the second branch's way to label 2: flags, and the ways that are left to exclude."""
    code, graph = graph_of(TWICE.format(between=between), NODES, [*edges, ("again", "last")], exits)
    flags, excluded = decided_flags(Execution(code, graph, Machine(code.image), at_entries(code, graph)))
    return flags, excluded, graph.nodes["last"][0] + 2


def test_flags_tell_of_a_branch_that_was_decided_before():
    flags, excluded, _ = decided("bx lr", [("f", "between"), ("f", "again")], ["between", "last"])
    assert (list(flags), excluded) == (["again"], {})


def test_a_way_that_flags_do_not_decide_is_left_to_exclude():
    """Where another comparison comes between on one of two ways, the branch may go either way."""
    edges = [("f", "between"), ("f", "again"), ("between", "again")]
    _, excluded, label_2 = decided("cmp r1, #3", edges, ["last"])
    assert excluded == {"again": (label_2,)}
