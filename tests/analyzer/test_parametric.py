"""Formulas that meet all samples exactly, or none."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.analyzer.small_functions import small_guest
from wcet_probe.analyzer.facts.binding import code_sha256
from wcet_probe.analyzer.facts.file import parse_facts
from wcet_probe.analyzer.parametric import _fit, parametric_bound
from wcet_probe.analyzer.request import BoundRequest

NUMBERS = st.integers(-9, 9)


@given(st.lists(st.lists(NUMBERS, min_size=5, max_size=5), max_size=2), st.lists(NUMBERS, min_size=3, max_size=3))
def test_what_is_a_combination_is_found(columns, factors):
    drivers = [(f"d{number}", column) for number, column in enumerate(columns)]
    constant, *own = factors[: len(columns) + 1]
    bounds = [constant + sum(f * column[i] for f, column in zip(own, columns, strict=True)) for i in range(5)]
    found = _fit(drivers, bounds)
    assert found is not None
    for i, bound in enumerate(bounds):
        assert found[0] + sum(f * column[i] for f, column in zip(found[1:], columns, strict=True)) == bound


@given(st.lists(NUMBERS, min_size=5, max_size=5, unique=True), st.integers(1, 9), st.integers(0, 4))
def test_what_misses_one_sample_is_none(column, off, place):
    bounds = [3 + 2 * value for value in column]
    bounds[place] += off
    assert _fit([("d", column)], bounds) is None


def test_two_samples_are_left_to_check_a_formula_on():
    assert _fit([], [7, 7, 7]) == [7]
    assert _fit([], [7, 7]) is None
    assert _fit([("d", [1, 2, 3, 4])], [2, 4, 6, 8]) == [0, 2]
    assert _fit([("d", [1, 2, 3])], [2, 4, 6]) is None
    assert _fit([("d", [2, 4, 6, 8])], [1, 2, 3, 4]) == [0, Fraction(1, 2)]


BODY = "movs r3, #0\n1: ldr r2, [r0]\nadds r3, r3, r2\nsubs r1, #1\nbne 1b\nmovs r0, r3\nbx lr"


def request_of(most):
    guest = small_guest(BODY)
    text = f'[[loop]]\nfunction = "f"\noffset = 2\nmax = "{most}"\nbecause = "a test"\n'
    text += f'sha256 = "{code_sha256(guest.image, "f")}"\n'
    facts = parse_facts("facts.toml", text)
    return BoundRequest(guest.image, guest.target, guest.instructions, guest.costs, "f", facts, {}, {"H": 1})


@pytest.mark.parametrize(("most", "each"), [("3 * H", 3), ("H + 7", 1)])
def test_the_formula_of_a_loop_is_its_expression(most, each):
    found = parametric_bound(request_of(most), "H", [4, 9, 16, 31])
    assert found is not None
    assert [text for text, _ in found.terms] == [most]
    bounds = [bound for _, bound in found.samples]
    assert bounds[1] - bounds[0] == 4 * each * (9 - 4)  # four instructions a round
    assert parametric_bound(request_of(most), "H", [4, 9]) is None


def test_a_bound_that_does_not_vary_is_a_constant():
    found = parametric_bound(request_of("12"), "H", [4, 9, 16])
    assert found is not None
    assert (found.terms, len({bound for _, bound in found.samples})) == ((), 1)
