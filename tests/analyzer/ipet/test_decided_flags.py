"""Branches that the ways to them have decided: what flags tell there, and ways that are left to exclude."""

import pytest

from tests.analyzer.ipet.hand_made import at_entries, graph_of
from wcet_probe.analyzer.ipet.decided_flags import Execution, decided_flags
from wcet_probe.certificate.kernel.coverage import Said, cover
from wcet_probe.certificate.kernel.flags import both, lacking
from wcet_probe.certificate.machines.machine import Machine
from wcet_probe.certificate.values.numbers import TOP, constant, number
from wcet_probe.certificate.values.state import Comparison, State
from wcet_probe.errors import VerificationError

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


def test_what_is_told_of_a_value_is_known_when_no_place_holds_it_any_more():
    """Flags told of r1 that it is any number, and r1 of itself that it is not 0; then r1 is written."""
    wide, narrow = number(0, 100), number(1, 9)
    known = Comparison("r1", wide, None, constant(0), holding=frozenset({("!=", False)}))
    said = Comparison(None, narrow, None, constant(0), holding=frozenset({(">=", False)}))
    found = both(known, said)
    assert (found.left, found.left_value, found.holding) == ("r1", narrow, known.holding | said.holding)
    assert both(known, said._replace(left_value=number(50, 200))).left_value == wide
    assert both(None, said) == said
    behind = State({"r1": TOP}, {"r1": "another"}, {"nzcv": found})
    assert lacking(behind, {"nzcv": said}) is None
    assert lacking(State(behind.values, behind.names, {"nzcv": known}), {"nzcv": said}) == "nzcv"


JOINED = """
    cmp r0, #5
    it hi
    movhi r0, #9
    adds r2, r0, #1
    cbz r3, 1f
    nop
1:  beq 2f
    bx lr
2:  bx lr
"""


def test_what_flags_tell_holds_behind_the_only_way_along_which_they_tell_of_two_values():
    """Both sums are not 0, and have no name in common; a node that one edge enters begins with what that carries."""
    edges = [("f", "one"), ("f", "again"), ("one", "again"), ("again", "last")]
    code, graph = graph_of(JOINED, {"f": 0, "one": 10, "again": 12, "last": 14}, edges, ["last"])
    invariants = at_entries(code, graph)
    flags, excluded = decided_flags(Execution(code, graph, Machine(code.image), invariants))
    assert (set(flags), excluded) == ({"one", "again"}, {})
    assert not cover(code, graph, Said(invariants, flags), {}).open
    forged = {**flags, "again": {"nzcv": flags["again"]["nzcv"]._replace(left_value=constant(10))}}
    with pytest.raises(VerificationError, match="nzcv at again"):
        cover(code, graph, Said(invariants, forged), {})
