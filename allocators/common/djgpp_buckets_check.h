/* SPDX-License-Identifier: 0BSD */
/* The invariants of a heap of djgpp_buckets.h. Shares the layout with the allocators and no code. */
#ifndef DJGPP_BUCKETS_CHECK_H
#define DJGPP_BUCKETS_CHECK_H

#include "djgpp_buckets.h"

/* The invariants, in the order in which they are looked at. */
enum djgpp_violation {
    DJGPP_HEAP_SOUND = 0,
    DJGPP_NO_HEAP,          /* init has not succeeded yet */
    DJGPP_BAD_BREAK,        /* the break is outside the arena */
    DJGPP_BAD_BUCKET,       /* a header holds no bucket */
    DJGPP_BAD_SIZE,         /* a block reaches beyond the break */
    DJGPP_BAD_LIST_ADDRESS, /* a list leads to an address where no block can be */
    DJGPP_BAD_LIST_BUCKET,  /* a block in a list belongs into another one */
    DJGPP_BAD_LIST_LENGTH   /* a list holds more blocks than its bucket has: includes every cycle */
};

static inline int djgpp_check_blocks(const struct djgpp_buckets *heap, size_t least_bucket, size_t *counts)
{
    const unsigned char *place = heap->base;

    while (place != heap->brk) {
        const size_t bucket = ((const struct djgpp_block *)(const void *)place)->bucket;
        if (bucket < least_bucket || bucket >= DJGPP_BUCKETS)
            return DJGPP_BAD_BUCKET;
        if (DJGPP_BLOCK_BYTES(bucket) > (size_t)(heap->brk - place))
            return DJGPP_BAD_SIZE;
        counts[bucket]++;
        place += DJGPP_BLOCK_BYTES(bucket);
    }
    return DJGPP_HEAP_SOUND;
}

static inline int djgpp_check_list(const struct djgpp_buckets *heap, size_t bucket, size_t longest)
{
    for (const struct djgpp_block *block = heap->heads[bucket]; block != NULL; block = block->next) {
        const uintptr_t offset = (uintptr_t)block - (uintptr_t)heap->base;
        if (offset >= (size_t)(heap->brk - heap->base) || offset % (DJGPP_APART_BYTES != 0 ? DJGPP_HEADER_BYTES : DJGPP_ALIGNMENT) != 0)
            return DJGPP_BAD_LIST_ADDRESS;
        if (block->bucket != bucket)
            return DJGPP_BAD_LIST_BUCKET;
        if (longest-- == 0)
            return DJGPP_BAD_LIST_LENGTH;
    }
    return DJGPP_HEAP_SOUND;
}

/* 0 or the first violated invariant. Changes nothing. Linear in the number of blocks; ends on every heap whose base and
 * end are intact. Which blocks are in use no header says: a block in use that a list holds goes unnoticed. */
static inline int djgpp_check(const struct djgpp_buckets *heap, size_t least_bucket)
{
    size_t counts[DJGPP_BUCKETS];

    if (heap->base == NULL)
        return DJGPP_NO_HEAP;
    if ((uintptr_t)heap->brk - (uintptr_t)heap->base > (uintptr_t)heap->end - (uintptr_t)heap->base)
        return DJGPP_BAD_BREAK;
    for (size_t bucket = 0; bucket < DJGPP_BUCKETS; bucket++)
        *(volatile size_t *)&counts[bucket] = 0;
    int violation = djgpp_check_blocks(heap, least_bucket, counts);
    for (size_t bucket = 0; bucket < DJGPP_BUCKETS && violation == DJGPP_HEAP_SOUND; bucket++)
        violation = djgpp_check_list(heap, bucket, counts[bucket]);
    return violation;
}

#endif
