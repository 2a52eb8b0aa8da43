"""Constraints of shared misses: candidates that overlap, names, and how often scopes and executions allow them."""

from types import SimpleNamespace

import pytest

from tests.analyzer.dcache.test_worked_examples import example
from wcet_probe.analyzer.dcache.miss_constraints import Shared, _executed, _in_each, _regions, variable_names
from wcet_probe.analyzer.dcache.scopes import Starts
from wcet_probe.analyzer.dcache.symbolic_blocks import SymbolicBlock

A, B, C, D = (SymbolicBlock(0, number) for number in range(4))


def candidates(*blocks, line=None):
    return Shared(line, frozenset(blocks))


def test_candidates_that_overlap_are_one_region_and_no_others():
    shared = {candidates(A, B): [1], candidates(C): [2], candidates(B, D): [3], Shared(A): [4]}
    found = dict(_regions(shared))
    assert set(found) == {frozenset(), frozenset({A, B, D}), frozenset({C})}
    assert found[frozenset({A, B, D})] == {None: [1, 3]}
    assert found[frozenset()] == {A: [4]}


def test_what_shares_misses_has_one_name_and_visits_their_own():
    shared = {candidates(A, B): [1], candidates(B): [2], Shared(A): [3], Shared(A, touch="first"): [4]}
    names = variable_names(shared)
    assert names[candidates(A, B)] == names[candidates(B)] == "miss:region1"
    assert names[Shared(A)] == "miss:0.0"
    assert names[Shared(A, touch="first")] == "miss:0.0:first"


def test_a_region_of_one_line_with_that_name_is_not_told_apart():
    shared = {Shared(A, frozenset({A})): [1]}
    assert variable_names(shared) == {Shared(A, frozenset({A})): "miss:0.0"}


def test_executions_are_counted_as_often_as_a_point_is_named():
    row = _executed("m", [3, 1, 3], ("x", "y"), 2)
    assert (row.name, row.points, row.constant) == ("m:executed", ((1, -2), (3, -4)), 0)
    assert row.auxiliaries == (("x", 1), ("y", 1))


@pytest.mark.parametrize(("at_entry", "constant"), [(True, 3), (False, 0)])
def test_scopes_count_where_they_lead_to_an_access(at_entry, constant):
    edges = tuple(SimpleNamespace(target=target) for target in (5, 6))
    row = _in_each(Starts((1, 2), edges, at_entry=at_entry), {2, 6}, "m", ("x",), 3)
    assert (row.points, row.edges, row.constant) == (((2, -3),), ((edges[1], -3),), constant)


def most(source, **spec):
    view = example(source, **spec)
    return {one.name: one.constant for one in view.data.constraints if one.constant}


def test_all_words_of_two_lines_miss_twice():
    source = "unsigned t[16] __attribute__((aligned(32)));\nunsigned f(unsigned i) {{ return t[i & {0}] + t[i & 3]; }}"
    assert most(source.format(15))["miss:region1"] == 2
    assert most(source.format(7))["miss:region1"] == 1


def test_a_line_that_is_accessed_once_has_no_variable():
    view = example("unsigned f(unsigned *p) { return *p; }")
    assert view.data.constraints == [] or not [one for one in view.data.constraints if one.name.startswith("miss")]
