/* SPDX-License-Identifier: 0BSD */
/*
 * Kingsley's allocator: power-of-two buckets, carved from pages, never coalesced.
 *
 * malloc takes the head of a list; if that is empty, it carves a new page into nodes and links them: the one slow case.
 * free pushes, in constant time. Neither contains a recursion, a division or 64-bit arithmetic on a 32-bit target, and
 * nothing here calls a library function. There is one heap. Nothing is thread-safe: the caller locks, or calls from one
 * thread only.
 *
 * Buckets: a block of bucket b has KINGSLEY_MINIMUM_BLOCK << b bytes, header included. Free blocks are in one
 * singly-linked list a bucket, last in, first out. A block stays in its bucket for ever.
 *
 * Pages: the heap is handed out from its start by a pointer that only grows: a page of KINGSLEY_PAGE bytes at a time,
 * which is carved into blocks of one bucket, or one block, if that is larger than a page. What is left at the end of
 * the heap, less than a page, is not used.
 */
#ifndef KINGSLEY_H
#define KINGSLEY_H

#include <stddef.h>
#include <stdint.h>

/* ------------------------------------------------------------------------------------------ parameters of the build */

/* Bytes of the minimum block on a 32-bit target, header included: 8 or 16. 8 needs an alignment of 4. */
#ifndef KINGSLEY_MINIMUM
#define KINGSLEY_MINIMUM 16
#endif

/* Alignment of payloads on a 32-bit target, and bytes of a header: 4 or 8. */
#ifndef KINGSLEY_ALIGN
#define KINGSLEY_ALIGN 8
#endif

/* Bytes of a page, on every target: 1024 or 4096. */
#ifndef KINGSLEY_PAGE
#define KINGSLEY_PAGE 4096
#endif

/* The largest arena is 2^KINGSLEY_HEAP_BITS bytes. It fixes the length of the table of lists. */
#ifndef KINGSLEY_HEAP_BITS
#define KINGSLEY_HEAP_BITS 28
#endif

/* ----------------------------------------------------------------------------------------------------- what follows */

/* Both double on 64-bit hosts, with the pointers. */
#if UINTPTR_MAX > 0xFFFFFFFF
#define KINGSLEY_SCALE_BITS 1
#else
#define KINGSLEY_SCALE_BITS 0
#endif
#define KINGSLEY_ALIGNMENT ((size_t)KINGSLEY_ALIGN << KINGSLEY_SCALE_BITS)
#define KINGSLEY_MINIMUM_BLOCK ((size_t)KINGSLEY_MINIMUM << KINGSLEY_SCALE_BITS)
#define KINGSLEY_HEADER_BYTES KINGSLEY_ALIGNMENT

#define KINGSLEY_MINIMUM_BITS ((KINGSLEY_MINIMUM == 8 ? 3 : 4) + KINGSLEY_SCALE_BITS)
#define KINGSLEY_BUCKETS (KINGSLEY_HEAP_BITS - KINGSLEY_MINIMUM_BITS + 1)

#define KINGSLEY_MIN_HEAP ((size_t)KINGSLEY_PAGE)
#define KINGSLEY_MAX_HEAP ((size_t)1 << KINGSLEY_HEAP_BITS)

/* -------------------------------------------------------------------------------------------------- data structures */

#define KINGSLEY_FREE_BIT ((size_t)1)

/* A block. The link exists in free blocks only: with a header of two words it is the second, else it lies in the
 * payload. */
struct kingsley_block {
    size_t tag;                  /* 2 * bucket, plus KINGSLEY_FREE_BIT if the block is free */
    struct kingsley_block *next; /* NULL in the last block of a list */
};

/* What the allocator knows apart from the heap. All zero before kingsley_init: then every malloc returns NULL. */
struct kingsley_control {
    unsigned char *base;                            /* start of the arena */
    unsigned char *top;                             /* the first byte that is in no block yet */
    unsigned char *end;                             /* the end of the arena */
    size_t largest_request;                         /* payload of the largest power of two that the arena can hold */
    struct kingsley_block *heads[KINGSLEY_BUCKETS]; /* by bucket; NULL: the list is empty */
};

extern struct kingsley_control kingsley_control;

/* ------------------------------------------------------------------------------------------------------- operations */

/*
 * Makes the arena the heap: no page is carved yet. Blocks of an earlier heap are forgotten.
 *
 * Returns 0, or nonzero iff arena is NULL or not a multiple of KINGSLEY_ALIGNMENT, or bytes is not a multiple of
 * KINGSLEY_ALIGNMENT, below KINGSLEY_MIN_HEAP or above KINGSLEY_MAX_HEAP; then nothing has changed.
 */
int kingsley_init(void *arena, size_t bytes);

/*
 * Returns a block of at least `bytes` bytes, aligned on KINGSLEY_ALIGNMENT: the head of the list of its bucket. If
 * that is empty, the next page is carved first, or one block, if that is larger than a page.
 *
 * Returns NULL iff bytes is 0, or above largest_request, or the list is empty and the rest of the heap too small to
 * carve from; then nothing has changed.
 * Time: O(page / M) if a page is carved, else O(log2(bytes / M)), the search for the bucket.
 */
void *kingsley_malloc(size_t bytes);

/*
 * Gives a block back to its bucket. kingsley_free(NULL) does nothing. The behaviour is undefined if the argument is not
 * a block of the current heap that is in use.
 * Time: O(1).
 */
void kingsley_free(void *payload);

/* The invariants, in the order in which they are looked at. */
enum kingsley_violation {
    KINGSLEY_HEAP_SOUND = 0,
    KINGSLEY_NO_HEAP,          /* kingsley_init has not succeeded yet */
    KINGSLEY_BAD_BUCKET,       /* a tag holds no bucket */
    KINGSLEY_BAD_PLACE,        /* a block does not start where its bucket's blocks do in a page, or exceeds the top */
    KINGSLEY_BAD_PAGE,         /* a page holds blocks of two buckets */
    KINGSLEY_BAD_LIST_ADDRESS, /* a list leads to an address where no block can be */
    KINGSLEY_BAD_LIST_TAG,     /* a block in a list is marked used or has another bucket */
    KINGSLEY_BAD_LIST_LENGTH,  /* a list holds more or fewer blocks than are free in the bucket: includes every cycle */
    KINGSLEY_BAD_LIST_MEMBERS  /* as many, but not the same: the sums of the addresses differ */
};

/*
 * Returns KINGSLEY_HEAP_SOUND or the first violated invariant. Changes nothing. For tests.
 * Time: linear in the number of blocks; ends on every heap, however broken, whose control has the first three members
 * intact.
 */
int kingsley_check(void);

#endif
