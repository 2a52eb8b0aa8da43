/* SPDX-License-Identifier: 0BSD */
#include "cells.h"

#include <stdint.h>

#define WORD_BITS 32u
#define WORDS (CELLS_COUNT / WORD_BITS)

/* Begins with a way of the cache, so that it is in the first of the reserved sets. */
static struct {
    uintptr_t first;
    uint32_t is_free[WORDS];
} cells __attribute__((aligned(CELLS_CACHE_SETS * CELLS_LINE_BYTES)));

_Static_assert(sizeof cells <= CELLS_RESERVED_SETS * CELLS_LINE_BYTES, "all words are in the reserved sets");

int cells_init(void *arena, size_t bytes)
{
    if (arena == NULL || bytes < CELLS_COUNT * CELLS_BYTES)
        return -1;
    cells.first = (uintptr_t)arena;
    for (unsigned word = 0; word < WORDS; word++)
        cells.is_free[word] = UINT32_MAX;
    return 0;
}

void *cells_malloc(size_t bytes)
{
    if (bytes == 0 || bytes > CELLS_BYTES)
        return NULL;
    for (unsigned word = 0; word < WORDS; word++) {
        const uint32_t free_ones = cells.is_free[word];
        if (free_ones == 0)
            continue;
        const unsigned bit = WORD_BITS - 1 - (unsigned)__builtin_clz(free_ones);
        cells.is_free[word] = free_ones & ~((uint32_t)1 << bit);
        return (void *)(cells.first + CELLS_BYTES * (WORD_BITS * word + bit));
    }
    return NULL;
}

void cells_free(void *cell)
{
    if (cell == NULL)
        return;
    const uint32_t number = (uint32_t)((uintptr_t)cell - cells.first) / CELLS_BYTES % CELLS_COUNT;
    cells.is_free[number / WORD_BITS] |= (uint32_t)1 << number % WORD_BITS;
}

int cells_check(void)
{
    return cells.first == 0;
}
