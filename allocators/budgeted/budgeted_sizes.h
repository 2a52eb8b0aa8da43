/* SPDX-License-Identifier: 0BSD */
/* Table 1 of L11, each configuration by ascending size, then the program's own; what a bucket takes, and how many. */
#ifndef BUDGETED_SIZES_H
#define BUDGETED_SIZES_H

#include "budgeted.h"

static const size_t budgeted_sizes[6][8] = {
    {1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072},
    {8, 16, 32, 64, 128, 256, 512, 1024},
    {5184, 17424, 19008, 35432, 49472, 64032, 80176, 91936},
    {10, 40, 192, 384, 996, 1040, 1978, 2952},
    {10, 40, 1024, 2952, 19008, 32768, 65536, 80176},
    {BUDGETED_SIZE_1, BUDGETED_SIZE_2, BUDGETED_SIZE_3, BUDGETED_SIZE_4, BUDGETED_SIZE_5, BUDGETED_SIZE_6,
     BUDGETED_SIZE_7, BUDGETED_SIZE_8},
};

/* N_i of what is asked for it. */
#define BUDGETED_COUNT(own) ((own) < 0 ? (size_t)BUDGETED_BUCKETS : (size_t)(own))

static const size_t budgeted_counts[8] = {
    BUDGETED_COUNT(BUDGETED_BUCKETS_1), BUDGETED_COUNT(BUDGETED_BUCKETS_2), BUDGETED_COUNT(BUDGETED_BUCKETS_3),
    BUDGETED_COUNT(BUDGETED_BUCKETS_4), BUDGETED_COUNT(BUDGETED_BUCKETS_5), BUDGETED_COUNT(BUDGETED_BUCKETS_6),
    BUDGETED_COUNT(BUDGETED_BUCKETS_7), BUDGETED_COUNT(BUDGETED_BUCKETS_8),
};

static inline size_t budgeted_size(size_t object)
{
    return budgeted_sizes[BUDGETED_CONFIGURATION][object];
}

static inline size_t budgeted_stride(size_t object)
{
    return (budgeted_size(object) + BUDGETED_ALIGNMENT - 1) & ~(BUDGETED_ALIGNMENT - 1);
}

static inline size_t budgeted_buckets(size_t object)
{
    return budgeted_counts[object];
}

#endif
