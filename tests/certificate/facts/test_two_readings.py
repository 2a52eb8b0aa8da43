"""Where compilers read a text otherwise than the checker does, or a #line moves it, nothing is told of its lines."""

import pytest

from wcet_probe.certificate.facts.asserted import hidden_loops, loop_behind, loop_extent, loops_owning, read_asserted
from wcet_probe.certificate.facts.two_readings import directives, moved_files, reads_as_compiled

TEXT = """\
OUTSIDE
void f(int n, volatile int *p)
{
    /* loop: outer */
    do {
        INSIDE
    } while (p[5] < n);
}
"""
FACT = '[[loop]]\nfunction = "f"\nlabel = "outer"\nmax = 4\n'


def told(outside, inside, **others):
    """Whether the loop is found, and whether another one may be in it."""
    text = TEXT.replace("OUTSIDE", outside).replace("INSIDE", inside)
    asserted = read_asserted([("facts.toml", FACT)], {"a.c": text, **others})
    return loop_extent(asserted, asserted.facts[0]) is not None, bool(hidden_loops(asserted, "a.c"))


def test_the_loop_is_found_and_a_macro_that_is_none_hides_none():
    assert told("#define LEAST(a, b) do { (a)--; } while (0)\n#define REG(n) GPIO##n", "LEAST(n, p[1]); REG(A)++;") == (
        True,
        False,
    )


@pytest.mark.parametrize(
    ("outside", "inside"),
    [
        ("#define A /* of\n all */ while (n--)", "A p[1] = n;"),
        ("#define A while", "A (n--) p[1] = n;"),
        ("#define A for", "A (; n; n--) p[1] = n;"),
        ("#define A do\n#define B while", "A p[1] = n; B (n--);"),
        ("#define BACK go\\\nto", "again: p[1] = n; if (n--) BACK again;"),
        ("#define J(a, b) a##b", "J(wh, ile) (n--) p[1] = n;"),
        ("#define J(a) whi##a", "J(le) (n--) p[1] = n;"),
    ],
)
def test_a_loop_of_a_macro_is_seen(outside, inside):
    found, hides = told(outside, inside)
    assert hides or not found


@pytest.mark.parametrize(
    ("outside", "inside"),
    [
        ("", "/* *\\\n/ while (n--) p[1] = n; /* */"),
        ("", "/* *??/\n/ while (n--) p[1] = n; /* */"),
        ("", "n = 1'0; while (n--) p[1] = n; n = 1'0;"),
        ("", 'p = "??/"; p = " ; while (n--) p[1] = n; ";'),
        ("", 'p = R"(")"; while (n--) p[1] = n; p = R"(")";'),
        ("\f#define A while (n--)", "A p[1] = n;"),
        ("%:define A while (n--)", "A p[1] = n;"),
        ("#line 3", "p[1] = n;"),
        ('# 3 "gen/a.c" 1', "p[1] = n;"),
        ("#line NUMBER", "p[1] = n;"),
        ("# /* the */ line 3", "p[1] = n;"),
    ],
)
def test_a_text_that_is_read_in_two_ways_or_moved_tells_nothing_by_line(outside, inside):
    assert told(outside, inside)[0] is False
    text = TEXT.replace("OUTSIDE", outside).replace("INSIDE", inside)
    asserted = read_asserted([("facts.toml", FACT)], {"a.c": text})
    assert loop_behind(asserted, "a.c", 4) is None
    # Code of such lines may be of any loop.
    assert loops_owning(asserted, ("a.c", 2))


def test_another_file_moves_lines():
    assert told("", "p[1] = n;", **{"b.c": "int x;"})[0]
    assert not told("", "p[1] = n;", **{"b.c": '#line 3 "a.c"\n'})[0]
    assert not told("", "p[1] = n;", **{"b.c": '??=line 3 "a.c"\n'})[0]
    assert not told("", "p[1] = n;", **{"b.c": "#line THREE NAME\n"})[0]
    assert moved_files({"a.c": "", "b.c": '#line 3 "x.y"\n#define line 3\n'}) == set()


def test_macros_are_read_as_compilers_read_them():
    assert directives('#define A /* b\n c */ "d // e" \\\n f // g\nint x;\n  # undef A\n') == [
        '#define A   "d // e"  f',
        "# undef A",
    ]
    assert directives("#define A 1'0 /* ' */ + 1'0\n") == ["#define A 1'0 /* ' */ + 1'0", "#define A 1'0   + 1'0"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\ufeff/* from elsewhere */\r\n#include <stdint.h>\r\n",
        "#if 0\nthis isn't code /* nor \"this\n#endif\nint x;\n",
        "char c = '\\'', *s = \"it's /* no comment */ \\\n going on\"; // isn't\n",
        '#define LONG(x) \\\n    f(x, "a") \\\n  + 1 /* one\n    two */\nint y;\n',
        "int a = 0x1p-3, what = a ? 1 : 2; /* what?? */\n",
        "#error don't\nint x;\n",
        "#define A /* the\n\n\n one */ 1 \\\n /* and\n\n the */ /* other\n */ + 2\nint x; /* a\n\n b */ int y;\n",
        "\tx = y \\\n + 1;\n",
    ],
)
def test_common_texts_are_read_in_one_way(text):
    assert reads_as_compiled(text)
