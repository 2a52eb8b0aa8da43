"""Opposites of conditions, against what the operations compute."""

from itertools import product

import pytest

from wcet_probe.analyzer.pcode.semantics import operation
from wcet_probe.analyzer.pcode.truths import MIRRORED, OPPOSITES, RELATIONS, TRUTHS

BYTES = (0, 1, 2, 127, 128, 129, 254, 255)


@pytest.mark.parametrize("opcode", OPPOSITES)
def test_an_opposite_is_true_where_the_relation_is_not(opcode):
    one, other = (operation(name, (1, 1), 1) for name in (opcode, OPPOSITES[opcode]))
    assert all(one(a, b) == 1 - other(a, b) for a, b in product(BYTES, BYTES))


@pytest.mark.parametrize("opcode", MIRRORED)
def test_an_order_is_not_where_its_mirror_is_with_the_sides_exchanged(opcode):
    one, other = (operation(name, (1, 1), 1) for name in (opcode, MIRRORED[opcode]))
    assert all(one(a, b) == 1 - other(b, a) for a, b in product(BYTES, BYTES))


def test_each_relation_has_an_opposite():
    assert OPPOSITES.keys() | MIRRORED.keys() == RELATIONS
    assert OPPOSITES.keys().isdisjoint(MIRRORED)


@pytest.mark.parametrize("opcode", sorted(TRUTHS))
def test_a_condition_is_0_or_1(opcode):
    numbers = (0, 1) if opcode.startswith("BOOL") else BYTES
    if opcode == "BOOL_NEGATE":
        found = {operation(opcode, (1,), 1)(a) for a in numbers}
    else:
        found = {operation(opcode, (1, 1), 1)(a, b) for a, b in product(numbers, numbers)}
    assert found == {0, 1}
