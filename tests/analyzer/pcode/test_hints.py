"""Hints that change nothing which is counted: bounded, run, and checked.

Tests: analyzer.pcode.semantics, emu.engine, certificate.runs.arm_code.
"""

from __future__ import annotations

import json

import pytest

from tests.support import assembler, image_of
from wcet_probe.catalog.lookup import load_target
from wcet_probe.cli.app import main
from wcet_probe.errors import ExitCode

SPIN = "mov r0, #3\n1: yield\nsev\ndmb\nsubs r0, r0, #1\nbne 1b\nbx lr"


@pytest.mark.parametrize("more", [(), ("--initial-data",)])
@pytest.mark.parametrize("core", ["cortex-m4", "cortex-r5"])
def test_what_waits_for_others_politely_is_bounded_run_and_checked(core, more, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    target = load_target(core)
    (tmp_path / "guest.elf").write_bytes(image_of(assembler({"f": SPIN}, target), target).elf)
    command = ["bound", "guest.elf", "--entry", "f", "--target", core, "-q", "--json", *more]
    assert main([*command, "--run", "f()"]) == ExitCode.OK
    found = json.loads(capsys.readouterr().out)
    assert found["bound"]["instructions"] == 1 + 3 * 5 + 1
    (tmp_path / "found.json").write_text(json.dumps(found), "utf-8")
    assert main(["verify", "found.json", "--image", "guest.elf"]) == ExitCode.OK
