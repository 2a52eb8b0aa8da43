"""The solver in floating point: the same proposal for the same system, and one that is nearly always right."""

import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.analyzer.flow_problems import nested, nested_bound, random_problem
from wcet_probe.analyzer.ipet import exact_lp, solver
from wcet_probe.analyzer.ipet.exact_lp import Constraint, FlowSystem
from wcet_probe.analyzer.ipet.flow_system import flow_system


@pytest.mark.parametrize(("outer", "inner"), [(3, 4), (10**6, 10**6), (10**9, 10**9)])
def test_the_basis_of_large_counts_needs_few_pivots(outer, inner, monkeypatch):
    system = flow_system(nested(outer, inner))
    proposed = solver.basis(system)
    monkeypatch.setattr(exact_lp, "_MOST_PIVOTS", 9)
    vertex = exact_lp.optimise(system, proposed)
    assert sum(vertex.dual[one.name] * one.constant for one in system.constraints) == nested_bound(outer, inner)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6))
def test_the_same_system_gives_the_same_proposals(seed):
    system = flow_system(random_problem(seed, 20, 1000, 2))
    assert solver.basis(system) == solver.basis(system)
    assert solver.integer(system) == solver.integer(system)


def test_whole_numbers_are_proposed_and_none_where_there_are_none():
    odd = Constraint("odd", {"a": 2}, "<=", 7)
    assert solver.integer(FlowSystem(("a",), {"a": 1}, (odd,))) == {"a": 3}
    assert solver.integer(FlowSystem(("a",), {"a": 1}, (odd, Constraint("least", {"a": -1}, "<=", -4)))) == {}


def test_what_scales_the_system_changes_no_answer():
    plain = flow_system(nested(1000, 1000))
    scaled = FlowSystem(plain.variables, plain.objective, plain.constraints, dict.fromkeys(plain.variables, 1 << 20))
    answers = [exact_lp.optimise(plain, solver.basis(one)).primal for one in (plain, scaled)]
    assert answers[0] == answers[1]


def test_the_solver_prints_nothing():
    """The standard output carries results only: HiGHS 1.16.0 says there who it is, at the end, whatever it is told."""
    script = (
        "from wcet_probe.analyzer.ipet import solver;"
        "from wcet_probe.analyzer.ipet.exact_lp import Constraint, FlowSystem;"
        "solver.integer(FlowSystem(('a',), {'a': 1}, (Constraint('one', {'a': 1}, '<=', 1),)))"
    )
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True)
    assert (done.stdout, done.stderr) == (b"", b"")
