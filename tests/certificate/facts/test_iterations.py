"""Rounds of a loop that the compiler has unrolled are iterations by a variable that counts them; else nothing tells."""

import json
from dataclasses import replace
from fractions import Fraction
from functools import cache

import pytest

from tests.certificate.forgeries import sealed, solved_again
from tests.support import image_of, images_dir
from wcet_probe.catalog.lookup import load_target
from wcet_probe.certificate.facts.asserted import loop_behind, read_asserted
from wcet_probe.certificate.facts.iterations import iterations_of_rounds
from wcet_probe.certificate.facts.plain_source import statement_end
from wcet_probe.cli import main
from wcet_probe.errors import VerificationError
from wcet_probe.evidence.checking import check_file_result

SOURCE = """\
#define TWICE(x) ((x) + (x))
unsigned seen;
static unsigned rest(unsigned a, unsigned b) { return a % b; }
unsigned f(unsigned n)
{
    unsigned i;
    _Pragma("clang loop unroll_count(4)") _Pragma("loopbound min 0 max 16")
    for (i = 3; i * i <= n; i += 2) {
        if (rest(n, i) == 0)
            return 0;
    }
    return n > 1;
}
"""
HEAD = "for (i = 3; i * i <= n; i += 2) {"
BODY = "if (rest(n, i) == 0)"
BLOCK = SOURCE[SOURCE.index(HEAD) + len(HEAD) - 1 : SOURCE.index("    return n > 1;")].rstrip()
PRAGMA = 7


@cache
def image():
    return image_of(SOURCE, load_target("cortex-m4"), ".c")


def folder():
    place = images_dir() / "iterations"
    place.mkdir(exist_ok=True)
    (place / "guest.c").write_text(SOURCE)
    (place / "guest.elf").write_bytes(image().elf)
    return place


@cache
def proved():
    printed = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("wcet_probe.cli.streams.print_json", printed.append)
        words = ["bound", str(folder() / "guest.elf"), "--entry", "f", "--source", str(folder()), "--json", "-q"]
        assert main(words) == 0
    return json.loads(json.dumps(printed[0]))


def checked(document):
    return check_file_result(document, json.dumps(document).encode(), image().elf, source_dirs=[folder()])[0]


@cache
def asked():
    """What the rule is asked where the true bound is checked."""
    found = []

    def kept(*given):
        found.append(given)
        return iterations_of_rounds(*given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("wcet_probe.certificate.facts.asserted_loops.iterations_of_rounds", kept)
        assert checked(proved()).is_full
    return found[0]


def iterations(text=SOURCE, change=lambda one: one):
    """At least so many are a round, by the sources ``text`` and where ``change`` says that variables are."""
    covered, loop, _, _, variables = asked()
    asserted = read_asserted([], {"guest.c": text})
    extent = loop_behind(asserted, "guest.c", PRAGMA)
    places = [one for each in variables for one in spread(change(each))]
    return iterations_of_rounds(covered, loop, extent, asserted, places)


def spread(found):
    return found if isinstance(found, list) else [found]


def test_rounds_are_iterations_by_a_variable_that_counts_them():
    (loop,) = proved()["bound"]["loops"]
    assert (loop["expression"], loop["max"]) == ("(16) // 4", 5)
    assert iterations() == 4


def test_a_step_that_is_half_as_long_makes_twice_as_many_and_only_as_many_as_are_seen():
    """They are 8 then, and the debug information tells the variable at 11 distances of 1: which is enough for 8."""
    assert iterations(SOURCE.replace("i += 2", "i += 1")) == 8
    assert iterations(SOURCE.replace("i += 2", "i += 3")) == 1


TEXTS = {
    "it is changed twice": (BODY, "if (rest(n, i++) == 0)"),
    "it is changed in the test": (HEAD, "for (i = 3; (i += 2) * i <= n; ) {"),
    "it is changed before the loop alone": (HEAD, "for (i += 2; i * i <= n; ) {"),
    "it is changed by what is no constant": (HEAD, "for (i = 3; i * i <= n; i += n) {"),
    "it is changed to what is no sum": (HEAD, "for (i = 3; i * i <= n; i = n + 2) {"),
    "it is multiplied": (HEAD, "for (i = 3; i * i <= n; i *= 2) {"),
    "it is changed in parentheses as well": (BODY, "if (rest(n, (i)++) == 0)"),
    "it is changed in a loop inside": (HEAD, "for (i = 3; i * i <= n; ) { while (n) i += 2;"),
    "it is changed behind an else": (BLOCK, "if (rest(n, i) == 0) n++; else i += 2;"),
    "it is changed behind an else of what may be an if": (BLOCK, "ROUND n++; else i += 2;"),
    "it is changed in a block of what may be an if": (BLOCK, "ROUND { n++; i += 2; }"),
    "it is changed behind an else in a loop inside": (
        HEAD[:-1] + BLOCK,
        "for (i = 3; n; ) { while (n) ROUND n--; else i += 2; }",
    ),
    "it is changed in a loop behind a pragma": (BLOCK, '_Pragma("x") for (; n; n--) i += 2;'),
    "it is changed in a loop behind a name": (BLOCK, "at: for (; n; n--) i += 2;"),
    "it is changed in the test of a do without braces": (HEAD[:-1] + BLOCK, "do i += 2; while ((i += 2) <= n);"),
    "a function inside changes it": (
        "    unsigned i;",
        "    unsigned i; unsigned rest(unsigned a, unsigned b) { return a % (b + i++); }",
    ),
    "its address is taken": ("    return n > 1;", "    return g(&i);"),
    "another one has its name": (BODY, "{ unsigned i; } if (rest(n, i) == 0)"),
    "it is of the whole program": ("    unsigned i;", "    static unsigned i;"),
    "a jump leads into the loop": (BODY, "at: if (rest(n, i) == 0) goto at;"),
    "a switch leads into the loop": (BODY, "case 7: if (rest(n, i) == 0)"),
    "assembly stands in the function": ("    return n > 1;", "    asm(); return n > 1;"),
    "what is called is no function of the sources": (BODY, "if (unknown(n, i) == 0)"),
    "what is called is a macro": (BODY, "if (TWICE(n) == 0)"),
    "a macro speaks of it": ("TWICE(x) ((x) + (x))", "ROUND i++"),
    "a part is compiled perhaps": (BODY, "\n#if X\n i++;\n#endif\n"),
    "it is declared elsewhere": ("    unsigned i;\n", "    \n"),
    "there are two such functions": ("unsigned seen;", "unsigned f(unsigned n) { return n; }"),
}


@pytest.mark.parametrize("why", TEXTS)
def test_where_the_text_does_not_tell_that_it_counts_iterations_nothing_follows(why):
    old, new = TEXTS[why]
    text = SOURCE.replace(old, new)
    assert text != SOURCE
    assert iterations(text.replace("if (rest", "ROUND; if (rest") if why == "a macro speaks of it" else text) == 1


def is_counter(one):
    return (one.function, one.name) == ("f", "i")


PLACES = {
    "it is nowhere": lambda one: [] if is_counter(one) else one,
    "it is in two places at once": lambda one: [one, replace(one, scope=one.scope + 1)] if is_counter(one) else one,
    "it is in a register that a round keeps": lambda one: replace(one, registers=((13, Fraction(1)),)),
    "it is in a register that a round changes otherwise": lambda one: replace(one, registers=((0, Fraction(1)),)),
    "it is in a register that is not followed": lambda one: replace(one, registers=((64, Fraction(1)),)),
    "it is half of a register": lambda one: replace(
        one, registers=tuple((number, each / 2) for number, each in one.registers)
    ),
    "it is nowhere seen to move within a round": lambda one: replace(one, constant=Fraction(0)),
    "it is declared on another line": lambda one: replace(one, line=one.line + 1),
    "it is of another function": lambda one: replace(one, function="rest"),
    "it moves so far that it may have gone round": lambda one: replace(
        one, registers=tuple((number, each * 16) for number, each in one.registers)
    ),
}


@pytest.mark.parametrize("why", PLACES)
def test_where_the_debug_information_does_not_agree_nothing_follows(why):
    assert iterations(change=PLACES[why]) == 1


def test_a_forged_count_of_iterations_is_not_checked():
    """The same pragma divided by 8, where a round is 4 iterations; the assumption says 8 as well."""

    def more(problem, derivations, followed):
        (loop,) = problem.loops
        divided = [replace(one, expression="(16) // 8", max_header=3) for one in derivations]
        return replace(problem, loops=(replace(loop, max_back_edges=2),)), divided, followed

    text = json.dumps(proved()).replace("is 4 iterations of", "is 8 iterations of")
    forged = json.loads(text)
    (loop,) = forged["bound"]["loops"]
    loop |= {"max": 3, "expression": "(16) // 8"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("wcet_probe.certificate.check.check_shown", lambda *_: "")
        found = checked(solved_again(forged, more)).findings
    assert {one.check for one in found if one.verdict != "ok"} == {"constraints in instructions"}
    assert any("is 8 iterations" in one.found for one in found)


@pytest.mark.parametrize("says", [None, "is 2 iterations of"])
def test_the_assumption_is_listed_and_says_how_many(says):
    document = json.loads(json.dumps(proved()))
    (own,) = (one for one in document["bound"]["assumptions"] if one["id"].startswith("rounds "))
    own["statement"] = own["statement"].replace("is 4 iterations of", says or "")
    if says is None:
        document["bound"]["assumptions"].remove(own)
    with pytest.raises(VerificationError, match="no assumption says that a round"):
        checked(sealed(document))


def test_a_choice_of_thousands_is_read_to_its_end():
    text = "if (a) x; " + "else if (b) { y; } " * 3000 + "else z;"
    assert statement_end(f"{text} w;", 0, len(text) + 3) == len(text) - 1
