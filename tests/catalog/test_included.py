"""What sources include is found as a compiler finds it, wherever it lies below the manifest's folder."""

from __future__ import annotations

from tests.catalog.test_own_allocator import CELLS, HEAD, ONE, steps
from wcet_probe.catalog.included import included
from wcet_probe.catalog.lookup import load_allocator
from wcet_probe.catalog.own_allocator import own_files
from wcet_probe.errors import ExitCode

FILES = {
    "src/one.c": '#include "own/heap.h"\n# include <sys/heap.h>\n#include "parts/cells.c"\n#include <string.h>\n'
    "void *cs_get(size_t n) { return n > OWN + SYS + FIRST ? 0 : cells_get(&all); }\n"
    "void cs_put(void *p) { if (memcmp(&p, &all.list, sizeof p) && !strlen(NAME)) abort(); cells_put(&all, p); }\n"
    "void cs_set(void *a, size_t n) { cells_set(&all, a, (char *)a + n); }\n",
    "src/own/heap.h": '#include "../../more/config.h"\n#ifdef ABSENT\n#include "absent.h"\n#endif\n#define OWN 16\n',
    "src/parts/cells.c": CELLS + ONE,
    "more/config.h": "#include <sys/port.h>\n",
    "inc/sys/heap.h": "#define SYS 8\n",
    # A folder is searched because it is listed, and not because something was found in it.
    "inc/sys/port.h": '#define NAME "cells"\n',
    "inc/sys/string.h": "#error this is sys/string.h\n",
    "inc/first.h": "#define FIRST 8\n",
    "inc/api/cs.h": "#include <stddef.h>\nvoid *cs_get(size_t); void cs_put(void *); void cs_set(void *, size_t);\n",
}
MANIFEST = (
    HEAD.replace('"cells.c"', '"src/one.c"')
    + """
include_dirs = ["inc"]
flags = ["-include", "first.h", "-include", "stdlib.h"]
[call]
include = ["api/cs.h"]
init = "cs_set(arena, bytes)"
malloc = "cs_get(size)"
free = "cs_put(pointer)"
"""
)


def folder(at, **changes):
    for path, text in (FILES | changes).items():
        (at / path).parent.mkdir(parents=True, exist_ok=True)
        (at / path).write_text(text, "utf-8")
    (at / "manifest.toml").write_text(MANIFEST, "utf-8")
    return at


def test_headers_and_c_files_that_others_include_need_not_be_listed(tmp_path):
    at = folder(tmp_path)
    assert [step.found for step in steps(at) if step.code is not ExitCode.OK] == []
    assert set(own_files(at)) == {"manifest.toml", *FILES} - {"inc/sys/string.h"}


def test_two_headers_of_one_name_are_told_by_their_paths_and_a_source_keeps_its_own(tmp_path):
    own = load_allocator(f"{folder(tmp_path)}/").own
    assert own
    assert own.paths["./src/own/heap.h"] == "src/own/heap.h"
    assert own.paths["./inc/sys/heap.h"] == "inc/sys/heap.h"
    assert "heap.h" not in own.paths
    assert own.paths["one.c"] == "src/one.c"


def test_what_leaves_the_folder_or_is_not_there_is_not_read():
    files = {"a/x.c": '#include "../../b.h"\n#include "/c.h"\n#include MACRO\n#include "d.h"\n#include <x.c>\n'}
    asked: list[str] = []

    def read(path):
        asked.append(path)
        return files.get(path)

    assert included(read, ["a/x.c"], [".", "a"]) == ()
    assert set(asked) == {"a/x.c", "a/d.h", "d.h", "x.c"}
