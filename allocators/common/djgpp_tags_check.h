/* SPDX-License-Identifier: 0BSD */
/* The invariants of a heap of djgpp_tags.h. */
#ifndef DJGPP_TAGS_CHECK_H
#define DJGPP_TAGS_CHECK_H

#include "boundary_tags_check.h"
#include "djgpp_tags.h"

/* What can be wrong beyond enum bt_violation, whose values come first. An allocator's own follow. */
enum djgpp_tags_violation {
    DJGPP_TAGS_BAD_BREAK = BT_VIOLATIONS, /* the break is outside the arena */
    DJGPP_TAGS_BAD_LIST_ADDRESS,          /* a list, or the rest, leads to an address where no block can be */
    DJGPP_TAGS_BAD_LIST_FREE_BIT,         /* a block there is marked used */
    DJGPP_TAGS_BAD_LIST_BUCKET,           /* a block in a list belongs into another one */
    DJGPP_TAGS_BAD_LIST_LENGTH,           /* lists hold more than the free blocks of the chain: includes every cycle */
    DJGPP_TAGS_BAD_FREE_BLOCKS,           /* lists and rest are others than the free blocks of the chain */
    DJGPP_TAGS_BAD_KEPT_BUCKET,           /* a block in a list keeps the number of another one */
    DJGPP_TAGS_VIOLATIONS
};

static inline int djgpp_tags_check_free(const struct djgpp_tags *heap, const struct bt_block *block)
{
    if (!bt_may_be_block(block, heap->first, heap->brk, DJGPP_TAGS_ALIGN, DJGPP_TAGS_MINIMUM))
        return DJGPP_TAGS_BAD_LIST_ADDRESS;
    if (!bt_is_free(block))
        return DJGPP_TAGS_BAD_LIST_FREE_BIT;
    return BT_HEAP_SOUND;
}

/* Ends because no list is longer than the chain has free blocks. */
static inline int djgpp_tags_check_list(const struct djgpp_tags *heap, size_t bucket, size_t longest,
                                        struct bt_census *census)
{
    for (const struct djgpp_tags_node *node = heap->heads[bucket]; node != NULL; node = node->next) {
        const struct bt_block *block = (const struct bt_block *)(const void *)node - 1;
        const int violation = djgpp_tags_check_free(heap, block);
        if (violation != BT_HEAP_SOUND)
            return violation;
        if (djgpp_tags_bucket(bt_size(block)) != bucket)
            return DJGPP_TAGS_BAD_LIST_BUCKET;
#if DJGPP_TAGS_KEPT_BUCKET
        if (node->bucket != bucket)
            return DJGPP_TAGS_BAD_KEPT_BUCKET;
#endif
        bt_count(census, block);
        if (census->count > longest)
            return DJGPP_TAGS_BAD_LIST_LENGTH;
    }
    return BT_HEAP_SOUND;
}

/* 0 or the first violated invariant. Changes nothing. Linear in the number of blocks; ends on every heap whose `first`
 * and `end` are intact. */
static inline int djgpp_tags_check_heap(const struct djgpp_tags *heap)
{
    struct bt_census chain = {0, 0};
    struct bt_census lists = {0, 0};

    if (heap->first == NULL)
        return BT_NO_HEAP;
    if ((uintptr_t)heap->brk - (uintptr_t)heap->first > (uintptr_t)heap->end - (uintptr_t)heap->first
        || ((uintptr_t)heap->brk - (uintptr_t)heap->first) % DJGPP_TAGS_ALIGN != 0)
        return DJGPP_TAGS_BAD_BREAK;
    int violation = bt_check_chain(heap->first, heap->brk, DJGPP_TAGS_ALIGN, DJGPP_TAGS_MINIMUM, &chain);
    if (violation == BT_HEAP_SOUND && heap->rest != NULL) {
        violation = djgpp_tags_check_free(heap, heap->rest);
        bt_count(&lists, heap->rest);
    }
    for (size_t bucket = 0; bucket < DJGPP_TAGS_BUCKETS && violation == BT_HEAP_SOUND; bucket++)
        violation = djgpp_tags_check_list(heap, bucket, chain.count, &lists);
    if (violation != BT_HEAP_SOUND)
        return violation;
    if (!bt_is_same_census(chain, lists))
        return DJGPP_TAGS_BAD_FREE_BLOCKS;
    return BT_HEAP_SOUND;
}

#endif
