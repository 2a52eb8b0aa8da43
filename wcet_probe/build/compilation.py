"""Compiling and linking an allocator for a target, deterministic to the byte and cached by content."""

from __future__ import annotations

import hashlib
import re
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from wcet_probe.build.heap_array import check_heap_array, heap_array_lines
from wcet_probe.build.image import read_image
from wcet_probe.build.linked_program import Beside, beside, check_heap_bytes, with_calls
from wcet_probe.build.toolchain import Toolchain, find_toolchain
from wcet_probe.catalog.resources import folder
from wcet_probe.errors import BuildError
from wcet_probe.model.allocator import Allocator
from wcet_probe.model.image import Image
from wcet_probe.model.target import Target

COMMON_FLAGS = (
    "-std=c11",
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
    units = tuple(file for file, _ in texts if file.endswith(".c") and file not in {*lazy, *own.included})
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
    options = ("--gc-sections", *(f"--undefined={symbol}" for symbol in roots))
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
    own = (job.units, job.lazy, job.objects, job.link_flags) if job.link_flags else ()
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
            _call([*toolchain.compile, *job.flags, *family, *library, "-c", unit, "-o", f"{unit}.o"], here)
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
    done = subprocess.run(command, cwd=here, capture_output=True, text=True, check=False)
    if done.returncode:
        problems = [line for line in done.stderr.splitlines() if "error" in line] or [f"exit status {done.returncode}"]
        what = "the image" if "image.ld" in command else command[-3]
        message = f"{Path(command[0]).name} failed on {what}: {_all_undefined(problems)}; {_remedy(problems[0])}."
        raise BuildError(message)


_UNDEFINED = re.compile(r"(?:undefined symbol: |undefined reference to [`'])([^\s`';]+)")


_BEFORE = 'include what declares it, as flags = ["-include", "stdint.h"] does before each file'
_HEAP_BESIDE = (
    "make its static data smaller by a -D under flags, or tell by symbol under [heap] which array is its heap"
)
_REMEDIES = tuple(
    (re.compile(pattern), remedy)
    for pattern, remedy in (
        (
            "undefined (symbol|reference)",
            "add the source that has it, or list it under stubs where it may do nothing and return 0",
        ),
        # By a folder and a name: its own folder would not help.
        (
            r"'[^']*/[^']*' file not found|error: \S+/\S+: No such file",
            "add the folder where that path begins to include_dirs, or leave the header out by a -D under flags",
        ),
        ("file not found|No such file", "add its folder to include_dirs, or leave the header out by a -D under flags"),
        ("undeclared function|implicit declaration", f"{_BEFORE}; some headers do with -std=gnu11 under flags only"),
        (r"wp_adapter\.c", "correct [call] of the manifest: a call, include, or declarations"),
        ("unknown type name|undeclared|parameter list without types", _BEFORE),
        (r"region \S* ?overflowed|will not fit in region", _HEAP_BESIDE),
    )
)
"""What to do about what a compiler or linker says: the first that fits."""


def _all_undefined(problems: Sequence[str]) -> str:
    """The first of the problems; where it is a symbol that nobody defines, with all of these, each once."""
    first = problems[0].strip()
    if not _UNDEFINED.search(first):
        return first
    others = dict.fromkeys(found[1] for problem in problems[1:] if (found := _UNDEFINED.search(problem)))
    named = ", ".join(name for name in others if not re.search(rf"(?<!\w){re.escape(name)}(?!\w)", first))
    return f"{first} (and {named})" if named else first


def _remedy(problem: str) -> str:
    """What to do about what a compiler or linker says."""
    found = (remedy for pattern, remedy in _REMEDIES if pattern.search(problem))
    return next(found, "mend the source or choose another --cc")
