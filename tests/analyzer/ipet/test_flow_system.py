"""The certified bound is at least the longest path, and exact where the relaxation is integral."""

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.analyzer.flow_problems import nested, nested_bound, problem, random_problem
from tests.examples import examples
from wcet_probe.analyzer.ipet import exact_lp, solver
from wcet_probe.analyzer.ipet.certificate import certificate
from wcet_probe.analyzer.ipet.flow_system import Constraint, FlowEdge, FlowLoop, FlowSystem, flow_system, solve
from wcet_probe.errors import AnalysisError, ExitCode


def longest_path(given):
    """By enumeration of all paths: loops and constraints are counted along the way."""
    costs = {node.name: node.cost for node in given.nodes}
    best = None
    stack = [(given.entry, costs[given.entry], {"enter": 1})]
    while stack:
        node, cost, counts = stack.pop()
        if node in given.exits and all(holds(constraint, counts) for constraint in given.constraints):
            best = cost if best is None else max(best, cost)
        for edge in given.edges:
            if edge.source == node:
                new = counts | {edge.name: counts.get(edge.name, 0) + 1}
                if all(within(loop, new) for loop in given.loops) and all(
                    holds(constraint, new) for constraint in given.constraints
                ):
                    stack.append((edge.target, cost + costs[edge.target] + edge.extra_cost, new))
    return best


def within(loop, counts):
    entered = sum(counts.get(name, 0) for name in loop.entry_edges)
    return sum(counts.get(name, 0) for name in loop.back_edges) <= loop.max_back_edges * entered


def holds(constraint, counts):
    return sum(factor * counts.get(name, 0) for name, factor in constraint.coefficients.items()) <= constraint.constant


def assert_proved(system, solution):
    """Weak duality, written once more."""
    for constraint in system.constraints:
        assert constraint.relation == "=" or solution.dual[constraint.name] >= 0
    for name in system.variables:
        paid = sum(solution.dual[limit.name] * limit.coefficients.get(name, 0) for limit in system.constraints)
        assert paid >= system.objective[name]
    value = sum(solution.dual[limit.name] * limit.constant for limit in system.constraints)
    assert solution.certified == value // 1


@settings(max_examples=examples(50), deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 6), st.integers(0, 2))
def test_without_further_constraints_the_bound_is_the_longest_path(seed, size, most):
    flow = random_problem(seed, size, most)
    system = flow_system(flow)
    solution = solve(system)
    assert_proved(system, solution)
    assert solution.certified == solution.optimum == longest_path(flow)


@settings(max_examples=examples(50), deadline=None)
@given(st.integers(0, 10**6), st.integers(3, 6), st.integers(1, 3))
def test_with_further_constraints_no_path_is_longer(seed, size, constraints):
    flow = random_problem(seed, size, 2, constraints)
    system, longest = flow_system(flow), longest_path(flow)
    try:
        solution = solve(system)
    except AnalysisError:
        assert longest is None
        return
    assert_proved(system, solution)
    if solution.optimum is None:
        assert longest is None
    else:
        assert solution.certified >= solution.optimum >= (longest or 0)


@pytest.mark.parametrize(("outer", "inner"), [(0, 5), (3, 0), (10, 4), (10**6, 10**6), (10**9, 10**9)])
def test_nested_loops_with_several_exits(outer, inner):
    solution = solve(flow_system(nested(outer, inner)))
    assert solution.certified == solution.optimum == nested_bound(outer, inner)
    assert solution.counts["b-g"] == (outer + 1) * inner


def test_a_total_limits_nested_loops():
    total = Constraint("total", {"b-g": 1}, "<=", 10**11)
    solution = solve(flow_system(nested(10**6, 10**6, [total])))
    assert solution.certified == solution.optimum == nested_bound(10**6, 0) + 10**11 * (7 + 2 + 5)


def test_the_printed_bound_may_be_above_the_integer_optimum():
    costs = {"a": 0, "h": 0, "b": 10, "x": 0}
    loop = FlowLoop("L", ("a-h",), ("b-h",), 100)
    odd = Constraint("odd", {"h-b": 2}, "<=", 7)
    flow = problem(costs, [("a", "h", 0), ("h", "b", 0), ("b", "h", 0), ("h", "x", 0)], [loop], [odd])
    solution = solve(flow_system(flow))
    assert (solution.optimum, solution.certified, solution.dual["odd"]) == (30, 35, Fraction(5))


def test_a_single_block():
    solution = solve(flow_system(problem({"x": 7}, [])))
    assert (solution.optimum, solution.certified) == (7, 7)


def test_the_same_problem_gives_the_same_bytes():
    flow = random_problem(5, 60, 1000, 4)
    texts = {certificate(flow, solve(flow_system(flow))) for _ in range(3)}
    assert len(texts) == 1


def test_a_loop_without_a_bound_is_named():
    flow = nested(10, 4)
    with pytest.raises(AnalysisError, match=r"how often g-b, b-g are taken") as caught:
        solve(flow_system(replace(flow, loops=flow.loops[:1])))
    assert caught.value.exit_code is ExitCode.NO_BOUND


def test_facts_that_contradict_each_other_are_named():
    constraints = [Constraint("never", {"h-x": 1, "b-early": 1}, "=", 0), Constraint("fine", {"l-h": 1}, "<=", 9)]
    with pytest.raises(AnalysisError, match="never") as caught:
        solve(flow_system(nested(10, 4, constraints)))
    assert "fine" not in str(caught.value)


def test_no_whole_number_meets_an_equation():
    half = Constraint("half", {"h-x": 2}, "=", 1)
    solution = solve(flow_system(nested(1, 1, [half])))
    assert (solution.optimum, solution.counts) == (None, {})
    assert solution.certified > 0


def test_a_solver_that_lies_changes_nothing(monkeypatch):
    monkeypatch.setattr(solver, "basis", lambda _: exact_lp.Basis(frozenset(), frozenset()))
    assert solve(flow_system(nested(10, 4))).certified == nested_bound(10, 4)
    monkeypatch.setattr(solver, "integer", lambda system, *_: dict.fromkeys(system.variables, 1))
    half = FlowSystem(("a",), {"a": 1}, (Constraint("half", {"a": 2}, "<=", 1),))
    assert solve(half).optimum is None


def test_large_counts_follow_exactly_from_the_small_ones(monkeypatch):
    system = flow_system(nested(10**6, 10**6, [Constraint("odd", {"h-g": 2}, "<=", 10**6 + 1)]))
    exact = solve(system)
    assert exact.optimum < exact.certified
    off = dict(exact.counts) | {"b-g": exact.counts["b-g"] + 5}
    monkeypatch.setattr(solver, "integer", lambda *_: off)
    assert solve(system) == exact


@pytest.mark.parametrize(("inner", "whole"), [(3, 0), (1_000, 1)])
def test_the_whole_is_searched_only_where_nothing_is_near_the_relaxation(monkeypatch, inner, whole):
    """Half a round of the outer loop less are ``inner`` halves of the inner one."""
    asked, real = [], solver.integer
    monkeypatch.setattr(solver, "integer", lambda *given: asked.append(len(given)) or real(*given))
    given = nested(7, inner, [Constraint("odd", {"h-g": 2}, "<=", 7)])
    solution = solve(flow_system(given))
    assert asked == [3, *[1] * whole]
    assert solution.optimum == nested_bound(2, inner)


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"edges": (FlowEdge("e", "a", "nowhere"),), "loops": ()}, "unknown node"),
        ({"loops": (FlowLoop("outer", ("a-h",), (), 1),)}, "no back edge"),
        ({"loops": (FlowLoop("outer", (), ("l-h",), 1),)}, "not all the edges"),
        ({"loops": (FlowLoop("an outer", ("a-h",), ("l-h",), 1),)}, "no name"),
        ({"constraints": (Constraint("c", {"e": 1}, "<=", 1),)}, "unknown edge"),
        ({"constraints": (Constraint("enter", {}, "<=", 1),)}, "one name"),
    ],
)
def test_a_malformed_problem_is_refused(change, part):
    with pytest.raises(ValueError, match=part):
        flow_system(replace(nested(1, 1), **change))
