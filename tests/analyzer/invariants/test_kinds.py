"""Kinds and residues of words: what operations on them give contains what the operations give."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.invariants.kinds import (
    ALL,
    MODULUS,
    NULL,
    Kind,
    Part,
    as_index,
    joined,
    number_range,
    operated,
    residue,
    residues_of,
    scaled,
    shifted,
    summed,
)

WORDS = st.integers(0, (1 << 32) - 1)
KINDS = st.sampled_from(Kind)
FULL = (1 << 32) - 1


def of(kind, value, *, is_loaded=False):
    return (Part(kind, is_loaded, residue(value)),)


def has(parts, kind, value):
    return any(part.kind is kind and part.residues >> value % MODULUS & 1 for part in parts)


@given(KINDS, WORDS)
def test_an_index_is_a_number_that_is_told_apart(kind, value):
    found = as_index(of(kind, value))
    assert found == of(Kind.INDEX if kind in {Kind.NUMBER, Kind.NEAR} else kind, value)
    (part,) = summed([(1, of(Kind.INDEX, value))], of(Kind.NUMBER, 4))
    assert part == summed([(1, of(Kind.NUMBER, value))], of(Kind.NUMBER, 4))[0]
    (masked,) = operated("INT_AND", of(Kind.INDEX, value), of(Kind.NUMBER, FULL - 3), FULL - 3)
    assert masked.kind is Kind.NUMBER


@given(WORDS, WORDS, st.integers(-8, 8))
def test_an_address_and_numbers_make_an_address(address, number, constant):
    found = summed([(1, of(Kind.ARENA, address)), (1, of(Kind.NUMBER, number))], of(Kind.NUMBER, constant))
    assert has(found, Kind.ARENA, address + number + constant)
    assert len(found) == 1


@given(WORDS, WORDS)
def test_the_distance_of_two_addresses_is_a_number(one, other):
    found = summed([(1, of(Kind.ARENA, one)), (FULL, of(Kind.ARENA, other))], of(Kind.NUMBER, 0))
    assert has(found, Kind.NUMBER, one - other)


def test_a_loaded_address_and_a_constant_of_static_data_may_be_anything():
    found = summed([(1, of(Kind.ARENA, 8, is_loaded=True))], of(Kind.STATIC, 0))
    assert [part.kind for part in found] == [Kind.ANY]
    found = operated("INT_AND", of(Kind.NUMBER, 8, is_loaded=True), of(Kind.STATIC, 0x3FFFF8), 0x3FFFF8)
    assert [part.kind for part in found] == [Kind.ANY]


@pytest.mark.parametrize("opcode", ["INT_AND", "INT_OR", "INT_XOR", "INT_RIGHT", "INT_MULT"])
def test_a_loaded_address_changed_by_a_word_may_be_one(opcode):
    """Such as a link that is masked as another word tells: what is followed of it is not left out."""
    link = of(Kind.ARENA, 8, is_loaded=True)
    for one, other in ((link, of(Kind.NUMBER, 4)), (of(Kind.NUMBER, 4), link)):
        assert [part.kind for part in operated(opcode, one, other, None)] == [Kind.ANY]


@given(st.sampled_from(("INT_AND", "INT_OR", "INT_XOR", "INT_MULT")), WORDS, WORDS, st.booleans())
def test_bitwise_operations_contain_the_result(opcode, one, other, is_mask):
    result = {"INT_AND": one & other, "INT_OR": one | other, "INT_XOR": one ^ other, "INT_MULT": one * other}[opcode]
    found = operated(opcode, of(Kind.NUMBER, one), of(Kind.NUMBER, other), other if is_mask else None)
    assert has(found, Kind.NUMBER, result & FULL)


@given(WORDS)
def test_an_address_keeps_its_kind_where_low_bits_change_and_only_there(address):
    cleared, taken = FULL - 7, 7
    assert has(
        operated("INT_AND", of(Kind.ARENA, address), of(Kind.NUMBER, cleared), cleared), Kind.ARENA, address & ~7
    )
    assert has(operated("INT_AND", of(Kind.ARENA, address), of(Kind.NUMBER, taken), taken), Kind.NUMBER, address & 7)
    found = operated("INT_RIGHT", of(Kind.ARENA, address), NULL, None)
    assert found == (Part(Kind.ANY, False, ALL),)


@given(WORDS, st.sampled_from((1, 2, 3, 8, 24, 64, 96)), st.integers(0, 1 << 14), st.data())
def test_residues_of_an_interval_hold_all_its_numbers(low, stride, steps, data):
    values = strided.between(32, low, min(FULL, low + stride * steps), stride)
    value = values.low + values.stride * data.draw(st.integers(0, max(0, values.steps)))
    assert residues_of(values) >> value % MODULUS & 1


@given(WORDS, st.integers(0, 40), st.integers(-9, 9))
def test_shifts_and_products_contain_the_result(value, amount, factor):
    assert shifted(residue(value), (amount,)) >> (value << amount) % MODULUS & 1
    assert scaled(residue(value), factor % MODULUS) >> value * factor % MODULUS & 1


@given(st.lists(WORDS, min_size=1, max_size=6))
def test_the_range_of_numbers_holds_each_of_them(values):
    parts = ()
    for value in values:
        own = Part(Kind.NUMBER, False, residue(value), value.bit_length(), value.bit_length())
        parts = joined(parts, (own,) if value else NULL)
    low, high = number_range(parts)
    assert all(low <= value <= high for value in values)
    assert high < 2 * max(values) or max(values) == high == 0
    assert number_range(()) is None
    assert number_range((*parts, Part(Kind.ARENA, False, 1))) is None
