"""The observed side of a bound of any firmware: calls that are run, facts that runs refute, inputs of a search."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.support import TARGETS, assembler, image_of
from wcet_probe.answer.firmware import firmware_run
from wcet_probe.answer.firmware.run_script import parse_script
from wcet_probe.catalog.lookup import load_target
from wcet_probe.cli.app import main
from wcet_probe.errors import ExitCode, UsageError

SOURCE = """\
#include <stdint.h>
int32_t buffer[16];
uint32_t limit = 4;
void init(void)
{
    for (int i = 0; i < 16; i++)
        buffer[i] = 0;
}
__attribute__((noinline)) int f(int n, int32_t *b)
{
    int found = 0;
    /* loop: scan */
    for (int i = 0; i < n; i++)
        if (b[i] > 3)
            found += b[i] * b[i];
    return found;
}
int twice(int n) { return f(n, buffer) + f(n, buffer); }
int last(int n) { return f(n, buffer + 1); }
int second(int a, int b) { return a + (b > 3 ? b : buffer[0]); }
int few(int n) { return f(n & 3, buffer); }
int many(int n)
{
    int found = 0;
    for (int i = 0; i < n; i++) {
        buffer[i & 15] = i;
        found += f(i & 15, buffer) ^ i;
    }
    return found;
}
int half(int n) { return n / 2; }
void fill(int (*each)(int), int n) { buffer[0] = each(n); }
int deep(int n) { return n < 3 ? last(n) : many(n) + twice(n); }
int counted(void)
{
    int found = 0;
    for (uint32_t i = 0; i < limit; i++)
        found += buffer[i & 15];
    return found;
}
int pragma(int n)
{
    int found = 0;
    _Pragma("loopbound min 0 max 3")
    for (int i = 0; i < n; i++)
        found += buffer[i & 15];
    return found;
}
void stores(int n)
{
    _Pragma("loopbound min 0 max 3")
    for (int i = 0; i < n; i++)
        buffer[i & 15] = n;
}
"""
ARGUMENT = '[[argument]]\nfunction = "f"\nindex = 0\nmin = 0\nmax = 16\nbecause = "the buffer"\n'
LOOP = '[[loop]]\nfunction = "f"\nlabel = "scan"\nmax = 2\nbecause = "wrong"\n'
WORD = '[[word]]\nsymbol = "limit"\nmax = 8\nbecause = "wrong"\n'


@pytest.fixture
def firmware(tmp_path, monkeypatch):
    """A function that bounds an entry of the program with facts, and returns the exit code."""
    monkeypatch.chdir(tmp_path)
    Path("guest.c").write_text(SOURCE, "utf-8")

    def ask(entry: str, facts: str, *words: str, target: str = "cortex-m4") -> int:
        if not Path(f"{target}.elf").exists():
            Path(f"{target}.elf").write_bytes(image_of(SOURCE, load_target(target), ".c").elf)
        Path("facts.toml").write_text(facts, "utf-8")
        return main(
            ["bound", f"{target}.elf", "--entry", entry, "--target", target, "--facts", "facts.toml", *words, "-q"]
        )

    return ask


def hashed(ask, entry, facts, capsys):
    """``facts`` with the hash that the tool asks for."""
    assert ask(entry, facts) == ExitCode.USAGE
    (line,) = re.findall(r'sha256 = "[0-9a-f]+"', capsys.readouterr().err)
    return f"{facts}{line}\n"


@pytest.mark.covering(0)
@pytest.mark.parametrize("target", TARGETS)
def test_calls_are_held_against_bound_and_facts_and_inputs_are_searched(target, firmware, capsys):
    run = "init(); f(3, &buffer); u32[&buffer + 4] = 9, -1; f(5, &buffer)"
    words = ("--run", run, "--search", "60", "--vary", "&buffer:64", "--json")
    assert firmware("f", ARGUMENT, *words, target=target) == ExitCode.OK
    document = json.loads(capsys.readouterr().out)
    seen, bound = document["observed"], document["bound"]
    assert [call["call"] for call in seen["calls"]] == ["f(3, &buffer)", "f(5, &buffer)"]
    assert [call["result"] for call in seen["calls"]] == [0, 81]
    assert all(call["is_repeated"] for call in seen["calls"])
    assert max(call["cycles"] for call in seen["calls"]) < seen["found"]["cycles"] == seen["cycles"] <= bound["cycles"]
    # The search finds the longest range, and the dear branch in most rounds.
    assert bound["instructions"] <= 1.05 * seen["instructions"]
    checked = {one["id"]: one["executions"] for one in bound["assumptions"]}
    assert checked["fact facts.toml:1"] >= 62
    # What was found is a script that does the same again.
    again = "; ".join(["init()", *seen["found"]["script"]])
    assert firmware("f", ARGUMENT, "--run", again, "--json", target=target) == ExitCode.OK
    assert json.loads(capsys.readouterr().out)["observed"]["cycles"] == seen["found"]["cycles"]


def test_the_same_seed_finds_the_same(firmware, capsys):
    words = ("--run", "f(1, &buffer)", "--search", "20", "--seed", "3", "--vary", "&buffer:64", "--json")
    texts = []
    for _ in range(2):
        assert firmware("f", ARGUMENT, *words) == ExitCode.OK
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1]


def test_a_false_fact_about_a_loop_is_named(firmware, capsys):
    facts = hashed(firmware, "f", LOOP, capsys)
    assert firmware("f", facts, "--run", "f(2, &buffer)") == ExitCode.OK
    capsys.readouterr()
    assert firmware("f", facts, "--run", "f(4, &buffer)") == ExitCode.CONTRADICTION
    assert "at most 3 are claimed (fact facts.toml:1)" in capsys.readouterr().err


def test_a_false_fact_is_named_too_where_a_search_refutes_it_or_another_function_calls(firmware, capsys):
    facts = hashed(firmware, "f", LOOP, capsys) + ARGUMENT
    assert firmware("f", facts, "--run", "f(1, &buffer)", "--search", "30") == ExitCode.CONTRADICTION
    assert "fact facts.toml:1" in capsys.readouterr().err
    assert firmware("f", facts, "--run", "twice(9); f(1, &buffer)") == ExitCode.CONTRADICTION
    assert "fact facts.toml:1" in capsys.readouterr().err


def test_what_is_proved_of_a_loop_in_calls_of_the_entry_is_not_held_against_other_calls_of_its_code(firmware, capsys):
    """A set-up may call the same function with another size: that of a library's ciphers was a contradiction."""
    assert firmware("few", "", "--run", "init(); last(9); few(2)", "--json") == ExitCode.OK
    document = json.loads(capsys.readouterr().out)
    assert [call["call"] for call in document["observed"]["calls"]] == ["few(2)"]
    assert all(one["observed_max"] <= one["max"] for one in document["bound"]["loops"])


@pytest.mark.parametrize("target", TARGETS)
def test_a_function_can_be_given_as_the_pointer_that_it_is(target, firmware, capsys):
    run = "fill(&half, 18); f(1, &buffer); u32[&buffer] = &half; f(1, &buffer)"
    assert firmware("f", ARGUMENT, "--run", run, "--json", target=target) == ExitCode.OK
    given, word = (call["result"] for call in json.loads(capsys.readouterr().out)["observed"]["calls"])
    assert given == 81
    assert word & 1 == (target == "cortex-m4"), "an odd number's square is odd"


@pytest.mark.parametrize("target", TARGETS)
def test_an_argument_that_is_not_given_is_0_whatever_calls_before_left(target, firmware, capsys):
    """Else the engines took different words for it, and were said to disagree."""
    assert firmware("second", "", "--run", "second(1, 7); second(1)", "--json", target=target) == ExitCode.OK
    calls = json.loads(capsys.readouterr().out)["observed"]["calls"]
    assert [(call["result"], call["is_repeated"]) for call in calls] == [(8, True), (1, True)]


def test_a_false_pragma_is_named(firmware, capsys):
    assert firmware("pragma", ARGUMENT, "--run", "pragma(3)") == ExitCode.OK
    capsys.readouterr()
    assert firmware("pragma", ARGUMENT, "--run", "pragma(5)") == ExitCode.CONTRADICTION
    assert re.search(r"pragma guest\.c:\d+", capsys.readouterr().err)


def test_a_claim_about_the_entries_of_a_loop_is_held_against_runs(firmware, capsys):
    assert firmware("stores", ARGUMENT, "--run", "stores(3); stores(2)") == ExitCode.OK
    capsys.readouterr()
    assert firmware("stores", ARGUMENT, "--run", "stores(4)") == ExitCode.CONTRADICTION
    assert re.search(r"guest\.c:\d+", capsys.readouterr().err)


def test_an_argument_out_of_its_declared_range_is_named(firmware, capsys):
    assert firmware("f", ARGUMENT, "--run", "f(17, &buffer)") == ExitCode.CONTRADICTION
    assert "argument 0 is 17 in f(17, &buffer), against the fact facts.toml:1" in capsys.readouterr().err


def test_a_false_fact_about_a_word_is_named(firmware, capsys):
    assert firmware("counted", WORD, "--run", "counted()", target="arm926ej-s") == ExitCode.OK
    capsys.readouterr()
    assert (
        firmware("counted", WORD, "--run", "u32[&limit] = 9; counted()", target="arm926ej-s") == ExitCode.CONTRADICTION
    )
    assert "facts.toml:1" in capsys.readouterr().err


@pytest.mark.covering(0)
@pytest.mark.parametrize("target", TARGETS)
def test_calls_within_other_functions_are_measured_one_by_one(target, firmware, capsys):
    """The state of the program goes on as if nobody looked: each returns what a call of the whole returns."""
    asked = ("--run", "init(); many(12); deep(7); last(2); f(9, &buffer)", "--json")
    assert firmware("f", ARGUMENT, *asked, target=target) == ExitCode.OK
    document = json.loads(capsys.readouterr().out)
    seen, bound = document["observed"], document["bound"]
    assert seen["held"] == 12 + (7 + 1) + 1 + 1  # twice(7) needs one call
    calls = {one["call"]: one for one in seen["calls"]}
    assert list(calls) == ["call 12 of 12 of f in many(12)", "call 8 of 8 of f in deep(7)", *list(calls)[2:]]
    assert list(calls)[2:] == ["call 1 of 1 of f in last(2)", "f(9, &buffer)"]
    assert all(one["is_repeated"] for one in calls.values())
    # By hand: buffer holds 0 to 11, then deep writes 0 to 6 again; f sums squares above 3.
    squares = [sum(i * i for i in range(4, n)) for n in (11, 7, 0, 9)]
    assert [one["result"] for one in calls.values()] == squares
    assert max(one["instructions"] for one in calls.values()) == seen["instructions"] <= bound["instructions"]
    assert seen["cycles"] <= bound["cycles"]
    direct = ("--run", "init(); many(12); f(11, &buffer)", "--json")
    assert firmware("f", ARGUMENT, *direct, target=target) == ExitCode.OK
    one, other = json.loads(capsys.readouterr().out)["observed"]["calls"]
    assert (one["instructions"], one["result"]) == (other["instructions"], other["result"])


def test_a_call_that_another_function_makes_is_held_against_facts_about_arguments_and_loops(firmware, capsys):
    assert firmware("f", ARGUMENT, "--run", "many(12)") == ExitCode.OK
    out = capsys.readouterr().out
    assert "12 calls of f held against bound and facts, 12 repeated" in out
    assert "dearest in cycles: call 12 of 12 of f in many(12)" in " ".join(out.split())
    assert firmware("f", ARGUMENT, "--run", "deep(2); deep(-20)") == ExitCode.CONTRADICTION
    assert (
        "argument 0 is 4294967276 in call 1 of f in deep(-20), against the fact facts.toml:1" in capsys.readouterr().err
    )
    facts = hashed(firmware, "f", LOOP, capsys) + ARGUMENT
    assert firmware("f", facts, "--run", "many(2)") == ExitCode.OK
    capsys.readouterr()
    assert firmware("f", facts, "--run", "many(12)") == ExitCode.CONTRADICTION
    assert "fact facts.toml:1" in capsys.readouterr().err
    assert firmware("f", ARGUMENT, "--run", "many(2)", "--search", "3") == ExitCode.USAGE
    assert "a search changes the inputs of a call of f" in capsys.readouterr().err


COUNTED = {
    "cortex-m4": {"h": "subs r0, r0, #1\nbne h\nbx lr", "t": "b h"},
    "arm926ej-s": {"h": "subs r0, r0, #1\nbne h\nbx lr", "t": "b h"},
    "mpc603e": {"h": "addic. 3, 3, -1\nbne h\nblr", "t": "b h"},
}


@pytest.mark.parametrize("target", TARGETS)
def test_an_entry_may_be_the_first_of_all_code_begin_with_a_loop_and_be_called_last(target, firmware, capsys):
    core = load_target(target)
    image = image_of(assembler(COUNTED[target], core), core)
    assert image.symbols["h"].address == image.segments[0].address
    Path(f"{target}.elf").write_bytes(image.elf)
    loop = '[[loop]]\nfunction = "h"\noffset = 0\nmax = 3\nbecause = "so few"\n'
    facts = hashed(lambda *words: firmware(*words, target=target), "h", loop, capsys)
    assert firmware("h", facts, "--run", "t(3); t(2); h(1)", "--json", target=target) == ExitCode.OK
    document = json.loads(capsys.readouterr().out)
    counts = [one["instructions"] for one in document["observed"]["calls"]]
    assert (counts, document["bound"]["instructions"]) == ([7, 5, 3], 7)
    checked = {one["id"]: one["executions"] for one in document["bound"]["assumptions"]}
    measured = 4 if target == "arm926ej-s" else 1  # what its caches evict is drawn
    assert checked["fact facts.toml:1"] == 3 * measured


def test_an_argument_is_held_wherever_registers_have_it(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    source = (
        "int six(int a, int b, int c, int d, int e, int f) { int s = 0; for (int i = 0; i < e; i++) s += a ^ i; "
        "return s + b + c + d + f; }\n__attribute__((noinline)) int more(int n) { return six(1, 2, 3, 4, n, 5) + 1; }\n"
    ).replace("int six", "__attribute__((noinline, optnone)) int six")
    Path("facts.toml").write_text(ARGUMENT.replace('"f"', '"six"').replace("index = 0", "index = 4"), "utf-8")
    for target in ("mpc603e", "cortex-m4"):
        Path("guest.elf").write_bytes(image_of(source, load_target(target), ".c").elf)
        asked = ["bound", "guest.elf", "--entry", "six", "--target", target, "--facts", "facts.toml", "-q"]
        assert main([*asked, "--run", "more(17)"]) == ExitCode.CONTRADICTION
        said = capsys.readouterr().err
        assert "argument 4 is 17 in call 1 of six in more(17), against the fact facts.toml:1" in said


def test_a_function_that_calls_without_end_is_stopped(firmware, monkeypatch, capsys):
    monkeypatch.setattr(firmware_run, "_MOST_CALLS", 11)
    assert firmware("f", ARGUMENT, "--run", "many(12)") == ExitCode.FAILURE
    assert "many(12) calls f more than 11 times" in capsys.readouterr().err


REFUSED = {
    "init()": "is never called",
    "f(3, buffer)": "no address like &buffer + 4",
    "f(3, &bufer)": "did you mean 'buffer'?",
    "intit(); f(1, &buffer)": "did you mean 'init'?",
    "f(3": "is neither a call",
    " ; ": "has no call",
    "u32[16] = 1; f(1, &buffer)": "is no memory of the image",
    "f(1, 2, 3, 4, 5)": "at most 4 words",
}


@pytest.mark.parametrize("script", REFUSED)
def test_what_cannot_be_run_is_told_in_one_sentence(script, firmware, capsys):
    assert firmware("f", ARGUMENT, "--run", script) == ExitCode.USAGE
    error = capsys.readouterr().err
    assert REFUSED[script] in error
    assert error.count("\n") == 1


def test_options_that_need_each_other(firmware, capsys):
    assert firmware("f", ARGUMENT, "--search", "3") == ExitCode.USAGE
    assert firmware("f", ARGUMENT, "--run", "f(1, &buffer)", "--vary", "&buffer:4") == ExitCode.USAGE
    assert firmware("counted", WORD, "--run", "counted()", "--search", "3") == ExitCode.USAGE
    assert firmware("f", ARGUMENT, "--run", "f(1, &buffer)", "--run-file", "calls") == ExitCode.USAGE
    assert firmware("f", ARGUMENT, "--run-file", "calls") == ExitCode.USAGE
    assert firmware("f", ARGUMENT, "--run", "f(1, 0)") == ExitCode.FAILURE
    errors = capsys.readouterr().err
    for words in ("add --run", "add --search", "nothing may be changed", "give one of them", "cannot read", "stray"):
        assert words in errors
    Path("calls").write_text("init()  # once\nf(2, &scratch)\n", "utf-8")
    assert firmware("f", ARGUMENT, "--run-file", "calls") == ExitCode.OK
    assert "1 call of f held against bound and facts, 1 repeated" in capsys.readouterr().out


def test_the_language_of_calls():
    texts = [statement.text for statement in parse_script("a( ); b(-1, 0x10, &c + 4, result)\nu16[&d]=1,2 # x")]
    assert texts == ["a( )", "b(-1, 0x10, &c + 4, result)", "u16[&d]=1,2"]
    for text in ("a(b(1))", "a 3", "u64[&a] = 1", "a(&)"):
        with pytest.raises(UsageError, match=r"--run"):
            parse_script(text)
