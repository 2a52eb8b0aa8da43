/* SPDX-License-Identifier: 0BSD
 *
 * A small allocator as firmware has it: first fit over all blocks of an arena, which follow each other.
 */
#ifndef POOL_H
#define POOL_H

#include <stddef.h>
#include <stdint.h>

struct pool {
    uint32_t *first; /* the first block's header */
    uint32_t *end;   /* behind the last block */
};

enum pool_status { POOL_OK, POOL_FULL };

/* Make one free block of the bytes from start up to end, both multiples of 8; at least 16 bytes. */
void pool_init(struct pool *pool, void *start, void *end);

/* Put a block of at least bytes bytes into *block; POOL_FULL, and *block as it was, iff there is none. */
enum pool_status pool_take(struct pool *pool, void **block, size_t bytes);

/* Give back a block. */
void pool_give(struct pool *pool, void *block);

/* 0, or 1 where the blocks do not fill the arena. */
int pool_check(const struct pool *pool);

#endif
