"""Compiling and linking an allocator for a target, deterministic to the byte and cached by content."""

from __future__ import annotations

import hashlib
import subprocess
import tempfile
from pathlib import Path

from wcet_probe.build.image import read_image
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


def build_image(allocator: Allocator, target: Target, compiler: str, cache_dir: Path) -> Image:
    """The image of ``allocator`` for ``target``, from ``cache_dir`` or built by ``compiler`` and put there.

    Parameters:
        allocator: with its build parameters chosen.
        target: the core.
        compiler: ``zig`` for the packaged Clang, or a command.
        cache_dir: where images are kept, by hash of all that they depend on.

    Raises:
        BuildError: the compiler is missing or fails, or the cache cannot be written.
    """
    toolchain = find_toolchain(compiler, target)
    flags = _flags(allocator, target, toolchain)
    script = _LINKER_SCRIPT.format(code=target.memory_map.code, data=target.memory_map.data)
    sources = (*allocator.sources, *_guest_sources())
    kept = cache_dir / "images" / f"{allocator.name}-{target.name}-{_key(sources, flags, toolchain, script)}.elf"
    try:
        elf = _kept(kept) or _keep(kept, sources, flags, toolchain, script)
    except OSError as error:
        message = (
            f"the image cache {cache_dir} cannot be used ({error.strerror}); free some space, "
            "or name a writable folder in WCET_PROBE_CACHE_DIR."
        )
        raise BuildError(message) from error
    return read_image(elf, target.isa, toolchain.identity, flags)


def _flags(allocator: Allocator, target: Target, toolchain: Toolchain) -> tuple[str, ...]:
    parameters = tuple(f"-D{p.macro}={allocator.values[p.name]}" for p in allocator.parameters)
    entries = (f"-DWP_MALLOC={allocator.entry_points['malloc']}", f"-DWP_FREE={allocator.entry_points['free']}")
    cache_set = ("-DWP_TAKES_CACHE_SET",) if allocator.takes_cache_set else ()
    return (*target.compiler_flags[toolchain.family], *COMMON_FLAGS, *parameters, *entries, *cache_set)


def _guest_sources() -> tuple[tuple[str, str], ...]:
    home = folder("guest")
    return tuple((name, (home / name).read_text("utf-8")) for name in GUEST_FILES)


def _key(sources: tuple[tuple[str, str], ...], flags: tuple[str, ...], toolchain: Toolchain, script: str) -> str:
    content = repr((sources, flags, toolchain.identity, toolchain.family, script))
    return hashlib.sha256(content.encode()).hexdigest()[:24]


def _keep(
    kept: Path, sources: tuple[tuple[str, str], ...], flags: tuple[str, ...], toolchain: Toolchain, script: str
) -> bytes:
    """Build in a folder beside ``kept`` and rename the result, so that nobody sees half an image."""
    kept.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=kept.parent, prefix="build-") as name:
        here = Path(name)
        for file, text in sources:
            (here / file).write_text(text, "utf-8")
        (here / "image.ld").write_text(script, "utf-8")
        units = [file for file, _ in sources if file.endswith(".c")]
        family = tuple(flag.format(here=here) for flag in _FAMILY_FLAGS[toolchain.family])
        for unit in units:
            _call([*toolchain.compile, *flags, *family, "-c", unit, "-o", f"{unit}.o"], here)
        objects = [f"{unit}.o" for unit in units]
        _call([*toolchain.link, "-T", "image.ld", *objects, *toolchain.libraries, "-o", "image.elf"], here)
        elf = (here / "image.elf").read_bytes()
        (here / "image.kept").write_bytes(elf + hashlib.sha256(elf).digest())
        (here / "image.kept").replace(kept)
        return elf


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
        tool = Path(command[0]).name
        message = f"{tool} failed on {command[-3]}: {problems[0].strip()}; mend the source or choose another --cc."
        raise BuildError(message)
