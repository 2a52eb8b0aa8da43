"""An allocator that keeps all its words in static data: what it loads as an index is what it stored as one."""

from dataclasses import replace

import pytest

from tests.support import images_dir
from wcet_probe.build.program import load_program
from wcet_probe.cache_sets.specification import Justification, allowed_sets, prove_sets
from wcet_probe.cache_sets.static_words import LEMMA, PREMISES, static_addresses
from wcet_probe.catalog.lookup import load_allocator, load_target

HEAP_BYTES = 5000
POOL = """
#include "cama.h"
#define BLOCKS 64
_Alignas(4096) static struct { uintptr_t base; uint32_t first; uint32_t next[BLOCKS]; } pool;

int cama_init(void *arena, size_t bytes)
{
    if (bytes < 64 * BLOCKS)
        return -1;
    for (uint32_t i = 0; i < BLOCKS; i++)
        *(volatile uint32_t *)&pool.next[i] = i + 1;
    pool.first = 0;
    pool.base = (uintptr_t)arena;
    return 0;
}

void *cama_malloc(size_t bytes, unsigned set)
{
    uint32_t i = pool.first;

    (void)set;
    if (bytes > 64 || i == BLOCKS)
        return NULL;
    pool.first = pool.next[i];
    return (void *)(pool.base + 64 * i);
}

void cama_free(void *block)
{
    uint32_t i = (uint32_t)((uintptr_t)block - pool.base) / 64;

    if (block == NULL || i >= BLOCKS)
        return;
    pool.next[i] = pool.first;
    pool.first = i;
}
"""
CHECK = '#include "cama.h"\nint cama_check(void)\n{\n    return 0;\n}\n'
TAKE = "    pool.first = pool.next[i];\n"
ODD = "    if (bytes == 13)\n        "
RETURN = "    return (void *)(pool.base + 64 * i);\n"
BROKEN = {
    "an index too large by one": ("= i + 1;", "= i + 2;"),
    "an index that nobody looks at": ("block == NULL || i >= BLOCKS", "block == NULL"),
    "a byte of the index": (
        TAKE,
        TAKE + ODD + "((volatile unsigned char *)&pool.first)[2] = 1;\n",
    ),
    "a number of the caller": (TAKE, TAKE + ODD + "pool.first = set;\n"),
    "a store through a word of the caller": (
        TAKE,
        TAKE + ODD + "*(volatile uint32_t *)(uintptr_t)set = 1;\n",
    ),
    "a store to the arena": (TAKE, TAKE + "    *(volatile uint32_t *)(pool.base + 64 * i) = 0;\n"),
    "an index that wraps around": ("pool.next[i] = pool.first;", "pool.next[i] = pool.first - 1;"),
    "a block in static data": (RETURN, "    if (bytes == 13)\n        return &pool;\n" + RETURN),
    "a block that only the image tells of": ("    pool.base = (uintptr_t)arena;\n", ""),
    "another width": ("uint32_t i = pool.first;", "uint32_t i = *(volatile uint16_t *)&pool.first;"),
}


def pool(*changes, target="mpc603e"):
    text = POOL
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    allocator = load_allocator("cama")
    sources = tuple((name, {"cama.c": text, "cama_check.c": CHECK}.get(name, own)) for name, own in allocator.sources)
    return load_program(replace(allocator, sources=sources, facts=()), load_target(target), "zig", images_dir())


def test_an_index_that_is_loaded_is_one_that_was_stored():
    program = pool()
    proof = prove_sets(program, "malloc", (HEAP_BYTES,), allowed_sets(program))
    assert proof.holds
    assert proof.instructions[Justification.INDUCED] == 1
    assert [lemma.id for lemma in proof.lemmas] == [LEMMA]
    assert set(PREMISES) <= set(proof.assumptions)
    assert {site.lemma for site in proof.sites} == {LEMMA}


@pytest.mark.parametrize("name", BROKEN)
def test_nothing_follows_where_a_word_may_be_something_else(name):
    assert not static_addresses(pool(BROKEN[name]), HEAP_BYTES)


def test_the_access_by_an_index_that_may_be_anything_is_named():
    program = pool(BROKEN["a number of the caller"])
    proof = prove_sets(program, "malloc", (HEAP_BYTES,), allowed_sets(program))
    assert not proof.holds
    assert [violation.location.split("+")[0] for violation in proof.possible_violations] == ["cama_malloc"]


def test_nothing_is_said_of_allocators_with_words_in_the_arena():
    program = load_program(load_allocator("kingsley"), load_target("mpc603e"), "zig", images_dir())
    assert not static_addresses(program, HEAP_BYTES)
