/* SPDX-License-Identifier: 0BSD */
/* The invariants of the heap. Shares the layout with kingsley.c and no code. */
#include "kingsley.h"

/* The free blocks of a bucket, as seen by the walk or by the list. Unsigned sums wrap around, which does no harm. */
struct census {
    size_t count;
    uintptr_t address_sum;
};

static size_t offset_of(const struct kingsley_block *block)
{
    return (uintptr_t)block - (uintptr_t)kingsley_control.base;
}

/* Ends because the offset grows with every step. */
static int check_blocks(struct census *census)
{
    const size_t end = (size_t)(kingsley_control.top - kingsley_control.base);
    size_t bucket_before = 0;

    for (size_t offset = 0; offset < end;) {
        const struct kingsley_block *block = (const void *)(kingsley_control.base + offset);
        const size_t bucket = block->tag >> 1;
        if (bucket >= KINGSLEY_BUCKETS)
            return KINGSLEY_BAD_BUCKET;
        const size_t bytes = KINGSLEY_MINIMUM_BLOCK << bucket;
        const size_t in_page = offset % KINGSLEY_PAGE;
        if (in_page % bytes != 0 || bytes > end - offset)
            return KINGSLEY_BAD_PLACE;
        if (in_page != 0 && bucket != bucket_before)
            return KINGSLEY_BAD_PAGE;
        if ((block->tag & KINGSLEY_FREE_BIT) != 0) {
            census[bucket].count++;
            census[bucket].address_sum += (uintptr_t)block;
        }
        bucket_before = bucket;
        offset += bytes;
    }
    return KINGSLEY_HEAP_SOUND;
}

/* Ends when the list is longer than it may be. */
static int check_list(size_t bucket, const struct census *walked)
{
    struct census list = {0, 0};

    for (const struct kingsley_block *block = kingsley_control.heads[bucket]; block != NULL; block = block->next) {
        if (offset_of(block) % KINGSLEY_MINIMUM_BLOCK != 0
            || offset_of(block) >= (size_t)(kingsley_control.top - kingsley_control.base))
            return KINGSLEY_BAD_LIST_ADDRESS;
        if (block->tag != (bucket << 1 | KINGSLEY_FREE_BIT))
            return KINGSLEY_BAD_LIST_TAG;
        list.count++;
        if (list.count > walked->count)
            break;
        list.address_sum += (uintptr_t)block;
    }
    if (list.count != walked->count)
        return KINGSLEY_BAD_LIST_LENGTH;
    return list.address_sum == walked->address_sum ? KINGSLEY_HEAP_SOUND : KINGSLEY_BAD_LIST_MEMBERS;
}

int kingsley_check(void)
{
    struct census census[KINGSLEY_BUCKETS];

    if (kingsley_control.base == NULL)
        return KINGSLEY_NO_HEAP;
    for (size_t bucket = 0; bucket < KINGSLEY_BUCKETS; bucket++)
        census[bucket] = (struct census){0, 0};
    int violation = check_blocks(census);
    for (size_t bucket = 0; bucket < KINGSLEY_BUCKETS && violation == KINGSLEY_HEAP_SOUND; bucket++)
        violation = check_list(bucket, &census[bucket]);
    return violation;
}
