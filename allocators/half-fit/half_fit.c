/* SPDX-License-Identifier: 0BSD */
/* Half-fit after C06 and M06 section 2 (see README.md). The manual is half_fit.h. */
#include "half_fit.h"

#include "bit_search.h"

_Static_assert(HALF_FIT_ALIGNMENT == 4 || HALF_FIT_ALIGNMENT == 8, "HALF_FIT_ALIGNMENT is 4 or 8");
_Static_assert(HALF_FIT_MINIMUM_BLOCK % HALF_FIT_ALIGNMENT == 0, "the least block keeps the alignment");
_Static_assert(HALF_FIT_MINIMUM >= BT_OVERHEAD + sizeof(struct dlist), "the least block holds the links");

struct half_fit_control half_fit_control;

/* ---------------------------------------------------------------------------------------------------------- classes */

/* The list that holds blocks of this size. */
static inline unsigned class_of(size_t size)
{
    return floor_log2((uint32_t)(size - BT_OVERHEAD));
}

/* The first list all of whose blocks are as large. */
static inline unsigned class_for(size_t size)
{
    return floor_log2((uint32_t)(size - BT_OVERHEAD - 1)) + 1;
}

/* ------------------------------------------------------------------------------------------------------------ lists */

/* Takes the first block out of a list that is not empty. */
static inline struct bt_block *pop(unsigned class)
{
    struct dlist *head = &half_fit_control.lists[class];
    struct dlist *node = head->next;

    if (node->next == head) { /* it is alone */
        dlist_init(head);
        half_fit_control.bitmap &= ~(1u << class);
    } else {
        head->next = node->next;
        node->next->prev = head;
    }
    return bt_block_of(node);
}

/* Takes a block of `size` bytes out of its list, wherever it stands there. */
static inline void unfile(struct bt_block *block, size_t size)
{
    struct dlist *node = bt_payload(block);

    if (node->next == node->prev) { /* both are the head: it is alone */
        dlist_init(node->next);
        half_fit_control.bitmap &= ~(1u << class_of(size));
    } else {
        dlist_unlink(node);
    }
}

/* ------------------------------------------------------------------------------------------------------- operations */

/* Makes the memory of `block` a free block of `size` bytes. Its neighbours are not free. The bitmap comes first, and the
 * links before the tags: it was read before, and those of a block that has just left its list are still in the cache. */
static inline void release(struct bt_block *block, size_t size)
{
    unsigned class = class_of(size);

    half_fit_control.bitmap |= 1u << class;
    dlist_insert_after(&half_fit_control.lists[class], bt_payload(block));
    bt_set(block, size, BT_FREE_BIT);
}

int half_fit_init(void *arena, size_t bytes)
{
    if (arena == NULL || (uintptr_t)arena % BT_OVERHEAD != 0 || bytes % HALF_FIT_ALIGN != 0)
        return -1;
    if (bytes < HALF_FIT_MIN_HEAP || bytes > HALF_FIT_MAX_HEAP)
        return -1;

    half_fit_control.first = bt_found(arena, bytes);
    half_fit_control.upper = bt_next(half_fit_control.first);
    half_fit_control.bitmap = 0;
    for (unsigned class = 0; class < HALF_FIT_CLASSES; class++)
        dlist_init(&half_fit_control.lists[class]);
    release(half_fit_control.first, bytes - BT_OVERHEAD);
    return 0;
}

void *half_fit_malloc(size_t bytes)
{
    if (bytes - 1 >= HALF_FIT_MAX_HEAP) /* 0 wraps around to SIZE_MAX */
        return NULL;

    size_t size = bt_size_for(bytes, HALF_FIT_ALIGN, HALF_FIT_MINIMUM);
    uint32_t lists = half_fit_control.bitmap & (~0u << class_for(size));
    if (lists == 0)
        return NULL;
    struct bt_block *block = pop(lowest_bit(lists));
    size_t spare = bt_size(block) - size;

    if (spare >= HALF_FIT_SPLIT) {
        bt_set(block, size, 0);
        release(bt_behind(block, size), spare);
    } else {
        bt_set(block, size + spare, 0);
    }
    return bt_payload(block);
}

void half_fit_free(void *payload)
{
    if (payload == NULL)
        return;

    struct bt_block *block = bt_block_of(payload);
    struct bt_block *next = bt_next(block);
    size_t size = bt_size(block);
    size_t tag_before = bt_footer_before(block); /* now: its line is the header's */

    if (bt_is_free(next)) {
        size_t behind = bt_size(next);
        unfile(next, behind);
        size += behind;
    }
    if ((tag_before & BT_FREE_BIT) != 0) {
        size_t before = tag_before & ~BT_FREE_BIT;
        struct bt_block *prev = bt_before(block, before);
        unfile(prev, before);
        release(prev, size + before);
    } else {
        release(block, size);
    }
}
