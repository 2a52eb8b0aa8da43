"""How often places of sources are executed at most, by the sources alone."""

import re

import pytest

from wcet_probe.analyzer.facts.source_executions import SourceExecutions, UncountedError
from wcet_probe.analyzer.facts.source_index import index_sources

SOURCE = """\
static int helper(int n)
{
    return n; /* helper */
}
static void twice(void)
{
    helper(1); helper(2);
    _Pragma("loopbound min 0 max 3")
    for (int i = 0; i < 3; i++) {
        helper(i); /* inner */
    }
}
static void in_test(void) { }
static void unused(void)
{
    helper(9);
}
int entry(void)
{
    _Pragma("loopbound min 4 max 4")
    for (int i = 0; i < helper(4); i++) {
        _Pragma("loopbound min 0 max 5")
        while (i)
            twice(); /* nest */
    }
    twice();
    return 0; /* end */
}
"""


def executions(source, place, entry="entry"):
    line = next(number for number, text in enumerate(source.splitlines(), 1) if place in text)
    return SourceExecutions(index_sources({"a.c": source}), entry).at("a.c", line)


def test_loops_and_calls_multiply_and_places_add_up():
    assert executions(SOURCE, "/* end */") == 1
    assert executions(SOURCE, "/* nest */") == 4 * 5
    assert executions(SOURCE, "/* inner */") == (20 + 1) * 3
    # two and three in each of 21 calls, and the test of the outer loop once more than its body
    assert executions(SOURCE, "/* helper */") == 21 * 5 + (4 + 1)
    assert executions(SOURCE, "helper(9)") == 0


@pytest.mark.parametrize(
    "value",
    ['char const *x = "helper";', 'char x[] = "a " "helper";', 'char const *x[][1] = {{"b"}, [1] = {"helper"}};'],
)
def test_a_word_in_the_value_of_a_variable_calls_nothing(value):
    """A dictionary of words had "main" among them."""
    source = SOURCE.replace("static void in_test(void) { }", value)
    assert executions(source, "/* helper */") == 21 * 5 + (4 + 1)


@pytest.mark.parametrize("name", ["__aeabi_uidiv", "__cyg_profile_func_enter", "memset", "sincos"])
def test_what_compilers_may_call_by_themselves_is_not_counted(name):
    with pytest.raises(UncountedError, match=f"{name} has a name that compilers may call"):
        executions(SOURCE.replace("helper", name), f"/* {name} */")


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        ("helper(9);", "int (*p)(int) = helper;", "the address of helper may be taken"),
        ("static void in_test(void) { }", "int (*table[])(int) = {helper};", "the address of helper may be taken"),
        ("helper(9);", 'asm("bl helper");', "the address of helper may be taken"),
        ("static void in_test(void) { }", 'int other(int) asm("helper");', "the address of helper may be taken"),
        ("static void in_test(void) { }", 'int other(int) asm("hel" "per");', "the address of helper may be taken"),
        (
            "static void in_test(void) { }",
            "#pragma redefine_extname other helper",
            "the address of helper may be taken",
        ),
        ("static void in_test(void) { }", "#pragma redefine_extname \\\nother helper", "the address of helper may be"),
        ("static void in_test(void) { }", '_Pragma("weak other=helper")', "the address of helper may be taken"),
        ("static void in_test(void) { }", 'asm("other: b helper");', "the address of helper may be taken"),
        ("static void in_test(void) { }", 'int x = ASM("b helper");', "the address of helper may be taken"),
        ("return n;", "return helper(n);", "helper calls itself"),
        ("return n;", "twice(); return n;", "(helper|twice) calls itself"),
        ("static void in_test(void) { }", "#define AGAIN(n) helper(n)", "macros may call helper"),
        ("static void in_test(void) { }", "#define JOIN(a, b) a##b", "macros may call"),
        ("helper(1); helper(2);", "while (n) helper(1);", r"no pragma says how often the loop at a.c:\\d+"),
        ("helper(1); helper(2);", "again: helper(1); if (x) goto again;", "no pragma says"),
        ("helper(1); helper(2);", "FOREACH(x) { helper(1); }", "not all of twice is understood"),
        ("helper(1); helper(2);", "FOREACH(x) helper(1);", "the address of helper may be taken"),
        ("helper(9);", "setjmp(buffer);", "setjmp may have code executed"),
        ("static void in_test(void) { }", 'void other(void) __attribute__((alias("twice")));', "alias may have code"),
        ("static void in_test(void) { }", "int helper(int n) { return n; }", "the sources have 2 functions helper"),
        ("static void in_test(void) { }", '#include "again.h"', "again.h, which is included, is not among the sources"),
        ("int entry(void)", "int entry_(void)", "the sources have no functions entry"),
    ],
)
def test_what_is_not_clear_is_not_counted(before, after, why):
    assert before in SOURCE
    with pytest.raises(UncountedError, match=why.replace("\\\\", "\\")):
        executions(SOURCE.replace(before, after), "/* helper */")


@pytest.mark.parametrize(
    "pragma",
    [
        '_Pragma("GCC poison x") _Pragma("redefine_extname other helper")',
        "#define DO(x) _Pragma(#x)\n#define NAMES(a, b) DO(redefine_extname a b)\nNAMES(other, hel\\\nper)",
        "#pragma GCC diagnostic push\n#pragma redefine_\\\nextname other hel\\\nper",
    ],
)
def test_where_functions_may_be_renamed_nothing_is_counted_however_that_is_spelt(pragma):
    source = SOURCE.replace("static void in_test(void) { }", pragma)
    with pytest.raises(
        UncountedError,
        match=r"redefine_extname helper may be|the address of helper|macros may|a\.c tells nothing by line",
    ):
        executions(source, "/* helper */")


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        ("void in_test(void) { }", "#define A /* two\n lines */ helper(1)", "macros may call helper"),
        ("void in_test(void) { }", "#define A /* two\n\n lines */ helper(1)", "a.c tells nothing by line"),
        ("helper(9);", "// a \\ \n /* \n helper(1); /* */", "a.c tells nothing by line"),
        ("helper(9);", "/* *\\\n/ helper(1); /* */", "a.c tells nothing by line"),
        ("helper(9);", "/* *??/\n/ helper(1); /* */", "a.c tells nothing by line"),
        ("void in_test(void) { }", "\f#define A helper(1)", "a.c tells nothing by line"),
        ("void in_test(void) { }", "#define TWICE(x) x; x", "a macro may repeat a call of helper"),
        ("void in_test(void) { }", "#define TWICE(x) ((x) > 0 ? (x) : 0)", "a macro may repeat a call of helper"),
        (
            "void in_test(void) { }",
            "#define SAME(...) __VA_ARGS__ + __VA_ARGS__\n#define TWICE SAME",
            "may repeat a call",
        ),
        ("helper(9);", "__builtin_setjmp(buffer);", "__builtin_setjmp may have code executed"),
        ("helper(9);", "__real_helper(9);", "__real_helper may have code executed"),
        ("void in_test(void) { }", "void __wrap_helper(void) { }", "__wrap_helper may have code executed"),
    ],
)
def test_calls_that_are_hidden_or_repeated_are_not_counted(before, after, why):
    """Each was counted less often than it may be executed: those of comments never, those of macros once for twice."""
    source = SOURCE.replace("helper(1); helper(2);", "TWICE(helper(1)); helper(2);")
    with pytest.raises(UncountedError, match=why):
        executions(source.replace("static " * ("#" in after) + before, after), "/* helper */")


def test_an_apostrophe_in_what_is_not_compiled_hides_no_call():
    """Behind "don't" a comment was read up to the next one's end."""
    source = (
        SOURCE.replace(
            "static void in_test(void) { }",
            "#if 0\ndon't /* do it\n#endif\nstatic void more(void) { helper(1); }\n#if 0\n*/\n#endif",
        )
        .replace("helper(9);", "more();")
        .replace("    twice();\n", "    twice(); unused();\n")
    )
    assert executions(source, "/* helper */") == 21 * 5 + (4 + 1) + 1


def test_a_macro_that_repeats_what_is_no_call_repeats_none():
    source = SOURCE.replace("static void in_test(void) { }", "#define LARGER(a, b) ((a) > (b) ? (a) : (b))")
    assert executions(source.replace("return n;", "n = LARGER(n, 2); return n;"), "/* helper */") == 21 * 5 + (4 + 1)


def test_headers_of_macros_are_read_and_those_of_the_library_need_not_be():
    source = SOURCE.replace("static void in_test(void) { }", '#include <string.h>\n#include "inc/again.h"')
    line = next(number for number, text in enumerate(source.splitlines(), 1) if "/* helper */" in text)

    def number(header):
        return SourceExecutions(index_sources({"a.c": source, "./inc/again.h": header}), "entry").at("a.c", line)

    assert number("#define LIMIT 3\nint helper(int n);\n") == 21 * 5 + (4 + 1)
    with pytest.raises(UncountedError, match="macros may call helper"):
        number("#define AGAIN helper(1)\n")


def test_a_place_outside_of_functions_has_no_number():
    with pytest.raises(UncountedError, match=re.escape("a.c:2 is in no function")):
        SourceExecutions(index_sources({"a.c": "int a;\nint b;\n"}), "entry").at("a.c", 2)
