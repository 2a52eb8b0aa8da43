"""Building images: deterministic, kept by content, and one sentence when it fails."""

from __future__ import annotations

import errno
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support import CHOICES, TARGETS, guest_on, tlsf
from wcet_probe.build import compilation as build
from wcet_probe.build import toolchain
from wcet_probe.build.compilation import build_image
from wcet_probe.build.toolchain import PACKAGED, find_toolchain
from wcet_probe.catalog.lookup import load_target
from wcet_probe.errors import BuildError
from wcet_probe.model.allocator import Allocator
from wcet_probe.model.image import Image

M4 = load_target("cortex-m4")


def kept(folder: Path) -> list[str]:
    """Everything that is in the cache, by name."""
    return sorted(path.name for path in folder.rglob("*"))


def built(
    cache_dir: Path, target: str = "cortex-m4", allocator: Allocator | None = None, compiler: str = PACKAGED
) -> Image:
    return build_image(allocator or tlsf(), load_target(target), compiler, cache_dir)


def source_changed(file: str, text: str) -> Allocator:
    allocator = tlsf()
    return replace(allocator, sources=tuple((name, text if name == file else old) for name, old in allocator.sources))


@pytest.mark.covering(0)
@pytest.mark.parametrize("target", TARGETS)
def test_an_image_is_the_same_wherever_it_is_built(target, tmp_path):
    one, other = built(tmp_path / "one", target), built(tmp_path / "a longer name" / "other", target)
    assert one.elf == other.elf
    assert one == other


@pytest.mark.parametrize("target", TARGETS)
def test_an_image_names_no_folder_of_the_machine(target, tmp_path):
    elf = built(tmp_path, target).elf
    assert os.fsencode(tmp_path) not in elf
    assert os.fsencode(Path(build.__file__).parent) not in elf


def test_an_image_names_no_folder_of_the_compiler(tmp_path):
    assert os.fsencode(toolchain.packaged_program().parent) not in built(tmp_path).elf


def test_an_image_is_built_once(tmp_path, monkeypatch):
    first = built(tmp_path)
    names = kept(tmp_path)
    assert len(names) == 2  # the folder and the image: nothing else is left behind

    def refuse(*_: object) -> None:
        raise AssertionError("the compiler was called")

    monkeypatch.setattr(build, "_call", refuse)
    assert built(tmp_path) == first
    assert kept(tmp_path) == names


def test_whatever_an_image_depends_on_makes_another_image(tmp_path):
    changed = source_changed("tlsf_check.c", dict(tlsf().sources)["tlsf_check.c"] + "\nint another;\n")
    moved = replace(M4, memory_map=replace(M4.memory_map, data=replace(M4.memory_map.data, base_address=0x20010000)))
    images = [*(built(tmp_path, allocator=tlsf(values)) for values in CHOICES), built(tmp_path, allocator=changed)]
    images += [build_image(tlsf(), moved, PACKAGED, tmp_path), built(tmp_path, "arm926ej-s")]
    assert len({image.sha256 for image in images}) == len(images)
    assert len(kept(tmp_path)) == 1 + len(images)


def test_the_compiler_is_part_of_the_image(tmp_path):
    image = built(tmp_path)
    assert "clang" in image.compiler
    assert "ziglang" in image.compiler
    assert "-mcpu=cortex-m4" in image.flags


def test_a_source_with_an_error_is_named(tmp_path):
    with pytest.raises(BuildError, match=r"^zig failed on tlsf\.c: tlsf\.c:\d+:\d+: error: .*; mend the source"):
        built(tmp_path, allocator=source_changed("tlsf.c", "int f(void) { return 1 }\n"))
    assert [name for name in kept(tmp_path) if name != "images"] == []


@pytest.mark.parametrize(
    ("line", "remedy"),
    [
        ("void *more(size_less bytes);", '"-include", "stdint.h"'),
        ("int more = not_there;", '"-include", "stdint.h"'),
        ("char more[1 << 24];", "tell by symbol under [heap]"),
    ],
)
def test_what_a_stranger_can_do_about_an_error_is_told(line, remedy, tmp_path):
    source = dict(tlsf().sources)["tlsf.c"]
    with pytest.raises(BuildError) as raised:
        built(tmp_path, allocator=source_changed("tlsf.c", f"{source}\n{line}\n"))
    assert remedy in str(raised.value)


def test_a_source_that_does_not_link_is_named(tmp_path):
    with pytest.raises(BuildError, match=r"undefined symbol: tlsf_"):
        built(tmp_path, allocator=source_changed("tlsf.c", "int f(void) { return 0; }\n"))
    assert [name for name in kept(tmp_path) if name != "images"] == []


# Errors of the operating system; root may write anywhere, so they are raised by hand.
FAILURES = [
    (errno.ENOSPC, "No space left on device"),
    (errno.EACCES, "Permission denied"),
    (errno.EROFS, "Read-only file system"),
]


@pytest.mark.parametrize(("number", "words"), FAILURES)
@pytest.mark.parametrize("where", ["mkdir", "write_text", "replace"])
@pytest.mark.covering(1)
def test_a_cache_that_cannot_be_written(number, words, where, tmp_path, monkeypatch):
    def fail(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(Path, where, fail)
    with pytest.raises(BuildError, match=rf"image cache .* cannot be used \({words}\); .*WCET_PROBE_CACHE_DIR"):
        built(tmp_path)
    assert [name for name in kept(tmp_path) if name != "images"] == []
    monkeypatch.undo()
    assert built(tmp_path).symbols


def test_a_cache_that_is_a_file(tmp_path):
    (tmp_path / "cache").write_text("in the way")
    with pytest.raises(BuildError, match="cannot be used"):
        built(tmp_path / "cache")


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes to read-only folders")
def test_a_read_only_cache(tmp_path):
    tmp_path.chmod(0o555)
    with pytest.raises(BuildError, match="cannot be used"):
        built(tmp_path)


def test_a_full_disk_under_the_compiler(tmp_path, monkeypatch):
    """The compiler itself says that it could not write: its words, and nothing is kept."""
    script = tmp_path / "clang-full"
    script.write_text(
        '#!/bin/sh\n[ "$1" = --version ] && { echo "clang version 1"; exit 0; }\n'
        'echo "error: unable to open output file: No space left on device" >&2\nexit 1\n'
    )
    script.chmod(0o755)
    (tmp_path / "ld.lld").symlink_to("/bin/true")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(BuildError, match=r"clang-full failed on .*No space left on device"):
        built(tmp_path / "cache", compiler="clang-full")
    assert [name for name in kept(tmp_path / "cache") if name != "images"] == []


@pytest.mark.parametrize("damage", [
    lambda _: b"",
    lambda content: content[:100],
    lambda content: content[:5000] + bytes([content[5000] ^ 1]) + content[5001:],
    lambda content: content + b"x",
], ids=["emptied", "cut", "one bit", "longer"])  # fmt: skip
def test_a_damaged_image_in_the_cache_is_built_again(tmp_path, damage):
    first = built(tmp_path)
    (path,) = (tmp_path / "images").iterdir()
    whole = path.read_bytes()
    path.write_bytes(damage(whole))
    assert built(tmp_path) == first
    assert path.read_bytes() == whole


# ------------------------------------------------------------------------------------------------------------ toolchain


def test_a_compiler_that_is_not_there(tmp_path):
    with pytest.raises(BuildError, match=r"compiler 'no-such-cc' was not found; install it, or use .* --cc zig"):
        built(tmp_path, compiler="no-such-cc")
    assert kept(tmp_path) == []


def test_the_packaged_compiler_may_be_missing(monkeypatch):
    monkeypatch.setattr(toolchain, "find_spec", lambda _: None)
    with pytest.raises(BuildError, match="the packaged compiler is missing; install the package ziglang"):
        find_toolchain(PACKAGED, M4)


def fake_compiler(folder: Path, name: str, body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))


def test_a_compiler_for_another_machine(tmp_path, monkeypatch):
    body = '[ "$1" = -dumpmachine ] && echo x86_64-linux-gnu || echo "gcc (Debian) 12.2.0"'
    fake_compiler(tmp_path, "native-gcc", body, monkeypatch)
    with pytest.raises(BuildError, match=r"builds for 'x86_64-linux-gnu', not for cortex-m4; .*arm-none-eabi-gcc"):
        find_toolchain("native-gcc", M4)


def test_a_compiler_that_fails(tmp_path, monkeypatch):
    fake_compiler(tmp_path, "broken-cc", "exit 3", monkeypatch)
    with pytest.raises(BuildError, match=r"does not run .*use --cc zig"):
        find_toolchain("broken-cc", M4)


def test_a_compiler_that_says_nothing(tmp_path, monkeypatch):
    fake_compiler(tmp_path, "silent-cc", "exit 0", monkeypatch)
    with pytest.raises(BuildError):
        find_toolchain("silent-cc", M4)


def test_a_clang_without_its_linker(tmp_path, monkeypatch):
    fake_compiler(tmp_path, "clang-9", "echo clang version 9", monkeypatch)
    with pytest.raises(BuildError, match=r"the linker ld\.lld of clang-9 was not found; install lld"):
        find_toolchain("clang-9", M4)


SYSTEM = [
    *(("clang", target) for target in TARGETS),
    *(("clang-19", target) for target in TARGETS),
    ("arm-none-eabi-gcc", "cortex-m4"),
    ("arm-none-eabi-gcc", "arm926ej-s"),
    ("powerpc-linux-gnu-gcc", "mpc603e"),
]


@pytest.mark.parametrize(("compiler", "target"), SYSTEM)
def test_a_compiler_of_the_system(compiler, target, tmp_path):
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    if "clang" in compiler and shutil.which(compiler.replace("clang", "ld.lld")) is None:
        pytest.skip(f"the linker of {compiler} is not installed")
    guest = guest_on(built(tmp_path, target, compiler=compiler), load_target(target))
    with guest.machine() as machine:
        assert machine.call("tlsf_init", machine.heap.base_address, 4096) == 0
        assert machine.call("tlsf_malloc", 100) == machine.heap.base_address + 8
        assert machine.call("tlsf_check") == 0
