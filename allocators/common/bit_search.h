/* SPDX-License-Identifier: 0BSD */
/* The highest and the lowest set bit of a 32-bit word, by an instruction or by a table, in constant time. */
#ifndef BIT_SEARCH_H
#define BIT_SEARCH_H

#include <stdint.h>

#define BIT_SEARCH_CLZ 0   /* __builtin_clz: for targets with such an instruction */
#define BIT_SEARCH_TABLE 1 /* two conditionals, not nested, and a table of 256 bytes */
#ifndef BIT_SEARCH
#define BIT_SEARCH BIT_SEARCH_CLZ
#endif

_Static_assert(BIT_SEARCH == BIT_SEARCH_CLZ || BIT_SEARCH == BIT_SEARCH_TABLE, "BIT_SEARCH is 0 or 1");
_Static_assert(sizeof(unsigned) == 4, "__builtin_clz counts in 32 bits");

#if BIT_SEARCH == BIT_SEARCH_CLZ

/* Index of the highest set bit; there must be one. */
static inline unsigned floor_log2(uint32_t word)
{
    return 31u - (unsigned)__builtin_clz(word);
}

#else

#define BIT_SEARCH_4(x) x, x, x, x
#define BIT_SEARCH_16(x) BIT_SEARCH_4(x), BIT_SEARCH_4(x), BIT_SEARCH_4(x), BIT_SEARCH_4(x)
#define BIT_SEARCH_64(x) BIT_SEARCH_16(x), BIT_SEARCH_16(x), BIT_SEARCH_16(x), BIT_SEARCH_16(x)

static const uint8_t byte_log2[256] = {
    0,
    0,
    1,
    1,
    BIT_SEARCH_4(2),
    BIT_SEARCH_4(3),
    BIT_SEARCH_4(3),
    BIT_SEARCH_16(4),
    BIT_SEARCH_16(5),
    BIT_SEARCH_16(5),
    BIT_SEARCH_64(6),
    BIT_SEARCH_64(7),
    BIT_SEARCH_64(7),
};

/* Index of the highest set bit; there must be one. */
static inline unsigned floor_log2(uint32_t word)
{
    unsigned bits = 0;
    if (word >> 16 != 0) {
        word >>= 16;
        bits = 16;
    }
    if (word >> 8 != 0) {
        word >>= 8;
        bits += 8;
    }
    return bits + byte_log2[word];
}

#endif

/* Index of the lowest set bit; there must be one. */
static inline unsigned lowest_bit(uint32_t word)
{
    return floor_log2(word & (0u - word));
}

#endif
