"""The cost of a tree of calls against all trees of so many; who speaks of the number of calls."""

from itertools import product
from types import SimpleNamespace

import pytest

from tests.analyzer.flow_problems import problem
from wcet_probe.analyzer.facts.file import parse_facts
from wcet_probe.analyzer.facts.source_index import index_sources
from wcet_probe.analyzer.ipet.exact_lp import Constraint
from wcet_probe.analyzer.ipet.flow_system import FlowLoop
from wcet_probe.analyzer.recursive_calls import CountedCalls, expected_calls, facts_of_calls, tail_calls, tree_cost
from wcet_probe.errors import AnalysisError


def execution(leaf, inner):
    """Either a leaf, or two calls of itself one after the other."""
    costs = {"a": 2, "leaf": leaf, "one": inner, "two": 3, "x": 1}
    edges = [("a", "leaf", 0), ("leaf", "x", 0), ("a", "one", 0), ("one", "two", 0), ("two", "x", 0)]
    return problem(costs, edges)


def trees(most, leaf, inner):
    """The costs of all trees of calls, by how many calls of itself there are; each execution makes none or two."""
    found = {0: {2 + leaf + 1}}
    for calls in range(2, most + 1, 2):
        own = 2 + inner + 3 + 1
        found[calls] = {
            own + one + other
            for left in range(0, calls - 1, 2)
            for one, other in product(found[left], found[calls - 2 - left])
        }
    return found


@pytest.mark.parametrize(("leaf", "inner"), [(1, 9), (9, 1), (4, 4), (30, 2)])
def test_no_tree_costs_more_than_each_call_and_the_first(leaf, inner):
    met = False
    for most in (1, 5, 9):
        found = tree_cost(execution(leaf, inner), {"one-two", "two-x"}, (), most)
        for calls, costs in trees(10, leaf, inner).items():
            bound = found.first + calls * found.each
            assert max(costs) <= bound
            met |= max(costs) == bound
        assert found.rests_on
    assert met


def test_a_loop_in_an_execution_is_limited_once_for_each():
    """Five rounds, and then a leaf or one call: a chain of calls has the rounds of each."""
    costs = {"a": 1, "h": 5, "call": 3, "x": 1}
    loop = FlowLoop("l", ("a-h",), ("h-h",), 4)
    once = Constraint("rounds", {"h-h": 1}, "<=", 4)
    edges = [("a", "h", 0), ("h", "h", 0), ("h", "x", 0), ("h", "call", 0), ("call", "x", 0)]
    for most in (1, 4):
        for limited in (problem(costs, edges, [loop]), problem(costs, edges, (), [once])):
            found = tree_cost(limited, {"call-x"}, (), most)
            for calls in range(8):
                assert found.first + calls * found.each >= (calls + 1) * (1 + 5 * 5 + 1) + 3 * calls
            assert (found.each, found.first) == (30, 27)


def test_where_nothing_limits_an_edge_there_is_no_bound():
    costs = {"a": 1, "h": 5, "x": 1}
    with pytest.raises(AnalysisError):
        tree_cost(problem(costs, [("a", "h", 0), ("h", "h", 0), ("h", "x", 0)]), {"h-x"}, (), 3)


def fact(most='max_calls = "2 * n + 1"'):
    return parse_facts("facts.toml", f'[[recursion]]\nfunction = "f"\n{most}\nbecause = "a test"\n')


def test_a_fact_tells_the_number_of_calls():
    nothing = index_sources({})
    assert expected_calls(fact(), nothing, {"n": 4}, "f") == 9
    assert expected_calls(fact(), nothing, {"n": 4}, "g") is None
    assert expected_calls(fact("max_depth = 3"), nothing, {}, "f") is None


PRAGMA = 'int f(int n)\n{\n  {}\n  return f(n - 1);\n}\nint g(void)\n{\n  _Pragma("marker all")\n  return f(3);\n}\n'


@pytest.mark.parametrize(
    ("said", "number"),
    [
        ("1*f <= 177*all", 177),
        ("f <= 12 * all", 12),
        ("2*f <= 177*all", None),
        ("f <= all", None),
        ("f >= 3*all", None),
    ],
)
def test_a_restriction_of_the_source_tells_the_number_of_calls(said, number):
    text = PRAGMA.replace("{}", f'_Pragma("flowrestriction {said}")')
    index = index_sources({"a.c": text})
    assert expected_calls(parse_facts("facts.toml", ""), index, {}, "f") == number


def site(header, lines, function="f"):
    return SimpleNamespace(header_address=header, function=function, latch_lines=lines, own_lines=lines[:1])


def test_a_loop_of_a_function_without_one_in_the_source_is_a_call_at_its_end():
    index = index_sources({"a.c": "int f(int n)\n{\n  if (n)\n    return f(n - 1);\n  return 0;\n}\n"})
    analysed = SimpleNamespace(sites=(site(16, (("a.c", 4),)), site(32, (("a.c", 9),)), site(48, (("a.c", 3),), "g")))
    assert tail_calls(analysed, index, "f", [16, 32, 48]) == {16}
    assert tail_calls(analysed, index, "f", [32]) == frozenset()
    inlined = SimpleNamespace(header_address=16, function="f", latch_lines=(("a.c", 4),), own_lines=(("a.c", 9),))
    assert tail_calls(SimpleNamespace(sites=(inlined,)), index, "f", [16]) == frozenset()
    looping = index_sources({"a.c": "int f(int n)\n{\n  while (n)\n    n--;\n  return f(n);\n}\n"})
    assert tail_calls(analysed, looping, "f", [16, 32]) == frozenset()


def test_what_facts_say_of_all_calls_is_a_constraint_a_claim_and_an_assumption():
    points = tuple(SimpleNamespace(block=SimpleNamespace(address=address)) for address in (64, 128))
    values = SimpleNamespace(states={0: None, 1: None}, graph=SimpleNamespace(points=points))
    counted = CountedCalls("f", 128, ("edge",))
    ((constraint, claim, assumed),) = facts_of_calls(fact(), values, [counted], {"n": 3})
    assert constraint.auxiliaries == ((counted.variable, 1),) == (("calls:f", 1),)
    assert (constraint.points, constraint.edges, constraint.constant) == (((1, 1),), (("edge", 1),), 7)
    assert claim.statement == assumed.statement == "f is called at most 2 * n + 1 times in all: a test"
    assert not list(facts_of_calls(fact(), values, [], {"n": 3}))
