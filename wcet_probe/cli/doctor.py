"""``wcet-probe doctor``: is all there that a run needs, and what to do where it is not."""

# ruff: noqa: PLC0415  (checks import what they check)

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib import import_module, metadata
from pathlib import Path

import click

from wcet_probe.cli import streams
from wcet_probe.config import CACHE_DIR_VARIABLE, cache_dir, load_config
from wcet_probe.errors import ExitCode
from wcet_probe.sizes import format_size

_MINIMUM_PYTHON = (3, 11)
_LIBRARIES = {
    "capstone": "capstone",
    "click": "click",
    "highspy": "highspy",
    "platformdirs": "platformdirs",
    "pyelftools": "elftools",
    "pypcode": "pypcode",
    "rich": "rich",
    "tree-sitter": "tree_sitter",
    "tree-sitter-c": "tree_sitter_c",
    "unicorn": "unicorn",
    "ziglang": "ziglang",
}
_COMPILERS = ("clang", "ld.lld", "arm-none-eabi-gcc", "powerpc-*-gcc")
_NEEDED_BYTES = 16 << 20
_REINSTALL = "install wcet-probe again: pip install --force-reinstall wcet-probe"


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the doctor: ``status`` is ok, missing, or optional for what is missing but not needed."""

    name: str
    status: str
    found: str
    remedy: str = ""


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def doctor(*, as_json: bool) -> int:
    """Check that all is there that a run needs.

    Exits with 0 if so, else with 1.
    """
    from wcet_probe.reports.formats.document import plain

    checks = tuple(_checks())
    if as_json:
        streams.print_json({"format": "wcet-probe-doctor", "version": 1, "checks": plain(checks)})
    else:
        from wcet_probe.reports.screens.terminal import render_table

        rows = [(c.status, c.name, f"{c.found}; {c.remedy}" if c.remedy else c.found) for c in checks]
        render_table((), rows, streams.result_console())
    return ExitCode.FAILURE if any(check.status == "missing" for check in checks) else ExitCode.OK


def _checks() -> Iterator[Check]:
    yield _required("Python", _python, "install Python 3.11 or newer")
    for distribution, module in _LIBRARIES.items():
        yield _required(distribution, partial(_library, distribution, module), f"pip install {distribution}")
    yield _required("native core", _native_core, _REINSTALL)
    yield _required("packaged compiler", _packaged_compiler, "pip install --force-reinstall ziglang")
    yield _required("cache folder", _cache_folder, f"choose another one with {CACHE_DIR_VARIABLE}")
    for pattern in _COMPILERS:
        found = _on_path(pattern)
        remedy = "" if found else "not needed: --cc zig is packaged"
        yield Check(pattern, "ok" if found else "optional", ", ".join(found) or "not found", remedy)


def _required(name: str, look: Callable[[], str], remedy: str) -> Check:
    """``look`` tells what it found, or raises."""
    try:
        return Check(name, "ok", look())
    except ModuleNotFoundError:
        return Check(name, "missing", "not found", remedy)
    except Exception as error:  # noqa: BLE001  (whatever is wrong with it: that is what the doctor is asked)
        return Check(name, "missing", " ".join(str(error).split()) or type(error).__name__, remedy)


def _python() -> str:
    if sys.version_info < _MINIMUM_PYTHON:
        raise RuntimeError(platform.python_version())
    return platform.python_version()


def _library(distribution: str, module: str) -> str:
    import_module(module)
    return metadata.version(distribution)


def _native_core() -> str:
    import_module("wcet_probe.emu.native").load()
    return "loads"


def _packaged_compiler() -> str:
    from wcet_probe.build.toolchain import packaged_program

    command = [str(packaged_program()), "clang", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    return done.stdout.splitlines()[0]


def _cache_folder() -> str:
    folder = cache_dir(load_config(Path.cwd()))
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder) as file:
        file.write(b"wcet-probe")
    free_bytes = shutil.disk_usage(folder).free
    if free_bytes < _NEEDED_BYTES:
        message = f"{folder} has only {format_size(free_bytes)} free"
        raise OSError(message)
    return f"{folder}, {free_bytes >> 20:,} MiB free"


def _on_path(pattern: str) -> list[str]:
    """Programs on PATH whose file name matches ``pattern``, the first of each name."""
    folders = [Path(entry) for entry in os.get_exec_path() if entry]
    names = sorted({path.name for folder in folders for path in folder.glob(pattern)})
    return [found for name in names if (found := shutil.which(name))]
