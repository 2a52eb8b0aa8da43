"""What a comparison tells of a value, of what it is computed from, and of what is computed of it.

Tests: certificate.values.state.
"""

import random

import pytest

from wcet_probe.certificate.values import numbers
from wcet_probe.certificate.values.numbers import ANY, TOP, WORD, constant, number, within
from wcet_probe.certificate.values.state import Comparison, State, assume, computed


@pytest.mark.parametrize(
    ("held", "step", "relation", "is_signed", "can_be"),
    [
        (number(0, 14), -1, ">=", True, False),
        (number(0, 14), -1, "==", True, False),
        (number(0, 14), -1, "<", True, True),
        (number(0, 14), -1, ">=", False, True),
        (number(1, 14), -1, ">=", False, False),
        (number(-WORD // 2, 14), -1, ">", True, True),
        (number(0, 14), 2, "<=", False, False),
        (number(0, 14), 2, "<", True, False),
        (number(0, 14), 2, ">", True, True),
        (number(0, WORD // 2 - 2), 2, "<", True, True),
        (number(0, WORD - 2), 2, "<", False, True),
        (number(0, 14), 0, ">=", True, True),
        (TOP, 2, "<", False, True),
        (ANY, -1, ">=", True, True),
    ],
)
@pytest.mark.parametrize("is_turned", [False, True])
def test_a_sum_with_a_constant_stands_to_its_part_as_the_constant_to_0(  # noqa: PLR0917
    held, step, relation, is_signed, can_be, is_turned
):
    """Where neither may go round, whichever is compared with the other; of a range that overlaps nothing else tells."""
    name = computed(numbers.add if step > 0 else numbers.subtract, "r1", constant(abs(step)))
    sides = [(name, numbers.add(held, constant(step))), ("r1", held)]
    left, right = sides[::-1] if is_turned else sides
    state = State({"r1": held, "r2": sides[0][1]}, {"r2": name}, {"nzcv": Comparison(*left, *right)})
    turned = numbers.mirrored(relation) if is_turned else relation
    assert (assume(state, "nzcv", turned, is_signed=is_signed) is not None) is can_be


@pytest.mark.parametrize("is_held", [False, True])
def test_low_bits_of_what_may_be_an_address_of_the_stack_leave_it_one(is_held):
    """Whether a place holds what they are the low bits of, or another number of it alone does."""
    name, bits = object(), constant(0xFF)
    named = {"r0": computed(numbers.conjunction, name, bits), "r1": computed(numbers.add, name, constant(4))}
    values = {"r0": numbers.conjunction(ANY, bits), "r1": ANY, **({"r2": ANY} if is_held else {})}
    state = State(values, {**named, "r2": name})
    state.flags["nzcv"] = Comparison(named["r0"], values["r0"], None, constant(10))
    below = assume(state, "nzcv", "<=", is_signed=False)
    assert below.read("r0") == number(0, 10)._replace(base="any")
    assert all(below.values[place].may_be_stack for place in values)


@pytest.mark.parametrize("compute", [numbers.add, numbers.subtract, numbers.shift_right])
def test_what_is_known_of_a_result_is_known_of_what_it_was_computed_from(compute):
    draw = random.Random(7)
    for _ in range(4_000):
        low = draw.choice((0, 3, 1 << 31, WORD - 40, draw.randrange(WORD)))
        operand = number(low, min(low + draw.choice((0, 5, 1 << 20, 1 << 31)), WORD - 1))
        by = constant(draw.choice((1, 3, 12, 24, 31)) if compute is numbers.shift_right else draw.randrange(1 << 32))
        word = draw.choice((operand.low, operand.high, draw.randint(operand.low, operand.high)))
        result = compute(constant(word), by)
        spread = draw.choice((0, 1, 7, 1 << 10))
        relation, limit = draw.choice(
            [
                ("<=", result.low + spread),
                (">=", result.low - spread),
                ("==", result.low),
                ("<", result.low + 1 + spread),
            ]
        )
        if not 0 <= limit < WORD:
            continue
        state = State({"r0": operand, "r1": compute(operand, by)}, {"r1": computed(compute, "r0", by)})
        state.flags["nzcv"] = Comparison(state.name("r1"), state.read("r1"), None, constant(limit))
        found = assume(state, "nzcv", relation, is_signed=False)
        assert found is not None, (operand, by, word, relation, limit)
        assert within(constant(word), found.read("r0")), (operand, by, word, relation, limit)
        assert within(found.read("r0"), operand)


def test_a_result_that_no_operand_gives_is_on_no_way():
    by = constant(7)
    state = State({"r6": number(256, (1 << 24) - 1), "r0": TOP}, {"r0": computed(numbers.subtract, "r6", by)})
    state.flags["nzcv"] = Comparison(state.name("r0"), state.read("r0"), None, constant(WORD - 32))
    assert assume(state, "nzcv", ">=", is_signed=False) is None
    assert assume(state, "nzcv", "<", is_signed=False) is not None
    shifted = State({"r6": TOP, "r1": number(0, 255)}, {"r1": computed(numbers.shift_right, "r6", constant(24))})
    shifted.flags["nzcv"] = Comparison(shifted.name("r1"), shifted.read("r1"), None, constant(0), is_result=True)
    assert assume(shifted, "nzcv", "==", is_signed=False).read("r6") == number(0, (1 << 24) - 1)


def test_an_operand_that_was_overwritten_is_not_what_a_result_came_of():
    by = constant(7)
    state = State({"r6": number(1), "r0": TOP}, {"r0": computed(numbers.subtract, "r6", by), "r6": object()})
    state.flags["nzcv"] = Comparison(state.name("r0"), state.read("r0"), None, constant(WORD - 32))
    assert assume(state, "nzcv", ">=", is_signed=False).read("r6") == number(1)
