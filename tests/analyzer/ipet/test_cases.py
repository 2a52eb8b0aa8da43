"""Cases of a loop's header: two places that are equal, or limited; and none where that is not so."""

import pytest

from tests.analyzer.ipet.hand_made import at_entries, graph_of
from wcet_probe.analyzer.ipet.cases import loop_cases
from wcet_probe.analyzer.ipet.node_flow import NodeFlow
from wcet_probe.certificate.kernel.coverage import run_block
from wcet_probe.certificate.kernel.equalities import Case
from wcet_probe.certificate.machines.machine import Machine
from wcet_probe.certificate.values.numbers import constant, number
from wcet_probe.certificate.values.state import State

TEXT = """
    movs r2, #2
    cmp r1, #2
    it hi
    {above}
1:  cmp r2, {compared}
    beq 2f
    adds r1, #1
    b 1b
2:  bx lr
"""
NODES = {"f": 0, "header": 8, "round": 12, "last": 16}
EDGES = (("f", "header"), ("header", "round"), ("round", "header"), ("header", "last"))


def cases(above, compared="r1"):
    code, graph = graph_of(TEXT.format(above=above, compared=compared), NODES, EDGES, ["last"])
    known, machine = at_entries(code, graph), Machine(code.image)

    def outcomes(node):
        return run_block(code, machine, graph, node, State(dict(known[node]))).outcomes

    return loop_cases(NodeFlow(graph, graph.edges), graph, outcomes)


def test_a_counter_is_at_its_end_or_limited():
    assert cases("movhi r2, r1") == {
        "header": (Case({}, {"r2": "r1"}), Case({"r2": constant(2), "r1": number(0, 2)}, {}))
    }


@pytest.mark.parametrize(
    ("above", "compared"), [("addhi r2, r1", "r1"), ("movhi r2, r1", "r3"), ("movhi r2, r1", "#5")]
)
def test_there_are_no_cases_of_places_that_are_nowhere_equal(above, compared):
    assert cases(above, compared) == {}
