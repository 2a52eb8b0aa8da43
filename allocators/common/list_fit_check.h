/* SPDX-License-Identifier: 0BSD */
/* The invariants of a heap of list_fit.h. */
#ifndef LIST_FIT_CHECK_H
#define LIST_FIT_CHECK_H

#include "boundary_tags_check.h"
#include "list_fit.h"

/* What can be wrong beyond enum bt_violation, whose values come first. */
enum list_fit_violation {
    LIST_FIT_BAD_LIST_ADDRESS = BT_VIOLATIONS, /* the list leads to an address where no block can be */
    LIST_FIT_BAD_LIST_FREE_BIT,                /* a block in the list is marked used */
    LIST_FIT_BAD_LIST_LINK,                    /* prev is not the node before it in the list: includes every cycle */
    LIST_FIT_BAD_FREE_BLOCKS                   /* the list holds others than the free blocks of the chain */
};

/* Ends because a node cannot have two nodes before it, nor the first any but the head: every step leads to another. */
static inline int list_fit_check_list(const struct list_fit *heap, struct bt_census *census)
{
    const struct dlist *prev = &heap->free;

    for (const struct dlist *node = prev->next; node != &heap->free; node = node->next) {
        const struct bt_block *block = (const struct bt_block *)(const void *)node - 1;
        if (!bt_may_be_block(block, heap->first, heap->upper, LIST_FIT_ALIGN, LIST_FIT_MINIMUM))
            return LIST_FIT_BAD_LIST_ADDRESS;
        if (!bt_is_free(block))
            return LIST_FIT_BAD_LIST_FREE_BIT;
        if (node->prev != prev)
            return LIST_FIT_BAD_LIST_LINK;
        bt_count(census, block);
        prev = node;
    }
    if (heap->free.prev != prev)
        return LIST_FIT_BAD_LIST_LINK;
    return BT_HEAP_SOUND;
}

/* 0 or the first violated invariant. Changes nothing. Linear in the number of blocks; ends on every heap whose `first`
 * and `upper` are intact. */
static inline int list_fit_check(const struct list_fit *heap)
{
    struct bt_census chain = {0, 0};
    struct bt_census list = {0, 0};

    int violation = bt_check_chain(heap->first, heap->upper, LIST_FIT_ALIGN, LIST_FIT_MINIMUM, &chain);
    if (violation == BT_HEAP_SOUND)
        violation = list_fit_check_list(heap, &list);
    if (violation != BT_HEAP_SOUND)
        return violation;
    if (!bt_is_same_census(chain, list))
        return LIST_FIT_BAD_FREE_BLOCKS;
    return BT_HEAP_SOUND;
}

#endif
