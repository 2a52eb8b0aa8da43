"""A static array of the sources as the heap: it is where heaps are, alone, and as large as is asked about."""

from __future__ import annotations

import subprocess

import pytest

from tests.catalog.test_own_allocator import CELLS, HEAD, ONE, PLAIN, request, steps
from wcet_probe.answer.witness.probe import observe
from wcet_probe.build.toolchain import find_toolchain, packaged_program
from wcet_probe.catalog.lookup import load_target
from wcet_probe.errors import ExitCode
from wcet_probe.model.report import Verdict

# Small, and beside other static words: compilers make one variable of all that they can.
SOURCE = """
static unsigned taken, refused;
static unsigned char room[CS_BYTES];
void *cs_get(size_t n)
{
    if (!all.end) cells_set(&all, room, room + sizeof room);
    void *p = n > 32 ? 0 : cells_get(&all);
    if (p) taken++; else refused++;
    return p;
}
void cs_put(void *p) { taken--; cells_put(&all, p); }
"""


def folder(at, source=SOURCE, heap='symbol = "room"\nsize_macro = "CS_BYTES"\n', more=""):
    (at / "cells.c").write_text(CELLS + ONE + source, "utf-8")
    (at / "more.c").write_text(more or "int more;", "utf-8")
    head = HEAD.replace('"cells.c"', '"cells.c", "more.c"')
    (at / "manifest.toml").write_text(head + "[call]\n" + PLAIN + heap, "utf-8")
    return at


@pytest.mark.parametrize("target", ["cortex-m4", "mpc603e"])
def test_a_static_array_is_the_heap_of_the_size_that_is_asked_about(target, tmp_path):
    found = steps(folder(tmp_path), 1024, target)
    assert [step.found for step in found if step.code is not ExitCode.OK] == []
    assert observe(request(f"{tmp_path}/", "worst-alloc", 2048, target)).verdict is Verdict.BOUNDED


@pytest.mark.parametrize("kind", ["static unsigned", "unsigned"])
def test_an_array_of_another_size_is_told(kind, tmp_path):
    source = SOURCE.replace("CS_BYTES", "1024").replace("static unsigned char room", f"{kind} char room")
    at = folder(tmp_path, source, 'symbol = "room"\n')
    assert all(step.code is ExitCode.OK for step in steps(at, 1024))
    assert steps(at, 2048)[-1].found.endswith("give --heap 1024, or the macro of its size as size_macro.")
    assert "has 1024 bytes, not 512" in steps(at, 512)[-1].found
    folder(tmp_path, SOURCE.replace("[CS_BYTES]", "[CS_BYTES + 7]"))
    assert all(step.code is ExitCode.OK for step in steps(at, 1024))
    folder(tmp_path, SOURCE.replace("[CS_BYTES]", "[CS_BYTES - 8]"))
    assert "let CS_BYTES tell its size" in steps(at, 1024)[-1].found


@pytest.mark.parametrize(
    ("source", "more"),
    [
        (SOURCE.replace("room[CS_BYTES];", "room[CS_BYTES] = {1};"), ""),
        (SOURCE.replace("static unsigned char room[CS_BYTES];", "unsigned char room[CS_BYTES] = {1};"), ""),
        (SOURCE, "static int room[9];\nint *other(int i) { return room + i; }"),
        (SOURCE, "int room[9];\nint *other(int i) { return room + i; }"),
    ],
    ids=["with content", "global with content", "two of one name", "a global one of its name"],
)
def test_an_array_that_is_elsewhere_or_not_alone_is_refused(source, more, tmp_path):
    source = source.replace("{\n    if", "{\n    extern int *other(int);\n    if (n == 77) return other(n);\n    if", 1)
    at = folder(tmp_path, source, more=more or "int *other(int i) { return (int *)(long)i; }")
    assert "is not one array without content of the sources" in steps(at, 1024)[-1].found


def test_the_size_of_an_array_of_objects_is_held_against_the_heap(tmp_path):
    at = folder(tmp_path, SOURCE.replace("static unsigned char room[CS_BYTES]", "unsigned char room[1024]"))
    target = load_target("cortex-m4")
    compiler = [*find_toolchain("zig", target).compile, *target.compiler_flags["clang"], "-O2", "-ffreestanding"]
    for name in ("more", "cells"):
        subprocess.run([*compiler, "-c", f"{name}.c", "-o", f"{name}.o"], cwd=at, check=True)
    subprocess.run([packaged_program(), "ar", "rcs", "libcells.a", "more.o", "cells.o"], cwd=at, check=True)
    for name in ("cells.o", "libcells.a"):
        head = HEAD.replace('sources = ["cells.c"]', f'objects = ["{name}"]')
        (at / "manifest.toml").write_text(f'{head}[call]\n{PLAIN}symbol = "room"\n', "utf-8")
        assert "has 1024 bytes, not 2048; give --heap 1024" in steps(at, 2048)[-1].found
    assert all(step.code is ExitCode.OK for step in steps(at, 1024))
