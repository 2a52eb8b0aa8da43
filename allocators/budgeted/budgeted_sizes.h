/* SPDX-License-Identifier: 0BSD */
/* Table 1 of L11, each configuration by ascending size, and what a bucket of a size takes. */
#ifndef BUDGETED_SIZES_H
#define BUDGETED_SIZES_H

#include "budgeted.h"

static const size_t budgeted_sizes[5][8] = {
    {1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072},
    {8, 16, 32, 64, 128, 256, 512, 1024},
    {5184, 17424, 19008, 35432, 49472, 64032, 80176, 91936},
    {10, 40, 192, 384, 996, 1040, 1978, 2952},
    {10, 40, 1024, 2952, 19008, 32768, 65536, 80176},
};

static inline size_t budgeted_size(size_t object)
{
    return budgeted_sizes[BUDGETED_CONFIGURATION][object];
}

static inline size_t budgeted_stride(size_t object)
{
    return (budgeted_size(object) + BUDGETED_ALIGNMENT - 1) & ~(BUDGETED_ALIGNMENT - 1);
}

#endif
