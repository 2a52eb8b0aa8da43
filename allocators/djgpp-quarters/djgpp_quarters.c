/* SPDX-License-Identifier: 0BSD */
/* The variant of the DJGPP allocators with four buckets per power of two, from its public description. The manual is
 * djgpp_quarters.h. */
#include "djgpp_quarters.h"

_Static_assert(DJGPP_QUARTERS_HEADER_APART == 0 || DJGPP_QUARTERS_HEADER_APART == 1, "0 or 1");
_Static_assert(DJGPP_QUARTERS_MINIMUM == 8 || DJGPP_QUARTERS_MINIMUM == 16, "DJGPP_QUARTERS_MINIMUM is 8 or 16");

struct djgpp_buckets djgpp_quarters_control;

int djgpp_quarters_init(void *arena, size_t bytes)
{
    return djgpp_init(&djgpp_quarters_control, arena, bytes, DJGPP_QUARTERS_MINIMUM_BLOCK);
}

/* The bucket of the smallest blocks that hold bytes, and header unless it is apart. Units that round up to the next power of two have the
 * next bucket's number without further ado. */
static inline size_t bucket_for(size_t bytes)
{
    size_t units = (bytes + DJGPP_HEADER_BYTES - DJGPP_APART_BYTES + DJGPP_ALIGNMENT - 1) / DJGPP_ALIGNMENT;

    if (units <= DJGPP_QUARTERS_LEAST_BUCKET)
        return DJGPP_QUARTERS_LEAST_BUCKET;
    if (units < 4)
        return units;
    size_t doublings = djgpp_log2(units) - 2;
    return 4 * doublings + ((units + ((size_t)1 << doublings) - 1) >> doublings);
}

void *djgpp_quarters_malloc(size_t bytes)
{
    if (!djgpp_may_fit(&djgpp_quarters_control, bytes))
        return NULL;

    size_t bucket = bucket_for(bytes);
    if (djgpp_quarters_control.heads[bucket] != NULL)
        return djgpp_pop(&djgpp_quarters_control, bucket);

    struct djgpp_block *block = djgpp_sbrk_up(&djgpp_quarters_control, DJGPP_BLOCK_BYTES(bucket));
    if (block == NULL)
        return NULL;
    block->bucket = bucket;
    return &block->next;
}

void djgpp_quarters_free(void *payload)
{
    if (payload == NULL)
        return;

    struct djgpp_block *block = djgpp_block_of(payload);
    unsigned char *start = (unsigned char *)block;
    if (start + DJGPP_BLOCK_BYTES(block->bucket) == djgpp_quarters_control.brk)
        djgpp_quarters_control.brk = start;
    else
        djgpp_push(&djgpp_quarters_control, block);
}
