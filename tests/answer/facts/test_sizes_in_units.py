"""A size in units that chooses a list, too, is no index that induction tells apart from sizes: each is loaded as both.

Tests: answer.facts.proved_facts, analyzer.invariants.indices.
"""

import pytest

from tests.support import images_dir
from wcet_probe.answer.facts.proved_facts import proved_facts
from wcet_probe.build.program import load_program
from wcet_probe.catalog.lookup import load_allocator, load_target

HEAP_BYTES = 8192
HEADER = """
#include <stddef.h>
#include <stdint.h>
int exact_init(void *arena, size_t bytes);
void *exact_malloc(size_t bytes);
void exact_free(void *payload);
"""
SOURCE = """
#include "exact.h"
#define LISTS 32
/* Blocks at multiples of 16. A small one keeps in its header how many words were asked for, another one more in 16s. */
struct block { uint32_t words, spare; struct block *next; };
static struct { struct block *lists[LISTS]; uint32_t *behind; unsigned char *top, *end; } exact;

int exact_init(void *arena, size_t bytes)
{
    if (arena == NULL || (((uintptr_t)arena | bytes) & 15) != 0 || bytes < 64)
        return -1;
    for (size_t each = 0; each < LISTS; each++)
        exact.lists[each] = NULL;
    exact.behind = NULL;
    exact.top = arena;
    exact.end = (unsigned char *)arena + bytes;
    return 0;
}

static struct block *carve(size_t size)
{
    struct block *block = (void *)exact.top;
    if ((size_t)(exact.end - exact.top) < size)
        return NULL;
    exact.top += size;
    return block;
}

void *exact_malloc(size_t bytes)
{
    if (bytes > 100000)
        return NULL;
    if (exact.behind != NULL)
        *exact.behind = 1; /* the word behind what was given back last */
    exact.behind = NULL;
    size_t words = (bytes + 3) >> 2, size = (bytes + 31) & ~(size_t)15;
    struct block *block;
    if (words >= LISTS) {
        block = carve(size + 64);
        if (block == NULL)
            return NULL;
        block->words = (bytes + 79) >> 6 << 4;
        return (unsigned char *)block + 8;
    }
    block = exact.lists[words];
    if (block != NULL)
        exact.lists[words] = block->next;
    else if ((block = carve(size)) == NULL)
        return NULL;
    block->words = words;
    return (unsigned char *)block + 8;
}

void exact_free(void *payload)
{
    if (payload == NULL)
        return;
    struct block *block = (void *)((unsigned char *)payload - 8);
    uint32_t *behind = (void *)((uintptr_t)payload + 4 * block->words);
    *behind = 0;
    exact.behind = behind;
    if (block->words < LISTS) {
        block->next = exact.lists[block->words];
        exact.lists[block->words] = block;
    }
}
"""
MANIFEST = """
name = "exact"
title = "Exact lists"
summary = "A list for each number of words."
sources = ["exact.c"]
headers = ["exact.h"]
alignment_bytes = 8
minimum_heap_bytes = 64
[call]
include = ["exact.h"]
init = "exact_init(arena, bytes)"
malloc = "exact_malloc(size)"
free = "exact_free(pointer)"
"""


@pytest.mark.slow
@pytest.mark.parametrize(("multiple_of", "is_proved"), [(8, False), (4, True)])
@pytest.mark.parametrize("target", ["cortex-m7", "arm926ej-s", "mpc603e"])
def test_what_is_behind_an_odd_number_of_words_is_no_multiple_of_8(tmp_path, target, multiple_of, is_proved):
    own = tmp_path / "exact"
    own.mkdir()
    for name, text in (("exact.h", HEADER), ("exact.c", SOURCE), ("manifest.toml", MANIFEST)):
        (own / name).write_text(text, "utf-8")
    (own / "facts.toml").write_text(f'[[pointer]]\nmultiple_of = {multiple_of}\nbecause = "it is asked"\n', "utf-8")
    program = load_program(load_allocator(f"{own}/"), load_target(target), "zig", images_dir())
    (claim,) = proved_facts(program, HEAP_BYTES).claims
    assert claim.is_proved is is_proved
