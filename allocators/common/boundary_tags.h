/* SPDX-License-Identifier: 0BSD */
/*
 * Boundary tags after Knuth, as P02 section 2.1 has them: every block, free or used, starts and ends with a word that
 * holds its size and whether it is free. Both neighbours of a block are reached in constant time: the one behind it
 * through its own size, the one before it through that one's footer, which is the word below its header.
 *
 *     arena                                                                               arena + bytes
 *     | fence | header  payload ... footer | header  payload ... footer | ... | ... footer | fence |
 *
 * The fences are the footer of a used block before the first one, and the header of a used block behind the last one:
 * neither end of the arena is a special case. A `size` is always that of a whole block, tags included. A payload starts
 * one word into its block: in an arena that is aligned on two words, payloads are so if all sizes are multiples of
 * that.
 */
#ifndef BOUNDARY_TAGS_H
#define BOUNDARY_TAGS_H

#include <stddef.h>
#include <stdint.h>

#define BT_WORD sizeof(size_t)
#define BT_OVERHEAD (2 * BT_WORD) /* header and footer of a block; the two fences of an arena take as much */
#define BT_FREE_BIT ((size_t)1)   /* in a tag; sizes are even */

/* Lengths are given for 32-bit targets. On 64-bit hosts, where every word is twice as long, so are they. */
#define BT_SCALED(bytes_of_32_bit_target) ((size_t)(bytes_of_32_bit_target) / 4 * BT_WORD)

/* A block, or where one starts. The payload follows, then the footer. */
struct bt_block {
    size_t header;
};

static inline size_t bt_size(const struct bt_block *block)
{
    return block->header & ~BT_FREE_BIT;
}

static inline int bt_is_free(const struct bt_block *block)
{
    return (block->header & BT_FREE_BIT) != 0;
}

static inline void *bt_payload(struct bt_block *block)
{
    return block + 1;
}

static inline struct bt_block *bt_block_of(void *payload)
{
    return (struct bt_block *)payload - 1;
}

/* What starts `size` bytes behind the start of a block, and before it. */
static inline struct bt_block *bt_behind(struct bt_block *block, size_t size)
{
    return (void *)((unsigned char *)block + size);
}

static inline struct bt_block *bt_before(struct bt_block *block, size_t size)
{
    return (void *)((unsigned char *)block - size);
}

/* The block behind, or the upper fence, which is not free. */
static inline struct bt_block *bt_next(struct bt_block *block)
{
    return bt_behind(block, bt_size(block));
}

/* The footer of the block before, or the lower fence, which is not free. */
static inline size_t bt_footer_before(const struct bt_block *block)
{
    return block[-1].header;
}

static inline int bt_is_free_before(const struct bt_block *block)
{
    return (bt_footer_before(block) & BT_FREE_BIT) != 0;
}

/* Size of the block before, 0 where that is the fence. */
static inline size_t bt_size_before(const struct bt_block *block)
{
    return bt_footer_before(block) & ~BT_FREE_BIT;
}

/* The block before. There is one: never call it for the first block. */
static inline struct bt_block *bt_prev(struct bt_block *block)
{
    return bt_before(block, bt_size_before(block));
}

/* Writes both tags; free_bit is BT_FREE_BIT or 0. */
static inline void bt_set(struct bt_block *block, size_t size, size_t free_bit)
{
    block->header = size | free_bit;
    *(size_t *)(void *)((unsigned char *)block + size - BT_WORD) = size | free_bit;
}

/* Size of the block that serves a request of `bytes`, which must be far enough below SIZE_MAX. The alignment is a power
 * of two, the minimum a multiple of it. */
static inline size_t bt_size_for(size_t bytes, size_t alignment, size_t minimum)
{
    size_t size = (bytes + BT_OVERHEAD + alignment - 1) & ~(alignment - 1);
    return size < minimum ? minimum : size;
}

/* Makes the arena one free block between two fences; the block has bytes - BT_OVERHEAD bytes. */
static inline struct bt_block *bt_found(void *arena, size_t bytes)
{
    struct bt_block *lower = arena;
    struct bt_block *upper = (void *)((unsigned char *)arena + bytes - BT_WORD);

    lower->header = 0;
    upper->header = 0;
    bt_set(lower + 1, bytes - BT_OVERHEAD, BT_FREE_BIT);
    return lower + 1;
}

#endif
