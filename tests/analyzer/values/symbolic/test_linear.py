"""Linear combinations against their values modulo a power of two."""

from hypothesis import given
from hypothesis import strategies as st

from wcet_probe.analyzer.values.symbolic.linear import Linear, combined

BITS = st.sampled_from((8, 16, 32))
WORDS = st.integers(0, (1 << 32) - 1)
FORMS = st.tuples(st.dictionaries(st.integers(0, 4), WORDS, max_size=4), WORDS)


def form_of(drawn, bits):
    mask = (1 << bits) - 1
    return Linear({term: c & mask for term, c in drawn[0].items() if c & mask}, drawn[1] & mask, bits)


def value(form, numbers):
    return sum(c * numbers[term] for term, c in form.coefficients.items()) + form.constant


@given(FORMS, FORMS, st.integers(-70000, 70000), BITS, st.lists(WORDS, min_size=5, max_size=5))
def test_a_combination_has_the_value_of_its_parts(one, other, factor, bits, numbers):
    first, second = form_of(one, bits), form_of(other, bits)
    found = combined(first, second, factor)
    expected = value(first, numbers) + factor * value(second, numbers)
    assert (value(found, numbers) - expected) % (1 << bits) == 0
    assert found.bits == bits


@given(FORMS, FORMS, st.integers(-9, 9), BITS)
def test_a_combination_is_in_normal_form(one, other, factor, bits):
    found = combined(form_of(one, bits), form_of(other, bits), factor)
    assert all(0 < c < 1 << bits for c in found.coefficients.values())
    assert 0 <= found.constant < 1 << bits
    assert list(found.coefficients) == sorted(found.coefficients)


def test_what_cancels_is_left_out():
    one = Linear({3: 4, 5: 1}, 9, 32)
    assert combined(one, Linear({3: 4}, 2, 32), -1) == Linear({5: 1}, 7, 32)
    assert combined(one, one, -1) == Linear({}, 0, 32)
    assert combined(Linear({3: 128}, 0, 8), Linear({3: 64}, 0, 8), 2) == Linear({}, 0, 8)
