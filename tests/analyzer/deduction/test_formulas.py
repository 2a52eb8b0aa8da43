"""Terms and formulas: what is simplified is equal to what was meant, for all numbers."""

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from wcet_probe.analyzer.deduction.formulas import (
    FALSE,
    TRUE,
    apply,
    choice,
    conjunction,
    disjunction,
    equivalence,
    implies,
    linear,
    negation,
    term,
    truth,
    unknown,
)

NAMES = ("x", "y")


def value(node, numbers):  # noqa: PLR0911  a case for each operation
    """What ``node`` is where unknowns are ``numbers``."""
    match node.operation, node.arguments:
        case "int" | "bool", (constant,):
            return constant
        case "unknown", (name,):
            return numbers[name]
        case "sum", (constant, parts):
            return constant + sum(factor * value(one, numbers) for one, factor in parts)
        case "choice", (formula, one, other):
            return value(one if value(formula, numbers) else other, numbers)
        case "equal", (one, other):
            return value(one, numbers) == value(other, numbers)
        case "at most", (difference,):
            return value(difference, numbers) <= 0
        case "not", (formula,):
            return not value(formula, numbers)
        case "all", formulas:
            return all(value(one, numbers) for one in formulas)
    raise AssertionError(node)


INTEGERS = st.recursive(
    st.integers(-3, 3).map(term) | st.sampled_from(NAMES).map(unknown),
    lambda one: st.tuples(one, one, st.integers(-2, 2)).map(lambda t: t[0] + t[1] * t[2] - 1),
    max_leaves=5,
)


FORMULAS = st.recursive(
    st.tuples(INTEGERS, INTEGERS).map(lambda pair: pair[0] <= pair[1]),
    lambda one: one.map(negation) | st.tuples(one, one).map(lambda pair: conjunction(*pair)),
    max_leaves=3,
)


@given(INTEGERS, INTEGERS, INTEGERS)
def test_comparisons_and_choices_mean_what_they_say(one, other, third):
    for numbers in ({"x": x, "y": y} for x, y in product(range(-2, 3), repeat=2)):
        a, b, c = (value(node, numbers) for node in (one, other, third))
        assert value(one < other, numbers) == (a < b)
        assert value(one >= other, numbers) == (a >= b)
        assert value(one.differs(other), numbers) == (a != b)
        both = conjunction(one <= other, negation(other <= third), one.equals(one))
        assert value(both, numbers) == (a <= b and not b <= c)
        assert value(disjunction(one <= other, other.equals(third)), numbers) == (a <= b or b == c)
        assert value(implies(one <= other, other <= third), numbers) == (a > b or b <= c)
        assert value(choice(one < other, one, third), numbers) == (a if a < b else c)


def test_equal_formulas_are_the_same():
    x, y = map(unknown, NAMES)
    assert x + y - y is x
    assert linear(1, [(x, 2), (y, 0)]) is x + x + 1
    assert apply("f", x + 0) is apply("f", x)
    assert (x - x <= 0) is TRUE
    assert conjunction(x <= 1, y <= 1, negation(conjunction(x <= 1, y <= 1))) is FALSE
    assert conjunction() is TRUE
    assert choice(x <= y, truth(True), truth(False)) is (x <= y)


@given(FORMULAS, FORMULAS)
def test_formulas_are_equivalent_where_both_are_true_or_both_false(one, other):
    twice = equivalence(equivalence(one, other), other)
    for numbers in ({"x": x, "y": y} for x, y in product(range(-2, 3), repeat=2)):
        first, second = value(one, numbers), value(other, numbers)
        assert value(equivalence(one, other), numbers) == (first == second)
        assert value(negation(equivalence(one, other)), numbers) == (first != second)
        assert value(twice, numbers) == first


def test_an_equivalence_of_an_equivalence_is_its_other_side():
    one, other = (unknown(name) >= 0 for name in NAMES)
    assert equivalence(negation(equivalence(one, other)), other) is negation(one)
    assert equivalence(one, TRUE) is one
    assert equivalence(one, one) is TRUE
