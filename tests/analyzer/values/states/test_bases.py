"""What a value is measured from, against addresses in a memory of a few bytes."""

from itertools import product

import pytest

from wcet_probe.analyzer.pcode.semantics import operation
from wcet_probe.analyzer.pcode.truths import RELATIONS
from wcet_probe.analyzer.values.states.bases import Base, is_computable

BITWISE = {"INT_ADD", "INT_SUB", "INT_MULT", "INT_AND", "INT_OR", "INT_XOR", "INT_LEFT", "INT_RIGHT"}
OPERATIONS = sorted(BITWISE | RELATIONS)
NUMBERS = (0, 1, 2, 3, 7, 128, 129, 254, 255)
BASES = (Base.NUMBER, Base.STACK)


@pytest.mark.parametrize("opcode", OPERATIONS)
def test_where_offsets_compute_it_the_place_of_the_stack_does_not_matter(opcode):
    """The result is a number, or an offset from the stack pointer: the same one for each stack pointer."""
    function = operation(opcode, (1, 1), 1)
    for bases in product(BASES, BASES):
        if not is_computable(opcode, bases):
            continue
        moved = set()
        for one, other, pointer in product(NUMBERS, NUMBERS, NUMBERS[1:]):
            first, second = (
                value + pointer * (base is Base.STACK) & 255 for value, base in zip((one, other), bases, strict=True)
            )
            difference = function(first, second) - function(one, other) & 255
            moved.add({0: "number", pointer: "offset"}.get(difference, "neither"))
        assert moved in ({"number"}, {"offset"}), bases
        assert opcode not in RELATIONS or moved == {"number"}


def test_sums_differences_and_equalities_are_computable():
    stack, number = Base.STACK, Base.NUMBER
    assert is_computable("INT_ADD", (stack, number))
    assert is_computable("INT_ADD", (number, stack))
    assert is_computable("INT_SUB", (stack, number))
    assert is_computable("INT_SUB", (stack, stack))
    assert is_computable("INT_EQUAL", (stack, stack))
    assert not is_computable("INT_LESS", (stack, stack))  # the stack may run over the end of memory
    assert not is_computable("INT_SUB", (number, stack))


@pytest.mark.parametrize("opcode", OPERATIONS)
def test_of_what_may_be_either_nothing_is_computed(opcode):
    for other in Base:
        assert not is_computable(opcode, (Base.ANY, other))
        assert not is_computable(opcode, (other, Base.ANY))
