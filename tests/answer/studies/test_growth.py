"""Growth: the formula behind samples, and claims held against them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wcet_probe.answer.studies.growth import Sample, Shape, growth, shape_of_claim

HEAPS = [1 << bits for bits in range(14, 23)]
DRIVER = "nodes visited = floor(H / 2M)"


def samples(count, driver=lambda heap: heap // 32):
    return [Sample(heap, count(heap), driver(heap)) for heap in HEAPS]


@pytest.mark.parametrize(
    ("count", "shape"),
    [
        (lambda _: 112, Shape.CONSTANT),
        (lambda h: 60 + 21 * h.bit_length(), Shape.LOGARITHMIC),
        (lambda h: 60 + 9 * math.isqrt(h), Shape.SQUARE_ROOT),
        (lambda h: 60 + 5 * (h // 32), Shape.LINEAR),
        (lambda h: 60 + (h // 512) ** 2, Shape.QUADRATIC),
        (lambda h: 82 + max(0, h - 131104) // 2, Shape.LINEAR),
    ],
)
def test_the_shape_is_found(count, shape):
    assert growth(samples(count), "", "O(1)").shape is shape


@pytest.mark.parametrize(
    ("claim", "shape"),
    [
        ("O(1)", Shape.CONSTANT),
        ("O(page / M)", Shape.CONSTANT),
        ("O(chunk / M)", Shape.CONSTANT),
        ("O(n)", Shape.LINEAR),
        ("O(log H)", Shape.LOGARITHMIC),
        ("O(log2(H/M))", Shape.LOGARITHMIC),
        ("O(1.44 log2(H/M))", Shape.LOGARITHMIC),
        ("O(sqrt(H))", Shape.SQUARE_ROOT),
        ("O(H/2M)", Shape.LINEAR),
        ("O((H/M)^2)", Shape.QUADRATIC),
    ],
)
def test_a_claim_means_a_shape(claim, shape):
    assert shape_of_claim(claim) is shape


@given(st.integers(1, 10**6), st.integers(1, 50), st.integers(0, 5))
def test_an_exact_polynomial_of_the_driver_is_found_exactly(constant, linear, quadratic):
    found = growth(samples(lambda h: constant + linear * (h // 32) + quadratic * (h // 32) ** 2), DRIVER, "O(H/2M)")
    assert found.exact
    assert f"{constant} + " in found.formula
    assert "with nodes visited d = floor(H / 2M)" in found.formula
    assert (" d²" in found.formula.replace("·", " ")) == bool(quadratic)


def test_one_sample_off_is_not_called_exact():
    off = samples(lambda h: 60 + 5 * (h // 32))
    off[4] = Sample(off[4].heap_bytes, off[4].instructions + 1, off[4].driver_value)
    assert not growth(off, DRIVER, "O(H/2M)").exact


def test_a_claim_that_does_not_hold_is_said_not_to():
    linear = samples(lambda h: 60 + 5 * (h // 32))
    assert not growth(linear, DRIVER, "O(1)").holds
    assert growth(linear, DRIVER, "O(H/2M)").holds
    assert growth(linear, DRIVER, "O(H^2)").holds
