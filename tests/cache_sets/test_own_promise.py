"""An allocator of one's own promises cache sets by its manifest, and is verified or refuted as those delivered are.

Tests: cache_sets.verdict, cache_sets.specification.
"""

import shutil
from pathlib import Path

import pytest

from tests.support import images_dir
from wcet_probe.cache_sets.verdict import SetRequest, Status, verify_sets
from wcet_probe.catalog.lookup import load_allocator, load_target
from wcet_probe.errors import ExitCode, UsageError

CELLS = Path(__file__).resolve().parents[2] / "examples" / "cells"
SOURCE, MANIFEST = "cells.c", "manifest.toml"
FREE = "    cells.is_free[number / WORD_BITS] |="
BROKEN = {
    "a byte of the cell on one path": (
        SOURCE,
        FREE,
        f"    if (number == 37)\n        ((volatile unsigned char *)cell)[40]++;\n{FREE}",
    ),
    "words that begin a line later": (
        SOURCE,
        "    uintptr_t first;",
        "    char line[CELLS_LINE_BYTES];\n    uintptr_t first;",
    ),
    "a store by a number of the caller": (
        SOURCE,
        "    if (bytes == 0 ||",
        "    if (bytes == 13)\n        *(volatile uint32_t *)(cells.first + 8 * bytes) = 0;\n    if (bytes == 0 ||",
    ),
}


def asked(folder, *, operations=None, target="mpc603e"):
    return SetRequest(
        allocator=load_allocator(f"{folder}/"),
        target=load_target(target),
        heap_bytes=8192,
        operations=operations,
        seed=0,
        compiler="zig",
        cache_dir=images_dir(),
    )


def changed(folder, file, old, new):
    own = folder / "cells"
    shutil.copytree(CELLS, own)
    text = (own / file).read_text("utf-8")
    assert text.count(old) == 1, old
    (own / file).write_text(text.replace(old, new).replace("_Static_assert", "// "), "utf-8")
    return own


@pytest.mark.parametrize("target", ["mpc603e", "arm926ej-s", "cortex-m7"])
def test_the_example_keeps_what_it_promises(target):
    report = verify_sets(asked(CELLS, operations=500, target=target))
    assert (report.status, report.exit_code) == (Status.PROVEN, ExitCode.OK)
    assert report.allowed.is_specified
    assert report.allowed.reserved == {0}
    assert not any(proof.lemmas or proof.rests_on_facts for proof in report.proofs.values())


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_version_is_not_proven(tmp_path, name):
    report = verify_sets(asked(changed(tmp_path, *BROKEN[name])))
    assert report.status is Status.NOT_PROVEN
    assert any(proof.possible_violations for proof in report.proofs.values())


def test_a_run_refutes_what_is_broken(tmp_path):
    report = verify_sets(asked(changed(tmp_path, *BROKEN["a byte of the cell on one path"]), operations=2000))
    assert (report.status, report.exit_code) == (Status.REFUTED, ExitCode.CONTRADICTION)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('sets = "reserved-sets"', 'sets = "reserved"', "key promise.sets: unknown parameter 'reserved'"),
        ('source = "cells.h: which', 'origin = "cells.h: which', "key promise.source: is missing"),
        ('line_bytes = "line-bytes"', 'line_bytes = "line-bytes"\nargument = "a page"', "promise"),
    ],
)
def test_a_promise_that_is_not_right_is_refused(tmp_path, old, new, message):
    with pytest.raises(UsageError, match=message):
        load_allocator(f"{changed(tmp_path, MANIFEST, old, new)}/")
