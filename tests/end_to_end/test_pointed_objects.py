"""Facts about what arguments and words point to: targets and counts are read from the image, and runs hold them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.support import image_of
from wcet_probe.catalog.lookup import load_target
from wcet_probe.cli.app import main
from wcet_probe.errors import ExitCode

SOURCE = """\
struct curve { int words; int (*reduce)(int); };
volatile int v;
static int reduce(int n) { return n + v; }
static int other(int n) { return n - v; }
const struct curve first = { 5, reduce };
const struct curve second = { 50, other };
struct user { int kind; const struct curve *curve; } user = { 1, &first };
#define NOINLINE __attribute__((noinline))
NOINLINE int mult(int a, int b, int c, int d, int e, int f, int g, int h, int i, const struct curve *curve)
{
    int sum = a + b + c + d + e + f + g + h + i;
    for (int k = 0; k < curve->words; k++)
        sum ^= v;
    return curve->reduce(sum);
}
NOINLINE int of_user(struct user *u)
{
    int sum = u->curve->reduce(3);
    for (int k = 0; k < u->curve->words; k++)
        sum += v;
    return sum;
}
int good(void) { return mult(1, 2, 3, 4, 5, 6, 7, 8, 9, &first); }
int bad(void) { return mult(1, 2, 3, 4, 5, 6, 7, 8, 9, &second); }
int good_user(void) { return of_user(&user); }
NOINLINE int count(int a, int b, int c, int d, int e, int f, int g, int h, int i, int n)
{
    int sum = a + b + c + d + e + f + g + h + i;
    while (n-- > 0)
        sum ^= v;
    return sum;
}
int seven(void) { return count(1, 2, 3, 4, 5, 6, 7, 8, 9, 7); }
int eight(void) { return count(1, 2, 3, 4, 5, 6, 7, 8, 9, 8); }
int bad_user(void) { user.curve = &second; return of_user(&user); }
"""
ARGUMENT = '[[argument]]\nfunction = "mult"\nindex = 9\npoints_to = "first"\nbecause = "there is one curve"\n'
USER = '[[argument]]\nfunction = "of_user"\nindex = 0\npoints_to = "user"\nbecause = "there is one user"\n'
WORD = '[[word]]\nsymbol = "user"\n{}\npoints_to = "first"\nbecause = "it has one curve"\n'
COUNT = '[[argument]]\nfunction = "count"\nindex = 9\nmin = 0\nmax = 7\nbecause = "so many"\n'
CORES = ("cortex-m4", "arm926ej-s")
"""Where constants stand in memory that is only read."""


@pytest.fixture
def tool(tmp_path, monkeypatch, capsys):
    """The tool in a folder with the program and the facts; its exit code and what it printed."""
    monkeypatch.chdir(tmp_path)
    Path("guest.c").write_text(SOURCE, "utf-8")

    def ask(target, facts, *words):
        Path("f.toml").write_text(facts, "utf-8")
        Path("f.elf").write_bytes(image_of(SOURCE, load_target(target), ".c").elf)
        code = main([*words, "--facts", "f.toml", *(["-q"] if words[0] == "bound" else [])])
        return code, *capsys.readouterr()

    return ask


def bound_of(target, entry, *more):
    return ("bound", "f.elf", "--target", target, "--entry", entry, *more)


@pytest.mark.parametrize("target", CORES)
def test_a_pointer_on_the_stack_leads_to_what_the_image_holds(tool, target):
    code, text, _ = tool(target, ARGUMENT, *bound_of(target, "mult", "--run", "good()", "--json"))
    assert code == ExitCode.OK
    document = json.loads(text)["results"][0] if "results" in json.loads(text) else json.loads(text)
    assert "argument 9 points to first at entry: there is one curve" in json.dumps(document)
    Path("bound.json").write_text(text, "utf-8")
    code, text, _ = tool(target, ARGUMENT, "verify", "bound.json", "--image", "f.elf")
    assert code in {ExitCode.OK, ExitCode.CHECKED_IN_PART}
    if target == "cortex-m4":
        assert code == ExitCode.OK, text


@pytest.mark.parametrize("target", CORES)
def test_a_run_that_is_given_another_object_contradicts_the_fact(tool, target):
    code, _, error = tool(target, ARGUMENT, *bound_of(target, "mult", "--run", "bad()"))
    assert code == ExitCode.CONTRADICTION
    assert "argument 9 is 0x" in error
    assert "against the fact f.toml:1, which says that it points to first, 0x" in error


@pytest.mark.parametrize("target", [*CORES, "mpc603e"])
def test_the_range_of_an_argument_on_the_stack_bounds_a_loop(tool, target):
    assert tool(target, COUNT, *bound_of(target, "count", "--run", "seven()"))[0] == ExitCode.OK
    code, _, error = tool(target, COUNT, *bound_of(target, "count", "--run", "eight()"))
    assert code == ExitCode.CONTRADICTION
    assert "argument 9 is 8 in call 1 of count in eight(), against the fact f.toml:1, which says 0 to 7" in error


def test_a_call_without_the_stack_s_arguments_is_not_held_against_the_fact(tool):
    code, _, error = tool("cortex-m4", ARGUMENT, *bound_of("cortex-m4", "mult", "--run", "mult(1, 2, 3, 4)"))
    assert code == ExitCode.USAGE
    assert "let a function of the firmware make the call" in error


@pytest.mark.covering(1)
@pytest.mark.parametrize("target", CORES)
@pytest.mark.parametrize("place", ['field = "curve"', "offset = 4"])
def test_a_word_that_points_to_an_object_leads_there(tool, target, place):
    facts = USER + WORD.format(place)
    code, text, _ = tool(target, facts, *bound_of(target, "of_user", "--run", "good_user()", "--why"))
    assert code == ExitCode.OK
    assert f"the word at user{'.curve' if 'field' in place else ' + 4'} points to first: it has" in " ".join(
        text.split()
    )
    code, _, error = tool(target, facts, *bound_of(target, "of_user", "--run", "bad_user()"))
    assert code == ExitCode.CONTRADICTION
    assert "f.toml:6" in error


def test_the_checker_follows_a_word_by_its_offset(tool):
    facts = USER + WORD.format("offset = 4")
    code, text, _ = tool("cortex-m4", facts, *bound_of("cortex-m4", "of_user", "--json"))
    assert code == ExitCode.OK
    Path("bound.json").write_text(text, "utf-8")
    assert tool("cortex-m4", facts, "verify", "bound.json", "--image", "f.elf")[0] == ExitCode.OK
    changed = facts.replace('points_to = "first"\nbecause = "it', 'points_to = "second"\nbecause = "it')
    assert tool("cortex-m4", changed, "verify", "bound.json", "--image", "f.elf")[0] == ExitCode.FAILURE


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        (ARGUMENT.replace('"first"', '"first+"'), "cannot be 'first\\+'; name a function or an object"),
        (ARGUMENT + "min = 1\n", "points_to: leave it out, or min"),
        (WORD.format('field = "curve"\noffset = 4'), "field: leave it out, or the offset"),
        (WORD.format('field = "cruve"'), "f.toml:1.*field.*'curve'"),
        (WORD.format('field = "curve"') + WORD.format("offset = 4"), "f.toml:1 speaks of user \\+ 4 too"),
    ],
)
def test_what_is_told_of_pointers_in_a_wrong_way_is_refused(tool, facts, message):
    code, _, error = tool("cortex-m4", facts, *bound_of("cortex-m4", "of_user"))
    assert code == ExitCode.USAGE
    assert re.search(message, error)
