"""Bound expressions: exact values, and a clear refusal of everything else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wcet_probe.analyzer.facts.expressions import evaluate, names, parse, symbols
from wcet_probe.errors import UsageError


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("H // (2*M)", 131072),
        ("-H % 7", -(4 << 20) % 7),
        ("max(3, M) - min(M, 5, 4)", 12),
        ("ceil_log2(1)", 0),
        ("ceil_log2(H + 1)", 23),
        ("floor_log2(H - 1)", 21),
        ("isqrt(99)", 9),
        ("gcd(H, 48, 24)", 8),
        ("0x10", 16),
        ("10 ** 2", None),
    ],
)
def test_values(text, value):
    if value is None:
        with pytest.raises(UsageError, match="cannot be used"):
            parse(text)
    else:
        assert evaluate(parse(text), {"H": 4 << 20, "M": 16}) == value


def test_names_are_parameters_only():
    assert names(parse("max(H, minimum_block) // 2")) == {"H", "minimum_block"}
    assert names(parse("gcd(H, address(H), address(control))")) == {"H"}


def test_an_address_is_that_of_the_symbol():
    expression = parse("gcd(H, address(H)) + address( control ) % 3")
    assert symbols(expression) == {"H", "control"}
    assert evaluate(expression, {"H": 64}, {"H": 0x2008, "control": 0x2004}) == 8 + 0x2004 % 3


def test_an_address_that_nobody_tells_is_an_error():
    with pytest.raises(UsageError, match=r"address\(H\) can be used in \[parameters\] only; declare one there"):
        evaluate(parse("1 + address(H)"), {"H": 64})


def test_an_expression_says_what_was_written():
    assert str(parse("H // (2*M)")) == "H // (2*M)"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "(",
        "H.real",
        "__import__('os')",
        "f(1)",
        "True",
        "1.5",
        "'a'",
        "max()",
        "max",
        "isqrt(1, 2)",
        "min(*H)",
        "address",
        "address()",
        "address(1)",
        "address(H, H)",
        "address(H + 1)",
        "address(H, x=1)",
    ],
)
@pytest.mark.parametrize("form", ["{}", "1 + {}"])
def test_everything_else_is_refused(text, form):
    with pytest.raises(UsageError):
        parse(form.format(text))


@pytest.mark.parametrize(
    "text",
    ["H if 1 else 2", "H < 2", "[1]", "max(1, key=2)", "1; 2", "lambda: 1", "H << 2", "(" * 290 + "1", "1" * 301],
)
def test_other_python_is_refused(text):
    with pytest.raises(UsageError):
        parse(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("H // N", r"unknown parameter 'N'.*known.*: H. H is the heap in bytes."),
        (f"H * {1 << 126}", r"a number is beyond 2\*\*128"),
        ("9" * 290 + " % 7", r"a number is beyond 2\*\*128"),
        ("0 - " + " * ".join([str(1 << 64)] * 3), r"a number is beyond 2\*\*128"),
        ("1 // (H - 8)", "'H - 8' is 0 and divides"),
        ("H % 0", "'0' is 0 and divides"),
        ("ceil_log2(H - 8)", "ceil_log2 of 0 is not defined; it takes numbers from 1 on"),
        ("isqrt(-H)", "isqrt of -8 is not defined"),
    ],
)
def test_what_has_no_value_is_an_error_that_says_why(text, message):
    with pytest.raises(UsageError, match=message):
        evaluate(parse(text), {"H": 8})


@given(st.integers(1, 10**30))
def test_the_logarithms_enclose(value):
    up, down = (evaluate(parse(f"{name}(n)"), {"n": value}) for name in ("ceil_log2", "floor_log2"))
    assert 2**down <= value <= 2**up
    assert up - down == (value != 2**down)


@given(st.integers(), st.integers().filter(bool))
def test_division_and_remainder_belong_together(left, right):
    assert evaluate(parse("a // b * b + a % b"), {"a": left, "b": right}) == left
