"""Conditions of ``if`` statements, read off the text."""

import pytest

from wcet_probe.analyzer.facts.source_parts import SourceTest
from wcet_probe.analyzer.facts.source_tests import test_of as condition_of
from wcet_probe.analyzer.facts.source_tests import unknown_names


def test_names_that_no_source_tells_may_be_macros():
    test = condition_of("if (ELSEWHERE(size) + (unsigned)node->size < least)")
    assert unknown_names(test, {"size", "node", "least"}, {}) == ["ELSEWHERE"]
    assert unknown_names(test, {"size", "node", "least", "ELSEWHERE"}, {"size"}) == ["size"]


@pytest.mark.parametrize(
    ("statement", "left", "operator", "right"),
    [
        ("if (a < b)\n    x();", "a", "<", "b"),
        ("if(p) {", "p", "!=", 0),
        ("if (!p) {", "p", "==", 0),
        ("if (p == NULL) {", "p", "==", 0),
        ("if (n != 0x10u)", "n", "!=", 16),
        ("if (node->sizes[(i)] >= v)", None, ">=", "v"),
        ("if (v < v + e)", None, "<", None),
    ],
)
def test_conditions_that_are_one_comparison(statement, left, operator, right):
    found = condition_of(statement)
    assert isinstance(found, SourceTest)
    assert (found.left, found.operator, found.right) == (left, operator, right)


@pytest.mark.parametrize(
    "statement",
    [
        "while (a < b)",
        "if (a < b && c)",
        "if (a & 3 == v)",
        "if (LIKELY(a < b))",
        "if ((a < b ? c : d) < e)",
        "if (f(a || b) < c)",
        "if (a < b ? c : d)",
        "if (010 < v)",
        "if (a < b) while (c < b)",
    ],
)
def test_what_is_no_single_comparison_has_no_condition(statement):
    assert condition_of(statement) is None
