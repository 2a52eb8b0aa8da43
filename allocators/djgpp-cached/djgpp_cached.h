/* SPDX-License-Identifier: 0BSD */
/*
 * djgpp-cached: djgpp-tags with bins of small blocks, the number of its list kept in a free block, close fits first.
 *
 * A block below the limit of small blocks goes into the bin of its very size when it is freed, as it is: it stays
 * marked used, merges with nothing, and serves the next request of that size. All else is djgpp-tags: malloc takes the
 * rest of the last split if it is large enough; else the first block in the list of its own power of two that is at
 * most 5/4 of the request; else the first one that is large enough, in that list and those above; else it moves the
 * break by a chunk. free merges a block with both neighbours at once, and walks to those that are in a list, whose
 * number they hold. What a split leaves goes into a list too, however small it is. So both are linear in the number of
 * free blocks. Nothing here calls a library function; there is one heap; nothing is thread-safe: the caller locks, or
 * calls from one thread only.
 *
 * List b holds free blocks of 2^b to 2^(b+1) - 1 bytes, tags included, last in, first out, as do the bins. The layout
 * and the other build parameters are in common/djgpp_tags.h, the tags in common/boundary_tags.h.
 */
#ifndef DJGPP_CACHED_H
#define DJGPP_CACHED_H

#include <stddef.h>

#define DJGPP_TAGS_KEPT_BUCKET 1
#define DJGPP_TAGS_CLOSE_FIT 1
#include "djgpp_tags.h"

/* Blocks of fewer bytes than this, tags included, are small. */
#ifndef DJGPP_CACHED_SMALL_BLOCK
#define DJGPP_CACHED_SMALL_BLOCK 64
#endif

/* ----------------------------------------------------------------------------------------------------- what follows */

#define DJGPP_CACHED_SMALL BT_SCALED(DJGPP_CACHED_SMALL_BLOCK)
#define DJGPP_CACHED_BINS ((DJGPP_CACHED_SMALL_BLOCK - DJGPP_TAGS_MINIMUM_BLOCK) / DJGPP_TAGS_ALIGNMENT)

_Static_assert(DJGPP_CACHED_SMALL_BLOCK % DJGPP_TAGS_ALIGNMENT == 0, "the limit of small blocks keeps the alignment");
_Static_assert(DJGPP_CACHED_SMALL_BLOCK > DJGPP_TAGS_MINIMUM_BLOCK, "there is a bin");

/* Offsets on 32-bit targets: those of struct djgpp_tags, bins 128 + 4 * number. */
struct djgpp_cached {
    struct djgpp_tags heap;
    struct djgpp_tags_node *bins[DJGPP_CACHED_BINS]; /* by size, from the least block's; NULL: the bin is empty */
};
extern struct djgpp_cached djgpp_cached_control;

/* Number of the bin of a small size. */
static inline size_t djgpp_cached_bin(size_t size)
{
    return (size - DJGPP_TAGS_MINIMUM) / DJGPP_TAGS_ALIGN;
}

/*
 * Makes the arena the heap. Blocks of an earlier heap are forgotten.
 *
 * Returns 0, or nonzero iff arena is NULL or not aligned on two words, or bytes is not a multiple of the alignment,
 * below the least block and two fences, or above DJGPP_TAGS_MAX_HEAP; then nothing has changed.
 */
int djgpp_cached_init(void *arena, size_t bytes);

/*
 * Returns a block of at least `bytes` bytes.
 *
 * Returns NULL iff bytes is 0, or the request is not small or its bin is empty, and no free block is large enough, nor
 * would be the last one with all that is left above the break; then nothing has changed. Blocks in bins are not free.
 * Time: O(n) in the free blocks: those of the request's own power of two may all be too small, and are visited twice;
 * then the last block, if it is free, leaves a list that may be as long.
 */
void *djgpp_cached_malloc(size_t bytes);

/*
 * Gives a block back: a small one to its bin, another one merged with its free neighbours. djgpp_cached_free(NULL)
 * does nothing. The behaviour is undefined if the argument is not a block of the current heap that is in use.
 * Time: O(1) for a small block; else O(n) in the free blocks: the lists of both neighbours are walked up to them.
 */
void djgpp_cached_free(void *payload);

/* 0 or the first violated invariant, of enum djgpp_cached_violation (djgpp_cached_check.c). Changes nothing. For tests.
 */
int djgpp_cached_check(void);

#endif
