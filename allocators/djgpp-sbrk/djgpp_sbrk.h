/* SPDX-License-Identifier: 0BSD */
/*
 * djgpp-sbrk: power-of-two buckets, one sbrk a miss, never coalesced: test1 of the allocators that L11 measures.
 *
 * malloc finds the bucket by a binary search of five steps and takes the head of its list; if that is empty, it moves
 * the break by one block. free pushes. Both take constant time. Nothing here calls a library function; there is one
 * heap; nothing is thread-safe: the caller locks, or calls from one thread only.
 *
 * Bucket b holds blocks of 2^b bytes, header included, or with DJGPP_SBRK_HEADER_APART of 2^b bytes behind their header,
 * as public copies of the program have it. The header is one word, b itself; whether a block is in use is
 * written nowhere. Free blocks are in one singly-linked list a bucket, last in, first out. A block stays in its bucket
 * for ever.
 */
#ifndef DJGPP_SBRK_H
#define DJGPP_SBRK_H

#include <stddef.h>

/* Bytes of the least block on a 32-bit target, header included: 8 or 16. */
#ifndef DJGPP_SBRK_MINIMUM
#define DJGPP_SBRK_MINIMUM 16
#endif

/* 1: the header is no part of the 2^b bytes. */
#ifndef DJGPP_SBRK_HEADER_APART
#define DJGPP_SBRK_HEADER_APART 0
#endif
#define DJGPP_APART_BYTES (DJGPP_SBRK_HEADER_APART ? DJGPP_HEADER_BYTES : 0)

#define DJGPP_BUCKETS 29 /* by log2 of the block's bytes; the first ones are not used */
#define DJGPP_BLOCK_BYTES(bucket) (((size_t)1 << (bucket)) + DJGPP_APART_BYTES)
#include "djgpp_buckets.h"

/* Double on 64-bit hosts, with the pointers. */
#define DJGPP_SBRK_MINIMUM_BLOCK DJGPP_SCALED(DJGPP_SBRK_MINIMUM)
/* The least 2^b: with a header apart, a block of two words has one word behind it, and there is none of four. */
#define DJGPP_SBRK_LEAST_SIZE \
    (DJGPP_SBRK_HEADER_APART && DJGPP_SBRK_MINIMUM == 8 ? DJGPP_HEADER_BYTES : DJGPP_SBRK_MINIMUM_BLOCK)

/* Offsets on 32-bit targets: base 0, brk 4, end 8, heads 12 + 4 b. */
extern struct djgpp_buckets djgpp_sbrk_control;

/*
 * Makes the arena the heap. Blocks of an earlier heap are forgotten.
 *
 * Returns 0, or nonzero iff arena is NULL or not a multiple of the least block, or bytes is not a multiple of two words,
 * below a word and the least block, or above DJGPP_MAX_HEAP; then nothing has changed.
 */
int djgpp_sbrk_init(void *arena, size_t bytes);

/*
 * Returns a block of at least `bytes` bytes, aligned on two words, with a header apart on one: the head of its bucket's list, or a new block.
 *
 * Returns NULL iff bytes is 0, or the list is empty and the rest of the arena too small; then nothing has changed.
 * Time: O(1).
 */
void *djgpp_sbrk_malloc(size_t bytes);

/*
 * Gives a block back to its bucket. djgpp_sbrk_free(NULL) does nothing. The behaviour is undefined if the argument is
 * not a block of the current heap that is in use.
 * Time: O(1).
 */
void djgpp_sbrk_free(void *payload);

/* 0 or the first violated invariant, of enum djgpp_violation (djgpp_buckets_check.h). Changes nothing. For tests. */
int djgpp_sbrk_check(void);

#endif
