/* SPDX-License-Identifier: 0BSD */
/* First-fit after P02 section 2.2 (see README.md). The manual is first_fit.h. */
#include "first_fit.h"

struct list_fit first_fit_control;

/* The first block of the list that is large enough, NULL if there is none. */
static struct bt_block *find(size_t size)
{
    struct dlist *const head = &first_fit_control.free;

    /* loop: walk */
    for (struct dlist *node = head->next; node != head; node = node->next)
        if (bt_size(bt_block_of(node)) >= size)
            return bt_block_of(node);
    return NULL;
}

int first_fit_init(void *arena, size_t bytes)
{
    return list_fit_init(&first_fit_control, arena, bytes);
}

void *first_fit_malloc(size_t bytes)
{
    if (bytes - 1 >= LIST_FIT_MAX_HEAP) /* 0 wraps around to SIZE_MAX */
        return NULL;

    size_t size = bt_size_for(bytes, LIST_FIT_ALIGN, LIST_FIT_MINIMUM);
    struct bt_block *block = find(size);
    if (block == NULL)
        return NULL;
    return list_fit_take(&first_fit_control, block, size);
}

void first_fit_free(void *payload)
{
    if (payload != NULL)
        list_fit_give_back(&first_fit_control, bt_block_of(payload));
}
