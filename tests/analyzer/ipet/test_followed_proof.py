"""The same bound by a proof that uses only what the checker follows, and none where there is none."""

import json
from dataclasses import replace

import pytest

from tests.certificate.forgeries import sealed
from tests.support import images_dir
from wcet_probe.analyzer.bound import prove
from wcet_probe.analyzer.ipet.flow_system import Constraint, FlowEdge, FlowNode, FlowProblem, flow_system, leave, solve
from wcet_probe.analyzer.ipet.followed_proof import at_costs, followed_solution, with_credits
from wcet_probe.answer.bounds.proving import operation_request
from wcet_probe.build.program import load_program
from wcet_probe.catalog.lookup import load_allocator, load_target
from wcet_probe.certificate.check import check_bound
from wcet_probe.evidence.checking import allocator_binary
from wcet_probe.reports.formats.bound_document import bound_section

COSTS = {"n": 1, "dear": 10, "cheap": 2, "end": 1}


def problem(*constraints):
    """Two ways from the entry to the end: over ``dear`` and over ``cheap``."""
    return FlowProblem(
        "0" * 64,
        "f",
        "t",
        "cycles",
        tuple(FlowNode(name, 4 * number, cost) for number, (name, cost) in enumerate(COSTS.items())),
        (
            FlowEdge("n>dear", "n", "dear"),
            FlowEdge("n>cheap", "n", "cheap"),
            FlowEdge("dear>end", "dear", "end"),
            FlowEdge("cheap>end", "cheap", "end"),
        ),
        "n",
        ("end",),
        constraints=constraints,
    )


def never_dear(name):
    """One that keeps control from ``dear``, where the bound is then 4."""
    return Constraint(name, {"n>dear": 1}, "<=", 0)


def among(*names):
    return lambda used: {one.name for one in used} & set(names)


@pytest.mark.parametrize("order", [("conflict:0", "conflict:1"), ("conflict:1", "conflict:0")])
def test_a_constraint_that_is_not_followed_is_left_out_where_another_proves_the_same(order):
    given = problem(*map(never_dear, order))
    found = followed_solution(given, solve(flow_system(given)), among("conflict:0"))
    assert found.certified == 4
    assert not found.dual.get("conflict:0")
    assert found.dual["conflict:1"]
    assert found.counts == {**found.counts, "n>cheap": 1, "n>dear": 0}


def test_there_is_no_proof_without_what_the_bound_rests_on():
    given = problem(never_dear("conflict:0"))
    assert followed_solution(given, solve(flow_system(given)), among("conflict:0")) is None


def test_a_proof_that_is_followed_stays():
    given = problem(never_dear("conflict:0"))
    solution = solve(flow_system(given))
    assert followed_solution(given, solution, among("conflict:1")) == solution


def test_costs_rise_only_where_the_solution_does_not_pass():
    given = problem()
    solution = solve(flow_system(given))
    raised = at_costs(given, solution, nodes={"cheap": 7, "dear": 3}, edges={"n>cheap": 1}, exits={})
    assert [node.cost for node in raised.nodes] == [1, 10, 7, 1]
    assert [edge.extra_cost for edge in raised.edges] == [0, 1, 0, 0]
    assert solve(flow_system(raised)).certified == solution.certified == 12
    assert at_costs(given, solution, nodes={"dear": 11}, edges={}, exits={}) is None
    assert at_costs(given, solution, nodes={}, edges={"n>dear": 1}, exits={}) is None
    assert at_costs(given, solution, nodes={}, edges={}, exits={"end": 1}) is None
    assert at_costs(replace(given, exit_costs={"end": 1}), solution, nodes={}, edges={}, exits={"end": 1}) is not None


def test_credits_only_rise():
    limit = Constraint("write-backs:misses", {"write-backs": 1, "n>dear": -3, leave("end"): -1}, "<=", 0)
    raised = with_credits(problem(limit), limit.name, {"n>dear": 2, "n>cheap": 1, "dear>end": 0})
    assert raised.constraints == (replace(limit, coefficients={**limit.coefficients, "n>cheap": -1}),)


FOLLOWED = {
    "pairs that only the analysis excludes": ("fast-fit", "cortex-m7", "malloc"),
    "pairs without caches": ("fast-fit", "cortex-m4", "malloc"),
    "nodes that only the analysis knows to be cheap": ("dlmalloc27", "mpc603e", "free"),
}


@pytest.mark.covering(0)
@pytest.mark.parametrize("which", FOLLOWED.values(), ids=FOLLOWED)
def test_a_bound_that_does_not_need_what_the_checker_cannot_follow_is_checked_in_full(which):
    name, target, operation = which
    program = load_program(load_allocator(name), load_target(target), "zig", images_dir())
    section = bound_section(prove(operation_request(program, operation, 5000)))
    document = sealed(json.loads(json.dumps({"image": {"sha256": program.image.sha256}, "bound": section})))
    assert [one for one in check_bound(document, allocator_binary(program, 5000)).findings if one.verdict != "ok"] == []
