"""Values that are known in part hold every number that they stand for, after each operation."""

from itertools import product

import pytest

from wcet_probe.analyzer.pcode.semantics import operation
from wcet_probe.analyzer.values.execution.constant_arithmetic import (
    LINK,
    bits_known,
    computed,
    is_address,
    name_of,
    named,
    tells_in_part,
)

STACK = 0xFFFF_FF00
"""Where the stack pointer is at entry, so that sums go round."""
BINARY = {
    *("INT_ADD", "INT_SUB", "INT_MULT", "INT_DIV", "INT_REM", "INT_SDIV", "INT_SREM"),
    *("INT_AND", "INT_OR", "INT_XOR", "INT_LEFT", "INT_RIGHT", "INT_SRIGHT", "BOOL_AND", "BOOL_OR", "BOOL_XOR"),
    *("INT_EQUAL", "INT_NOTEQUAL", "INT_LESS", "INT_LESSEQUAL", "INT_SLESS", "INT_SLESSEQUAL"),
    *("INT_CARRY", "INT_SCARRY", "INT_SBORROW", "SUBPIECE", "PIECE"),
}


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


@pytest.mark.parametrize("opcode", sorted(BINARY | {"COPY", "INT_2COMP", "INT_NEGATE", "INT_ZEXT", "BOOL_NEGATE"}))
def test_where_it_is_said_that_nothing_is_told_in_part_nothing_is(opcode):
    """Of an operand that is not known, beside each kind of value."""
    values = [0, 1, 7, 0xFF, (-8,), (0xF0, 0x50), (4, 0, -1), LINK, named(3, 5), None]
    pairs = [(None, one) for one in values] + [(one, None) for one in values]
    function, told = operation(opcode, (1, 1), 1), False
    for given in pairs if opcode in BINARY else [(None,)]:
        told |= computed(opcode, function, given) is not None
        told |= len(given) > 1 and bits_known(opcode, given) is not None
    assert told == tells_in_part(opcode, 2 if opcode in BINARY else 1)


@pytest.mark.parametrize(
    "opcode",
    [
        *("INT_ADD", "INT_SUB", "INT_EQUAL", "INT_NOTEQUAL", "INT_LESS", "INT_AND", "INT_OR", "INT_XOR", "INT_MULT"),
        "INT_LEFT",
    ],
)
def test_offsets_from_the_stack_pointer_are_those_of_every_stack(opcode):
    def concrete(value):
        times = {1: 1, 3: -1}[len(value)] if isinstance(value, tuple) else 0
        return (times * STACK + value[0]) % (1 << 32) if times else value

    function = operation(opcode, (4, 4), 1 if opcode in {"INT_EQUAL", "INT_NOTEQUAL", "INT_LESS"} else 4)
    values = [
        (-8,),
        (-8 + (1 << 8),),
        (0,),
        (5,),
        (-13,),
        0,
        4,
        7,
        8,
        12,
        28,
        29,
        31,
        32,
        0xFFFF_FFF0,
        0xFFFF_FFF8,
        0xFFFF_FFFC,
    ]
    told = 0
    for pair in product(values, repeat=2):
        found = computed(opcode, function, pair)
        if found is not None:
            bits, found = found if isinstance(found, tuple) and len(found) == 2 else (-1, found)
            assert concrete(found) == function(*map(concrete, pair)) & bits, pair
            told += 1
    assert told


@pytest.mark.parametrize("offset", [0, 4, -5, 30])
def test_the_lowest_bits_of_an_address_of_the_stack_are_those_of_its_offset(offset):
    def told(opcode, *values):
        return computed(opcode, operation(opcode, (4, 4), 4), values)

    assert told("INT_AND", 7, (offset,)) == offset & 7
    assert told("INT_LEFT", (offset,), 30) == (offset & 3) << 30
    assert told("INT_AND", (offset,), 0xFFFF_FFF8) == (offset & ~7,)
    assert told("INT_AND", (offset,), 0xFFFF_FFF0) is None
    assert told("INT_AND", (offset,), 8) is None
    assert told("INT_LEFT", (offset,), 28) is None


def test_what_is_copied_is_kept_and_single_bits_are_no_address():
    assert computed("COPY", operation("COPY", (4,), 4), ((-4,),)) == (-4,)
    assert computed("COPY", operation("COPY", (1,), 1), ((0xF0, 0x50),)) == (0xF0, 0x50)
    assert computed("INT_2COMP", operation("INT_2COMP", (4,), 4), ((-4,),)) == (4, 0, -1)
    assert computed("INT_SUB", operation("INT_SUB", (1, 1), 1), ((0xF0, 0x50), (0xF0, 0x50))) is None
    assert not any(map(is_address, [(0xF0, 0x50), (4, 0, -1), None]))
    assert all(map(is_address, [(-4,), 4]))


def test_of_the_address_that_is_returned_to_only_the_lowest_bits_may_be_cleared():
    for opcode, other, expected in [
        ("INT_AND", 0xFFFF_FFFE, LINK),
        ("INT_AND", 0xFFFF_FFFC, LINK),
        ("INT_AND", 0xFFFF_FFF8, None),
        ("INT_AND", 1, None),
        ("INT_AND", 0, 0),
        ("INT_AND", LINK, LINK),
        ("INT_OR", LINK, LINK),
        ("INT_OR", 1, None),
        ("INT_ADD", 2, None),
        ("INT_SUB", LINK, None),
        ("INT_EQUAL", 0, None),
        ("INT_AND", (-8,), None),
        ("INT_ADD", (-8,), None),
    ]:
        for pair in ((LINK, other), (other, LINK)):
            assert computed(opcode, operation(opcode, (4, 4), 4), pair) == expected, (opcode, other)
    assert not is_address(LINK)
    # Of a byte of which some bits are known the others may differ.
    assert computed("INT_OR", operation("INT_OR", (1, 1), 1), ((3, 1), (3, 1))) is None


@pytest.mark.parametrize(
    "opcode", ["INT_ADD", "INT_SUB", "INT_2COMP", "INT_EQUAL", "INT_NOTEQUAL", "INT_LESS", "INT_AND", "INT_LEFT"]
)
def test_distances_from_words_of_which_nothing_is_known_are_those_of_every_word(opcode):
    """Also beside offsets in the stack, and where a sum goes round; words of two names are never compared."""
    words = [{1: 7, 2: 7}, {1: 0xFFFF_FFFE, 2: 3}, {1: 0x8000_0000, 2: 0xFFFF_FFFF}]

    def concrete(value, told):
        if isinstance(value, int):
            return value
        if (name := name_of(value)) is not None:
            return (value[3] * told[name] + value[0]) % (1 << 32)
        return ((STACK if len(value) == 1 else -STACK) + value[0]) % (1 << 32)

    one_operand = opcode == "INT_2COMP"
    size = 1 if opcode in {"INT_EQUAL", "INT_NOTEQUAL", "INT_LESS"} else 4
    function = operation(opcode, (4,) if one_operand else (4, 4), size)
    values = [
        named(1, 0),
        named(1, 120),
        named(1, -1),
        named(1, 5, -1),
        named(2, 0),
        named(2, 3, -1),
        (8,),
        0,
        29,
        0xFFFF_FFF8,
    ]
    told = 0
    for pair in product(values, repeat=1 if one_operand else 2):
        found = computed(opcode, function, pair)
        if found is None:
            continue
        told += any(isinstance(one, tuple) for one in pair)
        for one in words:
            assert concrete(found, one) == function(*(concrete(part, one) for part in pair)), (pair, found)
    assert told or opcode in {"INT_LESS", "INT_LEFT"}
