"""From the command line: a false fact of each kind ends with exit code 5 and a sentence that names the fact."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.support import image_of
from wcet_probe.answer.firmware import firmware_run
from wcet_probe.catalog.lookup import load_target
from wcet_probe.cli.app import main
from wcet_probe.errors import ExitCode

TARGET = "mpc603e"
SOURCE = """\
#include <stdint.h>
struct node { struct node *next; uint32_t key; };
uint32_t words[64] __attribute__((aligned(64)));
struct node nodes[8] __attribute__((aligned(32)));
void link(uint32_t n)
{
    for (uint32_t i = 0; i < 8; i++)
        nodes[i].next = i + 1 < n ? &nodes[i + 1] : 0;
}
uint32_t chain(struct node *node, uint32_t n)
{
    uint32_t sum = 0;
    for (uint32_t i = 0; i < n; i++) { /* loop: rounds */
        /* loop: walk */
        for (struct node *at = node; at; at = at->next)
            sum += at->key;
        if (sum == 77) {
            /* point: never */
            words[sum & 63] = sum;
        }
    }
    return sum;
}
uint32_t deep(uint32_t n) { return n ? 1 + deep(n / 2) * n : 0; }
uint32_t one(uint32_t x) { return x + words[0]; }
uint32_t two(uint32_t x) { return x * words[1]; }
uint32_t (*volatile handler)(uint32_t) = two;
uint32_t called(uint32_t x) { return handler(x) + 1; }
uint32_t add(uint32_t *at) { return at[0] + 1; }
volatile uint32_t sink;
__attribute__((noinline)) void tell(uint32_t key) { sink = key; }
void least_of(struct node *node, uint32_t least)
{
    while (node) { /* loop: nodes */
        uint32_t key = node->key;
        /* point: better */
        if (key < least) {
            tell(key);
            least = key;
        }
        node = node->next;
    }
}
"""


def fact(kind: str, **keys: object) -> str:
    values = {**keys, "because": "it is said"}
    return f"[[{kind}]]\n" + "".join(f"{key} = {_toml(value)}\n" for key, value in values.items())


def _toml(value: object) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f'"{key}" = {weight}' for key, weight in value.items()) + " }"
    return str(value) if isinstance(value, int | list) else f'"{value}"'


LOOPS = fact("loop", function="chain", label="rounds", max=9) + fact("loop", function="chain", label="walk", max=8)
WALK = "link(4); chain(&nodes, 3)"
ASTRAY = "to where the value analysis excludes it on this call path; where control goes rests on the fact"
FALSE = {
    "maximum": ("chain", fact("loop", function="chain", label="walk", max=2), WALK, "ran its header 4 times"),
    "total": (
        # Three entries, each with four executions of the header, of which one need be no round of the body.
        *("chain", fact("loop", function="chain", label="walk", max=8, total=8), WALK),
        "runs at most 8 times in all: it is said; the sum was 9, and at most 8 is claimed",
    ),
    "flow": (
        *("chain", LOOPS + fact("flow", function="chain", sum={"loop walk": 1, "loop rounds": 1}, max=8), WALK),
        "1 * loop walk of chain + 1 * loop rounds of chain <= 8: it is said; the sum was 11",
    ),
    "infeasible": (
        *("chain", LOOPS + fact("infeasible", function="chain", point="never")),
        "u32[&nodes + 4] = 77; link(1); chain(&nodes, 3)",
        "never of chain is never executed: it is said; the sum was 1",
    ),
    "then": (
        "least_of",
        fact("loop", function="least_of", label="nodes", max=8)
        + fact("flow", function="least_of", sum={"then better": 1}, max=2),
        "link(4); "
        + "".join(f"u32[&nodes + {8 * node + 4}] = {9 - node}; " for node in range(4))
        + "least_of(&nodes, 9)",
        "1 * then better of least_of <= 2: it is said; the sum was 3",
    ),
    "recursion": (
        *("deep", fact("recursion", function="deep", max_depth=4), "deep(100)"),
        ASTRAY,
    ),
    "calls": (
        *("called", fact("calls", function="called", line=28, targets=["one"]), "called(3)"),
        ASTRAY,
    ),
    "argument": (
        *("chain", LOOPS + fact("argument", function="chain", index=1, min=0, max=2), WALK),
        "argument 1 is 3",
    ),
    "word": ("one", fact("word", symbol="words", max=3), "u32[&words] = 9; one(3)", "was 9 where it was loaded"),
    "alignment": ("add", fact("pointer", multiple_of=32), "add(&words + 4)", "outside of what the value analysis"),
    "sets": (
        *("add", fact("pointer", multiple_of=4, first_set=0, sets=1), "add(&words + 32); add(&words)"),
        "in a set of the cache that is excluded there",
    ),
    "symbol": (
        *("add", fact("pointer", multiple_of=4, symbol="words"), "add(&nodes)"),
        "outside of what the value analysis allows there",
    ),
    "lines": (
        *("chain", LOOPS + fact("pointer", multiple_of=8, lines=1, lines_per_set=1), "link(8); chain(&nodes, 2)"),
        "more than 1 lines were accessed in one call of chain",
    ),
    "line changes": (
        *("chain", LOOPS + fact("pointer", multiple_of=8, line_changes=1), "link(8); chain(&nodes, 2)"),
        "more than 1 accesses went to another line than the access before",
    ),
    "visit": (
        *("chain", LOOPS + fact("pointer", multiple_of=8, visit="again", visit_line_bytes=32)),
        *("link(8); chain(&nodes, 2)", "in a line that was not loaded from on a first visit"),
    ),
}


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("false facts")
    (folder / "guest.c").write_text(SOURCE, "utf-8")
    (folder / "guest.elf").write_bytes(image_of(SOURCE, load_target(TARGET), ".c").elf)
    return folder


def hashed(facts, command, capsys):
    """The facts with their hashes, and exit code and words of ``command`` with them.

    The error of a fact without a hash names the fact's line and the hash of what it speaks of.
    """
    while True:
        Path("facts.toml").write_text(facts, "utf-8")
        code = main(command)
        captured = capsys.readouterr()
        asked = re.search(r'facts\.toml:(\d+).*(sha256 = "[0-9a-f]+")', captured.err, re.DOTALL)
        if code != ExitCode.USAGE or not asked:
            return facts, code, captured.out + captured.err
        lines = facts.splitlines(keepends=True)
        lines.insert(int(asked[1]), asked[2] + "\n")
        facts = "".join(lines)


@pytest.mark.parametrize("kind", FALSE)
def test_a_false_fact_of_each_kind_is_refuted_and_named(kind, home, capsys, monkeypatch):
    monkeypatch.chdir(home)
    entry, facts, run, sentence = FALSE[kind]
    if facts.startswith('[[loop]]\nfunction = "chain"\nlabel = "walk"'):
        facts += fact("loop", function="chain", label="rounds", max=9)
    command = ["bound", "guest.elf", "--entry", entry, "--target", TARGET, "--facts", "facts.toml", "-q", "--run", run]
    facts, code, said = hashed(facts, command, capsys)
    assert code == ExitCode.CONTRADICTION, said
    assert sentence in said
    (named,) = set(re.findall(r"facts\.toml:(\d+)", said))
    falses = [number for number, line in enumerate(facts.splitlines(), 1) if line.startswith("[[")]
    assert int(named) in falses
    if kind not in {"maximum", "total"}:
        assert int(named) == falses[-1]


def test_a_fact_without_effect_is_told_on_the_first_screen(tmp_path, capsys, monkeypatch):
    """The place is executed on a condition, within a block that is executed all the same."""
    monkeypatch.chdir(tmp_path)
    Path("guest.c").write_text(SOURCE, "utf-8")
    Path("guest.elf").write_bytes(image_of(SOURCE, load_target("cortex-m4"), ".c").elf)
    facts = LOOPS + fact("infeasible", function="chain", point="never")
    command = ["bound", "guest.elf", "--entry", "chain", "--target", "cortex-m4", "--facts", "facts.toml", "-q"]
    _, code, said = hashed(facts, command, capsys)
    assert code == ExitCode.OK
    assert "Facts without effect: 1; --why tells each" in said


def test_facts_of_firmware_tell_their_effects(home, capsys, monkeypatch):
    """Without one loop's fact a type's width bounds it, without the other's nothing; a sum makes the bound smaller."""
    monkeypatch.chdir(home)
    facts = LOOPS + fact("flow", function="chain", sum={"loop walk": 1}, max=20)
    command = ["bound", "guest.elf", "--entry", "chain", "--target", TARGET, "--facts", "facts.toml", "-q"]
    _, code, said = hashed(facts, [*command, "--fact-effects", "--json"], capsys)
    document = json.loads(said)
    effects, bound = document["fact_effects"], document["bound"]
    assert code == ExitCode.OK
    assert effects["all"] == {unit: bound[unit] for unit in ("instructions", "cycles")}
    assert effects["no_facts"] is None
    assert effects["loop_facts_only"]["instructions"] > bound["instructions"]
    assert [one["kind"] for one in effects["facts"]] == ["loop", "loop", "flow"]
    by_type, none, flow = (one["without"] for one in effects["facts"])
    assert by_type["instructions"] > 1 << 32
    assert (none, flow) == (None, effects["loop_facts_only"])
    assert main([*command, "--why"]) == ExitCode.OK
    assert re.search(r"proved with .*\n  all facts .*\n  loop facts only .*\n  no facts +none", capsys.readouterr().out)


PANIC = """\
int values[4];
int at(unsigned i) { if (i > 3) for (;;) { } return values[i]; }
"""


@pytest.mark.parametrize("target", ["cortex-m4", "mpc603e"])
def test_a_run_that_panics_is_told_where_what_never_returns_is(target, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    # It takes half a minute until a run is given up otherwise.
    monkeypatch.setattr(firmware_run, "_MOST_INSTRUCTIONS", 1 << 20)
    Path("f.elf").write_bytes(image_of(PANIC, load_target(target), ".c").elf)
    asked = ("bound", "f.elf", "--entry", "at", "--target", target, "-q", "--run")
    assert main([*asked, "at(3)"]) == ExitCode.OK
    capsys.readouterr()
    assert main([*asked, "at(4)"]) == ExitCode.CONTRADICTION
    assert "against the assumption call-returns, to what never does, at at+0x" in capsys.readouterr().err
