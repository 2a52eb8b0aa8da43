/* SPDX-License-Identifier: 0BSD */
/* The variant of the DJGPP allocators with boundary tags and bins of small blocks, from its public description. The
 * manual is djgpp_cached.h. */
#include "djgpp_cached.h"

struct djgpp_cached djgpp_cached_control;

int djgpp_cached_init(void *arena, size_t bytes)
{
    const int refused = djgpp_tags_found(&djgpp_cached_control.heap, arena, bytes);

    if (refused)
        return refused;
    /* Written through volatile, or the compiler makes the loop a call of memset. */
    for (size_t bin = 0; bin < DJGPP_CACHED_BINS; bin++)
        *(struct djgpp_tags_node *volatile *)&djgpp_cached_control.bins[bin] = NULL;
    return 0;
}

void *djgpp_cached_malloc(size_t bytes)
{
    if (!djgpp_tags_may_serve(&djgpp_cached_control.heap, bytes))
        return NULL;

    size_t size = djgpp_tags_size_for(bytes);
    if (size < DJGPP_CACHED_SMALL) {
        struct djgpp_tags_node **bin = &djgpp_cached_control.bins[djgpp_cached_bin(size)];
        struct djgpp_tags_node *node = *bin;
        if (node != NULL) {
            *bin = node->next;
            return node;
        }
    }
    return djgpp_tags_cut(&djgpp_cached_control.heap, size);
}

void djgpp_cached_free(void *payload)
{
    if (payload == NULL)
        return;

    struct bt_block *block = bt_block_of(payload);
    size_t size = bt_size(block);
    if (size < DJGPP_CACHED_SMALL) {
        struct djgpp_tags_node **bin = &djgpp_cached_control.bins[djgpp_cached_bin(size)];
        struct djgpp_tags_node *node = payload;
        node->next = *bin;
        *bin = node;
        return;
    }
    djgpp_tags_give_back(&djgpp_cached_control.heap, block);
}
