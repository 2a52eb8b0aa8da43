"""What compilers call on their own: the routines that are linked to programs of suites, and how a tool is called."""

from __future__ import annotations

import subprocess
from pathlib import Path

from wcet_probe.build.toolchain import Toolchain, packaged_program
from wcet_probe.errors import UsageError
from wcet_probe.model.target import Isa, Target

_ZIG_MACHINES = {Isa.ARM: "arm", Isa.THUMB: "thumb", Isa.POWERPC: "powerpc"}
_INTEGERS = ("__udivdi3", "__umoddi3", "__divdi3", "__moddi3")
"""What is taken of a libgcc whose floating point is for another ABI."""


class CompileError(Exception):
    """A program that the compiler or the linker refuses."""


def routines(place: Path, toolchain: Toolchain, target: Target) -> tuple[str, ...]:
    """What stands at the end of the command that links a program for ``target``; files are made in ``place``.

    For a Clang it is compiler-rt of the packaged compiler, for a GCC its own libgcc, and newlib where it has that, as a
    GCC calls memcpy and its kin for what the source copies by itself. A PowerPC GCC as Linux distributions package it
    has libraries for an FPU and a system under it: of these the integer routines are taken, and what saves registers;
    the others, floating point and memcpy, are compiler-rt's.

    Raises:
        CompileError: the compiler has no such routines.
        UsageError: compiler-rt cannot be made for this core.
    """
    if toolchain.family == "clang":
        return (str(runtime(place, target).resolve()),)
    own = target.compiler_flags["gcc"]
    if target.isa is not Isa.POWERPC:
        asked = [toolchain.compile[0], *own, "-print-file-name=libc.a"]
        found = Path(subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip())
        c_library = ("-lc",) if found.is_absolute() else ()
        return ("-Wl,--start-group", *c_library, *toolchain.libraries, "-Wl,--end-group")
    others, integers = runtime(place, target), (place / f"libgcc-integers-{target.name}.o").resolve()
    roots = (f"-Wl,--undefined={name}" for name in _INTEGERS)
    call([*toolchain.link, *own, "-r", *roots, *toolchain.libraries, "-o", str(integers)], place)
    return (str(integers), str(others.resolve()), *toolchain.libraries)


def runtime(place: Path, target: Target) -> Path:
    """compiler-rt of the packaged compiler for ``target``, a section for each function.

    Raises:
        UsageError: it cannot be made for this core.
    """
    made = place / f"compiler-rt-{target.name}.a"
    if made.is_file():
        return made
    program = packaged_program()
    cpu = next(flag for flag in target.compiler_flags["clang"] if flag.startswith("-mcpu=")).replace("-", "_")[5:]
    soft = "+soft_float" if target.isa is not Isa.POWERPC else "-hard_float"
    place.mkdir(parents=True, exist_ok=True)
    command = [str(program), "build-lib", str(program.with_name("lib") / "compiler_rt.zig")]
    command += ["-target", f"{_ZIG_MACHINES[target.isa]}-freestanding-eabi", f"-mcpu{cpu}{soft}"]
    command += ["-OReleaseFast", "-fstrip", "-ffunction-sections", "-fdata-sections", f"-femit-bin={made.resolve()}"]
    try:
        call(command, place)
    except CompileError as error:
        raise UsageError(f"compiler-rt cannot be made for {target.name} ({error}); choose another --cc.") from error
    return made


def call(command: list[str], folder: Path) -> None:
    """Run ``command`` in ``folder``.

    Raises:
        CompileError: it fails, with its first word about that.
    """
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        problems = [line for line in done.stderr.splitlines() if "error" in line or "undefined" in line]
        raise CompileError((problems or [f"exit status {done.returncode}"])[0].strip())
