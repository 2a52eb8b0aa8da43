"""Allocators of one's own in C++, and what runs before ``main`` of any language.

Tests: catalog.adapter, catalog.own_allocator, build.compilation, build.toolchain.
"""

from __future__ import annotations

import json
import subprocess

import pytest

from tests.catalog.test_own_allocator import CELLS, HEAD, ONE, PLAIN, request, steps
from wcet_probe.answer.witness.probe import observe
from wcet_probe.build.compilation import COMMON_FLAGS
from wcet_probe.build.toolchain import find_toolchain
from wcet_probe.catalog.lookup import load_target
from wcet_probe.cli.app import main
from wcet_probe.errors import ExitCode

HEADER = """
#pragma once
#include <cstddef>
namespace own {
template <unsigned bytes> struct Cell { Cell *next; unsigned char rest[bytes - sizeof(void *)]; };
class Cells {
public:
    Cells();
    virtual ~Cells();
    void begin(void *from, std::size_t bytes);
    void *take(std::size_t bytes);
    void give(void *block) noexcept;
private:
    using One = Cell<32>;
    One *list_, *next_, *end_;
    int ready_;
};
}
"""
SOURCE = """
#include "cells.hpp"
#include <new>
#include <algorithm>
namespace own {
static int made = 0;
static int once() { static int first = ++made; return first; }
struct Mark { Mark() { made += 2; } ~Mark() { made = 0; } };
static Mark mark;
Cells::Cells() : list_(nullptr), next_(nullptr), end_(nullptr), ready_(once()) {}
Cells::~Cells() {}
void Cells::begin(void *from, std::size_t bytes)
{
    next_ = static_cast<One *>(from);
    end_ = next_ + bytes / sizeof(One);
}
void *Cells::take(std::size_t bytes)
{
    if (std::max<std::size_t>(bytes, 1) > sizeof(One) || !ready_ || made < 3) return nullptr;
    if (list_) { auto *first = list_; list_ = first->next; return first; }
    return next_ == end_ ? nullptr : next_++;
}
void Cells::give(void *block) noexcept { list_ = new (block) One{list_, {}}; }
}
"""
CALL = """
[call]
include = ["cells.hpp"]
handle = "own::Cells"
init = "handle.begin(arena, bytes)"
malloc = "handle.take(size)"
free = "handle.give(pointer)"
"""
DELETE = ("_ZdlPvj", "_ZdlPvm")
"""What the destructor of a class names, where ``size_t`` is an ``unsigned int`` and where an ``unsigned long``."""


def written(at, head=HEAD, call=CALL, stubs=DELETE):
    (at / "cells.cpp").write_text(SOURCE, "utf-8")
    (at / "cells.hpp").write_text(HEADER, "utf-8")
    named = f"stubs = {json.dumps(stubs)}\n"
    (at / "manifest.toml").write_text(head.replace("cells.c", "cells.cpp") + named + call, "utf-8")
    return at


@pytest.mark.parametrize("target", ["cortex-m4", "arm926ej-s", "mpc603e"])
def test_a_class_is_called_as_its_language_does_and_its_objects_are_made_before(target, tmp_path):
    at = written(tmp_path)
    assert [step.found for step in steps(at, target=target) if step.code is not ExitCode.OK] == []
    report = observe(request(f"{at}/", "worst-alloc", target=target))
    assert report.bound
    assert report.measurement.instructions <= report.bound.instructions


def test_new_and_delete_are_asked_for_by_names_that_a_stub_can_have(tmp_path):
    found = steps(written(tmp_path, stubs=()))[-1].found
    assert f"undefined symbol: {DELETE[0]}; that is new or delete of C++" in found


IN_C = """
_Static_assert(__STDC__, "");
void cs_init(void *a, size_t n) { cells_set(&all, a, (char *)a + n); }
void *cs_get(size_t n) { return n > 32 ? 0 : cells_get(&all); }
void cs_put(void *p) { cells_put(&all, p); }
"""


def test_sources_of_both_languages_have_the_standard_of_theirs(tmp_path):
    """A header of C++ makes the calls C++, where an ``extern "C"`` is of use."""
    (tmp_path / "cells.hpp").write_text(
        '#include <cstddef>\nextern "C" void *cs_get(std::size_t), cs_put(void *), cs_init(void *, std::size_t);\n'
    )
    (tmp_path / "more.cc").write_text("static_assert(__cplusplus > 201703L);\nint more() { return 0; }\n")
    (tmp_path / "cells.c").write_text(CELLS + ONE + IN_C, "utf-8")
    head = HEAD.replace('["cells.c"]', '["cells.c", "more.cc"]') + 'flags = ["-std=gnu++20", "-std=gnu11"]\n'
    call = PLAIN[PLAIN.index("malloc") :]
    call = f'[call]\ninclude = ["cells.hpp"]\ninit = "cs_init(arena, bytes)"\n{call}'
    (tmp_path / "manifest.toml").write_text(head + call, "utf-8")
    assert [step.found for step in steps(tmp_path) if step.code is not ExitCode.OK] == []


BEFORE_MAIN = """
#ifdef __has_attribute
__attribute__((constructor)) static void before(void) { all.list = 0; *(volatile int *)&rounds = 9; }
#endif
void cs_init(void *a, size_t n) { cells_set(&all, a, (char *)a + n); }
void *cs_get(size_t n)
{
    if (n > 32) return 0;
    for (int i = 0; i < (rounds & 15); i++) *(volatile int *)&all.next += 0;
    return cells_get(&all);
}
void cs_put(void *p) { cells_put(&all, p); }
"""


@pytest.mark.parametrize("compiled", [False, True], ids=["sources", "objects"])
def test_what_runs_before_main_has_run_before_the_heap_is_set_up(compiled, tmp_path):
    """Without it the state would be another one than the program has: a witness of something else."""
    (tmp_path / "cells.c").write_text(CELLS + ONE + "static volatile int rounds;" + BEFORE_MAIN, "utf-8")
    call = PLAIN.replace("cs_get(size_t);", "cs_get(size_t); void cs_init(void *, size_t);")
    head = HEAD
    if compiled:
        target = load_target("cortex-m4")
        compiler = [*find_toolchain("zig", target).compile, *target.compiler_flags["clang"], *COMMON_FLAGS]
        subprocess.run([*compiler, "-c", "cells.c", "-o", "cells.o"], cwd=tmp_path, check=True)
        head = HEAD.replace('sources = ["cells.c"]', 'objects = ["cells.o"]')
    call = call.replace("malloc =", 'init = "cs_init(arena, bytes)"\nmalloc =')
    (tmp_path / "manifest.toml").write_text(f"{head}[call]\n{call}", "utf-8")
    report = observe(request(f"{tmp_path}/", "best-alloc"))
    assert report.measurement.instructions > 9 * 5
    assert report.bound
    assert report.bound.instructions >= report.measurement.instructions


def test_a_manifest_is_begun_with_the_files_of_both_languages(tmp_path, capsys):
    for name in ("a.c", "b.cpp", "c.cc", "d.h", "e.hpp", "f.txt"):
        (tmp_path / name).write_text("\n", "utf-8")
    assert main(["new-allocator", str(tmp_path)]) == ExitCode.OK
    text = (tmp_path / "manifest.toml").read_text("utf-8")
    assert 'sources = ["a.c", "b.cpp", "c.cc"]' in text
    assert 'headers = ["d.h", "e.hpp"]' in text
    assert "is written" in capsys.readouterr().out


def test_a_pack_of_it_is_audited(tmp_path, monkeypatch, capsys):
    (tmp_path / "wcet-probe.toml").write_text('allocators = ["."]\n', "utf-8")
    monkeypatch.chdir(written(tmp_path))
    assert main(["cells", "--scenario", "worst-free", "--heap", "4KiB", "--json", "-q"]) == ExitCode.OK
    text = capsys.readouterr().out
    assert json.loads(text)["bound"]
    (tmp_path / "r.json").write_text(text, "utf-8")
    assert main(["pack", "r.json", "-o", "r.zip"]) == ExitCode.OK
    assert main(["audit", "r.zip"]) in (ExitCode.OK, ExitCode.CHECKED_IN_PART)
