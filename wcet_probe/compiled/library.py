"""Translations compiled for the host and kept beside the images, by content."""

from __future__ import annotations

import hashlib
import platform
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path

from wcet_probe.build.program import Program
from wcet_probe.build.toolchain import packaged_program
from wcet_probe.catalog.resources import folder
from wcet_probe.compiled.translation import Text, translate
from wcet_probe.emu.compiled import Detail
from wcet_probe.errors import BuildError

OPTIMISATION: tuple[str, ...] = ("-O2", "-fno-vectorize", "-fno-slp-vectorize", "-fno-unroll-loops")
"""Vectors and unrolled loops cost a fifth of the compiler's time, and gain nothing here."""

_NO_OPTIMISATION = ("-O0",)
"""Of what no replay runs: set-ups call it once, at the beginning and at the end."""

_FLAGS = ("-std=gnu11", "-fPIC", "-w", "-fno-strict-aliasing", "-fwrapv", "-fomit-frame-pointer")
_HEADERS = ("cache.h", "frame.h", "translated.h")
_SOURCES = ("blocks.py", "expressions.py", "library.py", "liveness.py", "spans.py", "statement.py", "translation.py")


def compiled_library(program: Program, detail: Detail, cache_dir: Path, *, build: bool = True) -> Path | None:
    """The shared library of ``program`` translated for this host; None where it cannot be had.

    Parameters:
        program: what is translated.
        detail: what the code counts and tells of.
        cache_dir: where libraries are kept, by all that they depend on.
        build: whether one that is not there is made, which takes seconds; else there is None.
    """
    try:
        kept = cache_dir / "translated" / f"{_key(program, detail)}.so"
        if kept.is_file():
            return kept
        return _build(kept, translate(program, detail).texts) if build else None
    except (BuildError, OSError):
        return None  # not this image, no compiler, or no room: the engine gives the same answer


def compile_texts(texts: Sequence[Text], here: Path) -> Path:
    """Compile the ``texts`` of a translation in the folder ``here``, all at once; the library.

    Raises:
        BuildError: the packaged compiler is missing or fails.
    """
    program = packaged_program()
    for name in _HEADERS:
        (here / name).write_text(_header(name), "utf-8")
    include = program.with_name("lib") / "include"
    compiler = [str(program), "clang", "-nostdinc", "-isystem", str(include), *_FLAGS, *_host_flags()]
    commands = []
    for number, text in enumerate(texts):
        (here / f"image{number}.c").write_text(text.code, "utf-8")
        optimisation = OPTIMISATION if text.is_replayed else _NO_OPTIMISATION
        commands.append([*compiler, *optimisation, "-c", f"image{number}.c", "-o", f"image{number}.o"])
    _call(commands, here)
    objects = [command[-1] for command in commands]
    _call([[str(program), "ld.lld", "-shared", *objects, "-o", "image.so"]], here)
    return here / "image.so"


def _build(kept: Path, texts: Sequence[Text]) -> Path:
    """Build in a folder beside ``kept`` and rename the result, so that nobody loads half a library."""
    kept.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=kept.parent, prefix="build-") as name:
        compile_texts(texts, Path(name)).replace(kept)
    return kept


def _key(program: Program, detail: Detail) -> str:
    image, target = program.image, program.target
    segments = tuple((s.address, s.size_bytes, s.executable, bytes(s.data)) for s in image.segments)
    functions = tuple((s.name, s.address, s.size_bytes) for s in image.functions)
    is_counted = detail.counted is not Detail.NOTHING
    caches = (target.icache, target.dcache, target.unified_cache) if is_counted else ()
    regions = target.memory.regions if detail is Detail.DATA else ()
    charged = tuple(program.costs) if is_counted else ()
    problems = tuple(i.address for i in program.instructions if i.problem)
    core = (target.isa, target.big_endian, target.pcode_language, target.memory_map)
    content = (segments, functions, core, caches, regions, charged, problems, detail, OPTIMISATION, _translator())
    return hashlib.sha256(repr(content).encode()).hexdigest()[:32]


@cache
def _translator() -> str:
    """All that a translation depends on beside its subject."""
    home = Path(__file__).parent
    parts = [(home / name).read_text("utf-8") for name in _SOURCES]
    parts += [_header(name) for name in _HEADERS]
    parts += [version("ziglang"), version("pypcode"), platform.machine(), *_host_flags(), _cpu()]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _header(name: str) -> str:
    return (folder("emu") / "native" / name).read_text("utf-8")


@cache
def _cpu() -> str:
    """What the host's processor can do, as Linux says; empty where it does not."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return ""
    return next((line for line in lines if line.startswith(("flags", "Features"))), "")


def _host_flags() -> tuple[str, ...]:
    """For this very processor, where the key of the cache names it."""
    if not _cpu():
        return ()
    return ("-march=native",) if platform.machine() == "x86_64" else ("-mcpu=native",)


def _call(commands: Sequence[list[str]], here: Path) -> None:
    """Run ``commands`` side by side."""
    running = [
        subprocess.Popen(command, cwd=here, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        for command in commands
    ]
    told = [each.communicate()[1] for each in running]
    for each, text in zip(running, told, strict=True):
        if each.returncode:
            problems = [line for line in text.splitlines() if "error" in line] or [f"exit status {each.returncode}"]
            message = f"the host compiler failed on a translation: {problems[0].strip()}."
            raise BuildError(message)
