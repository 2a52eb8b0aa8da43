"""Addresses near a symbol: the granule of the symbol holds each of their bytes, whatever words the names mean."""

import random
from types import SimpleNamespace

import pytest

from wcet_probe.catalog.lookup import load_target
from wcet_probe.certificate.caches.steps import _spot
from wcet_probe.certificate.names.names import Address
from wcet_probe.certificate.names.near import MOST_SPAN, Near, is_small, near_symbol
from wcet_probe.certificate.values.congruences import UNALIGNED, Congruence
from wcet_probe.certificate.values.numbers import ANY, TOP, WORD, Value, number

CACHE = load_target("arm926ej-s").dcache
SYMBOLS = {"s1", "s2"}


def named(name, low=0):
    return Value(f"@{name}", low, low, 0)


EIGHT = Congruence(8, 0)


def near(form, ranges, low=0, of_base=EIGHT):
    return near_symbol(named("sum", low), {"sum": form}, SYMBOLS, ranges, lambda _: of_base)


def test_a_symbol_and_four_times_a_bit_is_near_the_symbol():
    found = near({"s1": 1, "t4": 4}, {"t4": number(0, 1)}, 16)
    assert found == Near("s1", 16, 20, Congruence(8, 0))
    address = Address(TOP, named("sum", 16), Congruence(4, 0), Congruence(4, 0), found)
    spot = _spot(address, 0, None, CACHE)
    assert (spot.base, spot.offset, spot.granule_bytes) == ("s1", 16, 8)


@pytest.mark.parametrize(
    ("form", "ranges"),
    [
        ({"s1": 1, "t4": 4}, {}),
        ({"s1": 2, "t4": 4}, {"t4": number(0, 1)}),
        ({"s1": -1, "t4": 4}, {"t4": number(0, 1)}),
        ({"s1": 1, "s2": 1, "t4": 4}, {"t4": number(0, 1)}),
        ({"t1": 1, "t4": 4}, {"t4": number(0, 1)}),
        ({"t4": 4}, {"t4": number(0, 1)}),
        ({"s1": 1, "t4": 8}, {"t4": number(0, MOST_SPAN // 8 + 1)}),
    ],
)
def test_what_is_missing_of_a_symbol_and_small_parts_is_near_nothing(form, ranges):
    assert near(form, ranges) is None


def test_what_nobody_knows_is_not_small():
    assert is_small(number(WORD - 3, WORD - 1))
    assert not any(map(is_small, (TOP, ANY, Value("stack", 0, 0, 0), Value("any", 0, 1, 1), number(0, MOST_SPAN + 1))))


@pytest.mark.parametrize("seed", range(200))
def test_each_byte_is_in_the_line_of_the_granule(seed):
    draw = random.Random(seed)
    modulus = draw.choice((1, 4, 8, 16, 64))
    of_base = Congruence(modulus, draw.randrange(modulus))
    low = draw.choice((0, 1, 16, -12, 28, 31, draw.randrange(4_000)))
    ranges = {
        f"t{index}": number(first, first + draw.choice((0, 1, 2)))
        for index, first in enumerate(draw.choice((0, 0, 5)) for _ in range(draw.choice((1, 2))))
    }
    form = {"s1": 1, **{name: draw.choice((4, 1, -4, 16)) for name in ranges}}
    found = near(form, ranges, low, of_base)
    for _ in range(20 if found else 0):
        word = draw.randrange(WORD // modulus) * modulus + of_base.residue
        values = {name: draw.randint(one.low, one.high) for name, one in ranges.items()}
        skipped, address = draw.choice((0, 3)), word + low + sum(form[name] * values[name] for name in ranges)
        spot = _spot(SimpleNamespace(number=TOP, name=TOP, of_base=UNALIGNED, near=found), skipped, None, CACHE)
        if spot is not None:
            line = (address + skipped) % WORD // CACHE.line_bytes
            assert (word + spot.offset) % WORD // CACHE.line_bytes == line
