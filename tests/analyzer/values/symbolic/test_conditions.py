"""Conditions as comparisons, and how often one holds, against plain evaluation and counting."""

import random
from itertools import product

import pytest

from tests.analyzer.values.symbolic.test_terms import RUNS, Dag, evaluated
from wcet_probe.analyzer.values.symbolic.conditions import relations, repetitions
from wcet_probe.analyzer.values.symbolic.terms import Terms

HOLDS = {"==": int.__eq__, "!=": int.__ne__, "<": int.__lt__, "<=": int.__le__}


def read(value, bits, *, is_signed):
    return value - (1 << bits) if is_signed and value >> bits - 1 else value


@pytest.mark.parametrize("part", range(4))
def test_each_comparison_follows_from_its_condition(part):
    told = 0
    for number in range(25):
        dag = Dag(f"conditions {part} {number}")
        for _ in range(25):
            grown = dag.grow()
            if grown is not None and grown[1] is not None:
                grown[0].append(grown[1:])
        for condition, truths in dag.truths:
            for holds in (True, False):
                found = list(relations(dag.terms, condition, holds=holds))
                for symbols, truth in zip(dag.symbols, truths, strict=True):
                    if bool(truth) is not holds:
                        continue
                    for relation, is_signed, *sides in found:
                        bits = dag.terms[sides[0]].bits
                        left, right = (
                            read(evaluated(dag.terms, side, symbols), bits, is_signed=is_signed) for side in sides
                        )
                        assert HOLDS[relation](left, right), (dag.terms[condition], holds)
                        told += 1
    assert told > 20 * RUNS


def test_a_conjunction_tells_both_parts_and_a_disjunction_none():
    terms = Terms()
    x, y, z = (terms.symbol((name,), 32) for name in "xyz")
    parts = terms.apply("INT_LESS", (x, y), 8), terms.apply("INT_SLESSEQUAL", (y, z), 8)
    both, either = (terms.apply(opcode, parts, 8) for opcode in ("BOOL_AND", "BOOL_OR"))
    assert list(relations(terms, both, holds=True)) == [("<", False, x, y), ("<=", True, y, z)]
    assert list(relations(terms, either, holds=False)) == [("<=", False, y, x), ("<", True, z, y)]
    assert not list(relations(terms, either, holds=True))
    assert not list(relations(terms, both, holds=False))


def test_an_equality_is_one_where_it_holds_and_where_its_opposite_does_not():
    terms = Terms()
    x, y = (terms.symbol((name,), 32) for name in "xy")
    equal, other = (terms.apply(opcode, (x, y), 8) for opcode in ("INT_EQUAL", "INT_NOTEQUAL"))
    for condition, holds in product((equal, other), (True, False)):
        expected = "==" if (condition == equal) == holds else "!="
        assert [one[0] for one in relations(terms, condition, holds=holds)] == [expected]


def test_repetitions_are_those_of_counting():
    for relation, step, distance in product(("!=", "<", "<="), range(1, 8), range(60)):
        if relation == "!=" and distance % step:
            continue
        count, left = 0, distance
        while HOLDS[relation](0, left):
            count, left = count + 1, left - step
        assert repetitions(relation, step, distance) == count


def test_long_distances_are_counted_exactly():
    draw = random.Random("repetitions")
    for _ in range(200):
        step, count = draw.randrange(1, 1 << 20), draw.randrange(1 << 31)
        assert repetitions("!=", step, step * count) == count
        assert repetitions("<", step, step * count + draw.randrange(1, step + 1)) == count + 1
        assert repetitions("<=", step, step * count + draw.randrange(step)) == count + 1
