"""Places, texts and declared names in the syntax tree of a C source."""

import pytest

from wcet_probe.analyzer.facts.source_syntax import (
    DECLARATIONS,
    LOOPS,
    declared_names,
    first_line,
    is_in,
    last_line,
    parsed,
    runs_once,
    text_of,
    walk,
)

SOURCE = b"int f(int *a)\n{\n int i = 1, *p = a, q[2], g(int);\n do {\n  i--;\n } while (0);\n}\n"


def only(kind, code=SOURCE):
    (found,) = (node for node in walk(parsed(code)) if node.type in kind)
    return found


def test_a_loop_has_its_lines_and_lies_in_its_function():
    loop, function = only(LOOPS), only({"function_definition"})
    assert (first_line(loop), last_line(loop)) == (4, 6)
    assert is_in(loop, function)
    assert not is_in(function, loop)


def test_names_of_variables_are_declared_arrays_and_functions_are_not():
    declarations = [node for node in walk(parsed(SOURCE)) if node.type in DECLARATIONS]
    assert [text_of(name) for each in declarations for name in declared_names(each)] == ["a", "i", "p"]


@pytest.mark.parametrize(
    ("loop", "once"),
    [
        ("do a(); while (0);", True),
        ("do a(); while ((0));", True),
        ("do a(); while (1);", False),
        ("while (0);", False),
    ],
)
def test_a_loop_of_one_round(loop, once):
    assert runs_once(only(LOOPS, f"void f(void) {{ {loop} }}".encode())) is once


def test_no_node_has_no_text():
    assert text_of(None) == ""
