/* SPDX-License-Identifier: 0BSD */
/* Kingsley's power-of-two allocator, one of the nine of L11 section V (see README.md). The manual is kingsley.h. */
#include "kingsley.h"

_Static_assert(KINGSLEY_ALIGN == 4 || KINGSLEY_ALIGN == 8, "KINGSLEY_ALIGN is 4 or 8");
_Static_assert(KINGSLEY_MINIMUM == 8 || KINGSLEY_MINIMUM == 16, "KINGSLEY_MINIMUM is 8 or 16");
_Static_assert(KINGSLEY_PAGE == 1024 || KINGSLEY_PAGE == 4096, "KINGSLEY_PAGE is 1024 or 4096");
_Static_assert(KINGSLEY_HEADER_BYTES < KINGSLEY_MINIMUM_BLOCK,
               "a minimum block of 8 bytes has no payload behind a header of 8: it needs an alignment of 4");
_Static_assert(KINGSLEY_HEAP_BITS > KINGSLEY_MINIMUM_BITS && KINGSLEY_HEAP_BITS < 32, "sizes are 32-bit words");
_Static_assert(sizeof(struct kingsley_block) <= KINGSLEY_MINIMUM_BLOCK, "the minimum block holds the link");

struct kingsley_control kingsley_control;

static inline size_t used_tag(size_t bucket)
{
    return bucket << 1;
}

static inline size_t free_tag(size_t bucket)
{
    return used_tag(bucket) | KINGSLEY_FREE_BIT;
}

/* A list of new blocks of `bytes` bytes each, by ascending address, or NULL if the rest of the heap is too small. */
static inline struct kingsley_block *carve(size_t bucket, size_t bytes)
{
    size_t left = bytes < KINGSLEY_PAGE ? KINGSLEY_PAGE : bytes;
    struct kingsley_block *first = (void *)kingsley_control.top;
    struct kingsley_block *block = first;

    if (left > (size_t)(kingsley_control.end - kingsley_control.top))
        return NULL;
    kingsley_control.top += left;
    /* loop: carve */
    for (;;) {
        block->tag = free_tag(bucket);
        left -= bytes;
        if (left == 0)
            break;
        block->next = (void *)((unsigned char *)block + bytes);
        block = block->next;
    }
    block->next = NULL;
    return first;
}

/* Written through volatile, or the compiler makes the loop a call of memset. */
static void forget_all_lists(void)
{
    for (size_t bucket = 0; bucket < KINGSLEY_BUCKETS; bucket++)
        *(struct kingsley_block *volatile *)&kingsley_control.heads[bucket] = NULL;
}

int kingsley_init(void *arena, size_t bytes)
{
    if (arena == NULL || (((uintptr_t)arena | bytes) & (KINGSLEY_ALIGNMENT - 1)) != 0)
        return -1;
    if (bytes < KINGSLEY_MIN_HEAP || bytes > KINGSLEY_MAX_HEAP)
        return -1;

    size_t largest = KINGSLEY_PAGE;
    while (largest <= bytes >> 1)
        largest <<= 1;
    forget_all_lists();
    kingsley_control.base = arena;
    kingsley_control.top = arena;
    kingsley_control.end = kingsley_control.base + bytes;
    kingsley_control.largest_request = largest - KINGSLEY_HEADER_BYTES;
    return 0;
}

void *kingsley_malloc(size_t bytes)
{
    if (bytes - 1 >= kingsley_control.largest_request) /* 0 wraps around to SIZE_MAX */
        return NULL;

    size_t bucket = 0;
    /* loop: search */
    while (KINGSLEY_MINIMUM_BLOCK << bucket < bytes + KINGSLEY_HEADER_BYTES)
        bucket++;

    struct kingsley_block *block = kingsley_control.heads[bucket];
    if (block == NULL) {
        block = carve(bucket, KINGSLEY_MINIMUM_BLOCK << bucket);
        if (block == NULL)
            return NULL;
    }
    kingsley_control.heads[bucket] = block->next;
    block->tag = used_tag(bucket);
    return (unsigned char *)block + KINGSLEY_HEADER_BYTES;
}

void kingsley_free(void *payload)
{
    if (payload == NULL)
        return;

    struct kingsley_block *block = (void *)((unsigned char *)payload - KINGSLEY_HEADER_BYTES);
    size_t bucket = block->tag >> 1;
    block->tag = free_tag(bucket);
    block->next = kingsley_control.heads[bucket];
    kingsley_control.heads[bucket] = block;
}
