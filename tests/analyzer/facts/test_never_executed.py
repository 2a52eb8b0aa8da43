"""A fact that a call is never made takes the call away: its targets and its callee's loops need no facts."""

from __future__ import annotations

import json

import pytest

from tests.support import image_of
from wcet_probe.analyzer.facts.binding import code_sha256
from wcet_probe.catalog.lookup import load_target
from wcet_probe.cli.app import main
from wcet_probe.errors import ExitCode
from wcet_probe.isa.decode import decode
from wcet_probe.model.instruction import Control

TARGETS = ["cortex-m4", "arm926ej-s", "mpc603e"]
SOURCE = """
int told(int a) { return a + 1; }
int (*volatile hook)(int) = told;
volatile int seen;
struct node { struct node *next; } *volatile first;
__attribute__((noinline)) void walk(void) { for (struct node *one = first; one; one = one->next) seen++; }
int by_pointer(int a, int n)
{
    if (n > 3) { seen = a; a = hook(a) * 3; }
    return a ^ 5;
}
int by_name(int a, int n)
{
    if (n > 3) { seen = a; walk(); a++; }
    return a ^ 5;
}
__attribute__((noinline)) static int all(int a) { seen = a; return hook(a) * 3; }
int through(int a, int n) { return n > 3 ? all(a) + 2 : a ^ 5; }
int ends(int a, int n) { walk(); return by_name(a, n); }
"""


@pytest.fixture(params=TARGETS)
def guest(request, tmp_path, monkeypatch):
    """The target's name, and a function that writes the fact that the only call of ``function`` is never made."""
    monkeypatch.chdir(tmp_path)
    target = load_target(request.param)
    image = image_of(SOURCE, target, ".c")
    (tmp_path / "guest.elf").write_bytes(image.elf)

    def never(function):
        symbol = image.symbols[function]
        code = range(symbol.address, symbol.address + symbol.size_bytes)
        own = [one for one in decode(image) if one.address in code]
        calls = [one for one in own if one.control in {Control.CALL, Control.INDIRECT} and "lr" not in one.text[2:]]
        assert calls, [one.text for one in own]
        place = calls[0].address - symbol.address
        (tmp_path / "facts.toml").write_text(
            f'[[infeasible]]\nfunction = "{function}"\noffset = {place}\nbecause = "n is small"\n'
            f'sha256 = "{code_sha256(image, function)}"\n'
        )

    return request.param, never


def _bound(target, entry, *more):
    return main(["bound", "guest.elf", "--entry", entry, "--target", target, "-q", "--json", *more])


@pytest.mark.parametrize("entry", ["by_pointer", "by_name"])
def test_a_call_that_is_never_made_needs_no_other_fact(entry, guest, tmp_path, capsys):
    target, never = guest
    assert _bound(target, entry) == ExitCode.NO_BOUND
    never(entry)
    capsys.readouterr()
    assert _bound(target, entry, "--facts", "facts.toml", "--run", f"{entry}(1, 2)") == ExitCode.OK
    found = json.loads(capsys.readouterr().out)
    assert "fact facts.toml:1" in {one["id"] for one in found["bound"]["assumptions"]}
    (tmp_path / "found.json").write_text(json.dumps(found))
    command = ["verify", "found.json", "--image", "guest.elf", "--facts", "facts.toml"]
    assert main(command) in (ExitCode.OK, ExitCode.CHECKED_IN_PART)


def test_a_run_that_makes_the_call_contradicts_the_fact(guest, capsys):
    target, never = guest
    never("by_pointer")
    assert _bound(target, "by_pointer", "--facts", "facts.toml", "--run", "by_pointer(1, 9)") == ExitCode.CONTRADICTION
    told = capsys.readouterr().err
    assert "correct the fact" in told
    assert "the fact facts.toml:1" in told


def test_the_fact_is_listed_where_the_whole_function_around_the_call_is_gone(guest, capsys):
    target, never = guest
    never("all")
    assert _bound(target, "through", "--facts", "facts.toml", "--run", "through(1, 2)") == ExitCode.OK
    found = json.loads(capsys.readouterr().out)
    assert "fact facts.toml:1" in {one["id"] for one in found["bound"]["assumptions"]}
    assert _bound(target, "through", "--facts", "facts.toml", "--run", "through(1, 9)") == ExitCode.CONTRADICTION


def test_other_calls_of_the_function_stay(guest, capsys):
    target, never = guest
    never("by_name")
    assert _bound(target, "ends", "--facts", "facts.toml") == ExitCode.NO_BOUND
    assert "walk" in capsys.readouterr().err


def test_an_instruction_without_a_cost_is_taken_away(tmp_path, monkeypatch, capsys):
    """As its own message proposes."""
    monkeypatch.chdir(tmp_path)
    source = 'int f(int n) { if (n) { __asm volatile("nop\\n wfi\\n nop"); } return n + 1; }'
    image = image_of(source, load_target("cortex-m4"), ".c")
    (tmp_path / "guest.elf").write_bytes(image.elf)
    assert _bound("cortex-m4", "f") == ExitCode.NO_BOUND
    assert "by an [[infeasible]] fact, with offset" in capsys.readouterr().err
    (place,) = [one.address - image.symbols["f"].address for one in decode(image) if one.text == "wfi"]
    (tmp_path / "facts.toml").write_text(
        f'[[infeasible]]\nfunction = "f"\noffset = {place}\nbecause = "n is 0"\nsha256 = "{code_sha256(image, "f")}"\n'
    )
    assert _bound("cortex-m4", "f", "--facts", "facts.toml", "--run", "f(0)") == ExitCode.OK
