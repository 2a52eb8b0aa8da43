"""Compiling and linking an allocator for a target, deterministic to the byte and cached by content."""

from __future__ import annotations

import hashlib
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from wcet_probe.build.heap_array import check_heap_array, heap_array_lines
from wcet_probe.build.image import read_image
from wcet_probe.build.linked_program import Beside, beside, check_heap_bytes, with_calls
from wcet_probe.build.refusals import headers_of, is_header, remedy_of, with_others
from wcet_probe.build.toolchain import Toolchain, find_toolchain
from wcet_probe.catalog.resources import folder
from wcet_probe.errors import BuildError
from wcet_probe.model.allocator import CPP_SUFFIXES, Allocator
from wcet_probe.model.image import Image
from wcet_probe.model.target import Target

_STANDARD = "-std=c11"

COMMON_FLAGS = (
    _STANDARD,
    "-O2",
    "-fno-unroll-loops",
    "-g",
    "-ffreestanding",
    "-fno-builtin",
    "-fno-common",
    "-fomit-frame-pointer",
    "-fno-stack-protector",
    "-fno-unwind-tables",
    "-fno-asynchronous-unwind-tables",
    "-fno-pic",
)
"""Flags for both compiler families.

``-fno-builtin`` keeps a byte loop from becoming a call of its own function. Without unrolling an iteration in the
source is one in the binary, and a loop bound means in both the same.
"""

CPP_FLAGS = ("-std=c++17", "-fno-exceptions", "-fno-rtti", "-fno-threadsafe-statics")
"""What is told of C++ in place of the standard of C."""

GUEST_FILES = ("replay.c", "runtime.c")
"""What is linked to every allocator, from the package's folder ``guest``."""

_SYMBOLS = "wp_symbols.o"
"""The object with the symbols of a linked program."""

_DIGEST_BYTES = hashlib.sha256().digest_size

_FAMILY_FLAGS = {
    # No path of the machine in the debug information.
    "clang": ("-fdebug-compilation-dir=.", "-no-canonical-prefixes"),
    "gcc": ("-fno-tree-loop-distribute-patterns", "-ffile-prefix-map=" + "{here}=."),
}

_CONSTRUCTORS = """\
  .init_array : ALIGN(4) {
    __init_array_start = .;
    KEEP(*(SORT_BY_INIT_PRIORITY(.init_array.*) SORT_BY_INIT_PRIORITY(.ctors.*)))
    KEEP(*(.init_array .ctors))
    __init_array_end = .;
  } > code :text
"""
"""Of an allocator of one's own with code that runs before ``main``, which its init calls."""

_LINKER_SCRIPT = """\
MEMORY
{{
  code (rx) : ORIGIN = {code.base_address:#x}, LENGTH = {code.size_bytes:#x}
  data (rw) : ORIGIN = {data.base_address:#x}, LENGTH = {data.size_bytes:#x}
}}
PHDRS
{{
  text PT_LOAD FLAGS(5);
  data PT_LOAD FLAGS(6);
}}
SECTIONS
{{
  .text : {{ *(.text .text.*) }} > code :text
  .wp_harness : ALIGN(64) {{ *(.wp_harness) }} > code :text
  .rodata : ALIGN(64) {{ *(.rodata .rodata.*) }} > code :text
  .data : {{ *(.data .data.* .sdata .sdata.*) }} > data :data
  .bss : {{ *(.bss .bss.* .sbss .sbss.*) *(COMMON) }} > data :data
  /DISCARD/ : {{ *(.ARM.exidx*) *(.ARM.extab*) *(.eh_frame*) *(.note*) }}
}}
"""


@dataclass(frozen=True, slots=True)
class _Job:
    """What is built: ``texts`` by path, the ``units`` among them that are compiled, ``lazy`` ones as they are needed.

    ``objects`` are linked as they are, with ``link_flags``; or beside ``program``, which is linked, to ``place``.
    """

    texts: tuple[tuple[str, str], ...]
    units: tuple[str, ...]
    flags: tuple[str, ...]
    lazy: tuple[str, ...] = ()
    objects: tuple[tuple[str, bytes], ...] = ()
    link_flags: tuple[str, ...] = ()
    program: tuple[str, bytes] | None = None
    place: Beside | None = None


def build_image(allocator: Allocator, target: Target, compiler: str, cache_dir: Path, heap_bytes: int = 0) -> Image:
    """The image of ``allocator`` for ``target``, from ``cache_dir`` or built by ``compiler`` and put there.

    Parameters:
        allocator: with its build parameters chosen.
        target: the core.
        compiler: ``zig`` for the packaged Clang, or a command.
        cache_dir: where images are kept, by hash of all that they depend on.
        heap_bytes: size of the heap, for an allocator that is compiled for one size.

    Raises:
        BuildError: the compiler is missing or fails, or the cache cannot be written.
        UsageError: the heap has another place or size.
    """
    toolchain = find_toolchain(compiler, target)
    if heap_bytes:
        check_heap_bytes(allocator, heap_bytes)
    job = _own_job(_job(allocator, target, toolchain), allocator, target, toolchain, heap_bytes)
    place = job.place or target.memory_map
    region, section = heap_array_lines(allocator, target)
    script = _LINKER_SCRIPT.format(code=place.code, data=place.data)
    script = script.replace("}\nPHDRS", f"{region}}}\nPHDRS").replace("  .text :", f"{section}  .text :")
    if allocator.own and allocator.own.constructs:
        script = script.replace("  .data :", f"{_CONSTRUCTORS}  .data :")
    kept = cache_dir / "images" / f"{allocator.name}-{target.name}-{_key(job, toolchain, script)}.elf"
    try:
        elf = _kept(kept) or _keep(kept, job, toolchain, script)
    except OSError as error:
        message = (
            f"the image cache {cache_dir} cannot be used ({error.strerror}); free some space, "
            "or name a writable folder in WCET_PROBE_CACHE_DIR."
        )
        raise BuildError(message) from error
    check_heap_array(elf, allocator, target, heap_bytes)
    identity = (
        f"{job.program[0]} as it is linked, called by {toolchain.identity}" if job.program else toolchain.identity
    )
    image = read_image(elf, target.isa, identity, job.flags)
    for role in ("malloc", "free"):
        if (name := allocator.entry_points[role]) not in image.symbols:
            message = (
                f"{name} has no symbol, as an inline function of a header has none: write its call in brackets under "
                f'[call], as in {role} = "({name}({"size" if role == "malloc" else "pointer"}))".'
            )
            raise BuildError(message)
    return image


def _job(allocator: Allocator, target: Target, toolchain: Toolchain) -> _Job:
    texts = (*allocator.sources, *_guest_sources())
    units = tuple(file for file, _ in texts if file.endswith(".c"))
    return _Job(texts, units, _flags(allocator, target, toolchain))


def _own_job(job: _Job, allocator: Allocator, target: Target, toolchain: Toolchain, heap_bytes: int) -> _Job:
    """``job``, for an allocator that is not of the package with its own folders and flags, without what nothing uses.

    Its adapter has the harness; what compilers call on their own gives way to functions of that name that it brings.

    Raises:
        BuildError: it is compiled for one size of the heap, and none is known.
    """
    own = allocator.own
    if own is None:
        return job
    if own.heap_macro and not heap_bytes:
        message = f"{allocator.name} is compiled for one size of the heap; give --heap, or ask where a heap is known."
        raise BuildError(message)
    lazy = (*own.libraries, "runtime.c")
    texts = tuple(
        (path, text)
        for file, text in job.texts
        if file != "replay.c" and (path := own.paths.get(file, file)) not in own.object_sources
    )
    ends = (".c", *CPP_SUFFIXES)
    units = tuple(file for file, _ in texts if file.endswith(ends) and file not in {*lazy, *own.included})
    size = (f"-D{own.heap_macro}={heap_bytes}",) if own.heap_macro else ()
    # Clang makes one variable of several static ones, and the array would be part of it.
    apart = ("-mllvm", "-enable-global-merge=false") if own.heap_symbol and toolchain.family == "clang" else ()
    named = (PurePosixPath(path) for path in own.paths.values() if path not in own.included)
    folders = dict.fromkeys((".", *own.include_dirs, *(str(path.parent) for path in named)))
    flags = (
        *job.flags,
        "-ffunction-sections",
        "-fdata-sections",
        *(f"-I{path}" for path in folders),
        *apart,
        *size,
        *own.flags,
    )
    roots = ("wp_replay", *allocator.entry_points.values())
    options = ("--gc-sections", "--no-demangle", *(f"--undefined={symbol}" for symbol in roots))
    if own.heap_symbol and not own.elf:
        options += (f"--defsym={own.heap_symbol}={target.memory_map.heap_address:#x}",)
    link_flags = options if toolchain.links_lazily else tuple(f"-Wl,{option}" for option in options)
    if own.elf is None:
        return _Job(texts, units, flags, lazy, own.objects, link_flags)
    place = beside(own, target)
    return _Job(texts, units, flags, lazy, ((_SYMBOLS, place.symbols),), link_flags, own.elf, place)


def _flags(allocator: Allocator, target: Target, toolchain: Toolchain) -> tuple[str, ...]:
    parameters = tuple(f"-D{p.macro}={allocator.values[p.name]}" for p in allocator.parameters)
    entries = (f"-DWP_MALLOC={allocator.entry_points['malloc']}", f"-DWP_FREE={allocator.entry_points['free']}")
    cache_set = ("-DWP_TAKES_CACHE_SET",) if allocator.takes_cache_set else ()
    return (*target.compiler_flags[toolchain.family], *COMMON_FLAGS, *parameters, *entries, *cache_set)


def _guest_sources() -> tuple[tuple[str, str], ...]:
    home = folder("guest")
    return tuple((name, (home / name).read_text("utf-8")) for name in GUEST_FILES)


def _key(job: _Job, toolchain: Toolchain, script: str) -> str:
    own = (job.units, job.lazy, job.objects, job.link_flags, CPP_FLAGS) if job.link_flags else ()
    linked = (job.program, job.place) if job.program else ()
    content = repr((job.texts, job.flags, toolchain.identity, toolchain.family, script, *own, *linked))
    return hashlib.sha256(content.encode()).hexdigest()[:24]


def _keep(kept: Path, job: _Job, toolchain: Toolchain, script: str) -> bytes:
    """Build in a folder beside ``kept`` and rename the result, so that nobody sees half an image."""
    kept.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=kept.parent, prefix="build-") as name:
        here = Path(name)
        for file, text in (*job.texts, ("image.ld", script)):
            _place(here, file).write_text(text, "utf-8")
        for file, content in job.objects:
            _place(here, file).write_bytes(content)
        family = tuple(flag.format(here=here) for flag in _FAMILY_FLAGS[toolchain.family])
        library = toolchain.c_library if job.link_flags else ()
        for unit in (*job.units, *job.lazy):
            _compile(job, toolchain, (*family, *library), unit, here)
        objects = [*(f"{unit}.o" for unit in job.units), *(path for path, _ in job.objects)]
        before, behind = toolchain.links_lazily or (None, None)
        lazy = [before, *(f"{unit}.o" for unit in job.lazy), behind] if job.lazy else []
        objects += [word for word in lazy if word]
        command = [*toolchain.link, *job.link_flags, "-T", "image.ld", *objects, *toolchain.libraries]
        _call([*command, "-o", "image.elf"], here)
        elf = (here / "image.elf").read_bytes()
        elf = with_calls(job.program, job.place, elf) if job.program and job.place else elf
        (here / "image.kept").write_bytes(elf + hashlib.sha256(elf).digest())
        (here / "image.kept").replace(kept)
        return elf


def _compile(job: _Job, toolchain: Toolchain, behind: Sequence[str], unit: str, here: Path) -> None:
    begun, flags = _language(job, toolchain, unit)
    done = _run([*begun, *flags, *behind, "-c", unit, "-o", f"{unit}.o"], here)
    problems = _problems(done)
    absent: dict[str, None] = {}
    # A compiler stops at the first header that is missing; asked what a file depends on, it tells all.
    for one in job.units if problems and is_header(problems[0]) else ():
        begun, flags = _language(job, toolchain, one)
        rule = _run([*begun, *flags, *behind, "-M", "-MG", one], here).stdout
        absent |= {header: None for header in headers_of(rule) if not (here / header).exists()}
    _refuse(problems, begun[0], unit, tuple(absent))


def _language(job: _Job, toolchain: Toolchain, unit: str) -> tuple[Sequence[str], Sequence[str]]:
    """What compiles ``unit``, and its flags, a standard only where it is one of its language: ours are in one of C."""
    in_cpp = unit.endswith(CPP_SUFFIXES)
    flags = [flag for flag in job.flags if not flag.startswith("-std=") or ("++" in flag) is in_cpp]
    if in_cpp:
        return toolchain.compile_cpp, (*CPP_FLAGS, *flags)
    return toolchain.compile, [*flags, _STANDARD] if unit in job.lazy else flags


def _place(here: Path, file: str) -> Path:
    """Where ``file`` lies below ``here``; its folder is made."""
    place = here / file
    place.parent.mkdir(parents=True, exist_ok=True)
    return place


def _kept(kept: Path) -> bytes | None:
    """The image in the cache, or None where there is none or it was damaged: its digest stands behind it."""
    if not kept.is_file():
        return None
    content = kept.read_bytes()
    elf, digest = content[:-_DIGEST_BYTES], content[-_DIGEST_BYTES:]
    return elf if hashlib.sha256(elf).digest() == digest else None


def _call(command: list[str], here: Path) -> None:
    _refuse(_problems(_run(command, here)), command[0], "the image")


def _run(command: list[str], here: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=here, capture_output=True, text=True, check=False)


def _problems(done: subprocess.CompletedProcess[str]) -> list[str]:
    """The lines that tell why a compiler or linker failed; none where it did not."""
    if not done.returncode:
        return []
    return [line for line in done.stderr.splitlines() if "error" in line] or [f"exit status {done.returncode}"]


def _refuse(problems: Sequence[str], program: str, what: str, absent: Sequence[str] = ()) -> None:
    """Nothing, where there are no ``problems``.

    Raises:
        BuildError: there are.
    """
    if problems:
        message = f"{Path(program).name} failed on {what}: {with_others(problems, absent)}; {remedy_of(problems[0])}."
        raise BuildError(message)
