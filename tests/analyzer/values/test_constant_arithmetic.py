"""Values that are known in part hold every number that they stand for, after each operation."""

from itertools import product

import pytest

from wcet_probe.analyzer.pcode.semantics import operation
from wcet_probe.analyzer.values.constant_arithmetic import bits_known, computed, is_bits

STACK = 0xFFFF_FF00
"""Where the stack pointer is at entry, so that sums go round."""


def bytes_of(known, value):
    return [one for one in range(256) if one & known == value]


@pytest.mark.parametrize("opcode", ["INT_AND", "INT_OR", "INT_LEFT", "INT_RIGHT"])
def test_known_bits_are_those_of_every_result(opcode):
    parts, told = [(0xF0, 0x50), (0x81, 0x80), (0xFE, 0x02)], 0
    for first, second in product(parts, [*parts, 0, 1, 3, 0xFF, None]):
        found = bits_known(opcode, (first, second))
        known, value = (0xFF, found) if isinstance(found, int) else found or (0, 0)
        others = [second] if isinstance(second, int) else bytes_of(*(second or (0, 0)))
        for one, other in product(bytes_of(*first), others):
            assert operation(opcode, (1, 1), 1)(one, other) & known == value
        told += known.bit_count()
    assert told


@pytest.mark.parametrize(
    "opcode", ["INT_ADD", "INT_SUB", "INT_EQUAL", "INT_NOTEQUAL", "INT_LESS", "INT_AND", "INT_MULT"]
)
def test_offsets_from_the_stack_pointer_are_those_of_every_stack(opcode):
    def concrete(value):
        return (STACK + value[0]) % (1 << 32) if isinstance(value, tuple) else value

    function = operation(opcode, (4, 4), 1 if opcode in {"INT_EQUAL", "INT_NOTEQUAL", "INT_LESS"} else 4)
    values, told = [(-8,), (-8 + (1 << 8),), (0,), 0, 4, 0xFFFF_FFFC], 0
    for pair in product(values, repeat=2):
        found = computed(opcode, function, pair)
        if found is not None:
            assert concrete(found) == function(*map(concrete, pair)), pair
            told += 1
    assert told


def test_what_is_copied_is_kept_and_single_bits_are_no_address():
    assert computed("COPY", operation("COPY", (4,), 4), ((-4,),)) == (-4,)
    assert computed("INT_SUB", operation("INT_SUB", (1, 1), 1), ((0xF0, 0x50), (0xF0, 0x50))) is None
    assert is_bits((0xF0, 0x50))
    assert not any(map(is_bits, [(-4,), 4]))
