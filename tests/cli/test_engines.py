"""What the command line says is the same on both engines, and where there is no host compiler.

Tests: cli.app, compiled.supply.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from wcet_probe.cli import main
from wcet_probe.compiled import library, supply
from wcet_probe.emu import machine
from wcet_probe.emu.compiled import Detail, TranslatedCode
from wcet_probe.errors import BuildError

ROOT = Path(__file__).parents[2]
WORKLOAD = ("replay", "m06-test3", "--allocator", "tlsf", "--heap", "1MiB", "--no-bound", "--json")
SEARCH = ("search", "tlsf", "--operation", "malloc", "--json", "--evaluations", "30")


@pytest.fixture
def eager(monkeypatch):
    """Translated code from the first operation on, quickly compiled; which details of it were used."""
    used = []
    monkeypatch.setattr(supply, "LEAST_OPERATIONS", 0)
    monkeypatch.setattr(supply, "_COMPILED_FOR", dict.fromkeys(Detail, 0))
    monkeypatch.setattr(library, "OPTIMISATION", ("-O0",))
    monkeypatch.setattr(machine, "TranslatedCode", lambda *given: used.append(given[1]) or TranslatedCode(*given))
    return used


@pytest.mark.parametrize(
    "command",
    [
        (*WORKLOAD, "--operations", "3000"),
        SEARCH,
        (*SEARCH, "--start", "constructed"),
    ],
    ids=["replay", "search", "search from constructed states"],
)
def test_the_answer_is_that_of_the_engine(command, capsys, request):
    code, expected = main(command), capsys.readouterr().out
    used = request.getfixturevalue("eager")
    assert (main(command), capsys.readouterr().out) == (code, expected)
    assert used


def test_without_a_host_compiler_the_answer_is_the_same(eager, monkeypatch, capsys):
    command = (*WORKLOAD, "--operations", "2000", "--target", "mpc603e")
    assert main(command) == 0
    expected, made = capsys.readouterr().out, len(eager)
    assert made

    def missing():
        raise BuildError("the packaged compiler is missing")

    monkeypatch.setattr(library, "packaged_program", missing)
    monkeypatch.setattr(library, "OPTIMISATION", ("-O0", "-g0"))  # no such library is there
    assert main(command) == 0
    assert capsys.readouterr().out == expected
    assert len(eager) == made


INTERRUPTED = """
import signal, sys
from wcet_probe.cli import main
from wcet_probe.compiled import library, supply
from wcet_probe.emu import compiled, engine
from wcet_probe.emu.compiled import Detail

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job would ignore it
name, *words = sys.argv[1:]
if name == "translated":
    supply.LEAST_OPERATIONS, supply._COMPILED_FOR = 0, dict.fromkeys(Detail, 0)
    library.OPTIMISATION = ("-O0",)
runner = compiled.TranslatedCode if name == "translated" else engine.Engine
run = runner.run

def told(*given, **named):
    print("running", file=sys.stderr, flush=True)
    return run(*given, **named)

runner.run = told
sys.exit(main(words))
"""


@pytest.mark.parametrize("engine", ["engine", "translated"])
def test_an_interrupt_ends_a_replay(engine):
    command = [sys.executable, "-c", INTERRUPTED, engine, *WORKLOAD, "--quiet", "--operations", "30000000"]
    piped = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=ROOT, **piped) as process:
        try:
            assert process.stderr.readline() == "running\n"
            time.sleep(0.5)
            process.send_signal(signal.SIGINT)
            out, error = process.communicate(timeout=120)
        finally:
            process.kill()
    assert process.returncode == 130
    assert out == ""
    told = [line for line in error.split("\n") if line not in ("", "running")]
    assert told == ["wcet-probe: interrupted; nothing was written."]
