/* SPDX-License-Identifier: 0BSD */
/*
 * djgpp-tags: boundary tags, a free list per power of two, the rest of the last split tried first.
 *
 * malloc takes the rest of the last split if it is large enough; else the first block that is in the lists from its own
 * power of two upwards; else it moves the break by a chunk. What it cuts off becomes the rest, and the rest so far goes
 * into its list. free merges a block with both neighbours at once. Lists are singly linked: to take a neighbour out of
 * its list, the list is walked up to it. So both are linear in the number of free blocks. Nothing here calls a library
 * function; there is one heap; nothing is thread-safe: the caller locks, or calls from one thread only.
 *
 * List b holds free blocks of 2^b to 2^(b+1) - 1 bytes, tags included, last in, first out. The layout and the build
 * parameters are in common/djgpp_tags.h, the tags in common/boundary_tags.h.
 */
#ifndef DJGPP_TAGS_HEAP_H
#define DJGPP_TAGS_HEAP_H

#include <stddef.h>

#include "djgpp_tags.h"

/* Offsets on 32-bit targets: first 0, brk 4, end 8, rest 12, heads 16 + 4 b. */
extern struct djgpp_tags djgpp_tags_control;

/*
 * Makes the arena the heap. Blocks of an earlier heap are forgotten.
 *
 * Returns 0, or nonzero iff arena is NULL or not aligned on two words, or bytes is not a multiple of the alignment,
 * below the least block and two fences, or above DJGPP_TAGS_MAX_HEAP; then nothing has changed.
 */
int djgpp_tags_init(void *arena, size_t bytes);

/*
 * Returns a block of at least `bytes` bytes.
 *
 * Returns NULL iff bytes is 0, or no free block is large enough, nor would be the last one with all that is left above
 * the break; then nothing has changed.
 * Time: O(n) in the free blocks: those of the request's own power of two may all be too small; then the last block, if
 * it is free, leaves a list that may be as long.
 */
void *djgpp_tags_malloc(size_t bytes);

/*
 * Gives a block back, merged with its free neighbours. djgpp_tags_free(NULL) does nothing. The behaviour is undefined
 * if the argument is not a block of the current heap that is in use.
 * Time: O(n) in the free blocks: the lists of both neighbours are walked up to them.
 */
void djgpp_tags_free(void *payload);

/* 0 or the first violated invariant, of enum djgpp_tags_violation (djgpp_tags_check.h). Changes nothing. For tests. */
int djgpp_tags_check(void);

#endif
