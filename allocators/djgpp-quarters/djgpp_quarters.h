/* SPDX-License-Identifier: 0BSD */
/*
 * djgpp-quarters: four buckets per power of two, a bump pointer, and the topmost block is given back to it.
 *
 * malloc takes the head of its bucket's list; if that is empty, it moves the break by one block. free moves the break
 * back if the block is the last below it, else it pushes. Both take constant time. Nothing here calls a library
 * function; there is one heap; nothing is thread-safe: the caller locks, or calls from one thread only.
 *
 * Sizes are counted in units of two words. Buckets 1 to 7 hold blocks of as many units; bucket 4 e + 4 + q, for q from
 * 0 to 3, blocks of (4 + q) 2^e units: 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, ... bytes on 32-bit
 * targets, header included; with DJGPP_QUARTERS_HEADER_APART that many bytes behind the header. The header is one word, the bucket; whether a block is in use is written nowhere. A block
 * stays in its bucket until it is given back. Only the block that is freed is: blocks below it, even if they are in
 * lists, stay there.
 */
#ifndef DJGPP_QUARTERS_H
#define DJGPP_QUARTERS_H

#include <stddef.h>

/* Bytes of the least block on a 32-bit target, header included: 8 or 16. */
#ifndef DJGPP_QUARTERS_MINIMUM
#define DJGPP_QUARTERS_MINIMUM 16
#endif

/* 1: the header is no part of the units. */
#ifndef DJGPP_QUARTERS_HEADER_APART
#define DJGPP_QUARTERS_HEADER_APART 0
#endif
#define DJGPP_APART_BYTES (DJGPP_QUARTERS_HEADER_APART ? DJGPP_HEADER_BYTES : 0)

#define DJGPP_BUCKETS 97
#define DJGPP_BLOCK_BYTES(bucket) \
    (((bucket) < 4 ? (size_t)(bucket) : ((size_t)4 + ((bucket) & 3)) << (((bucket) >> 2) - 1)) * DJGPP_ALIGNMENT + \
     DJGPP_APART_BYTES)
#include "djgpp_buckets.h"

/* Double on 64-bit hosts, with the pointers. */
#define DJGPP_QUARTERS_MINIMUM_BLOCK DJGPP_SCALED(DJGPP_QUARTERS_MINIMUM)
#define DJGPP_QUARTERS_LEAST_BUCKET (DJGPP_QUARTERS_MINIMUM_BLOCK / DJGPP_ALIGNMENT)

/* Offsets on 32-bit targets: base 0, brk 4, end 8, heads 12 + 4 * bucket. */
extern struct djgpp_buckets djgpp_quarters_control;

/*
 * Makes the arena the heap. Blocks of an earlier heap are forgotten.
 *
 * Returns 0, or nonzero iff arena is NULL or not a multiple of the least block, or bytes is not a multiple of two words,
 * below a word and the least block, or above DJGPP_MAX_HEAP; then nothing has changed.
 */
int djgpp_quarters_init(void *arena, size_t bytes);

/*
 * Returns a block of at least `bytes` bytes, aligned on two words, with a header apart on one: the head of its bucket's list, or a new block.
 *
 * Returns NULL iff bytes is 0, or the list is empty and the rest of the arena too small; then nothing has changed.
 * Time: O(1).
 */
void *djgpp_quarters_malloc(size_t bytes);

/*
 * Gives a block back, to the break or to its bucket. djgpp_quarters_free(NULL) does nothing. The behaviour is undefined
 * if the argument is not a block of the current heap that is in use.
 * Time: O(1).
 */
void djgpp_quarters_free(void *payload);

/* 0 or the first violated invariant, of enum djgpp_violation (djgpp_buckets_check.h). Changes nothing. For tests. */
int djgpp_quarters_check(void);

#endif
