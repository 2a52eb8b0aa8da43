"""Loops, marks and functions of C texts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wcet_probe.analyzer.facts.source_index import index_sources
from wcet_probe.analyzer.facts.source_loops import loop_macros, parse_source
from wcet_probe.analyzer.facts.source_parts import SourceFunction
from wcet_probe.catalog.lookup import allocator_names, load_allocator


def loops(text):
    return parse_source("a.c", text, loop_macros([text])).loops


def loop_of(body):
    (loop,) = loops(f"int f(int a)\n{{\n{body}\n}}\n")
    return loop


@pytest.mark.parametrize(
    ("body", "extent", "head", "tested"),
    [
        ("for (int i = 0;\n i < a;\n i++) {\n a--;\n}", (3, 7), (3, 4, 5), True),
        ("while (a) a--;", (3, 3), (3,), True),
        ("while (a++ < 9)\n ;", (3, 4), (3,), True),
        ("for (;;\n a++) { if (a > 9) break; }", (3, 4), (3, 4), False),
        ("while (1) { if (a++ > 9) break; }", (3, 3), (3,), False),
        ("do {\n a--;\n} while (a\n > 0);", (3, 6), (3, 5, 6), False),
        ("do { /* nothing */ } while (a--);", (3, 3), (3,), True),
        ("again:\n a--;\nif (a) goto again;", (3, 5), (3, 5), False),
    ],
)
def test_extent_head_and_test(body, extent, head, tested):
    loop = loop_of(body)
    assert (loop.function, loop.first_line, loop.last_line) == ("f", *extent)
    assert (loop.header_lines, loop.test_first) == (head, tested)


@pytest.mark.parametrize(
    ("body", "left"),
    [
        ("while (1) { STOP(a) }", True),
        ("for (;;) { if (a++ > 9) break; }", True),
        ("while (a--) { if (a > 9) break; }", True),
        ("do { if (a > 9) break; } while (a--);", True),
        ("do { if (a > 9) return 1; } while (a--);", True),
        ("do { switch (a) { case 1: break; } } while (a--);", False),
        ("do a--; while (a);", False),
    ],
)
def test_loops_that_are_left_within_a_round(body, left):
    assert loop_of(body).left_inside == left


@pytest.mark.parametrize(
    ("macros", "left"),
    [
        ("#define CHECK(x) if (x) STOP\n#define STOP break", True),
        ("#define CHECK(x) if (!(x)) return 7", True),
        ("#define CHECK(x) x--", False),
        ("#define other(x) return", False),
    ],
)
@pytest.mark.parametrize("loop", ["do { CHECK(a); } while (a--);", "while (a--) { CHECK(a); }"])
def test_loops_that_a_macro_may_leave(macros, left, loop):
    index = index_sources({"a.c": f"int f(int a)\n{{\n{loop}\nreturn a;\n}}\n", "b.h": f"{macros}\n"})
    assert [one.left_inside for one in index.loops("f")] == [left]


def test_what_runs_once_or_jumps_down_is_no_loop():
    assert loops("void f(int a) { do { a--; } while (0); if (a) goto end; a = 1; end: ; }") == ()


def test_a_goto_out_of_a_loop_to_a_label_above_makes_a_loop_around_it():
    outer, inner = loops("void f(int a) {\nagain: a--;\nfor (;;) {\n if (a) goto again;\n a++;\n}\n}")
    assert (outer.first_line, outer.last_line, inner.first_line, inner.last_line) == (2, 6, 3, 6)


@pytest.mark.parametrize(
    "body",
    [
        "/* loop: scan */\nfor (;;) a++;",
        "for (;;) { /* loop: scan */\n a++; }",
        "for (;;) /* loop: scan */\n a++;",
        "// loop: scan\n/* Another word. */\nfor (;;) a++;",
        '/* loop: scan */ _Pragma("loopbound min 1 max 2")\nfor (;;) a++;',
        "do { /* loop: scan */\n a++; } while (a);",
        "/* loop: scan */\nagain: a++; goto again;",
    ],
)
def test_labels(body):
    assert loop_of(body).label == "scan"


def test_each_of_two_nested_loops_gets_its_own_label():
    outer, inner = loops("void f(int a) {\nfor (;;) { /* loop: outer */\n/* loop: inner */\nwhile (a) a--; }\n}")
    assert (outer.label, inner.label) == ("outer", "inner")
    outer, inner = loops("void f(int a) {\nfor (;;) { /* loop: outer */\nwhile (a) a--; }\n}")
    assert (outer.label, inner.label) == ("outer", None)


@pytest.mark.parametrize("text", ['"/* loop: scan */"', "0; /* loop: two words */", "0; /* loop: scan */ a = 2"])
def test_what_is_no_label(text):
    assert loop_of(f"char *s = {text};\nfor (;;) a++;").label is None


@pytest.mark.parametrize(
    "pragma",
    [
        '_Pragma( "loopbound min 1 max 25" )',
        '_Pragma("loopbound  min 1  max 25")',
        "#pragma loopbound min 1 max 25",
        "  #  pragma loopbound min 1 max 25 // why",
        '/* why */ _Pragma("loopbound min 1 max 25") /* why */',
    ],
)
@pytest.mark.parametrize("loop", ["for (;;) a++;", "while (a) { a--; }", "do a--; while (a);"])
@pytest.mark.parametrize("before", ["", "if (a) return a; else", "a = 1;", "here: ;"])
def test_pragmas(pragma, loop, before):
    found = loop_of(f"{before}\n{pragma}\n{loop}")
    assert (found.pragma, found.pragma_line, found.first_line) == ((1, 25), 4, 5)


@pytest.mark.parametrize(
    "before", ['_Pragma("loopbound min 1 max 2") a = 1;', '/* _Pragma("loopbound min 1 max 2") */', "#pragma unroll 4"]
)
def test_what_bounds_nothing(before):
    assert loop_of(f"{before}\nfor (;;) a++;").pragma is None


def test_pragmas_do_not_hide_the_functions_behind_them():
    source = parse_source(
        "a.c", '_Pragma("entrypoint")\nvoid *f(void) { return 0; }\nstatic ATTRIBUTE int *g(int a) { }\n'
    )
    assert [(function.name, function.first_line) for function in source.functions] == [("f", 2), ("g", 3)]


def test_a_macro_that_holds_loops_is_a_loop_where_it_is_used():
    macros = "#define EACH(x) for (;;) x\n#define TWO(x) EACH(x); \\\n while (x) x\n#define ONCE do { } while (0)\n"
    assert loop_macros([macros]) == {"EACH": 1, "TWO": 2}
    assert loop_macros(["#define A B A for (;;)\n#define B A\n"]) == {"A": 1, "B": 1}
    found = parse_source("a.c", "void f(int a) {\n a = 1;\n TWO(a);\n}", loop_macros([macros])).loops
    assert [(loop.function, loop.first_line) for loop in found] == [("f", 3), ("f", 3)]
    assert len(set(found)) == 2


def test_points():
    text = "void f(int a) {\n/* point: one */\n\n a++;\n if (a) { /* point: two */\n return; /* point: three */ }\n}"
    assert [(point.function, point.name, point.line) for point in parse_source("a.c", text).points] == [
        ("f", "one", 4),
        ("f", "two", 6),
    ]


def hash_of(text):
    (function,) = parse_source("a.c", text).functions
    assert isinstance(function, SourceFunction)
    return function.sha256


FUNCTION = "static int f(int a) { while (a > 1) a -= 2; return a; }"


@pytest.mark.parametrize(
    "text",
    [
        FUNCTION.replace(" ", "\n\t"),
        FUNCTION.replace("while", '/* loop: x */ _Pragma("loopbound min 0 max 3") while'),
        "int b;\n\n" + FUNCTION + "\nint c;",
    ],
)
def test_the_hash_is_of_tokens(text):
    assert hash_of(text) == hash_of(FUNCTION)


@given(st.integers(0, len(FUNCTION) - 1), st.sampled_from("abx1"))
def test_any_other_token_changes_the_hash(position, letter):
    changed = FUNCTION[:position] + letter + FUNCTION[position + 1 :]
    functions = parse_source("a.c", changed).functions
    assert changed == FUNCTION or FUNCTION[position] == " " or hash_of(FUNCTION) not in {f.sha256 for f in functions}


@given(st.text(alphabet='fora(){};\n\\/*"#wide ', max_size=60))
def test_no_text_is_too_odd(text):
    for loop in parse_source("a.c", text, loop_macros([text])).loops:
        assert 1 <= loop.first_line <= loop.last_line <= 1 + text.count("\n")


@pytest.mark.parametrize("name", allocator_names())
def test_every_loop_keyword_of_the_allocators_is_found(name):
    for file, text in load_allocator(name).sources:
        code = [line.split("/*")[0].split("//")[0].strip() for line in text.splitlines()]
        heads = [line for line in code if line.startswith(("for (", "while (", "do {")) or line == "do"]
        assert len(parse_source(file, text).loops) >= len(heads)
        assert all(loop.function for loop in parse_source(file, text).loops)


def test_a_function_with_a_header_for_each_style_of_c_is_one_function():
    text = """\
#if __STD_C
void *take(size_t bytes)
#else
void *take(bytes)
    size_t bytes;
#endif
{
    while (bytes--)
        step();
    return 0;
}
"""
    source = parse_source("a.c", text)
    assert [function.name for function in source.functions] == ["take"]
    assert [(loop.function, loop.first_line) for loop in source.loops] == [("take", 8)]
    assert source.functions[0].first_line == 2
    assert source.functions[0].last_line == 11


def test_pragma_in_a_macro_speaks_of_the_loop_of_each_use() -> None:
    step = '#define STEP(a) \\\n  _Pragma("loopbound min 40 max 40") \\\n  for (int k = 0; k < 40; k++) { g(a); }\n'
    first = "#define STEP(a) g(a)\nvoid e(void) {\n STEP(1);\n}\n#undef STEP\n"
    text = f"{first}{step}void f(void) {{\n STEP(1);\n STEP(2);\n}}\n"
    found = loops(text)
    assert [(one.function, one.first_line, one.pragma, one.pragma_line) for one in found] == [
        ("f", 10, (40, 40), 7),
        ("f", 11, (40, 40), 7),
    ]


def test_pragma_in_a_macro_is_not_read_where_it_is_not_clear_which_loop_it_means() -> None:
    pragma = '_Pragma("loopbound min 1 max 4") '
    use = "void f(void) {\n STEP;\n}\n"
    two = f"#define STEP {pragma}for (;;) {{ for (;;) h(); }}\n"
    away = f"#define STEP {pragma}h(); for (;;) h();\n"
    either = f"#if A\n#define STEP {pragma}for (;;) h();\n#else\n#define STEP for (;;) h();\n#endif\n"
    for text in (two, away, either):
        assert {one.pragma for one in loops(text + use)} == {None}


def test_a_mark_has_its_line_behind_whatever_is_blanked_before_it():
    """Lines are counted on from mark to mark: a table of 50,000 lines with a comment in each took 10 seconds."""
    text = (
        '/* one\n two */ // three\n#define A "/*" /* no\n end */\nvoid f(int n)\n{\n'
        "    /* loop: here */\n    while (n--) // four\n        ;\n}\n"
    )
    (loop,) = loops(text)
    assert (loop.label, loop.header_lines[0]) == ("here", 8)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("n > 1", False),
        ("n && m", True),
        ("n | m", False),
        ("n ? m : 0", True),
        ("straight(n)", False),
        ("chooses(n)", True),
        ("calls(n)", True),
        ("MACRO(n)", True),
    ],
)
def test_a_test_of_several_parts_is_told(condition, expected):
    text = """
    static int straight(int n) { return n + 1; }
    static int chooses(int n) { return n ? 1 : g(); }
    static int *calls(int n) { return MACRO(n); }
    void f(int n, int m) { while (CONDITION) ; do ; while (CONDITION); for (;CONDITION;) ; }
    """
    loops = parse_source("a.c", text.replace("CONDITION", condition)).loops
    assert [loop.has_parts for loop in loops] == [expected] * 3


def test_macros_that_double_each_other_are_counted_at_once():
    """A chain of some thirty did not come to an end, and one of a thousand would have been too deep."""
    text = "#define M0 for (;;) f();\n" + "".join(f"#define M{one + 1} M{one} M{one}\n" for one in range(2000))
    text += "#define ROUND AGAIN for (;;)\n#define AGAIN ROUND\n#define own(x) own(x + 1)\n"
    found = loop_macros([text])
    assert [found[f"M{one}"] for one in range(4)] == [1, 2, 4, 8]
    assert (found["M2000"], found["ROUND"], found["AGAIN"]) == (64, 1, 1)
    assert "own" not in found
    used = "".join(f"#define M{one + 1} M{one} M{one}\n" for one in range(40))
    used = f"#define M0 for (;;) f();\n{used}void g(void) {{ M3 M40 }}\n"
    assert len(parse_source("a.c", used, loop_macros([used])).loops) == 8 + 64


@pytest.mark.parametrize(
    "text",
    [
        "void f PARAMETERS((int));",
        "static int f PARAMETERS((int));",
        "void *f PARAMETERS((int));",
        "void f(int);",
        "struct f { int a; };",
    ],
)
def test_a_name_that_is_declared_behind_a_keyword_is_not_mentioned(text):
    assert "f" not in parse_source("a.c", text).mentioned


@pytest.mark.parametrize(
    "text",
    [
        "TYPE f PARAMETERS((int));",
        "uint8_t f PARAMETERS((int));",
        "unsigned OTHER f PARAMETERS((int));",
        "void OTHER f PARAMETERS((int));",
        "int a = 1, f PARAMETERS((int));",
        "int a = f;",
        "int a = *f;",
        "void *a = &f;",
        "void g PARAMETERS((f));",
    ],
)
def test_a_name_that_macros_may_make_a_value_is_mentioned(text):
    assert "f" in parse_source("a.c", text).mentioned
