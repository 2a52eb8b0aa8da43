"""Which loops a use of a macro holds, and whose pragma it takes: none where it may be another loop's."""

import pytest

from tests.path_check import check_emulated, proved
from tests.support import guest_of
from wcet_probe.analyzer.facts.source_loops import loop_macros, macro_words, parse_source
from wcet_probe.catalog.lookup import load_target
from wcet_probe.errors import AnalysisError

PRAGMA = '_Pragma("loopbound min 1 max 4") '
FOUR = f"{PRAGMA}for (int i = 0; i < 4; i++) "
MANY = "for (int j = 0; j != a; j++) "
COUNTING = "volatile int g;\n__attribute__((noinline)) void h(void) { g++; }\n"


def pragmas(text, *others):
    texts = (text, *others)
    loops = parse_source("a.c", text, loop_macros(texts), macro_words(texts)).loops
    return [(loop.first_line, loop.pragma) for loop in loops]


def in_function(definition, use):
    return f"{definition}\nvoid f(int a) {{\n{use}\n}}\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (in_function(f"#define STEP {FOUR} h();", "STEP"), [(3, (1, 4))]),
        (in_function(f"#ifndef STEP\n#define STEP {FOUR} h();\n#endif", "STEP"), [(5, None)]),
        (in_function("#if A", f"#define STEP {FOUR} h();\n STEP\n") + "#endif\n", [(4, (1, 4))]),
        (in_function(f"#if A\n#define STEP {FOUR}\n#elif B", "STEP h();\n#endif"), [(5, None)]),
        (in_function(f"#define STEP {MANY} h();\n#if A\n#undef STEP\n#define STEP h();\n#endif", "STEP"), [(7, None)]),
        (
            in_function(f"#define STEP {MANY} h();\n#if A\n#undef STEP\n#define STEP {FOUR} h();\n#endif", "STEP"),
            [(7, None)],
        ),
        (in_function(f'#define STEP {FOUR} h();\n#include "a.h"', "STEP"), [(4, None)]),
        (in_function(f"#define STEP(x) {FOUR} x", f"STEP({MANY} h());"), [(3, None), (3, None)]),
        (in_function(f"#define STEP(x) {FOUR} x", f"STEP(\n{MANY} h()\n);"), [(3, None), (4, None)]),
        (in_function(f"#define STEP(x) {FOUR} x\n#define EACH {MANY}", "STEP(EACH h());"), [(4, None), (4, None)]),
        (in_function(f"#define STEP {FOUR}", f"STEP {MANY} h();"), [(3, (1, 4)), (3, None)]),
        (in_function(f"#define EACH {MANY}\n#define STEP {FOUR} EACH h();", "STEP"), [(4, None), (4, None)]),
        (
            in_function(f"#define EACH {MANY}\n#define STEP {FOUR} EACH h();", "STEP\n}\n#undef EACH\n#define EACH\n{"),
            [
                (4, None),
                (4, None),
            ],
        ),
        (in_function("", f"#define BOUND {PRAGMA}\n{MANY} h();"), [(4, None)]),
    ],
)
def test_a_pragma_is_taken_where_it_is_clear_which_loop_it_means(text, expected):
    assert pragmas(text, f"#define STEP {MANY} h();\n") == expected


@pytest.mark.parametrize(("word", "is_loop"), [("while", True), ("for", True), ('"wait for it"', False)])
def test_a_macro_that_is_the_keyword_of_a_loop_holds_one(word, is_loop):
    assert bool(loop_macros([f"#define W {word}\n"])) == is_loop


@pytest.mark.parametrize(
    ("macro", "is_loop"),
    [
        ("CAT(a, b) a##b", True),
        ("CAT(a, ...) a ## \\\n __VA_ARGS__", True),
        ("CAT(a, b) a %:%: b", True),
        ("WHILE(a) whi ## a", True),
        ("GO go##to", True),
        ("READ(x) GPIO_##x = 1", False),
        ("NAME(a, b) a##_##b", False),
        ("TEXT(a) #a", False),
    ],
)
def test_a_macro_that_may_join_the_keyword_of_a_loop_holds_one(macro, is_loop):
    assert bool(loop_macros([f"#define {macro}\n"])) == is_loop


def test_a_pragma_bounds_no_loop_whose_keyword_a_macro_or_two_lines_hide():
    for hidden in ("W", "whi\\\nle", "CAT(whi, le)", "V"):
        text = in_function(
            f"{'%:' if hidden == 'V' else '#'}define V while\n#define W while\n#define CAT(a, b) a##b\nvolatile int g;",
            f"{PRAGMA}\nfor (int i = 0; i < 2; i++) {{ g++; {hidden} (a != 1) {{ a = a & 1 ? 3 * a : a / 2; g++; }} }}",
        )
        with pytest.raises(AnalysisError, match="no bound for the loop"):
            proved(guest_of(text, load_target("cortex-m4"), ".c"), "f", sources={"guest.c": text})


def test_a_loop_behind_a_macro_is_a_loop_that_the_parser_misses():
    text = in_function(
        "#define STEP(x) h(x)\n#define WORD", 'WORD for (;;) h("for (;;)");\nSTEP(while (0) a); WORD h();'
    )
    assert pragmas(text) == [(4, None)]


@pytest.mark.parametrize("target", ["cortex-m4", "arm926ej-s"])
@pytest.mark.parametrize(
    ("definition", "use"),
    [
        (f"#define STEP {FOUR}", f"STEP {MANY} h();"),
        (f"#define STEP(x) {FOUR} {{ x; }}", f"STEP({MANY} h())"),
        (f"#define STEP {MANY} h();\n#ifdef NONE\n#undef STEP\n#define STEP {FOUR} h();\n#endif", "STEP"),
        (f"#define EACH {MANY}\n#define STEP {FOUR} EACH h();", "STEP\n}\n#undef EACH\n#define EACH\nvoid k(void) {"),
    ],
)
def test_another_loop_of_the_line_does_not_take_the_pragma_of_a_macro(target, definition, use):
    """Unrolled four times, what is left on the line of the use is the loop inside, as often as the caller says."""
    text = COUNTING + in_function(definition, use)
    guest = guest_of(text, load_target(target), ".c")
    try:
        proof = proved(guest, "f", sources={"guest.c": text})
    except AnalysisError:
        return
    for rounds in (4, 9, 100):
        check_emulated(proof, rounds)
