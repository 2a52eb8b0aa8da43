"""Allocators that are linked already: called where they are, in a heap of their own, from manifest to audit."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.support import images_dir
from wcet_probe.answer.studies.own_steps import StepsRequest, own_steps
from wcet_probe.answer.studies.search import SearchRequest, search
from wcet_probe.answer.witness.probe import ProbeRequest, observe
from wcet_probe.build.linked_program import holds_program
from wcet_probe.build.program import load_program
from wcet_probe.build.toolchain import find_toolchain
from wcet_probe.catalog.lookup import load_allocator, load_target
from wcet_probe.cli.app import main
from wcet_probe.errors import ExitCode, UsageError
from wcet_probe.model.report import Verdict
from wcet_probe.model.scenario import OperationKind

FIRMWARE = """
#include <stddef.h>
#include <stdint.h>
struct cell { struct cell *next; };
struct pool { struct cell *list; unsigned char *next, *end; };
static unsigned entered;
static void enter(void) { entered++; }
__attribute__((noinline)) void *pool_take(struct pool *p, size_t n)
{
    enter();
    struct cell **at = &p->list;
    for (; *at; at = &(*at)->next)
        if (((uintptr_t)*at & 31) == 0 || n <= 24) { struct cell *c = *at; *at = c->next; return c; }
    if (n > 32 || p->end - p->next < 32) return 0;
    p->next += 32;
    return p->next - 32;
}
__attribute__((noinline)) void pool_give(struct pool *p, void *block)
{
    struct cell *c = block;
    c->next = p->list;
    p->list = c;
}
void pool_start(struct pool *p, void *from, void *to) { p->list = 0; p->next = from; p->end = to; }
_Alignas(32) unsigned char arena_of_ours[2048];
static struct pool ours = {0, arena_of_ours, arena_of_ours + sizeof arena_of_ours};
void *os_malloc(size_t n) { return pool_take(&ours, n); }
void os_free(void *block) { pool_give(&ours, block); }
int version = 7;
void _start(void) { os_free(os_malloc(8)); pool_start(&ours, arena_of_ours, arena_of_ours + version); for (;;); }
"""
# Flash and RAM as a linker script for a microcontroller has them: one writable table in flash, data and heap in a page.
SCRIPT = """
SECTIONS {{
  . = {code:#x};
  .text : {{ *(.text*) *(.rodata*) }} :flash
  .table : {{ *(.table*) }} :flash
  . = {data:#x};
  .data : {{ *(.data*) *(.sdata*) }} :ram
  .bss : {{ *(.bss*) *(.sbss*) *(COMMON) }} :ram
  heap_start = ALIGN(8);
  heap_end = heap_start + 0x900;
}}
PHDRS {{ flash PT_LOAD FLAGS(7); ram PT_LOAD FLAGS(6); }}
"""
HEAD = """
name = "cells-as-linked"
title = "cells"
elf = "firmware.elf"
alignment_bytes = 8
minimum_heap_bytes = 64
overhead_bytes = 0
minimum_block_bytes = 32
largest_request_bytes = 32
"""
STATIC = """
[heap]
symbol = "arena_of_ours"
[call]
declarations = "void *os_malloc(size_t); void os_free(void *);"
malloc = "os_malloc(size)"
free = "os_free(pointer)"
"""
POOL = """
declarations = "struct pool { void *list; unsigned char *next, *end; }; void pool_start(struct pool *, void *, void *);"
handle = "struct pool"
init = "pool_start(&handle, arena, end)"
malloc = "pool_take(&handle, size)"
free = "pool_give(&handle, pointer)"
""".replace('*);"', '*); void *pool_take(struct pool *, size_t); void pool_give(struct pool *, void *);"')
GIVEN = "[call]" + POOL
BETWEEN = '[heap]\nstart = "heap_start"\nend = "heap_end"\n' + GIVEN
ADDRESSES = {
    "cortex-m4": (0x08000000, 0x20000104),
    "arm926ej-s": (0x10000000, 0x20000104),
    "mpc603e": (0x10000000, 0x10020104),  # where this target has heaps
}


def firmware(at: Path, target: str = "cortex-m4", manifest: str = STATIC, *, has_source: bool = False) -> Path:
    """A folder with a linked program and its manifest."""
    core, (code, data) = load_target(target), ADDRESSES[target]
    toolchain = find_toolchain("zig", core)
    (at / "firmware.c").write_text(FIRMWARE, "utf-8")
    (at / "firmware.ld").write_text(SCRIPT.format(code=code, data=data), "utf-8")
    flags = [*core.compiler_flags["clang"], "-O1", "-g", "-ffreestanding", "-fno-unroll-loops"]
    table = '__attribute__((section(".table"))) void *starts[] = {0};'
    (at / "table.c").write_text(table, "utf-8")
    for name in ("firmware", "table"):
        subprocess.run([*toolchain.compile, *flags, "-c", f"{name}.c", "-o", f"{name}.o"], cwd=at, check=True)
    link = [*toolchain.link, "-T", "firmware.ld", "firmware.o", "table.o", "-o", "firmware.elf"]
    subprocess.run(link, cwd=at, check=True)
    head = HEAD + ('object_sources = ["firmware.c"]\n' if has_source else "")
    (at / "manifest.toml").write_text(head + manifest, "utf-8")
    return at


def steps(at: Path, heap_bytes: int | None = None, target: str = "cortex-m4"):
    return list(own_steps(StepsRequest(at, load_target(target), heap_bytes, "zig", images_dir())))


def request(at: Path, scenario: str, heap_bytes: int, target: str = "cortex-m4") -> ProbeRequest:
    return ProbeRequest(
        load_allocator(f"{at}/"), load_target(target), scenario, heap_bytes, 0, None, "zig", None, images_dir(), True
    )


def with_fact(at: Path, capsys) -> None:
    """Write the fact that is missing."""
    assert main(["facts", f"{at}/", "--entry", "malloc", "-q"]) == ExitCode.OK
    told = capsys.readouterr().out
    assert 'function = "pool_take"' in told
    facts = told.replace('max = "?"', 'max = "H // 32 + 1"').replace('"?"', '"each is a cell of the heap"')
    (at / "facts.toml").write_text(facts, "utf-8")


@pytest.mark.covering
@pytest.mark.parametrize("target", ADDRESSES)
@pytest.mark.parametrize("way", ["array of its own", "between symbols", "memory that it is given"])
def test_a_linked_program_is_called_where_it_is(way, target, tmp_path):
    manifest = {"array of its own": STATIC, "between symbols": BETWEEN, "memory that it is given": GIVEN}[way]
    at = firmware(tmp_path, target, manifest)
    found = {step.name: step for step in steps(at, target=target)}
    failed = {name for name, step in found.items() if step.code is not ExitCode.OK}
    assert failed <= {"bound of malloc"}, found  # whose loop needs a fact
    program = load_program(load_allocator(f"{at}/"), load_target(target), "zig", images_dir())
    assert holds_program(program.image.elf, program.allocator)
    assert (at / "firmware.elf").read_bytes()[0x100:0x400] == program.image.elf[0x100:0x400]


def test_its_heap_is_where_it_has_it_and_its_witness_lies_below_its_bound(tmp_path, capsys):
    at = firmware(tmp_path, has_source=True)
    with_fact(at, capsys)
    report = observe(request(at, "worst-alloc", 2048))
    assert report.verdict is Verdict.BOUNDED
    assert report.bound
    assert report.measurement.instructions <= report.bound.instructions
    array = report.image.symbols["arena_of_ours"]
    assert array.address <= report.measurement.result < array.address + array.size_bytes
    (said,) = [one.statement for one in report.bound.assumptions if one.id == "object-sources"]
    assert said.startswith("firmware.elf was compiled from firmware.c")
    asked = SearchRequest(report.allocator, report.target, OperationKind.FREE, 2048, 20, 1, "zig", images_dir())
    freed = observe(request(at, "worst-free", 2048))
    assert freed.bound
    assert search(asked).found_instructions <= freed.bound.instructions
    assert freed.measurement.touched_bytes_by_region["heap_blocks"] > 0


def test_a_heap_that_is_fixed_has_one_size_and_says_so(tmp_path, capsys):
    at = firmware(tmp_path)
    with pytest.raises(UsageError, match=r"arena_of_ours of firmware.elf and has 2048 bytes, .* give --heap 2048"):
        observe(request(at, "worst-free", 1024))
    assert main(["growth", f"{at}/", "--heap", "512", "--heap", "1KiB", "--heap", "2KiB", "-q"]) == ExitCode.USAGE
    assert "for other sizes the objects" in capsys.readouterr().err
    at = firmware(tmp_path, manifest=BETWEEN)  # its init is told the end
    assert observe(request(at, "worst-free", 1024)).bound
    with pytest.raises(UsageError, match=r"heap_start to heap_end of firmware.elf and has at most 2304 bytes"):
        observe(request(at, "worst-free", 4096))


def test_what_it_found_is_packed_and_audited(tmp_path, monkeypatch, capsys):
    firmware(tmp_path)
    (tmp_path / "wcet-probe.toml").write_text('allocators = ["."]\n', "utf-8")
    monkeypatch.chdir(tmp_path)
    assert main(["cells-as-linked", "--scenario", "worst-free", "--json", "-q"]) == ExitCode.OK
    result = capsys.readouterr().out
    stated = json.loads(result)["allocator_manifest"]["own"]["elf"]
    assert stated["name"] == "firmware.elf"
    (tmp_path / "r.json").write_text(result, "utf-8")
    assert main(["pack", "r.json", "-o", "r.zip", "-q"]) == ExitCode.OK
    assert main(["audit", "r.zip", "-q"]) in (ExitCode.OK, ExitCode.CHECKED_IN_PART)
    program = load_program(load_allocator("cells-as-linked"), load_target("cortex-m4"), "zig", images_dir(), 2048)
    changed = bytearray(program.image.elf)
    changed[changed.index((tmp_path / "firmware.elf").read_bytes()[0x10000:0x10020])] ^= 1  # of its code
    assert not holds_program(bytes(changed), program.allocator)


MISTAKES = {
    "no such array": ('symbol = "arena_of_ours"', 'symbol = "arena"', "did you mean 'arena_of_ours'?"),
    "a heap in code": ('symbol = "arena_of_ours"', "start = 0x08000000\nend = 0x08000400", "meets other memory"),
    "half a heap": ('symbol = "arena_of_ours"', "start = 0x20000000", "together with end"),
    "an end before its start": ('symbol = "arena_of_ours"', "start = 0x20001000\nend = 0x20000000", "would begin at"),
    "sources as well": ('elf = "firmware.elf"', 'elf = "firmware.elf"\nsources = ["firmware.c"]', "linked already"),
    "stubs": ('elf = "firmware.elf"', 'elf = "firmware.elf"\nstubs = ["enter"]', "changes how a program is built"),
    "an object": ('elf = "firmware.elf"', 'elf = "firmware.o"', "name *.o and *.a under objects"),
    "another array": ('symbol = "arena_of_ours"', "start = 0x20010000\nend = 0x20010800", "tell under [heap] where"),
    "a compiled size": ("[heap]", '[heap]\nsize_macro = "N"', "cannot be said of a linked program"),
}


def test_each_mistake_is_told_with_its_remedy(tmp_path):
    text = (firmware(tmp_path) / "manifest.toml").read_text("utf-8")
    for mistake, (old, new, remedy) in MISTAKES.items():
        assert old in text
        (tmp_path / "manifest.toml").write_text(text.replace(old, new), "utf-8")
        last = steps(tmp_path)[-1]
        assert last.code is not ExitCode.OK, mistake
        assert remedy in last.found, (mistake, last.found)
    (tmp_path / "manifest.toml").write_text(text, "utf-8")
    assert "choose --target" in steps(tmp_path, target="cortex-m0plus")[-1].found
    assert "another instruction set" in steps(tmp_path, target="mpc603e")[-1].found
