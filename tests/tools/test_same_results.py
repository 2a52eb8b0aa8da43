"""Two checkouts are told apart by what their commands print and how they end."""

import importlib.util
from pathlib import Path

import pytest

spec = importlib.util.spec_from_file_location("same_results", Path(__file__).parents[2] / "tools" / "same_results.py")
same_results = importlib.util.module_from_spec(spec)
spec.loader.exec_module(same_results)


def checkout(folder, script):
    program = folder / ".venv" / "bin" / "wcet-probe"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    for name in ("one", "two"):
        (folder / "allocators" / name).mkdir(parents=True)
        (folder / "allocators" / name / "manifest.toml").touch()
    return folder


@pytest.mark.parametrize(
    ("script", "exit_code"),
    [
        ('echo "$1 $3"', 0),
        ('echo "$1 $3"; echo other >&2', 0),
        ('test "$1 $3" = "two mpc603e" || echo "$1 $3"', 1),
        ('echo "$1 $3"; exit 4', 1),
    ],
)
def test_bytes_and_exit_codes_are_compared(tmp_path, capsys, script, exit_code):
    before = checkout(tmp_path / "before", 'echo "$1 $3"')
    after = checkout(tmp_path / "after", script)
    assert same_results.main([str(before), str(after)]) == exit_code
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 * len(same_results.TARGETS)
    assert any(line.startswith("differs") for line in lines) == bool(exit_code)
    assert same_results.main([str(before), str(after), "one"]) == int(script.endswith("exit 4"))
