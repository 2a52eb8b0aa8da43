"""From values and loop bounds to the flow problem: names, costs, and constraints in terms of edges."""

import pytest

from tests.path_check import proved
from tests.support import assembler, guest_of
from wcet_probe.analyzer.graph.supergraph import EXIT
from wcet_probe.analyzer.ipet.flow_problem import (
    BoundedLoop,
    LinearConstraint,
    Subject,
    context_name,
    edge_name,
    flow_problem,
    point_name,
)
from wcet_probe.analyzer.ipet.flow_system import ENTER, AuxiliaryVariable, flow_system, solve
from wcet_probe.analyzer.values.properties.loop_shapes import loop_shapes
from wcet_probe.catalog.lookup import load_target

CODE = {
    "f": """
    push {r4, lr}
    movs r4, #3
1:  bl g
    subs r4, r4, #1
    bne 1b
    cmp r0, #0
    it eq
    popeq {r4, pc}
    pop {r4, pc}
    """,
    "g": """
    adds r0, r0, #1
    bx lr
    """,
}
SUBJECT = Subject("5" * 64, "cortex-m4", "cycles")


@pytest.fixture(scope="module")
def values():
    target = load_target("cortex-m4")
    return proved(guest_of(assembler(CODE, target), target), "f").values


@pytest.fixture(scope="module")
def shape(values):
    (one,) = loop_shapes(values)
    return one


def problem(values, shape, *, most=3, constraints=(), auxiliaries=(), cost=lambda _: 1, edge_cost=lambda _: 0):
    loop = BoundedLoop(shape.loop.header, shape.entry_edges, shape.back_edges, most)
    return flow_problem(values, [loop], constraints, SUBJECT, cost=cost, edge_cost=edge_cost, auxiliaries=auxiliaries)


def bound(flow):
    return solve(flow_system(flow)).certified


def test_all_that_the_values_could_not_exclude_is_there(values, shape):
    flow = problem(values, shape)
    assert len(flow.nodes) == len(values.states)
    inner = [edge for edge in values.edges if edge.target != EXIT]
    assert len(flow.edges) == len({edge.name for edge in flow.edges}) == len(inner)
    leaving = {point_name(values.graph.points[edge.source]) for edge in values.edges if edge.target == EXIT}
    assert set(flow.exits) == leaving
    assert (flow.entry, flow.entry_function, flow.unit) == ("f+0x0", "f", "cycles")


def test_a_callee_is_named_by_the_calls_that_lead_to_it(values):
    names = {point_name(point) for point in values.graph.points}
    (callee,) = [name for name in names if name.endswith("g+0x0")]
    site = int(callee.split("/")[0], 16)
    assert values.graph.points[0].function.address < site < values.graph.points[0].function.address + 12
    assert context_name((site, 16)) == f"{site:#x}/0x10/"


def test_edges_out_of_one_point_share_the_name_of_leaving_it(values):
    names = {index: point_name(point) for index, point in enumerate(values.graph.points)}
    out = [edge for edge in values.edges if edge.target == EXIT]
    assert {edge_name(names, edge) for edge in out} == {f"leave:{names[edge.source]}" for edge in out}


def test_leaving_costs_the_dearest_way(values, shape):
    out = [edge for edge in values.edges if edge.target == EXIT]
    dear = problem(values, shape, edge_cost=lambda edge: 1 + out.index(edge) if edge in out else 0)
    assert max(dear.exit_costs.values()) == len(out)
    assert bound(dear) == bound(problem(values, shape)) + len(out)


def test_a_header_is_executed_once_more_than_its_back_edges(values, shape):
    one, three = (bound(problem(values, shape, most=most)) for most in (1, 3))
    in_loop = sum(point_name(values.graph.points[node]) != "" for node in shape.loop.nodes)
    assert three - one == 2 * in_loop


def test_a_loop_that_is_never_entered_takes_its_entries_with_it(values, shape):
    never = problem(values, shape, most=0)
    (row,) = [one for one in never.constraints if one.name.startswith("never:")]
    assert (row.constant, set(row.coefficients.values())) == (0, {1})
    assert len(row.coefficients) == len(shape.entry_edges)


def test_executions_of_a_point_are_its_arriving_edges_and_of_the_entry_entering(values, shape):
    header = shape.loop.header
    limits = [
        LinearConstraint("entry", points=((0, 2),), constant=2),
        LinearConstraint("header", points=((header, 1),), edges=((shape.back_edges[0], 1), (None, -4)), constant=5),
    ]
    flow = problem(values, shape, constraints=limits)
    entry, limit = flow.constraints
    assert entry.coefficients[ENTER] == 2
    names = {index: point_name(values.graph.points[index]) for index in values.states}
    assert limit.coefficients[edge_name(names, shape.back_edges[0])] == 2
    assert limit.coefficients[ENTER] == -4
    assert sum(limit.coefficients.values()) == len(shape.entry_edges) + 2 * len(shape.back_edges) - 4


def test_what_happens_besides_is_paid_as_often_as_it_may(values, shape):
    row = LinearConstraint("most", constant=3, auxiliaries=(("miss", 1),))
    more = problem(values, shape, constraints=[row], auxiliaries=[AuxiliaryVariable("miss", 10)])
    assert bound(more) == bound(problem(values, shape)) + 30
