"""The compiler of the host: the machine's own, or the one of the toolchain."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
import ziglang

from tests.run_folder import once

ZIG = Path(ziglang.__file__).with_name("zig")
CC = ["cc"] if shutil.which("cc") else [str(ZIG), "cc"]


def compile_or_fail(command: list[str], folder: Path) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    assert done.returncode == 0, done.stderr


def sanitizing(folder: Path) -> list[str]:
    """Arguments for sanitizers of addresses and undefined behaviour; skips the test where there are none that work."""
    sanitize = ["-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]

    def missing() -> str:
        (folder / "empty.c").write_text("int main(void) { return 0; }\n")
        for probe in ([*CC, *sanitize, "empty.c", "-o", "empty"], ["./empty"]):
            done = subprocess.run(probe, capture_output=True, text=True, check=False, cwd=folder)
            if done.returncode != 0:
                return f"{CC[0]} has no working sanitizers here: {done.stderr.strip()[-200:]}"
        return ""

    if why := once("sanitizers", missing, CC, sanitize):
        pytest.skip(why)
    return sanitize
