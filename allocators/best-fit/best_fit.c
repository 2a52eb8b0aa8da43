/* SPDX-License-Identifier: 0BSD */
/* Best-fit after P02 section 2.2 (see README.md). The manual is best_fit.h. */
#include "best_fit.h"

struct list_fit best_fit_control;

/* The block of the list with the least to spare, the first of several such, NULL if none is large enough. */
static struct bt_block *find(size_t size)
{
    struct dlist *const head = &best_fit_control.free;
    struct bt_block *best = NULL;
    size_t least_spare = LIST_FIT_MAX_HEAP;

    /* loop: walk */
    for (struct dlist *node = head->next; node != head; node = node->next) {
        size_t spare = bt_size(bt_block_of(node)) - size; /* of too small a one wraps around: far above */
        /* point: better */
        if (spare < least_spare) {
            best = bt_block_of(node);
            if (spare == 0)
                break;
            least_spare = spare;
        }
    }
    return best;
}

int best_fit_init(void *arena, size_t bytes)
{
    return list_fit_init(&best_fit_control, arena, bytes);
}

void *best_fit_malloc(size_t bytes)
{
    if (bytes - 1 >= LIST_FIT_MAX_HEAP) /* 0 wraps around to SIZE_MAX */
        return NULL;

    size_t size = bt_size_for(bytes, LIST_FIT_ALIGN, LIST_FIT_MINIMUM);
    struct bt_block *block = find(size);
    if (block == NULL)
        return NULL;
    return list_fit_take(&best_fit_control, block, size);
}

void best_fit_free(void *payload)
{
    if (payload != NULL)
        list_fit_give_back(&best_fit_control, bt_block_of(payload));
}
