/* SPDX-License-Identifier: 0BSD */
/* The variant of the DJGPP allocators that carves chunks, from its public description. The manual is djgpp_carve.h. */
#include "djgpp_carve.h"

_Static_assert(DJGPP_CARVE_MINIMUM == 8 || DJGPP_CARVE_MINIMUM == 16, "DJGPP_CARVE_MINIMUM is 8 or 16");
_Static_assert(DJGPP_CARVE_CHUNK == 1024 || DJGPP_CARVE_CHUNK == 4096, "DJGPP_CARVE_CHUNK is 1024 or 4096");

struct djgpp_buckets djgpp_carve_control;

int djgpp_carve_init(void *arena, size_t bytes)
{
    return djgpp_init(&djgpp_carve_control, arena, bytes, DJGPP_CARVE_MINIMUM_BLOCK);
}

/* The least b with bytes + header <= 2^b, and not below the least block's. */
static inline size_t bucket_for(size_t bytes)
{
    size_t block = bytes + DJGPP_HEADER_BYTES;

    return djgpp_log2((block < DJGPP_CARVE_MINIMUM_BLOCK ? DJGPP_CARVE_MINIMUM_BLOCK : block) - 1) + 1;
}

/* Fills the empty list of a bucket with the blocks of a new chunk, in the order of their addresses. Leaves it empty if
 * the arena has no block left. */
static inline void carve(size_t bucket)
{
    size_t bytes = DJGPP_BLOCK_BYTES(bucket);
    size_t chunk = bytes > DJGPP_CARVE_CHUNK ? bytes : DJGPP_CARVE_CHUNK;
    size_t left = (size_t)(djgpp_carve_control.end - djgpp_carve_control.brk) & ~(bytes - 1);
    unsigned char *place = djgpp_carve_control.brk;
    unsigned char *top = place + (chunk < left ? chunk : left);
    struct djgpp_block **link = &djgpp_carve_control.heads[bucket];

    djgpp_carve_control.brk = top;
    /* loop: carve */
    for (; place != top; place += bytes) {
        struct djgpp_block *block = (void *)place;
        block->bucket = bucket;
        *link = block;
        link = &block->next;
    }
    *link = NULL;
}

void *djgpp_carve_malloc(size_t bytes)
{
    if (!djgpp_may_fit(&djgpp_carve_control, bytes))
        return NULL;

    size_t bucket = bucket_for(bytes);
    if (djgpp_carve_control.heads[bucket] == NULL) {
        carve(bucket);
        if (djgpp_carve_control.heads[bucket] == NULL)
            return NULL;
    }
    return djgpp_pop(&djgpp_carve_control, bucket);
}

void djgpp_carve_free(void *payload)
{
    if (payload != NULL)
        djgpp_push(&djgpp_carve_control, djgpp_block_of(payload));
}
