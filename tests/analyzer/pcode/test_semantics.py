"""What operations of p-code compute, against the reference manual's words in plain integers."""

from itertools import product

import pytest

from wcet_probe.analyzer.pcode.semantics import NO_EFFECT, UndefinedResultError, operation, signed

BYTES = (0, 1, 2, 3, 7, 8, 31, 32, 64, 100, 127, 128, 129, 200, 254, 255)


def number(value):
    """``value`` as a signed byte."""
    return value - 256 if value > 127 else value


def toward_zero(one, other):
    return 0 if other == 0 else abs(one) // abs(other) * (-1 if (one < 0) != (other < 0) else 1)


BINARY = {
    "INT_ADD": lambda a, b: a + b,
    "INT_SUB": lambda a, b: a - b,
    "INT_MULT": lambda a, b: a * b,
    "INT_AND": lambda a, b: sum(1 << n for n in range(8) if a >> n & 1 and b >> n & 1),
    "INT_OR": lambda a, b: sum(1 << n for n in range(8) if a >> n & 1 or b >> n & 1),
    "INT_XOR": lambda a, b: sum(1 << n for n in range(8) if (a >> n & 1) != (b >> n & 1)),
    "INT_LEFT": lambda a, b: a * 2**b if b < 8 else 0,
    "INT_RIGHT": lambda a, b: a // 2**b,
    "INT_SRIGHT": lambda a, b: number(a) // 2**b,
    "INT_DIV": toward_zero,
    "INT_REM": lambda a, b: a - b * toward_zero(a, b) if b else 0,
    "INT_SDIV": lambda a, b: toward_zero(number(a), number(b)),
    "INT_SREM": lambda a, b: number(a) - number(b) * toward_zero(number(a), number(b)) if b else 0,
    "INT_EQUAL": lambda a, b: a == b,
    "INT_NOTEQUAL": lambda a, b: a != b,
    "INT_LESS": lambda a, b: a < b,
    "INT_LESSEQUAL": lambda a, b: a <= b,
    "INT_SLESS": lambda a, b: number(a) < number(b),
    "INT_SLESSEQUAL": lambda a, b: number(a) <= number(b),
    "INT_CARRY": lambda a, b: a + b > 255,
    "INT_SCARRY": lambda a, b: not -128 <= number(a) + number(b) <= 127,
    "INT_SBORROW": lambda a, b: not -128 <= number(a) - number(b) <= 127,
}
UNARY = {
    "COPY": lambda a: a,
    "INT_2COMP": lambda a: 256 - a,
    "INT_NEGATE": lambda a: 255 - a,
    "POPCOUNT": lambda a: f"{a:b}".count("1"),
    "LZCOUNT": lambda a: 8 if a == 0 else 7 - max(n for n in range(8) if a >> n & 1),
}


@pytest.mark.parametrize("opcode", BINARY)
def test_a_binary_operation_on_bytes(opcode):
    found = operation(opcode, (1, 1), 1)
    for a, b in product(BYTES, BYTES):
        assert found(a, b) == int(BINARY[opcode](a, b)) & 255, (a, b)


@pytest.mark.parametrize("opcode", UNARY)
def test_a_unary_operation_on_bytes(opcode):
    found = operation(opcode, (1,), 1)
    assert [found(a) for a in range(256)] == [UNARY[opcode](a) & 255 for a in range(256)]


def test_operations_that_change_the_width():
    for a, b in product(BYTES, BYTES):
        assert operation("PIECE", (1, 1), 2)(a, b) == 256 * a + b
        whole = 256 * a + b
        assert operation("SUBPIECE", (2, 4), 1)(whole, 0) == b
        assert operation("SUBPIECE", (2, 4), 1)(whole, 1) == a
        assert operation("INT_ZEXT", (1,), 4)(a) == a
        assert operation("INT_SEXT", (1,), 4)(a) == number(a) % 2**32
    assert operation("PIECE", (2, 1), 3)(0x1234, 0x56) == 0x123456


def test_truth_values():
    for a, b in product((0, 1), (0, 1)):
        assert operation("BOOL_AND", (1, 1), 1)(a, b) == (a and b)
        assert operation("BOOL_OR", (1, 1), 1)(a, b) == (a or b)
        assert operation("BOOL_XOR", (1, 1), 1)(a, b) == (a != b)
    assert [operation("BOOL_NEGATE", (1,), 1)(a) for a in (0, 1)] == [1, 0]


@pytest.mark.parametrize("width", [0, 3, 7])
def test_saturation(width):
    """``ssat`` keeps ``width`` bits beside the sign, ``usat`` has ``width`` bits."""
    for a in range(256):
        for name, least, most in (("Signed", -(2**width), 2**width - 1), ("Unsigned", 0, 2**width - 1)):
            kept = sorted((least, number(a), most))[1]
            assert operation(f"{name}Saturate", (1, 1), 1)(a, width) == kept & 255
            assert operation(f"{name}DoesSaturate", (1, 1), 1)(a, width) == (kept != number(a))


def test_what_is_no_pure_function_has_none():
    for opcode in ("LOAD", "STORE", "CALLOTHER", "FLOAT_ADD", "BRANCH", *sorted(NO_EFFECT)):
        assert operation(opcode, (4, 4), 4) is None


def test_two_s_complement():
    assert [signed(3, value) for value in range(8)] == [0, 1, 2, 3, -4, -3, -2, -1]


@pytest.mark.parametrize(
    ("opcode", "a", "b", "expected"),
    [
        ("DEFINED_DIV", 100, 7, 14),
        ("DEFINED_DIV", 0x80, 0xFF, 0),
        ("DEFINED_SDIV", 100, 0xF9, 0xF2),
        ("DEFINED_SDIV", 0x80, 1, 0x80),
        ("DEFINED_DIV", 100, 0, None),
        ("DEFINED_SDIV", 100, 0, None),
        ("DEFINED_SDIV", 0x80, 0xFF, None),
    ],
)
def test_a_quotient_that_is_undefined_is_none(opcode, a, b, expected):
    function = operation(opcode, (1, 1), 1)
    if expected is not None:
        assert function(a, b) == expected
        return
    with pytest.raises(UndefinedResultError):
        function(a, b)
