/* SPDX-License-Identifier: 0BSD */
/* test1 of the DJGPP allocators that L11 measures, from its public description. The manual is djgpp_sbrk.h. */
#include "djgpp_sbrk.h"

_Static_assert(DJGPP_SBRK_HEADER_APART == 0 || DJGPP_SBRK_HEADER_APART == 1, "DJGPP_SBRK_HEADER_APART is 0 or 1");
_Static_assert(DJGPP_SBRK_MINIMUM == 8 || DJGPP_SBRK_MINIMUM == 16, "DJGPP_SBRK_MINIMUM is 8 or 16");

struct djgpp_buckets djgpp_sbrk_control;

int djgpp_sbrk_init(void *arena, size_t bytes)
{
    return djgpp_init(&djgpp_sbrk_control, arena, bytes, DJGPP_SBRK_MINIMUM_BLOCK);
}

/* The least b with bytes, and header unless it is apart, <= 2^b, and not below the least block's. */
static inline size_t bucket_for(size_t bytes)
{
    size_t sized = bytes + DJGPP_HEADER_BYTES - DJGPP_APART_BYTES;

    return djgpp_log2((sized < DJGPP_SBRK_LEAST_SIZE ? DJGPP_SBRK_LEAST_SIZE : sized) - 1) + 1;
}

void *djgpp_sbrk_malloc(size_t bytes)
{
    if (!djgpp_may_fit(&djgpp_sbrk_control, bytes))
        return NULL;

    size_t bucket = bucket_for(bytes);
    if (djgpp_sbrk_control.heads[bucket] != NULL)
        return djgpp_pop(&djgpp_sbrk_control, bucket);

    struct djgpp_block *block = djgpp_sbrk_up(&djgpp_sbrk_control, DJGPP_BLOCK_BYTES(bucket));
    if (block == NULL)
        return NULL;
    block->bucket = bucket;
    return &block->next;
}

void djgpp_sbrk_free(void *payload)
{
    if (payload != NULL)
        djgpp_push(&djgpp_sbrk_control, djgpp_block_of(payload));
}
