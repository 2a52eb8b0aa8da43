"""What is on the screen, golden files in ``golden/`` beside.

Tests: cli.app, reports.screens.terminal, reports.screens.why.
"""

import io
import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction

import pytest
from rich.console import Console

from tests.cli.conftest import LOOP
from wcet_probe.answer.bounds.gap import Account, BlockGap, Cause
from wcet_probe.model.image import LineTable
from wcet_probe.model.instruction import Instruction
from wcet_probe.model.proof import Assumption, Formula
from wcet_probe.model.report import CrossCheck, Verdict
from wcet_probe.reports.screens.terminal import render, render_comparison
from wcet_probe.reports.screens.why import render_why

CODE = {0x10000: "cmpwi r3, 0", 0x10004: "blr", 0x10100: "addi r3, r3, 1"}


def test_one_answer_with_caches(world, golden):
    code, out, err = world.run("toyfit", "--target", "toy-cached")
    assert (code, err) == (0, "")
    golden("answer.txt", out)


def test_one_answer_without_caches(world, golden):
    code, out, _ = world.run("toyfit", "--target", "toy-plain", "--heap", "64K")
    assert code == 0
    golden("answer-plain.txt", out)


def test_one_answer_fits_on_80_by_51(report, golden):
    stream = io.StringIO()
    cross_check = CrossCheck("p-code interpreter", 123, 10, 12, 18, 9, 9)
    render(replace(report, cross_check=cross_check), Console(file=stream, width=80))
    lines = stream.getvalue().splitlines()
    assert len(lines) <= 51
    assert max(map(len, lines)) <= 80
    golden("answer-80.txt", stream.getvalue())


def test_counts_that_are_too_long_for_a_line_go_on_in_the_next(report):
    stream, counts = io.StringIO(), report.measurement
    many = replace(counts.dcache, read_misses=1_234_567, writebacks=1_234_567, memory_writes=1_234_567)
    render(replace(report, measurement=replace(counts, dcache=many)), Console(file=stream, width=80))
    lines = stream.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    (first,) = (number for number, line in enumerate(lines) if line.startswith("  D-cache accesses"))
    assert lines[first].endswith("1,234,567 write-backs,")
    assert lines[first + 1].strip() == "1,234,567 single writes"


def test_one_answer_without_a_bound(world, golden):
    code, out, _ = world.run("toyfit", "--target", "toy-plain", "--no-bound")
    assert code == 0
    golden("answer-observed.txt", out)


def test_no_bound_found(report, golden):
    stream = io.StringIO()
    reason = "no bound for the loop at toyfit_malloc+0x10 (toyfit.c:12): say how often it repeats."
    unbounded = replace(report, bound=None, no_bound=reason, verdict=Verdict.UNBOUNDED)
    render(unbounded, Console(file=stream, width=80))
    golden("answer-unbounded.txt", stream.getvalue())
    stream = io.StringIO()
    render_comparison([report, unbounded], Console(file=stream, width=80))
    golden("comparison-unbounded.txt", stream.getvalue())


def test_many_assumptions_are_told_by_name(report):
    assumptions = [Assumption(f"fact f.toml:{line}", "text", "check") for line in (1, 5, 5, 9)]
    assumptions += [Assumption(f"lemma {name}", "text", "check") for name in ("a", "b")]
    stream = io.StringIO()
    bound = replace(report.bound, assumptions=tuple(assumptions))
    render(replace(report, bound=bound), Console(file=stream, width=80))
    assert "under 5 assumptions." in stream.getvalue()
    assert "Assumptions (5; --why tells each)\n  fact f.toml:1, :5, :9, lemma a, lemma b\n" in stream.getvalue()


def test_many_loops_are_cut(report):
    loops = tuple(replace(LOOP, location=f"f+{number:#x}") for number in range(7))
    stream = io.StringIO()
    render(replace(report, bound=replace(report.bound, loops=loops + loops)), Console(file=stream, width=80))
    assert "Loops (14 proved)" in stream.getvalue()
    assert "  f+0x0  6  proved, in 2 contexts  r3 != 0" in stream.getvalue()
    assert "  and 2 more: --why\n" in stream.getvalue()


@pytest.mark.parametrize(
    ("proved", "text"),
    [(123, "exact"), (124, "0.8 % above the observed"), (246, "100.0 % above the observed")],
)
def test_slack(report, proved, text):
    stream = io.StringIO()
    render(replace(report, bound=replace(report.bound, instructions=proved)), Console(file=stream, width=80))
    assert re.search(rf"^  instructions +{proved} +123 +{proved - 123}  {text}$", stream.getvalue(), re.MULTILINE)


def test_slack_is_no_measure_where_nobody_looked_for_the_worst(report):
    stream = io.StringIO()
    render(replace(report, plan=replace(report.plan, scenario="random")), Console(file=stream, width=100))
    assert "random does not look for the dearest call of all, so the slack says nothing" in stream.getvalue()


def test_why(report, golden):
    image = replace(report.image, lines=LineTable((0x10000, 0x10100), ("toyfit.c", "toyfit.c"), (1, 2)))
    code = [Instruction(address, 4, text, "integer") for address, text in CODE.items()]
    gaps = (
        BlockGap(0x10000, "toyfit_malloc+0x0 (toyfit.c:1)", tuple(code[:2]), 1, 1, Cause.SAME),
        BlockGap(0x10100, "map_size+0x0 (toyfit.c:2)", tuple(code[2:]), 3, 1, Cause.MORE_OFTEN),
    )
    bound = replace(report.bound, instructions=126)
    stream = io.StringIO()
    formula = Formula("H", Fraction(45), (("free_blocks", Fraction(43)),), ((65536, 130), (131072, 260)))
    account = Account(gaps, report.measurement.instructions, formula)
    render_why(replace(report, image=image), bound, account, Console(file=stream, width=80))
    assert max(map(len, stream.getvalue().splitlines())) <= 80
    golden("why.txt", stream.getvalue())


def test_why_without_a_gap(report):
    gaps = (BlockGap(0x10000, "f+0x0", (), 1, 1, Cause.SAME),)
    bound = replace(report.bound, instructions=125)
    measurement = replace(report.measurement, instructions=125)
    stream = io.StringIO()
    render_why(replace(report, measurement=measurement), bound, Account(gaps, 125), Console(file=stream, width=80))
    assert "\nbound and observation are equal, block by block\n" in stream.getvalue()


def test_ascii_where_the_stream_cannot_do_more(report):
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    render(report, Console(file=stream, width=80))
    stream.flush()
    assert b"####" in stream.buffer.getvalue()


def test_colour_carries_no_meaning(report, monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    plain, coloured = io.StringIO(), io.StringIO()
    render(report, Console(file=plain, width=80))
    render(report, Console(file=coloured, width=80, force_terminal=True))
    assert "\x1b[" in coloured.getvalue()
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured.getvalue()) == plain.getvalue()


def test_comparison(world, golden):
    code, out, _ = world.run(
        "toyfit", "--target", "toy-cached", "--target", "toy-plain", "--heap", "4M", "--heap", "64K"
    )
    assert code == 0
    assert len(world.requests) == 4
    assert max(map(len, out.splitlines())) <= 80
    golden("comparison.txt", out)


@pytest.mark.parametrize("name", ["toyfit", "toy-cached", "worst-alloc"])
def test_show(world, golden, name):
    code, out, _ = world.run("show", name)
    assert code == 0
    golden(f"show-{name}.txt", out)


@pytest.mark.parametrize("kind", ["allocators", "scenarios", "targets"])
def test_list(world, golden, kind):
    code, out, _ = world.run("list", kind)
    assert code == 0
    golden(f"list-{kind}.txt", out)
    _, out, _ = world.run("list", kind, "--json")
    assert all(entry["name"] for entry in json.loads(out))


def test_help(world, golden):
    pages = {"help": [], "help-run": ["toyfit"], "help-bound": ["bound"], "help-verify": ["verify"]}
    for name, command in pages.items():
        arguments = [*command, "--help"]
        code, out, err = world.run(*arguments)
        assert (code, err) == (0, "")
        assert "Examples:" in out
        assert "Exit codes:" in out
        assert max(map(len, out.splitlines())) <= 80
        golden(f"{name}.txt", out)


def test_help_without_words_is_an_error(world):
    code, out, err = world.run()
    assert (code, out) == (2, "")
    assert "Usage: wcet-probe ALLOCATOR" in err


def test_version(world):
    code, out, _ = world.run("--version")
    assert code == 0
    assert out.startswith("wcet-probe ")


def test_verbose_tells_the_steps_on_stderr(world):
    code, out, err = world.run("toyfit", "--target", "toy-plain", "-v", "--json")
    assert code == 0
    assert err == "wcet-probe: toyfit on toy-plain, heap 4 MiB: measuring\n"
    assert json.loads(out)


def test_help_imports_nothing_heavy():
    program = (
        "import sys; from wcet_probe.cli import main; main(['--help']);"
        "sys.exit(bool({'unicorn', 'capstone', 'pypcode', 'rich', 'elftools'} & {*sys.modules}))"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
