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
    return djgpp_tags_serve(&djgpp_tags_control, bytes);
}

void djgpp_tags_free(void *payload)
{
    djgpp_tags_give_back(&djgpp_tags_control, payload);
}
