"""Which cross compiler builds an image: the packaged Clang, or one that the user names."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from wcet_probe.errors import BuildError
from wcet_probe.model.target import Isa, Target

PACKAGED = "zig"
"""Name of the packaged compiler: the Clang and lld inside the ``ziglang`` package."""

_CPP_LIBRARY = (
    "-D_LIBCPP_ABI_VERSION=1",
    "-D_LIBCPP_ABI_NAMESPACE=__1",
    "-D_LIBCPP_HARDENING_MODE_DEFAULT=_LIBCPP_HARDENING_MODE_NONE",
    "-D_LIBCPP_ASSERTION_SEMANTIC_DEFAULT=_LIBCPP_ASSERTION_SEMANTIC_IGNORE",
    "-D_LIBCPP_HAS_MUSL_LIBC=1",
    "-D_LIBCPP_PSTL_BACKEND_SERIAL",
    *(
        f"-D_LIBCPP_HAS_{one}=0"
        for one in (
            *("THREADS", "MONOTONIC_CLOCK", "TERMINAL", "FILESYSTEM", "RANDOM_DEVICE", "LOCALIZATION", "UNICODE"),
            *("WIDE_CHARACTERS", "TIME_ZONE_DATABASE", "VENDOR_AVAILABILITY_ANNOTATIONS"),
        )
    ),
)
"""What the packaged libc++ has to be told, as it has no file of settings: a library without an operating system."""

_LAZY = ("--start-lib", "--end-lib")
_GCC_MACHINES = {Isa.ARM: "arm", Isa.THUMB: "arm", Isa.POWERPC: "powerpc"}


@dataclass(frozen=True, slots=True)
class Toolchain:
    """A compiler and its linker.

    Attributes:
        family: ``clang`` or ``gcc``: which of a target's flags fit.
        identity: what the compiler says it is; part of every result.
        compile: start of the command line that compiles one file.
        compile_cpp: the same for a file in C++, with the headers of its library.
        link: start of the command line that links objects.
        libraries: end of the command line that links objects.
        c_library: flags that find the headers of a C library, which an allocator of one's own may include.
        links_lazily: what stands before and behind objects that are linked only as far as something needs them.
    """

    family: str
    identity: str
    compile: tuple[str, ...]
    compile_cpp: tuple[str, ...]
    link: tuple[str, ...]
    libraries: tuple[str, ...] = ()
    c_library: tuple[str, ...] = ()
    links_lazily: tuple[str, str] | None = None


def find_toolchain(command: str, target: Target) -> Toolchain:
    """The toolchain behind ``command``: ``zig`` for the packaged one, else a Clang or a GCC cross compiler.

    Raises:
        BuildError: the command is not there, is no known compiler, or builds for another instruction set.
    """
    if command == PACKAGED:
        return _packaged(target.linker_emulation)
    path = shutil.which(command)
    if path is None:
        message = f"compiler {command!r} was not found; install it, or use the packaged one with --cc {PACKAGED}."
        raise BuildError(message)
    banner = next(iter(_run(path, "--version").splitlines()), "")
    if not banner:
        message = f"compiler {command!r} does not say what it is; name a Clang or GCC, or use --cc {PACKAGED}."
        raise BuildError(message)
    if "clang" in banner:
        linker = (_linker_of(path), "-m", target.linker_emulation)
        return Toolchain("clang", banner, (path,), (path,), linker, links_lazily=_LAZY)
    machine = _run(path, "-dumpmachine").strip()
    if not machine.startswith(_GCC_MACHINES[target.isa]):
        message = (
            f"compiler {command!r} builds for {machine!r}, not for {target.name}; name a Clang, "
            f"or {target.gcc_prefix}gcc, or use --cc {PACKAGED}."
        )
        raise BuildError(message)
    return Toolchain("gcc", f"{banner} [{machine}]", (path,), (path,), (path, "-nostdlib", "-static"), ("-lgcc",))


def packaged_program() -> Path:
    """The program of the ``ziglang`` package.

    Raises:
        BuildError: the package is not installed.
    """
    spec = find_spec("ziglang")
    if spec is None or spec.origin is None:
        message = "the packaged compiler is missing; install the package ziglang, or name a compiler with --cc."
        raise BuildError(message)
    return Path(spec.origin).with_name("zig")


def _packaged(linker_emulation: str) -> Toolchain:
    program = packaged_program()
    banner = _run(str(program), "clang", "--version").splitlines()[0]
    include = program.with_name("lib") / "include"
    libc = program.with_name("lib") / "libc" / "include"
    machine = "powerpc" if "ppc" in linker_emulation else "arm"
    headers = (f"-isystem{libc / folder}" for folder in (f"{machine}-linux-musl", "generic-musl"))
    cpp = program.with_name("lib") / "libcxx" / "include"
    # The debug information names no folder of this machine.
    begun = (str(program), "clang", "-nostdinc")
    types = ("-isystem", str(include), f"-ffile-prefix-map={include}=include")
    return Toolchain(
        family="clang",
        identity=f"{banner} [ziglang {_version('ziglang')}]",
        compile=(*begun, *types),
        compile_cpp=(*begun, f"-isystem{cpp}", *types, f"-ffile-prefix-map={cpp}=libcxx", *_CPP_LIBRARY),
        link=(str(program), "ld.lld", "-m", linker_emulation),
        c_library=(*headers, *_compiler_types(machine), f"-ffile-prefix-map={libc}=libc"),
        links_lazily=_LAZY,
    )


def _compiler_types(machine: str) -> tuple[str, ...]:
    """Flags that keep the C library's headers from defining anew, otherwise, what the compiler's own headers define.

    On a bare PowerPC Clang's ``size_t`` is ``unsigned long``, and the library's, which is for Linux, ``unsigned int``.
    """
    if machine != "powerpc":
        return ()
    exact = [f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)]
    names = ["size_t", "ptrdiff_t", "wchar_t", "intptr_t", "uintptr_t", "intmax_t", "uintmax_t", *exact]
    return ("-include", "stddef.h", "-include", "stdint.h", *(f"-D__DEFINED_{name}" for name in names))


def _linker_of(clang: str) -> str:
    """lld of the same version as ``clang``: ``clang-19`` comes with ``ld.lld-19``."""
    suffix = re.search(r"-\d+$", clang)
    for name in ([f"ld.lld{suffix[0]}"] if suffix else []) + ["ld.lld"]:
        for place in (str(Path(clang).parent), None):
            found = shutil.which(name, path=place)
            if found:
                return found
    message = f"the linker ld.lld of {Path(clang).name} was not found; install lld, or use --cc {PACKAGED}."
    raise BuildError(message)


@cache
def _version(package: str) -> str:
    return version(package)


@cache
def _run(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    except (OSError, subprocess.SubprocessError) as error:
        message = f"compiler {command[0]!r} does not run ({error}); use --cc {PACKAGED}."
        raise BuildError(message) from error
    return done.stdout
