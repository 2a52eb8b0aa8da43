/* SPDX-License-Identifier: 0BSD */
#include "djgpp_sbrk.h"

#include "djgpp_buckets_check.h"

int djgpp_sbrk_check(void)
{
    size_t least_bucket = 0;

    while (DJGPP_BLOCK_BYTES(least_bucket) < DJGPP_SBRK_MINIMUM_BLOCK)
        least_bucket++;
    return djgpp_check(&djgpp_sbrk_control, least_bucket);
}
