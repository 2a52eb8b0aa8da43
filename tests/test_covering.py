"""The cases that the ordinary run takes have all values, and of three parameters or more all pairs."""

from itertools import combinations, product
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import pytest_generate_tests
from tests.covering import covering, numbered, one_of


@given(st.lists(st.integers(1, 5), min_size=1, max_size=4), st.integers(1, 2))
def test_all_pairs_or_values_are_kept_and_no_case_that_adds_none(sizes, most):
    cases = list(product(*(range(size) for size in sizes)))
    kept = [cases[number] for number in sorted(covering(cases, most))]
    places = most if len(sizes) > 2 else 1
    of_all, of_kept = (
        {(where, tuple(case[at] for at in where)) for case in some for where in combinations(range(len(sizes)), places)}
        for some in (cases, kept)
    )
    assert of_kept == of_all
    assert len(kept) <= len(of_all)


def test_of_two_parameters_each_value_of_the_shorter_is_used_as_often():
    kept = covering(list(product(range(6), range(3))))
    assert len(kept) == 6
    assert sorted(number % 3 for number in kept) == [0, 0, 1, 1, 2, 2]


def test_values_are_numbered_as_they_come():
    assert numbered([{"a": "x", "b": [1]}, {"a": "y", "b": [1]}, {"a": "x", "b": [2]}]) == [[0, 0], [1, 0], [0, 1]]


def test_of_one_parameter_the_name_decides_and_all_values_have_their_tests():
    cases = ["cortex-m4", "arm926ej-s", "mpc603e"]
    kept = [one_of(cases, f"test_{number}") for number in range(50)]
    assert frozenset().union(*kept) == {0, 1, 2}
    assert {len(one) for one in kept} == {1}
    assert one_of(cases, "test_7") == one_of(cases, "test_7")


def test_a_case_that_is_a_campaign_by_itself_stands_for_no_value():
    slow = pytest.mark.slow.mark
    cases = [
        SimpleNamespace(params={"a": a, "b": b}, marks=[slow] if (a, b) == (0, 0) else [])
        for a, b in product(range(2), repeat=2)
    ]
    definition = SimpleNamespace(get_closest_marker=lambda _: pytest.mark.covering.mark, nodeid="test_x")
    pytest_generate_tests(SimpleNamespace(definition=definition, _calls=cases))
    assert [(one.params["a"], one.params["b"]) for one in cases if slow not in one.marks] == [(0, 1), (1, 0)]
