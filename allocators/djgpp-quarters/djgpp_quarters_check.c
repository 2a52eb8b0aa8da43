/* SPDX-License-Identifier: 0BSD */
#include "djgpp_quarters.h"

#include "djgpp_buckets_check.h"

int djgpp_quarters_check(void)
{
    return djgpp_check(&djgpp_quarters_control, DJGPP_QUARTERS_LEAST_BUCKET);
}
