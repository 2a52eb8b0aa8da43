"""Graphs in which the rounds of loops stand apart: the checker follows them, and knows more behind the loop."""

import pytest

from tests.answer.facts.test_proved_facts import HEAP_BYTES, program
from wcet_probe.analyzer.bound import prepare
from wcet_probe.analyzer.ipet import rounds_apart
from wcet_probe.analyzer.ipet.checkable import checkable, flow_graph
from wcet_probe.analyzer.ipet.flow_problem import Subject, flow_problem
from wcet_probe.analyzer.ipet.rounds_apart import with_rounds_apart
from wcet_probe.answer.bounds.proving import operation_request
from wcet_probe.certificate.kernel.coverage import Said, code_of, cover

GIVEN = program("djgpp-sbrk", target="cortex-m7", multiple_of=4)
BEHIND = "djgpp_sbrk_malloc+0x3e"
"""Behind the loop that computes the logarithm of 15 or more, in r3."""


def graph_of(role):
    subject = Subject(GIVEN.image.sha256, "cortex-m7", "instructions")
    values = prepare(operation_request(GIVEN, role, HEAP_BYTES)).values
    return flow_problem(values, [], [], subject, cost=lambda _: 0, edge_cost=lambda _: 0)


MALLOC = graph_of("malloc")


def logarithm(problem, apart):
    found = checkable(problem, GIVEN.image, GIVEN.instructions, {}, apart=apart)
    code, graph = code_of(GIVEN.image, GIVEN.instructions), flow_graph(problem, found.excluded)
    covered = cover(code, graph, Said(found.invariants, found.flags, found.equal, found.cases), {})
    assert not covered.open
    return found.invariants[BEHIND]["r3"]


def test_a_logarithm_of_15_and_more_is_3_at_least_where_rounds_stand_apart():
    assert logarithm(MALLOC, {}).low == 0
    problem, apart = with_rounds_apart(MALLOC, GIVEN.image, GIVEN.instructions)
    known = logarithm(problem, apart)
    assert (known.low, known.high) == (3, 31)


def test_copies_have_the_block_of_a_node_and_names_of_their_own():
    problem, apart = with_rounds_apart(MALLOC, GIVEN.image, GIVEN.instructions)
    before = {one.name: one.address for one in MALLOC.nodes}
    assert {one.name.rstrip("'"): one.address for one in problem.nodes} == before
    assert len({one.name for one in problem.nodes}) == len(problem.nodes) > len(before)
    assert len({one.name for one in problem.edges}) == len(problem.edges)
    assert apart.keys() <= {one.name for one in problem.nodes}


def test_a_loop_of_many_rounds_is_as_it_was(monkeypatch):
    monkeypatch.setattr(rounds_apart, "_MOST_COPIES", 20)
    problem, apart = with_rounds_apart(MALLOC, GIVEN.image, GIVEN.instructions)
    assert (problem.nodes, problem.edges, apart) == (MALLOC.nodes, MALLOC.edges, {})


@pytest.mark.parametrize("role", ["free"])
def test_code_without_loops_is_as_it_was(role):
    problem, apart = with_rounds_apart(graph_of(role), GIVEN.image, GIVEN.instructions)
    assert (problem.nodes, apart) == (graph_of(role).nodes, {})
