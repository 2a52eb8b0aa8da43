/* SPDX-License-Identifier: 0BSD */
#include "djgpp_tags_heap.h"

#include "djgpp_tags_check.h"

int djgpp_tags_check(void)
{
    return djgpp_tags_check_heap(&djgpp_tags_control);
}
