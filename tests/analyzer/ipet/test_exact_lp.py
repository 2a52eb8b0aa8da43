"""Linear programs in fractions: optimal by duality, from any basis, or a reason why there is no optimum."""

from fractions import Fraction
from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.analyzer.flow_problems import random_problem
from tests.examples import examples
from wcet_probe.analyzer.ipet import exact_lp, solver
from wcet_probe.analyzer.ipet.exact_lp import Basis, Constraint, FlowSystem, optimise
from wcet_probe.analyzer.ipet.flow_system import flow_system

VARIABLES = ("a", "b", "c")
NOTHING = Basis(frozenset(), frozenset())
MOST = 7


@st.composite
def systems(draw):
    factors = st.integers(-3, 3)
    constraints = tuple(
        Constraint(
            f"row{number}",
            {name: draw(factors) for name in VARIABLES},
            draw(st.sampled_from(["<=", "<=", "="])),
            draw(st.integers(-4, 12)),
        )
        for number in range(draw(st.integers(1, 4)))
    )
    return FlowSystem(VARIABLES, {name: draw(factors) for name in VARIABLES}, constraints)


def sum_of(coefficients, values):
    return sum(factor * values.get(name, 0) for name, factor in coefficients.items())


def holds(constraint, values):
    found = sum_of(constraint.coefficients, values)
    return found == constraint.constant if constraint.relation == "=" else found <= constraint.constant


@settings(max_examples=examples(60), deadline=None)
@given(systems(), st.data())
def test_a_vertex_is_optimal_by_duality_or_says_why_there_is_none(system, data):
    chosen = Basis(
        data.draw(st.frozensets(st.sampled_from(VARIABLES))),
        data.draw(st.frozensets(st.sampled_from([one.name for one in system.constraints]))),
    )
    vertex = optimise(system, chosen)
    points = (dict(zip(VARIABLES, point, strict=True)) for point in product(range(MOST), repeat=len(VARIABLES)))
    feasible = [point for point in points if all(holds(one, point) for one in system.constraints)]
    if vertex.contradicting:
        named = [one for one in system.constraints if one.name in vertex.contradicting]
        grid = (dict(zip(VARIABLES, point, strict=True)) for point in product(range(MOST), repeat=len(VARIABLES)))
        assert not [point for point in grid if all(holds(one, point) for one in named)]
        return
    if vertex.ray:
        assert set(vertex.ray) <= set(VARIABLES)
        assert any(system.objective[name] > 0 for name in vertex.ray)
        return
    assert all(value >= 0 for value in vertex.primal.values())
    assert all(holds(one, vertex.primal) for one in system.constraints)
    for one in system.constraints:
        assert one.relation == "=" or vertex.dual[one.name] >= 0
    for name in VARIABLES:
        paid = sum(vertex.dual[one.name] * one.coefficients[name] for one in system.constraints)
        assert paid >= system.objective[name]
    best = sum_of(system.objective, vertex.primal)
    assert best == sum(vertex.dual[one.name] * one.constant for one in system.constraints)
    assert all(sum_of(system.objective, point) <= best for point in feasible)


def test_an_optimum_between_whole_numbers_is_exact():
    third = FlowSystem(("a", "b"), {"a": 1, "b": 1}, (Constraint("c", {"a": 3, "b": 7}, "<=", 1),))
    vertex = optimise(third, NOTHING)
    assert (vertex.primal, vertex.dual) == ({"a": Fraction(1, 3)}, {"c": Fraction(1, 3)})


def test_what_can_grow_without_end_is_named():
    free = FlowSystem(("a", "b"), {"a": 1}, (Constraint("c", {"a": 1, "b": -1}, "<=", 1),))
    assert optimise(free, NOTHING).ray == ("a", "b")


def test_constraints_that_contradict_each_other_are_named():
    constraints = (
        Constraint("low", {"a": -1}, "<=", -5),
        Constraint("fine", {"b": 1}, "<=", 3),
        Constraint("high", {"a": 1}, "<=", 4),
    )
    assert set(optimise(FlowSystem(("a", "b"), {"b": 1}, constraints), NOTHING).contradicting) == {"low", "high"}


def test_what_lacks_most_enters_the_basis_first(monkeypatch):
    """From no basis at all, the one of a thousand variables that is worth most is found by one exchange."""
    names = tuple(f"x{number}" for number in range(1000))
    worth = {name: number + 1 for number, name in enumerate(names)}
    monkeypatch.setattr(exact_lp, "_MOST_PIVOTS", 9)
    vertex = optimise(FlowSystem(names, worth, (Constraint("one", dict.fromkeys(names, 1), "<=", 1),)), NOTHING)
    assert vertex.primal == {names[-1]: 1}


@settings(max_examples=examples(25), deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 2), st.data())
def test_any_basis_is_mended(seed, constraints, data):
    """The solver may propose nonsense: the exact pivots find the same bound, or the same refusal."""
    system = flow_system(random_problem(seed, 6, 10**6, constraints))
    variables = data.draw(st.frozensets(st.sampled_from(system.variables)))
    slacks = data.draw(st.frozensets(st.sampled_from([constraint.name for constraint in system.constraints])))
    good = exact_lp.optimise(system, solver.basis(system))
    mended = exact_lp.optimise(system, exact_lp.Basis(variables, slacks))
    assert bool(good.contradicting) == bool(mended.contradicting)
    if not good.contradicting:
        values = [sum(c.constant * vertex.dual[c.name] for c in system.constraints) for vertex in (good, mended)]
        assert values[0] == values[1]
