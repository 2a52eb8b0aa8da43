/* SPDX-License-Identifier: 0BSD */
/* The invariants of the heap. Shares the layout with half_fit.c and no code: classes are intervals here. */
#include "half_fit.h"

#include "boundary_tags_check.h"

_Static_assert((int)HALF_FIT_BAD_LIST_ADDRESS == (int)BT_VIOLATIONS, "the own violations follow the common ones");

static int is_of_class(const struct bt_block *block, unsigned class)
{
    const size_t payload = bt_size(block) - BT_OVERHEAD;

    return payload >= (size_t)1 << class && payload < (size_t)2 << class;
}

/* Ends because a node cannot have two nodes before it, nor the first any but the head: every step leads to another. */
static int check_list(unsigned class, struct bt_census *census)
{
    const struct dlist *const head = &half_fit_control.lists[class];
    const struct dlist *prev = head;

    for (const struct dlist *node = head->next; node != head; node = node->next) {
        const struct bt_block *block = (const struct bt_block *)(const void *)node - 1;
        if (!bt_may_be_block(block, half_fit_control.first, half_fit_control.upper, HALF_FIT_ALIGN, HALF_FIT_MINIMUM))
            return HALF_FIT_BAD_LIST_ADDRESS;
        if (!bt_is_free(block))
            return HALF_FIT_BAD_LIST_FREE_BIT;
        if (!is_of_class(block, class))
            return HALF_FIT_BAD_LIST_CLASS;
        if (node->prev != prev)
            return HALF_FIT_BAD_LIST_LINK;
        bt_count(census, block);
        prev = node;
    }
    if (head->prev != prev)
        return HALF_FIT_BAD_LIST_LINK;
    return BT_HEAP_SOUND;
}

static int check_lists(struct bt_census *census)
{
    uint32_t bitmap = 0;

    for (unsigned class = 0; class < HALF_FIT_CLASSES; class++) {
        const int violation = check_list(class, census);
        if (violation != BT_HEAP_SOUND)
            return violation;
        bitmap |= (uint32_t)!dlist_is_empty(&half_fit_control.lists[class]) << class;
    }
    if (bitmap != half_fit_control.bitmap)
        return HALF_FIT_BAD_BITMAP;
    return BT_HEAP_SOUND;
}

int half_fit_check(void)
{
    struct bt_census chain = {0, 0};
    struct bt_census lists = {0, 0};

    int violation = bt_check_chain(half_fit_control.first, half_fit_control.upper, HALF_FIT_ALIGN, HALF_FIT_MINIMUM,
                                   &chain);
    if (violation == BT_HEAP_SOUND)
        violation = check_lists(&lists);
    if (violation != BT_HEAP_SOUND)
        return violation;
    if (!bt_is_same_census(chain, lists))
        return HALF_FIT_BAD_FREE_BLOCKS;
    return BT_HEAP_SOUND;
}
