/* SPDX-License-Identifier: 0BSD */
/* Invariants of a heap with boundary tags, for the checkers of the allocators that are built on them. */
#ifndef BOUNDARY_TAGS_CHECK_H
#define BOUNDARY_TAGS_CHECK_H

#include "boundary_tags.h"

/* In the order in which they are looked at. An allocator's own violations follow from BT_VIOLATIONS on. */
enum bt_violation {
    BT_HEAP_SOUND = 0,
    BT_NO_HEAP,            /* init has not succeeded yet */
    BT_BAD_LOWER_FENCE,    /* the word below the first block is not 0 */
    BT_BAD_SIZE_ALIGNMENT, /* a size is not a multiple of the alignment */
    BT_BAD_SIZE_MINIMUM,   /* a size is below the least block's */
    BT_BAD_CHAIN_END,      /* a block reaches beyond the upper fence: the chain does not cover the arena exactly */
    BT_BAD_FOOTER,         /* a footer is not as its header */
    BT_BAD_ADJACENT_FREE,  /* two neighbours are free */
    BT_BAD_UPPER_FENCE,    /* the word behind the last block is not 0 */
    BT_VIOLATIONS
};

/* The free blocks, as seen by the chain or by the lists. Unsigned sums wrap around, which does no harm. */
struct bt_census {
    size_t count;
    uintptr_t address_sum;
};

static inline void bt_count(struct bt_census *census, const struct bt_block *block)
{
    census->count++;
    census->address_sum += (uintptr_t)block;
}

static inline int bt_is_same_census(struct bt_census a, struct bt_census b)
{
    return a.count == b.count && a.address_sum == b.address_sum;
}

/* Goes through all blocks from the first to the upper fence. Ends because the address grows with every step. */
static inline int bt_check_chain(const struct bt_block *first, const struct bt_block *upper, size_t alignment,
                                 size_t minimum, struct bt_census *census)
{
    const struct bt_block *block = first;
    int was_free = 0;

    if (first == NULL)
        return BT_NO_HEAP;
    if (bt_footer_before(first) != 0)
        return BT_BAD_LOWER_FENCE;
    while (block != upper) {
        const size_t size = bt_size(block);
        if (size % alignment != 0)
            return BT_BAD_SIZE_ALIGNMENT;
        if (size < minimum)
            return BT_BAD_SIZE_MINIMUM;
        if (size > (uintptr_t)upper - (uintptr_t)block)
            return BT_BAD_CHAIN_END;
        const struct bt_block *next = (const void *)((const unsigned char *)block + size);
        if (bt_footer_before(next) != block->header)
            return BT_BAD_FOOTER;
        if (was_free && bt_is_free(block))
            return BT_BAD_ADJACENT_FREE;
        was_free = bt_is_free(block);
        if (was_free)
            bt_count(census, block);
        block = next;
    }
    return upper->header == 0 ? BT_HEAP_SOUND : BT_BAD_UPPER_FENCE;
}

/* Whether a block could start there: only then may it be read. */
static inline int bt_may_be_block(const struct bt_block *block, const struct bt_block *first,
                                  const struct bt_block *upper, size_t alignment, size_t minimum)
{
    const uintptr_t address = (uintptr_t)block;

    return address >= (uintptr_t)first && address <= (uintptr_t)upper - minimum
           && (address - (uintptr_t)first) % alignment == 0;
}

#endif
