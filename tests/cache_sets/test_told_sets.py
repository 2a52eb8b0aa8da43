"""An allocator of one's own that is told the cache set, and whose promise names numbers, or static data anywhere.

Tests: cache_sets.specification, cache_sets.run, catalog.own_allocator, catalog.adapter, model.allocator.
"""

from pathlib import Path

import pytest

from tests.support import images_dir
from wcet_probe.cache_sets.verdict import SetRequest, Status, verify_sets
from wcet_probe.catalog.lookup import load_allocator, load_target
from wcet_probe.errors import ExitCode, UsageError
from wcet_probe.scenarios.families import HeapRequest
from wcet_probe.scenarios.lookup import family_of

MANIFEST = """
name = "by-set"
title = "by set"
sources = ["by_set.c"]
alignment_bytes = 32
minimum_heap_bytes = 4096
overhead_bytes = 0
minimum_block_bytes = 32
largest_request_bytes = 32

[call]
declarations = "int bs_init(void *, size_t); void *bs_get(size_t, unsigned); void bs_put(void *);"
init = "if (bs_init(arena, bytes)) return 1"
malloc = "bs_get(size, cache_set)"
free = "bs_put(pointer)"

[promise]
first_set = 0
sets = 2
cache_sets = 128
line_bytes = 32
source = "this test"
"""
# One line of each set, as the arena begins with a way of the cache: set 5 is line 5.
SOURCE = """
#include <stddef.h>
#include <stdint.h>
static struct { uint8_t *arena; uint32_t taken[4]; } own __attribute__((aligned(4096)));
int bs_init(void *arena, size_t bytes)
{
    if (bytes < 4096 || (uintptr_t)arena % 4096) return 1;
    own.arena = arena;
    for (unsigned word = 0; word < 4; word++) own.taken[word] = 0;
    return 0;
}
void *bs_get(size_t size, unsigned set)
{
    const uint32_t bit = (uint32_t)1 << set % 32;
    uint32_t *const word = &own.taken[set / 32 % 4];
    if (size == 0 || size > 32 || (*word & bit)) return 0;
    *word |= bit;
    return own.arena + set % 128 * 32;
}
void bs_put(void *block)
{
    if (!block) return;
    const uint32_t set = (uint32_t)((uint8_t *)block - own.arena) / 32 % 128;
    own.taken[set / 32] &= ~((uint32_t)1 << set % 32);
}
"""
FAR = "aligned(4096)", "aligned(4096))); static uint32_t far[1088] __attribute__((aligned(4096)"
COUNTED = "    if (!block) return;\n", "    if (!block) return;\n    far[64 + (uintptr_t)block / 32 % 8]++;\n"


def made(folder, *changes, manifest=MANIFEST):
    text = SOURCE
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    (folder / "by_set.c").write_text(text, "utf-8")
    (folder / "manifest.toml").write_text(manifest, "utf-8")
    return folder


def verified(folder: Path, operations=600):
    return verify_sets(
        SetRequest(
            allocator=load_allocator(f"{folder}/"),
            target=load_target("mpc603e"),
            heap_bytes=8192,
            operations=operations,
            seed=0,
            compiler="zig",
            cache_dir=images_dir(),
        )
    )


def test_the_set_that_is_asked_for_reaches_malloc(tmp_path):
    report = verified(made(tmp_path))
    assert report.allowed.reserved == {0, 1}
    assert (report.run.misplaced, report.run.violations) == (0, {})
    assert sum(report.run.operations.values()) > 300
    assert not any(proof.possible_violations for proof in report.proofs.values())
    assert report.status is not Status.REFUTED


@pytest.mark.parametrize("call", ["bs_get(size, cache_set)", "(cache_set < 128 ? bs_get(size, cache_set) : 0)"])
def test_a_block_in_another_set_is_told_by_a_run(tmp_path, call):
    manifest = MANIFEST.replace("bs_get(size, cache_set)", call)
    report = verified(made(tmp_path, ("set % 128 * 32", "(set + (set == 77)) % 128 * 32"), manifest=manifest))
    assert report.run.misplaced > 0
    assert (report.status, report.exit_code) == (Status.REFUTED, ExitCode.CONTRADICTION)


def test_a_request_that_the_call_itself_refuses_is_an_operation(tmp_path):
    manifest = MANIFEST.replace("bs_get(size, cache_set)", "cache_set % 2 ? 0 : bs_get(size, cache_set)")
    report = verified(made(tmp_path, manifest=manifest))
    assert (report.run.misplaced, report.run.violations) == (0, {})
    assert report.run.refused > 10


def test_static_data_may_lie_in_any_set_where_that_is_promised(tmp_path):
    anywhere = MANIFEST.replace("sets = 2\n", "sets = 2\nstatic_anywhere = true\n")
    report = verified(made(tmp_path, FAR, COUNTED, manifest=anywhere))
    assert not report.run.violations
    assert not any(proof.possible_violations for proof in report.proofs.values())


def test_static_data_in_another_set_is_refuted_where_it_is_not_promised(tmp_path):
    report = verified(made(tmp_path, FAR, COUNTED))
    assert report.status is Status.REFUTED
    assert report.proofs["free"].possible_violations


@pytest.mark.parametrize(
    "change",
    [
        # behind its end, and a block's words
        ("far[64 + (uintptr_t)block / 32 % 8]++", "far[1088 + (uintptr_t)block / 32 % 8]++"),
        ("far[64 + (uintptr_t)block / 32 % 8]++", "far[(uintptr_t)block]++"),
        ("far[64 + (uintptr_t)block / 32 % 8]++", "((volatile uint32_t *)block)[5]++"),
    ],
)
def test_what_is_no_static_data_is_not_proven_by_that(tmp_path, change):
    anywhere = MANIFEST.replace("sets = 2\n", "sets = 2\nstatic_anywhere = true\n")
    report = verified(made(tmp_path, FAR, COUNTED, change, manifest=anywhere), operations=None)
    assert report.status is Status.NOT_PROVEN
    assert report.proofs["free"].possible_violations


def test_each_state_begins_with_an_allocator_that_was_never_called(tmp_path):
    # Its init works once: what is static is zero before the first call, and only then.
    once = "    if (bytes < 4096", "    static int begun;\n    if (begun++ || bytes < 4096"
    report = verified(made(tmp_path, once))
    assert not report.run.violations
    assert report.run.worst_states > 1


def test_no_state_has_blocks_of_less_than_nothing(tmp_path):
    wide = MANIFEST.replace("overhead_bytes = 0", "overhead_bytes = 4064").replace("largest_request_bytes = 32\n", "")
    allocator = load_allocator(f"{made(tmp_path, manifest=wide)}/")
    asked = HeapRequest(allocator, 65536, 32, 0)
    for builder in family_of(allocator).builders.values():
        assert all(size >= 0 for plan in builder(asked) for size in plan.trace.sizes_bytes)


def test_malloc_is_measured_without_a_detour_and_given_a_set(tmp_path):
    allocator = load_allocator(f"{made(tmp_path)}/")
    assert allocator.takes_cache_set
    assert allocator.entry_points["malloc"] == "bs_get"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("sets = 2\n", "sets = 0\n", "key promise.sets: cannot be 0"),
        ("sets = 2\n", 'sets = "two"\n', "key promise.sets: unknown parameter 'two'"),
        ("sets = 2\n", "sets = true\n", "key promise.sets"),
        ("line_bytes = 32", "line_bytes = 64", "has 128 of 32; give another --cache"),
        (MANIFEST[MANIFEST.index("[promise]") :], "", "key promise: is missing; malloc is told a cache set"),
        (
            "[promise]",
            '[heap]\nsymbol = "cells"\n\n[promise]\nstatic_anywhere = true',
            "static_anywhere: speaks of the heap, too",
        ),
    ],
)
def test_a_promise_that_is_not_right_is_refused(tmp_path, old, new, message):
    assert MANIFEST.count(old) >= 1
    with pytest.raises(UsageError, match=message):
        verified(made(tmp_path, manifest=MANIFEST.replace(old, new)), operations=None)
