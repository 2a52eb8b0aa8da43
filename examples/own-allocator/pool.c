/* SPDX-License-Identifier: 0BSD */
#include "pool.h"

/* A block is a header and its payload. The header is the block's bytes, a multiple of 8, and 1 if it is in use; it lies 4
 * bytes below a multiple of 8, and so do all that follow. */
#define HEADER_BYTES 4u
#define IN_USE 1u

static uint32_t bytes_of(const uint32_t *block)
{
    return *block & ~7u;
}

static uint32_t *behind(const uint32_t *block)
{
    return (uint32_t *)((uintptr_t)block + bytes_of(block));
}

void pool_init(struct pool *pool, void *start, void *end)
{
    pool->first = (uint32_t *)((uintptr_t)start + HEADER_BYTES);
    pool->end = (uint32_t *)((uintptr_t)end - HEADER_BYTES);
    *pool->first = (uint32_t)((uintptr_t)pool->end - (uintptr_t)pool->first);
}

enum pool_status pool_take(struct pool *pool, void **block, size_t bytes)
{
    if (bytes > UINT32_MAX - 16)
        return POOL_FULL;
    const uint32_t wanted = (uint32_t)(bytes + HEADER_BYTES + 7) & ~7u;
    /* loop: search */
    for (uint32_t *at = pool->first; at < pool->end; at = behind(at)) {
        if (*at & IN_USE)
            continue;
        uint32_t *const next = behind(at);
        if (next < pool->end && !(*next & IN_USE))
            *at += bytes_of(next); /* one free neighbour is merged at each visit */
        if (*at < wanted)
            continue;
        const uint32_t rest = *at - wanted;
        if (rest != 0) {
            *at = wanted;
            *behind(at) = rest;
        }
        *at |= IN_USE;
        *block = at + 1;
        return POOL_OK;
    }
    return POOL_FULL;
}

void pool_give(struct pool *pool, void *block)
{
    (void)pool;
    ((uint32_t *)block)[-1] &= ~IN_USE;
}

int pool_check(const struct pool *pool)
{
    const uint32_t *at = pool->first;
    while (at < pool->end) {
        if (bytes_of(at) == 0)
            return 1;
        at = behind(at);
    }
    return at != pool->end;
}
