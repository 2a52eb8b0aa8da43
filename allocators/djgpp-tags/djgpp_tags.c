/* SPDX-License-Identifier: 0BSD */
/* The variant of the DJGPP allocators with boundary tags, from its public description. The manual is
 * djgpp_tags_heap.h. */
#include "djgpp_tags_heap.h"

struct djgpp_tags djgpp_tags_control;

int djgpp_tags_init(void *arena, size_t bytes)
{
    return djgpp_tags_found(&djgpp_tags_control, arena, bytes);
}

void *djgpp_tags_malloc(size_t bytes)
{
    if (!djgpp_tags_may_serve(&djgpp_tags_control, bytes))
        return NULL;
    return djgpp_tags_cut(&djgpp_tags_control, djgpp_tags_size_for(bytes));
}

void djgpp_tags_free(void *payload)
{
    if (payload != NULL)
        djgpp_tags_give_back(&djgpp_tags_control, bt_block_of(payload));
}
