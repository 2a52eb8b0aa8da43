"""Which names a C source calls, and where: what may take an address is told apart, and what a macro may repeat."""

from __future__ import annotations

import pytest

from wcet_probe.analyzer.facts.source_names import called_names
from wcet_probe.analyzer.facts.source_syntax import parsed, walk


def names(text, repeating=()):
    calls, others, repeated = called_names(walk(parsed(text.encode())), frozenset(repeating))
    return calls, others, repeated


def test_calls_are_told_by_name_and_line():
    calls, others, repeated = names("int g(int);\nint f(void)\n{\n    return g(1) +\n        g(2);\n}\n")
    assert calls == (("g", 4), ("g", 5))
    assert "g" not in others
    assert not repeated


@pytest.mark.parametrize(
    "text",
    [
        "int (*p)(int) = g;",
        "int f(void) { return (&g)(1); }",
        "int f(void) { return use(g); }",
        'int f(void) { __asm__("bl g"); return 0; }',
        'int f(void) { __asm__("b" "l " "g"); return 0; }',
        "int f(void) { int g(int); return 0; }",
        "MACRO(x) g y;",
    ],
)
def test_a_name_that_stands_elsewhere_may_be_called_from_there(text):
    assert "g" in names(text)[1]


@pytest.mark.parametrize("text", ['const char *s = "g";', "void g PROTOTYPE((int));", "int g(int x);"])
def test_values_and_declarations_take_no_address(text):
    assert "g" not in names(text)[1]


@pytest.mark.parametrize(
    ("text", "is_repeated"),
    [
        ("int f(void) { return TWICE(g(1)); }", True),
        ("int f(void) { return OTHER(TWICE(g(1))); }", True),
        ("int f(void) { return ONCE(g(1)); }", False),
        ("int f(void) { return g(1) + TWICE(2); }", False),
    ],
)
def test_a_call_within_what_a_macro_may_repeat_is_told(text, is_repeated):
    assert ("g" in names(text, ["TWICE"])[2]) is is_repeated
