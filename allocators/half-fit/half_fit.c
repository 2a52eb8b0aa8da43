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

static inline void file(struct bt_block *block)
{
    unsigned class = class_of(bt_size(block));

    dlist_insert_after(&half_fit_control.lists[class], bt_payload(block));
    half_fit_control.bitmap |= 1u << class;
}

/* Takes a block out of its list, wherever it stands there. */
static inline void unfile(struct bt_block *block)
{
    struct dlist *node = bt_payload(block);

    dlist_unlink(node);
    if (node->next == node->prev) /* both are the head: it was alone */
        half_fit_control.bitmap &= ~(1u << class_of(bt_size(block)));
}

/* ------------------------------------------------------------------------------------------------------- operations */

/* Makes the memory of `block` a free block of `size` bytes. Its neighbours are not free. */
static inline void release(struct bt_block *block, size_t size)
{
    bt_set(block, size, BT_FREE_BIT);
    file(block);
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
    file(half_fit_control.first);
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
    struct bt_block *block = bt_block_of(half_fit_control.lists[lowest_bit(lists)].next);
    size_t spare = bt_size(block) - size;

    unfile(block);
    if (spare >= HALF_FIT_SPLIT) {
        bt_set(block, size, 0);
        release(bt_next(block), spare);
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

    if (bt_is_free(next)) {
        unfile(next);
        size += bt_size(next);
    }
    if (bt_is_free_before(block)) {
        block = bt_prev(block);
        unfile(block);
        size += bt_size(block);
    }
    release(block, size);
}
