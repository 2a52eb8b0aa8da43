"""The flow problem of what is prepared: costs, pairs that exclude each other, the worst path and its graph."""

from types import SimpleNamespace

import pytest

from tests.analyzer.small_functions import small_guest
from wcet_probe.analyzer.bound import prepare
from wcet_probe.analyzer.facts.language import Facts
from wcet_probe.analyzer.graph.supergraph import Edge
from wcet_probe.analyzer.prepared import Solved, infeasible_constraint
from wcet_probe.analyzer.request import BoundRequest
from wcet_probe.errors import AnalysisError

BODIES = {
    "f": "push {r4, lr}\nmovs r4, #3\n1: bl g\nsubs r4, #1\nbne 1b\npop {r4, pc}",
    "g": "cmp r0, #0\nbeq 1f\nadds r0, #1\nadds r0, #2\n1: bx lr",
}
INSTRUCTIONS = 2 + 3 * (1 + 5 + 2) + 1


def prepared(bodies=BODIES):
    guest = small_guest(bodies)
    request = BoundRequest(guest.image, guest.target, guest.instructions, guest.costs, "f", Facts(), {}, {})
    return guest, prepare(request)


def test_the_worst_path_adds_up_to_the_bound():
    guest, found = prepared()
    stage = found.bounded({})
    for unit in ("instructions", "cycles"):
        solved = stage.solved(unit)
        path = list(stage.worst_path(solved))
        assert sum(block.cost for block in path) == solved.solution.certified
        if unit == "instructions":
            assert solved.solution.certified == INSTRUCTIONS
            assert sum(block.executions * block.instructions for block in path) == INSTRUCTIONS
        assert solved.auxiliary_cost == 0
    with guest.machine() as machine:
        assert machine.count("f", (1,)) == INSTRUCTIONS


def test_the_graph_has_the_counts_of_the_solution_with_contexts_put_together():
    guest, found = prepared()
    stage = found.bounded({})
    graph = stage.graph(stage.solved("instructions"))
    counts = {block.address: block.executions for block in graph.blocks}
    assert counts[guest.address("f")] == 1
    assert counts[guest.address("g")] == 3
    entering = {}
    for edge in graph.edges:
        entering[edge.target] = entering.get(edge.target, 0) + edge.executions
    assert all(counts[address] == number for address, number in entering.items() if address != guest.address("f"))
    assert {edge.kind for edge in graph.edges} == {"fall", "jump", "call", "return"}


def test_loops_without_a_bound_are_refused():
    _, found = prepared({"f": "1: ldr r1, [r0]\ncmp r1, #0\nbne 1b\nbx lr"})
    with pytest.raises(AnalysisError, match="no bound for the loop at f"):
        found.bounded({})


def test_all_loops_that_facts_may_speak_of_are_told_once():
    guest, found = prepared()
    (site,) = found.sites()
    assert (site.function, site.header_address) == ("f", guest.address("f") + 4)


def test_one_of_two_edges_is_taken_for_each_pass_of_the_header_or_in_the_call():
    first, second = Edge(1, 2, "jump", 8), Edge(3, 4, "jump", 16)
    in_call = infeasible_constraint(3, SimpleNamespace(first=first, second=second, header=None))
    assert (in_call.name, in_call.edges, in_call.points, in_call.constant) == (
        "conflict:3",
        ((first, 1), (second, 1)),
        (),
        1,
    )
    in_loop = infeasible_constraint(0, SimpleNamespace(first=first, second=first, header=7))
    assert (in_loop.edges, in_loop.points, in_loop.constant) == (((first, 1),), ((7, -1),), 0)


def test_a_bound_rests_on_a_loop_whose_limit_decides():
    loop = SimpleNamespace(loop="l")
    for name, decides in (("loop:l", True), ("total:l", True), ("loop:k", False)):
        solution = SimpleNamespace(dual={name: 1}, optimum=None)
        assert Solved(SimpleNamespace(auxiliaries=()), solution).rests_on(loop) is decides
    zero = SimpleNamespace(dual={"loop:l": 0}, optimum=None)
    assert not Solved(SimpleNamespace(auxiliaries=()), zero).rests_on(loop)
    assert Solved(SimpleNamespace(auxiliaries=()), zero).auxiliary_cost is None


def test_what_happens_besides_costs_as_often_as_it_happens():
    auxiliaries = (SimpleNamespace(name="a", cost=7), SimpleNamespace(name="b", cost=2))
    solution = SimpleNamespace(dual={}, optimum=1, counts={"a": 3, "b": 0})
    assert Solved(SimpleNamespace(auxiliaries=auxiliaries), solution).auxiliary_cost == 21
