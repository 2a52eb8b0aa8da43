"""Images of a few functions, machines on them, and TLSF's own images: built once each, by the packaged compiler."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any

from tests.run_folder import once_bytes, run_folder
from wcet_probe.build import compilation as build
from wcet_probe.build.compilation import build_image
from wcet_probe.build.image import read_image
from wcet_probe.build.program import Program
from wcet_probe.build.toolchain import PACKAGED, find_toolchain
from wcet_probe.catalog.lookup import load_allocator, load_target
from wcet_probe.compiled.library import compiled_library
from wcet_probe.compiled.translation import translate
from wcet_probe.emu.compiled import Detail
from wcet_probe.emu.machine import Machine
from wcet_probe.isa.decode import decode
from wcet_probe.isa.timing import costs, with_timing_problems
from wcet_probe.model.allocator import Allocator
from wcet_probe.model.image import Image
from wcet_probe.model.instruction import Instruction, InstructionCost
from wcet_probe.model.scenario import Trace
from wcet_probe.model.target import Basis, CacheConfig, Replacement, Target

TARGETS = ("cortex-m4", "arm926ej-s", "mpc603e")
DEFAULTS: Mapping[str, int] = MappingProxyType({"sl-bits": 5, "bit-search": 0})
CHOICES = tuple({"sl-bits": sl, "bit-search": search} for sl in (4, 5) for search in (0, 1))

_MOST_GUESTS = 64
_GUESTS: dict[tuple[str, ...], Guest] = {}
_FOLDER = TemporaryDirectory(prefix="wcet-probe-tests-", ignore_cleanup_errors=True)


def _engine_options(guest: Guest) -> dict[str, Any]:
    """Every test that asks a guest for a machine is one of translated code where the environment says so."""
    if os.environ.get("WCET_PROBE_TEST_TRANSLATED"):
        return {"translations": guest.translated, "translates_calls": True}
    return {}


@dataclass(frozen=True)
class Guest:
    """An image on a target, decoded and charged."""

    image: Image
    target: Target
    instructions: tuple[Instruction, ...]
    costs: tuple[InstructionCost, ...]

    def machine(self, heap_bytes: int = 4096, most_instructions: int = 0, **options: Any) -> Machine:
        return Machine(
            self.image,
            self.target,
            self.instructions,
            self.costs,
            heap_bytes,
            most_instructions=most_instructions,
            **(_engine_options(self) | options),
        )

    def engine(self, heap_bytes: int = 4096) -> Machine:
        """A machine that runs on the engine, whatever the environment says: for what looks into the engine."""
        return self.machine(heap_bytes, translations=None, translates_calls=False)

    def translated(self, detail: Detail, _operations: int = 1, *, folder: Path | None = None) -> Path:
        """The library of the image translated, which is made if it is not there, in the run's folder or another."""
        program = Program(tlsf(), self.target, self.image, self.instructions, self.costs)
        library = compiled_library(program, detail, folder or images_dir())
        if library is None:
            translate(program, detail)  # raises with the reason, if it is the image
        assert library is not None, "no compiler"
        return library

    def address(self, symbol: str) -> int:
        return self.image.symbols[symbol].address


def cache_config(
    sets: int = 4,
    ways: int = 2,
    line_bytes: int = 16,
    replacement: Replacement = Replacement.LRU,
    *,
    write_back: bool = True,
    write_allocate: bool = True,
    seed: int = 0,
) -> CacheConfig:
    return CacheConfig(sets, ways, line_bytes, replacement, write_back, write_allocate, seed, Basis.ASSUMED, "a test")


def assembler(functions: Mapping[str, str], target: Target) -> str:
    """An assembler file with each of ``functions``: bodies by name."""
    head = ".syntax unified\n" if target.isa != "powerpc" else ""
    head += ".thumb\n" if target.isa == "thumb" else ""
    mark = ".thumb_func\n" if target.isa == "thumb" else ""
    return f"{head}.text\n" + "".join(
        f".balign 4\n.globl {name}\n.type {name}, %function\n{mark}{name}:\n{textwrap.dedent(body)}\n"
        f".size {name}, . - {name}\n"
        for name, body in functions.items()
    ).replace("%", "@" if target.isa == "powerpc" else "%")


def image_of(
    source: str, target: Target, suffix: str = ".s", optimisation: str = "-O2", *, link_flags: Iterable[str] = ()
) -> Image:
    """The image of one file, C or assembler, built as the package builds an allocator, and once in a run."""
    toolchain = find_toolchain(PACKAGED, target)
    flags = target.compiler_flags[toolchain.family]
    language = (*build.COMMON_FLAGS, optimisation) if suffix == ".c" else ("-g",)
    compiled = (*toolchain.compile, *flags, *language, "-c", f"guest{suffix}", "-o", "guest.o")
    linked = (*toolchain.link, *link_flags, "-T", "image.ld", "guest.o", "-o", "image.elf")
    script = build._LINKER_SCRIPT.format(code=target.memory_map.code, data=target.memory_map.data)

    def built() -> bytes:
        with TemporaryDirectory(dir=_FOLDER.name) as name:
            here = Path(name)
            (here / f"guest{suffix}").write_text(source, "utf-8")
            (here / "image.ld").write_text(script, "utf-8")
            build._call([*compiled], here)
            build._call([*linked], here)
            return (here / "image.elf").read_bytes()

    elf = once_bytes("guests", built, source, script, compiled, linked)
    return read_image(elf, target.isa, toolchain.identity, flags)


def guest_on(image: Image, target: Target) -> Guest:
    instructions = with_timing_problems(decode(image), target)
    return Guest(image, target, instructions, costs(instructions, target))


def guest_of(source: str, target: Target, suffix: str = ".s", optimisation: str = "-O2") -> Guest:
    """The guest of one file; of the same file for the same core the same one, as all of it is frozen."""
    key = source, repr(target), suffix, optimisation
    if key not in _GUESTS:
        if len(_GUESTS) == _MOST_GUESTS:
            _GUESTS.pop(next(iter(_GUESTS)))
        _GUESTS[key] = guest_on(image_of(source, target, suffix, optimisation), target)
    return _GUESTS[key]


def machine_of(source: str, target: Target, suffix: str = ".s", heap_bytes: int = 4096) -> Machine:
    return guest_of(source, target, suffix).machine(heap_bytes)


def tlsf(values: Mapping[str, int] = DEFAULTS) -> Allocator:
    return load_allocator("tlsf", values)


def images_dir() -> Path:
    """A folder for built images, by their content, that all tests of this run share, those of all its workers."""
    return run_folder("images")


def tlsf_guest(target_name: str, values: Mapping[str, int] = DEFAULTS) -> Guest:
    return _tlsf_guest(target_name, tuple(sorted(values.items())))


@cache
def _tlsf_guest(target_name: str, values: tuple[tuple[str, int], ...]) -> Guest:
    target = load_target(target_name)
    return guest_on(build_image(tlsf(dict(values)), target, PACKAGED, images_dir()), target)


def trace_of(operations: Iterable[tuple[int, int, int]]) -> Trace:
    """A trace of ``(kind, slot, size)``; kind 0 allocates, 1 frees."""
    rows = tuple(operations)
    columns = tuple(zip(*rows, strict=True)) if rows else ((), (), ())
    return Trace(*columns, (0,) * len(rows), 1 + max(columns[1], default=-1))
