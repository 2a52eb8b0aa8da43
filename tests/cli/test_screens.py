"""What is on the screen, golden files in ``golden/`` beside."""

import io
import json
import os
import re
import subprocess
import sys
from dataclasses import replace

import pytest
from rich.console import Console

from wcet_probe.model import CrossCheck
from wcet_probe.reports.terminal import render


def test_one_answer_with_caches(world, golden):
    code, out, err = world.run("toyfit", "--target", "toy-cached")
    assert (code, err) == (0, "")
    golden("answer.txt", out)


def test_one_answer_without_caches(world, golden):
    code, out, _ = world.run("toyfit", "--target", "toy-plain", "--heap", "64K")
    assert code == 0
    golden("answer-plain.txt", out)


def test_one_answer_fits_on_80_by_40(report, golden):
    stream = io.StringIO()
    cross_check = CrossCheck("p-code interpreter", 123, 10, 12, 18, 9, 9)
    render(replace(report, cross_check=cross_check), Console(file=stream, width=80))
    lines = stream.getvalue().splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 80
    golden("answer-80.txt", stream.getvalue())


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
    for name, arguments in {"help.txt": ["--help"], "help-run.txt": ["toyfit", "--help"]}.items():
        code, out, err = world.run(*arguments)
        assert (code, err) == (0, "")
        assert "Examples:" in out
        assert "Exit codes:" in out
        golden(name, out)


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
