/* SPDX-License-Identifier: 0BSD */
#include "djgpp_carve.h"

#include "djgpp_buckets_check.h"

int djgpp_carve_check(void)
{
    size_t least_bucket = 0;

    while (DJGPP_BLOCK_BYTES(least_bucket) < DJGPP_CARVE_MINIMUM_BLOCK)
        least_bucket++;
    return djgpp_check(&djgpp_carve_control, least_bucket);
}
