"""Which variables count the rounds of a loop, read off its text."""

import pytest

from wcet_probe.analyzer.facts.source_loops import loop_macros, macro_words, parse_source, unchanging_macros


def counters_of(body, text=""):
    text = f"{text}void g(int);\nvoid f(int n, int s)\n{{\n int i = 0;\n {body}\n}}\n"
    loop, *_ = parse_source("a.c", text, loop_macros([text]), macro_words([text]), unchanging_macros([text])).loops
    return [(one.name, one.step, one.in_test) for one in loop.counters]


@pytest.mark.parametrize(
    ("body", "counters"),
    [
        ("while (i < n) i++;", [("i", 1, False)]),
        ("while (i++ < n) g(s);", [("i", 1, True)]),
        ("while (i < n) { i = i + 3; s -= 2u; }", [("s", -2, False), ("i", 3, False)]),
        ("for (int k = 9; k > 0; k -= 2) g(k);", [("k", -2, False)]),
        ("do --i; while (i > n);", [("i", -1, False)]),
    ],
)
def test_a_variable_that_each_round_changes_once_by_a_constant(body, counters):
    assert sorted(counters_of(body)) == sorted(counters)


@pytest.mark.parametrize(
    "body",
    [
        "while (i < n) { i++; i++; }",
        "while (i < n) i += s;",
        "while (i < n) i = n - 1;",
        "while (i < n) while (s) i++;",
        "while (i < n) { i++; g(*&i); }",
        "while (i < n) { i++; unknown(i); }",
        'while (i < n) { i++; __asm__("" : "+r"(i)); }',
        "goto in; while (i < n) { in: i++; }",
        "switch (s) { case 1: while (i < n) { case 2: i++; } }",
        "while (i < n) { int i = 0; i++; }",
    ],
)
def test_what_is_not_clear_counts_nothing(body):
    assert counters_of(body) == []


@pytest.mark.parametrize("defined", ["", "#define FOUR for (int k = 0; k < 4; k++)\n#define MORE ++*to\n"])
@pytest.mark.parametrize(
    ("body", "counters"),
    [
        ("i++;", ["i"]),
        ("words[i++] = s;", ["i"]),
        ("FOUR words[i++] = s;", []),
        ("FOUR { i++; }", []),
        ("FOUR ++i;", []),
        ("FOUR (i)++;", []),
        ("FOUR if (s) i++;", []),
        ("MORE; i++;", []),
    ],
)
def test_a_variable_that_a_macros_loop_may_change_counts_no_iterations(body, counters, defined):
    text = f"{defined}unsigned words[9];\nvoid f(int n, int s) {{\n int i = 0;\n while (i < n) {{ {body} }}\n}}\n"
    found = parse_source("a.c", text, loop_macros([text]), macro_words([text])).loops
    assert next([one.name for one in loop.counters] for loop in found if loop.test_first) == counters


@pytest.mark.parametrize(
    "definition",
    [
        "#define M(a) ((int) (a))",
        "#define M(a) ((a) > 3 ? words[(a)] : sizeof(a))",
        "#define M(a) (N(a) + \\\n 2)\n#define N(a) ((a) & 0xff)",
    ],
)
def test_a_macro_that_is_a_value_changes_no_counter(definition):
    assert counters_of("while (i < n) { i++; g(M(i)); }", f"{definition}\n") == [("i", 1, False)]
    assert counters_of("while (i < n) g(M(i++));", f"{definition}\n") == []


@pytest.mark.parametrize(
    "definition",
    [
        "#define M(a) ((a) = 3)",
        "#define M(a) ((a) <<= 1)",
        "#define M(a) ((a)++)",
        "#define M(a) (*& (a))",
        "#define M(a) (*(&(0 [words + (a)])))",
        "#define M(a) ({ (a); })",
        "#define M(a) h(a)",
        "#define M(a) N(a)\n#define N(a) h(a)",
        "#define M(a) ((a) + 1)\n#undef M\n#define M(a) h(a)",
        "#define M(a) (SET a)\n#define SET(a) a = 3",
        "#define M(a) SET a\n#define SET",
        "#define M(a) #a",
    ],
)
def test_a_macro_that_may_change_what_it_is_given_hides_a_counter(definition):
    assert counters_of("while (i < n) { i++; g(M(i)); }", f"{definition}\n") == []


@pytest.mark.parametrize(
    "definition", ["#define M(f, a) f(a)", "#define M(f, a) f a", "#define M(f, a) (f (a))", "#define M(f, a) f\\\n(a)"]
)
def test_a_macro_that_makes_a_call_of_its_argument_hides_a_counter(definition):
    text = f"#define SET(a) ((a) = 3)\n{definition}\n"
    assert counters_of("while (i < n) { i++; g(M(SET, (i))); }", text) == []
