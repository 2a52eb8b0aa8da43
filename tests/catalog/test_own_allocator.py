"""Allocators of one's own: each way of calling one, each mistake in a manifest, and a whole answer with both sides."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support import images_dir
from wcet_probe.answer.bounds.proving import prove_operation
from wcet_probe.answer.studies.adversary import Unit, attack
from wcet_probe.answer.studies.own_steps import StepsRequest, own_steps
from wcet_probe.answer.studies.search import SearchRequest, search
from wcet_probe.answer.witness.probe import ProbeRequest, observe
from wcet_probe.build.program import load_program
from wcet_probe.build.toolchain import find_toolchain, packaged_program
from wcet_probe.catalog.lookup import load_allocator, load_target
from wcet_probe.cli.app import main
from wcet_probe.errors import ExitCode, UnknownOperationError, UsageError
from wcet_probe.model.report import Verdict
from wcet_probe.model.scenario import OperationKind

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "own-allocator"
HEAD = """
name = "cells"
title = "cells"
sources = ["cells.c"]
alignment_bytes = 8
minimum_heap_bytes = 64
overhead_bytes = 0
minimum_block_bytes = 32
largest_request_bytes = 32
"""
CELLS = """
#include <stddef.h>
#include <stdint.h>
struct cells { void **list; unsigned char *next, *end; };
static void cells_set(struct cells *c, void *from, void *to) { c->list = 0; c->next = from; c->end = to; }
static void *cells_get(struct cells *c)
{
    void **const first = c->list;
    if (first) { c->list = *first; return first; }
    if (c->end - c->next < 32) return 0;
    c->next += 32;
    return c->next - 32;
}
static void cells_put(struct cells *c, void *block) { *(void **)block = c->list; c->list = block; }
"""
ONE = "static struct cells all;\n"
# What is behind the cells, and how it is called: each way that a manifest knows.
PLAIN = """
declarations = "void *cs_get(size_t); void cs_put(void *);"
malloc = "cs_get(size)"
free = "cs_put(pointer)"
[heap]
"""
WAYS = {
    "handle first": (
        """
void cs_init(struct cells *c, void *a, size_t n) { cells_set(c, a, (char *)a + n); }
void *cs_get(struct cells *c, size_t n) { return n > 32 ? 0 : cells_get(c); }
void cs_put(struct cells *c, void *p) { cells_put(c, p); }
""",
        '''
declarations = """
struct cells { void **list; unsigned char *next, *end; };
void cs_init(struct cells *, void *, size_t); void *cs_get(struct cells *, size_t); void cs_put(struct cells *, void *);
"""
handle = "struct cells"
init = "cs_init(&handle, arena, bytes)"
malloc = "cs_get(&handle, size)"
free = "cs_put(&handle, pointer)"
''',
    ),
    "handle last and by value, result through a pointer, init by end": (
        ONE
        + """
struct cs { struct cells *c; };
struct cs cs_init(void *a, void *e) { cells_set(&all, a, e); return (struct cs){&all}; }
int cs_get(void **p, size_t n, struct cs c)
{
    void *b = n > 32 ? 0 : cells_get(c.c);
    if (!b) return -1;
    *p = b;
    return 0;
}
void cs_put(void *p, struct cs c) { cells_put(c.c, p); }
""",
        '''
declarations = """
struct cs { void *c; };
struct cs cs_init(void *, void *); int cs_get(void **, size_t, struct cs); void cs_put(void *, struct cs);
"""
handle = "struct cs"
init = "handle = cs_init(arena, end)"
ready = "handle.c != 0"
malloc = "cs_get(&result, size, handle)"
result = "out"
free = "cs_put(pointer, handle)"
''',
    ),
    "lazily, from sbrk, with lock hooks": (
        ONE
        + """
void *sbrk(ptrdiff_t); void lock(void); void unlock(void);
void *cs_get(size_t n)
{
    void *b;
    if (n > 32) return 0;
    lock();
    b = all.list ? cells_get(&all) : sbrk(32);
    unlock();
    return b == (void *)-1 ? 0 : b;
}
void cs_put(void *p) { lock(); cells_put(&all, p); unlock(); }
""",
        PLAIN + 'growth = "sbrk"',
    ),
    "lazily, from an array whose size is compiled": (
        ONE
        + """
extern unsigned char cs_heap[CS_BYTES];
void *cs_get(size_t n)
{
    if (!all.end) cells_set(&all, cs_heap, cs_heap + sizeof cs_heap);
    return n > 32 ? 0 : cells_get(&all);
}
void cs_put(void *p) { cells_put(&all, p); }
""",
        PLAIN + 'symbol = "cs_heap"\nsize_macro = "CS_BYTES"',
    ),
    "handle that init returns, from the arena, behind the size": (
        """
struct cells *cs_create(void *a, size_t n)
{
    cells_set(a, (char *)a + sizeof(struct cells) + 4, (char *)a + n);
    return n < 64 ? 0 : a;
}
void *cs_get(size_t n, struct cells *c) { return n > 32 ? 0 : cells_get(c); }
void cs_put(struct cells *c, void *p) { cells_put(c, p); }
""",
        '''
declarations = """
typedef struct cells *cells_t;
cells_t cs_create(void *, size_t); void *cs_get(size_t, cells_t); void cs_put(cells_t, void *);
"""
handle = "cells_t"
init = "handle = cs_create(arena, bytes)"
ready = "handle != 0"
malloc = "cs_get(size, handle)"
free = "cs_put(handle, pointer)"
''',
    ),
    "an array of another file, init by its size": (
        ONE
        + """
extern unsigned char cs_heap[];
void cs_init(size_t n) { cells_set(&all, cs_heap, cs_heap + n); }
void *cs_get(size_t n) { return n > 32 ? 0 : cells_get(&all); }
void cs_put(void *p) { cells_put(&all, p); }
""",
        PLAIN.replace("void cs_put", "void cs_init(size_t); void cs_put").replace(
            "[heap]", 'init = "cs_init(bytes)"\n[heap]\nsymbol = "cs_heap"'
        ),
    ),
    "an arena that is zero before the first call": (
        """
/* The heap's first cell: how many have been taken from the rest, and those that came back. */
struct zeroed { size_t taken; void **list; };
void *cs_get(void *a, size_t n, size_t size)
{
    struct zeroed *const z = a;
    void **const first = z->list;
    if (size > 32) return 0;
    if (first) { z->list = *first; return first; }
    if (n / 32 - 1 <= z->taken) return 0;
    return (char *)a + 32 * ++z->taken;
}
void cs_put(void *a, void *p) { struct zeroed *const z = a; *(void **)p = z->list; z->list = p; }
""",
        '''
declarations = """
struct place { void *a; size_t n; };
void *cs_get(void *, size_t, size_t); void cs_put(void *, void *);
"""
handle = "struct place"
init = "handle = (struct place){arena, bytes}"
malloc = "cs_get(handle.a, handle.n, size)"
free = "cs_put(handle.a, pointer)"
''',
    ),
    "from brk, with asserts and errno of a C library": (
        ONE
        + """
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
void *sbrk(ptrdiff_t); int brk(void *);
void *cs_get(size_t n)
{
    if (!all.next) all.next = all.end = sbrk(0);
    if (n > 32) { errno = EINVAL; return 0; }
    if (!all.list && all.next == all.end && brk(all.end + 32) == 0) all.end += 32;
    void *const b = cells_get(&all);
    assert((uintptr_t)b % 8 == 0);
    return b;
}
void cs_put(void *p) { if (!p) abort(); cells_put(&all, p); }
""",
        PLAIN + 'growth = "sbrk"',
    ),
}
STUBS = 'stubs = ["lock", "unlock"]\n'


def folder(at: Path, way: str, head: str = HEAD, source: str = CELLS) -> Path:
    code, call = WAYS[way]
    (at / "cells.c").write_text(source + code, "utf-8")
    tables = "[call]\n" + call
    (at / "manifest.toml").write_text(head + (STUBS if "lock" in way else "") + tables, "utf-8")
    return at


def steps(at: Path, heap_bytes: int = 4096, target: str = "cortex-m4"):
    return list(own_steps(StepsRequest(at, load_target(target), heap_bytes, "zig", images_dir())))


def request(name: str, scenario: str, heap_bytes: int = 4096, target: str = "cortex-m4") -> ProbeRequest:
    return ProbeRequest(
        load_allocator(name), load_target(target), scenario, heap_bytes, 0, None, "zig", None, images_dir(), prove=True
    )


@pytest.mark.parametrize("way", WAYS)
def test_each_way_of_calling_an_allocator_passes_all_steps(way, tmp_path):
    found = steps(folder(tmp_path, way))
    assert [step.name for step in found if step.code is not ExitCode.OK] == [], found
    assert [step.name for step in found][-2:] == ["bound of malloc", "bound of free"]


def test_a_standard_of_the_allocators_own_is_not_that_of_our_functions(tmp_path):
    """dlmalloc 2.7.2 is of 1989, which has no ``restrict``; our ``memcpy`` has."""
    at = folder(tmp_path, "handle first", HEAD + 'flags = ["-std=gnu89"]\n')
    assert [step for step in steps(at) if step.code is not ExitCode.OK] == []


def test_a_heap_that_the_manifest_excludes_is_told(tmp_path):
    """And not what the allocator makes of it: the default is 16 KiB, pages of WebAssembly have 64."""
    found = steps(folder(tmp_path, "handle first", HEAD.replace("bytes = 64", "bytes = 65536")))
    told = "a heap of 4096 bytes is too small for cells; give at least 65536."
    assert [(step.found, step.code) for step in found[1:]] == [(told, ExitCode.USAGE)]


@pytest.mark.parametrize("target", ["arm926ej-s", "mpc603e"])
def test_a_structure_by_value_is_passed_as_the_abi_says(target, tmp_path):
    way = "handle last and by value, result through a pointer, init by end"
    assert all(step.code is ExitCode.OK for step in steps(folder(tmp_path, way), target=target))


def test_a_call_that_needs_no_more_than_its_argument_is_the_allocators_own(tmp_path):
    allocator = load_allocator(f"{folder(tmp_path, 'lazily, from an array whose size is compiled')}/")
    assert (allocator.entry_points["malloc"], allocator.entry_points["free"]) == ("cs_get", "cs_put")


def test_an_allocator_that_masks_interrupts_is_observed_and_not_repeated(tmp_path):
    """As kernels do it: the mask is read, which the second engine does not know."""
    way = "lazily, from an array whose size is compiled"
    masks = """
static unsigned masked(void) { unsigned p; __asm volatile("mrs %0, primask\\n cpsid i" : "=r"(p)); return p; }
static void restored(unsigned was) { __asm volatile("msr primask, %0" :: "r"(was) : "memory"); }
"""
    code, call = WAYS[way]
    taken = "unsigned was = masked(); void *p = n > 32 ? 0 : cells_get(&all); restored(was); return p;"
    code = code.replace("return n > 32 ? 0 : cells_get(&all);", taken)
    (tmp_path / "cells.c").write_text(CELLS + masks + code, "utf-8")
    (tmp_path / "manifest.toml").write_text(HEAD + "[call]\n" + call, "utf-8")
    report = observe(request(f"{tmp_path}/", "worst-alloc"))
    assert report.verdict is Verdict.BOUNDED
    assert report.cross_check is None
    assert "which does not know system and floating-point instructions" in report.no_cross_check
    with pytest.raises(UnknownOperationError, match="leave out --cross-check"):
        observe(replace(request(f"{tmp_path}/", "worst-alloc"), cross_check=True))


def test_objects_and_archives_are_linked_as_they_are(tmp_path):
    way = "handle first"
    at = folder(tmp_path, way)
    zig, target = str(packaged_program()), load_target("cortex-m4")
    compiler = [*find_toolchain("zig", target).compile, *target.compiler_flags["clang"], "-O2", "-ffreestanding"]
    subprocess.run([*compiler, "-c", "cells.c", "-o", "cells.o"], cwd=at, check=True)
    subprocess.run([zig, "ar", "rcs", "libcells.a", "cells.o"], cwd=at, check=True)
    for name in ("cells.o", "libcells.a"):
        text = HEAD.replace('sources = ["cells.c"]', f'objects = ["{name}"]')
        (at / "manifest.toml").write_text(text + "[call]\n" + WAYS[way][1], "utf-8")
        assert all(step.code is ExitCode.OK for step in steps(at))
    (at / "cells.o").write_bytes(b"\x7fELF" + bytes(12) + b"\x02\x00")
    (at / "manifest.toml").write_text(text.replace("libcells.a", "cells.o") + "[call]\n" + WAYS[way][1], "utf-8")
    assert "is a linked program" in steps(at)[-1].found


def test_facts_by_line_speak_of_objects_whose_sources_are_named(tmp_path, capsys):
    """The last of the blocks that came back is looked for, which takes as long as only a fact tells."""
    way = "handle first"
    at = folder(tmp_path, way)
    appends = "{\n    void **last = (void **)&c->list;\n    while (*last)\n        last = *last;\n"
    appends += "    *last = p;\n    *(void **)p = 0;\n}"
    source = CELLS + WAYS[way][0].replace("{ cells_put(c, p); }", appends)
    (at / "cells.c").write_text(source, "utf-8")
    target = load_target("cortex-m4")
    compiler = [*find_toolchain("zig", target).compile, *target.compiler_flags["clang"], "-O2", "-g", "-ffreestanding"]
    subprocess.run([*compiler, "-c", "cells.c", "-o", "cells.o"], cwd=at, check=True)
    call = "[call]\n" + WAYS[way][1]
    head = HEAD.replace('sources = ["cells.c"]', 'objects = ["cells.o"]\nobject_sources = ["cells.c"]')
    (at / "manifest.toml").write_text(head + call, "utf-8")
    assert main(["facts", f"{at}/", "--entry", "free", "--heap", "4KiB", "-q"]) == ExitCode.OK
    told = capsys.readouterr().out
    assert f'function = "cs_put"\nline = {1 + source[: source.index("while (*last)")].count(chr(10))}\n' in told
    facts = told.replace('max = "?"', 'max = "H // 32"').replace('"?"', '"each is a cell of the heap"')
    (at / "facts.toml").write_text(facts, "utf-8")
    assert all(step.code is ExitCode.OK for step in steps(at))
    program = load_program(load_allocator(f"{at}/"), target, "zig", images_dir(), 4096)
    (said,) = [
        one.statement for one in prove_operation(program, "free", 4096).assumptions if one.id == "object-sources"
    ]
    assert "compiled from cells.c" in said
    (at / "manifest.toml").write_text(head.replace('objects = ["cells.o"]', 'sources = ["cells.c"]') + call, "utf-8")
    assert "speaks of objects" in steps(at)[-1].found


# What is changed of a manifest that is right, and the words of the remedy.
MISTAKES = {
    "alignment": ("alignment_bytes = 8", "alignment_bytes = 1024", "correct alignment_bytes"),
    "room of a block": ("minimum_block_bytes = 32", "minimum_block_bytes = 8", "set minimum_block_bytes = 32"),
    "no free": ('free = "cs_put(&handle, pointer)"', 'free = "(void)pointer"', "free gives nothing back"),
    "refused arena": ("init = ", 'ready = "handle.next == 0"\ninit = ', "the condition ready does not hold"),
    "another arena": ("arena, bytes)", "(char *)arena + 1048576, bytes)", "outside of the heap"),
    "arena too small": ("arena, bytes)", "arena, bytes / 4)", "the heap is smaller than --heap"),
    "check that fails": ("malloc =", 'check = "handle.next != 0"\nmalloc =', "it must give 0 where the heap is sound"),
    "missing symbol": ('malloc = "cs_get(', 'malloc = "cs_got(', "cs_got"),
    "function without a prototype": (
        'declarations = """',
        'declarations = """\n#include <unistd.h>\nstatic inline void *more(void) { return sbrk(8); }',
        "-std=gnu11",
    ),
    "header in a folder": (
        'declarations = """',
        'declarations = """\n#include <lists/ring.h>',
        "add the folder where that path begins to include_dirs",
    ),
    "headers, all at once": (
        'declarations = """',
        'declarations = """\n#include "os/lock.h"\n#include "trace.h"\n#error "later"\n#include <os/ring.h>',
        "'os/lock.h' file not found (and trace.h, os/ring.h); add the folder",
    ),
    "types, all at once": (
        'declarations = """',
        'declarations = """\nword_t one(void);\nbyte_t two(void);\nword_t three(void);',
        "unknown type name 'word_t' (and byte_t);",
    ),
    "unknown key": ("overhead_bytes", "overhed_bytes", "did you mean 'overhead_bytes'?"),
    "no size": ("cs_get(&handle, size)", "cs_get(&handle, 8)", "of a pool of blocks of one size: size <= 32 ?"),
    "another language": ('["cells.c"]', '["cells.rs"]', "*.cxx); compile it, name the result under objects"),
    "missing file": ('["cells.c"]', '["cell.c"]', "names cell.c, which is not there"),
    "file elsewhere": ('["cells.c"]', '["../cells.c"]', "put the manifest into a folder above"),
    "no toml": ("name =", "name", "is no TOML"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_each_mistake_in_a_manifest_is_told_with_its_remedy(mistake, tmp_path):
    old, new, remedy = MISTAKES[mistake]
    at = folder(tmp_path, "handle first")
    text = (at / "manifest.toml").read_text("utf-8")
    assert old in text
    (at / "manifest.toml").write_text(text.replace(old, new), "utf-8")
    last = steps(at)[-1]
    assert last.code in (ExitCode.USAGE, ExitCode.FAILURE)
    assert remedy in last.found


def test_all_system_functions_that_are_missing_are_told_with_both_remedies(tmp_path):
    at = folder(tmp_path, "lazily, from sbrk, with lock hooks")
    (at / "manifest.toml").write_text((at / "manifest.toml").read_text("utf-8").replace(STUBS, ""), "utf-8")
    assert "lock (and unlock); add the source that has it, or list it under stubs" in steps(at)[-1].found


def test_an_assert_that_no_call_passes_is_no_part_of_a_bound_and_is_told(tmp_path):
    way = "from brk, with asserts and errno of a C library"
    report = observe(request(f"{folder(tmp_path, way)}/", "worst-alloc"))
    assert report.bound
    assert "call-returns" in {one.id for one in report.bound.assumptions}
    assert report.bound.instructions < 2 * report.measurement.instructions


def test_an_allocator_that_does_not_ask_whether_its_memory_grew_is_told(tmp_path):
    at = folder(tmp_path, "from brk, with asserts and errno of a C library")
    text = (at / "cells.c").read_text("utf-8")
    for old, new in (
        ("&& brk(all.end + 32) == 0)", ") brk(all.end + 32),"),
        ("assert(", "if (b) *(char *)b = 0; assert("),
    ):
        assert old in text
        text = text.replace(old, new)
    (at / "cells.c").write_text(text, "utf-8")
    stopped = steps(at)[-1]
    assert stopped.code is ExitCode.USAGE
    assert "goes on behind the heap's end" in stopped.found


def test_what_stubs_cost_is_an_assumption(tmp_path):
    at = folder(tmp_path, "lazily, from sbrk, with lock hooks")
    report = observe(request(f"{at}/", "worst-free"))
    assert report.bound
    (said,) = [one.statement for one in report.bound.assumptions if one.id == "stubs"]
    assert "lock, unlock" in said


def test_the_example_is_answered_from_both_sides():
    for scenario, most in (("worst-alloc", 1.6), ("worst-free", 1.0)):
        report = observe(request(f"{EXAMPLE}/", scenario))
        assert report.verdict is Verdict.BOUNDED
        assert report.bound
        assert report.measurement.instructions <= report.bound.instructions <= most * report.measurement.instructions


def test_each_generic_scenario_reaches_its_state():
    for scenario in ("best-alloc", "best-free", "random", "worst-failing-alloc", "exhaustion", "neighbours-free"):
        report = observe(request(f"{EXAMPLE}/", scenario, 2048))
        assert report.verdict is Verdict.BOUNDED
        assert all(check.found == 0 for check in report.checks)
    refused = observe(request(f"{EXAMPLE}/", "worst-failing-alloc", 2048))
    assert refused.measurement.result == 0
    with pytest.raises(UsageError, match=r"give at least .* with --heap"):
        observe(request(f"{EXAMPLE}/", "worst-alloc", 64))


def test_the_search_begins_each_sequence_with_an_allocator_that_was_never_called(tmp_path):
    at = folder(tmp_path, "lazily, from an array whose size is compiled")
    allocator, target = load_allocator(f"{at}/"), load_target("cortex-m4")
    for kind in OperationKind:
        asked = SearchRequest(allocator, target, kind, 1024, 40, 1, "zig", images_dir())
        report = observe(request(f"{at}/", "worst-alloc" if kind is OperationKind.MALLOC else "worst-free", 1024))
        assert report.bound
        assert search(asked).found_instructions <= report.bound.instructions
        # The first call of all sets up the heap: a heap that an earlier sequence left behind would not show it.
        assert attack(asked, Unit.INSTRUCTIONS).found <= report.bound.instructions
    assert search(asked).constructed_instructions <= report.bound.instructions
