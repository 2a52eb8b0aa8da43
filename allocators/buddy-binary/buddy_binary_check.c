/* SPDX-License-Identifier: 0BSD */
/* The invariants of the heap. Shares the layout with buddy_binary.c and no code. */
#include "buddy_binary.h"

/* The free blocks, as seen by the walk or by the lists. Unsigned sums wrap around, which does no harm. */
struct census {
    size_t count;
    uintptr_t address_sum;
};

static void count_block(struct census *census, const struct buddy_binary_block *block)
{
    census->count++;
    census->address_sum += (uintptr_t)block;
}

/* A place inside the heap that is a multiple of the size lies inside one root. */
static int is_place(size_t offset, size_t order)
{
    const size_t bytes = BUDDY_BINARY_MINIMUM_BLOCK << order;

    return offset % bytes == 0 && offset < buddy_binary_control.bytes && bytes <= buddy_binary_control.bytes - offset;
}

/* Ends because the offset grows with every step. */
static int check_blocks(struct census *census)
{
    size_t tag_before = 0;

    for (size_t offset = 0; offset < buddy_binary_control.bytes;) {
        const struct buddy_binary_block *block = (const void *)(buddy_binary_control.base + offset);
        const size_t order = block->tag >> 1;
        if (order >= buddy_binary_control.orders)
            return BUDDY_BINARY_BAD_ORDER;
        if (!is_place(offset, order))
            return BUDDY_BINARY_BAD_PLACE;
        const size_t bytes = BUDDY_BINARY_MINIMUM_BLOCK << order;
        if ((block->tag & BUDDY_BINARY_FREE_BIT) != 0) {
            if ((offset & bytes) != 0 && tag_before == block->tag) /* the buddy ends where this block starts */
                return BUDDY_BINARY_BAD_UNMERGED;
            count_block(census, block);
        }
        tag_before = block->tag;
        offset += bytes;
    }
    return BUDDY_BINARY_HEAP_SOUND;
}

/* Ends because a block cannot have two blocks before it, nor the head any: every step leads to another block. */
static int check_list(size_t order, struct census *census)
{
    const struct buddy_binary_block *prev = NULL;
    const struct buddy_binary_block *block = buddy_binary_control.heads[order];

    while (block != NULL) {
        if (!is_place((uintptr_t)block - (uintptr_t)buddy_binary_control.base, order))
            return BUDDY_BINARY_BAD_LIST_ADDRESS;
        if (block->tag != (order << 1 | BUDDY_BINARY_FREE_BIT))
            return BUDDY_BINARY_BAD_LIST_TAG;
        if (block->prev != prev)
            return BUDDY_BINARY_BAD_LIST_LINK;
        count_block(census, block);
        prev = block;
        block = block->next;
    }
    return BUDDY_BINARY_HEAP_SOUND;
}

int buddy_binary_check(void)
{
    struct census blocks = {0, 0};
    struct census lists = {0, 0};

    if (buddy_binary_control.base == NULL)
        return BUDDY_BINARY_NO_HEAP;
    int violation = check_blocks(&blocks);
    for (size_t order = 0; order < BUDDY_BINARY_ORDERS && violation == BUDDY_BINARY_HEAP_SOUND; order++)
        violation = check_list(order, &lists);
    if (violation != BUDDY_BINARY_HEAP_SOUND)
        return violation;
    if (lists.count != blocks.count)
        return BUDDY_BINARY_BAD_FREE_COUNT;
    return lists.address_sum == blocks.address_sum ? BUDDY_BINARY_HEAP_SOUND : BUDDY_BINARY_BAD_FREE_MEMBERS;
}
