"""A free that is told the size as well: set-up, measured call, search and replay tell what malloc was asked for.

Tests: catalog.adapter, catalog.own_allocator.
"""

from __future__ import annotations

import pytest

from tests.catalog.test_own_allocator import CELLS, HEAD, ONE, request, steps
from tests.support import images_dir
from wcet_probe.answer.studies.adversary import Unit, attack
from wcet_probe.answer.studies.search import SearchRequest
from wcet_probe.answer.witness.probe import observe
from wcet_probe.catalog.lookup import load_allocator, load_target
from wcet_probe.cli.app import main
from wcet_probe.errors import ExitCode, StateError
from wcet_probe.model.report import Verdict
from wcet_probe.model.scenario import OperationKind

SIZED = """
static unsigned char *base;
static size_t asked[256];
static int wrong;
void cs_init(void *a, size_t n) { cells_set(&all, base = a, (char *)a + n); }
void *cs_get(size_t n)
{
    unsigned char *const p = n && n <= 32 ? cells_get(&all) : 0;
    if (p) asked[(p - base) / 32] = n;
    return p;
}
void cs_put(void *p, size_t n)
{
    wrong += asked[((unsigned char *)p - base) / 32] != n;
    asked[((unsigned char *)p - base) / 32] = 0;
    for (size_t i = 0; i < n && i < 32; i++) *((volatile unsigned char *)p + i) = 0;
    cells_put(&all, p);
}
void *cs_alloc(void *p, size_t old, size_t n)
{
    if (!p) return cs_get(n);
    if (!n) cs_put(p, old);
    return 0;
}
int cs_wrong(void) { return wrong; }
"""
CALL = '''[call]
declarations = """
void cs_init(void *, size_t); void *cs_get(size_t); void cs_put(void *, size_t); int cs_wrong(void);
void *cs_alloc(void *, size_t, size_t);
"""
init = "cs_init(arena, bytes)"
check = "cs_wrong()"
'''
WAYS = {
    "free": 'malloc = "cs_get(size)"\nfree = "cs_put(pointer, size)"\n',
    "one function for all": 'malloc = "cs_alloc(0, 0, size)"\nfree = "cs_alloc(pointer, size, 0)"\n',
}


def folder(at, way="free", old="", new=""):
    (at / "cells.c").write_text(CELLS + ONE + SIZED, "utf-8")
    (at / "manifest.toml").write_text(HEAD + (CALL + WAYS[way]).replace(old, new), "utf-8")
    return f"{at}/"


@pytest.mark.parametrize("way", WAYS)
def test_free_is_told_what_malloc_was_asked_for(way, tmp_path):
    name = folder(tmp_path, way)
    assert [step.name for step in steps(tmp_path) if step.code is not ExitCode.OK] == []
    assert load_allocator(name).free_takes_size
    report = observe(request(name, "worst-free"))
    assert report.verdict is Verdict.BOUNDED
    assert report.bound
    assert 32 * 2 < report.measurement.instructions <= report.bound.instructions


@pytest.mark.parametrize("target", ["arm926ej-s", "mpc603e"])
def test_on_other_cores_it_is_told_in_their_second_register(target, tmp_path):
    assert observe(request(folder(tmp_path), "worst-free", target=target)).bound


def test_a_size_that_is_another_one_is_noticed(tmp_path):
    name = folder(tmp_path, "free", "pointer, size", "pointer, size + 1")
    assert "check gives" in steps(tmp_path)[-1].found
    with pytest.raises(StateError, match="broke heap invariant"):
        observe(request(name, "worst-free"))


def test_search_and_replay_tell_the_size(tmp_path):
    """A slot that is used again has the size of its last block."""
    name = folder(tmp_path)
    asked = SearchRequest(
        load_allocator(name), load_target("cortex-m4"), OperationKind.FREE, 1024, 40, 1, "zig", images_dir()
    )
    report = observe(request(name, "worst-free", 1024))
    assert report.bound
    assert 32 * 2 < attack(asked, Unit.INSTRUCTIONS).found <= report.bound.instructions
    assert main(["replay", name, "--heap", "1KiB", "--operations", "200", "-q"]) == ExitCode.OK
